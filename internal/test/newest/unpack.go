package newest

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// versionOf returns the version of a package among files that are called
// name_version_architecture.deb.
func versionOf(pkg string, packages []string) (string, error) {
	for _, file := range packages {
		parts := strings.Split(filepath.Base(file), "_")
		if len(parts) == 3 && parts[0] == pkg {
			version, err := url.PathUnescape(parts[1]) // the colon of an epoch is %3a
			return strings.ReplaceAll(version, ":", "~"), err
		}
	}
	return "", fmt.Errorf("apt-get fetched no file of the package %s", pkg)
}

// unpack extracts packages into one tree; their scripts are not run.
func unpack(ctx context.Context, packages []string, tree string) error {
	if err := os.Mkdir(tree, 0o755); err != nil {
		return err
	}
	for _, file := range packages {
		if output, err := exec.CommandContext(ctx, "dpkg-deb", "-x", file, tree).CombinedOutput(); err != nil {
			return fmt.Errorf("unpack %s: %w\n%s", filepath.Base(file), err, bytes.TrimSpace(output))
		}
	}
	return nil
}

// binaries are the folders whose programs are started by others.
var binaries = []string{"usr/bin", "usr/sbin", "usr/lib/postgresql/*/bin"}

// wrap makes the programs of a tree run on its libraries once it is at root, and makes
// its folder bin. A program becomes a script that starts it by the tree's own loader; so
// one that starts another by its path, as initdb does, starts a script, too.
func wrap(wanted set, tree, root string) error {
	loaders, err := filepath.Glob(filepath.Join(tree, "usr/lib/*/ld-linux-*.so.*"))
	if err != nil {
		return err
	}
	for _, pattern := range binaries {
		programs, err := filepath.Glob(filepath.Join(tree, pattern, "*"))
		if err != nil {
			return err
		}
		for _, program := range programs {
			if !needsLoader(program) {
				continue
			}
			if len(loaders) != 1 {
				return fmt.Errorf("%d loaders in %s; one is needed to start %s", len(loaders), tree, filepath.Base(program))
			}
			if err := wrapProgram(program, loaders[0], tree, root); err != nil {
				return err
			}
		}
	}
	return link(wanted, tree)
}

// needsLoader reports whether a file is a program that is linked with libraries.
func needsLoader(path string) bool {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}

func wrapProgram(program, loader, tree, root string) error {
	behind := program + ".program"
	if err := os.Rename(program, behind); err != nil {
		return err
	}
	final := func(path string) string { return "'" + strings.Replace(path, tree, root, 1) + "'" }
	text := "#!/bin/sh\nexec " + strings.Join([]string{
		final(loader), "--library-path", final(filepath.Dir(loader)), `--argv0 "$0"`, final(behind), `"$@"`,
	}, " ") + "\n"
	return os.WriteFile(program, []byte(text), 0o755)
}

// link makes the folder bin, with a link to each program of the set.
func link(wanted set, tree string) error {
	if err := os.Mkdir(filepath.Join(tree, "bin"), 0o755); err != nil {
		return err
	}
	for _, pattern := range wanted.programs {
		programs, err := filepath.Glob(filepath.Join(tree, pattern))
		if err != nil {
			return err
		}
		programs = slices.DeleteFunc(programs, func(p string) bool { return strings.HasSuffix(p, ".program") })
		if len(programs) == 0 {
			return fmt.Errorf("the package %s has no %s", wanted.pkg, pattern)
		}
		for _, program := range programs {
			name := filepath.Base(program)
			if other, ok := wanted.as[name]; ok {
				name = other
			}
			target, err := filepath.Rel(filepath.Join(tree, "bin"), program)
			if err != nil {
				return err
			}
			if err := os.Symlink(target, filepath.Join(tree, "bin", name)); err != nil {
				return err
			}
		}
	}
	return nil
}
