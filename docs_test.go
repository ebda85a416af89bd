package leaf_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
)

// grpcNames are the names of the gRPC status codes that the table uses.
var grpcNames = map[int]string{
	3: "INVALID_ARGUMENT", 5: "NOT_FOUND", 7: "PERMISSION_DENIED", 8: "RESOURCE_EXHAUSTED", 9: "FAILED_PRECONDITION",
	11: "OUT_OF_RANGE", 12: "UNIMPLEMENTED", 13: "INTERNAL", 14: "UNAVAILABLE", 16: "UNAUTHENTICATED",
}

// TestErrorDocument holds the table of errors in docs/PROTOCOLS.md equal to that of the
// code. When it fails, what it wants is what the document must say.
func TestErrorDocument(t *testing.T) {
	content, err := os.ReadFile("docs/PROTOCOLS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begun := strings.Cut(string(content), "<!-- errors: held equal to class.go by go test . -->\n")
	got, _, ended := strings.Cut(rest, "<!-- end of errors -->\n")
	if !begun || !ended {
		t.Fatal("docs/PROTOCOLS.md lacks the lines around the table of errors")
	}
	want := "\n| code | HTTP | gRPC | Redis | a retry can help | meaning |\n| --- | --- | --- | --- | --- | --- |\n"
	for _, c := range leaf.Classes() {
		name, ok := grpcNames[c.GRPC]
		if !ok {
			t.Errorf("%s: gRPC code %d has no name here", c.Code, c.GRPC)
		}
		retry := "no"
		if c.Retryable {
			retry = "yes"
		}
		want += fmt.Sprintf("| `%s` | %d | %d %s | `%s` | %s | %s |\n", c.Code, c.HTTP, c.GRPC, name, c.RESP, retry, c.Title)
	}
	if diff := cmp.Diff(want+"\n", got); diff != "" {
		t.Errorf("docs/PROTOCOLS.md (-want +got):\n%s", diff)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	// outside are links that no file answers.
	outside = regexp.MustCompile(`^(https?|mailto):`)
)

// TestLinks: what a document points at is there, the part of a document included.
func TestLinks(t *testing.T) {
	links := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		for _, m := range link.FindAllStringSubmatch(read(t, path), -1) {
			if outside.MatchString(m[1]) {
				continue
			}
			links++
			name, part, _ := strings.Cut(m[1], "#")
			target := path
			if name != "" {
				target = filepath.Join(filepath.Dir(path), name)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads nowhere", path, m[1])
				continue
			}
			if part != "" && !strings.Contains(anchors(read(t, target)), " "+part+" ") {
				t.Errorf("%s: %s has no such heading", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if links < 50 {
		t.Errorf("only %d links were found: the documents have more", links)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// anchors are the headings of a document as links name them, with a space around each.
func anchors(document string) string {
	all := " "
	for _, m := range heading.FindAllStringSubmatch(document, -1) {
		all += strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127:
				return r
			}
			return -1
		}, strings.ToLower(m[1])) + " "
	}
	return all
}

var (
	testName   = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)")
	testHeader = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)\(`)
)

// TestDocumentsNameTests: a test that a document names as a proof exists somewhere.
func TestDocumentsNameTests(t *testing.T) {
	exists := map[string]bool{"TestName": true} // stands for any
	documents := make(map[string]string)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin"):
			return filepath.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			for _, m := range testHeader.FindAllStringSubmatch(read(t, path), -1) {
				exists[m[1]] = true
			}
		case filepath.Ext(path) == ".md" && path != "CHANGELOG.md": // of old releases, tests may be gone
			documents[path] = read(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for path, text := range documents {
		for _, m := range testName.FindAllStringSubmatch(text, -1) {
			if named++; !exists[m[1]] {
				t.Errorf("%s names %s, which does not exist", path, m[1])
			}
		}
	}
	if named < 200 {
		t.Errorf("only %d names were found: the documents have more", named)
	}
}
