package leaf_test

import (
	"regexp"
	"strings"
	"testing"
)

// testList is one of the lists of tests in docs/SECURITY.md: a package with its tests.
var testList = regexp.MustCompile("([a-z]+(?:/[a-z]+)*)((?:,? `Test[A-Za-z0-9]+`)+)")

// TestThreatsNameTheirTests: each threat of docs/SECURITY.md names a test, and the tests exist.
func TestThreatsNameTheirTests(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "docs/SECURITY.md"), "\n## Threats\n")
	section, _, _ = strings.Cut(section, "\n## ")
	threats := strings.Split(section, "\n- **")[1:]
	if len(threats) < 10 {
		t.Errorf("only %d threats were found", len(threats))
	}
	for _, threat := range threats {
		threat = strings.Join(strings.Fields(threat), " ")
		_, tests, _ := strings.Cut(threat, " Tests: ")
		lists := testList.FindAllStringSubmatch(tests, -1)
		if len(lists) == 0 {
			t.Errorf("this threat names no test: %s", threat)
		}
		for _, list := range lists {
			for name := range strings.SplitSeq(list[2], "`") {
				if strings.HasPrefix(name, "Test") && !hasTest(t, list[1], name) {
					t.Errorf("%s has no test %s", list[1], name)
				}
			}
		}
	}
}
