package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
)

// TestREADMENamesTheCommands: both READMEs name every command, and those that print no JSON.
func TestREADMENamesTheCommands(t *testing.T) {
	t.Parallel()
	commands, err := cli.Commands()
	if err != nil {
		t.Fatal(err)
	}
	for file, heading := range map[string]string{"README.md": "## Commands", "README.zh-CN.md": "## 命令"} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		_, section, _ := strings.Cut(string(text), heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		named, plain := map[string]bool{}, []string{}
		for _, m := range regexp.MustCompile("`(leaf )?([^`]+)`").FindAllStringSubmatch(section, -1) {
			if m[1] == "" {
				plain = append(plain, m[2])
				continue
			}
			words := strings.Fields(m[2])
			named[words[0]] = true
			for _, word := range words[1:] { // of a group
				named[words[0]+" "+word] = true
			}
		}
		for _, c := range commands {
			name := strings.Join(c.Path, " ")
			if !named[name] {
				t.Errorf("%s does not name leaf %s", file, name)
			}
			if slices.Contains(plain, name) == c.JSON {
				t.Errorf("%s is wrong about --json of leaf %s, which it has: %v", file, name, c.JSON)
			}
		}
	}
}
