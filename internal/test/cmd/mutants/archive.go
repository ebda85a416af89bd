package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// begin is the line before a mutant in an archive.
var begin = regexp.MustCompile(`(?m)^=== (\S+) ===\n`)

// readArchives reads the archives below folder, one a source file and named after it.
func readArchives(folder string) (all []mutant, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		source, ok := strings.CutSuffix(filepath.ToSlash(relative), ".mutants")
		switch {
		case relative == "README.md":
			return nil
		case !ok:
			return fmt.Errorf("%s: a mutant belongs into the archive of its source file, SOURCE.mutants", path)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found, err := parseArchive(source, string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, found...)
		return nil
	})
	return all, err
}

// parseArchive reads all mutants of one source file. Their names increase, so that a
// mutant has one place and none is there twice.
func parseArchive(source, text string) (all []mutant, err error) {
	places := begin.FindAllStringSubmatchIndex(text, -1)
	if len(places) == 0 || places[0][0] != 0 {
		return nil, fmt.Errorf("it must begin with a line %q", "=== name ===")
	}
	for i, p := range places {
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		m, err := parse(text[p[2]:p[3]], source, text[p[1]:end])
		if err != nil {
			return nil, err
		}
		if i > 0 && m.name <= all[i-1].name {
			return nil, fmt.Errorf("%s stands behind %s: names must increase", m.name, all[i-1].name)
		}
		all = append(all, m)
	}
	return all, nil
}
