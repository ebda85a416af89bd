package cli_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
)

// TestRowsThatFit: a screen shows the beginning of a frame, broken at its width, and says how much
// it does not show.
func TestRowsThatFit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name            string
		frame           string
		columns, height int
		want            string // a row per line
	}{
		{"it fits", "a\n\nb\n", 10, 4, "a\n\nb"},
		{"one row too many", "a\n\nb\n", 50, 3, "a\n(2 rows more; leaf status prints them)"},
		{"a full row", "abcd\nx\n", 4, 3, "abcd\nx"},
		{"a row that is broken", "abcde\nx\n", 4, 4, "abcd\ne\nx"},
		{"a row that does not fit because another is broken", "abcde\nx\n", 4, 3, "abcd\n(2 r"},
		{"wide characters", "标签a\n", 4, 3, "标签\na"},
		{"a character that is wider than the screen", "标签\n", 1, 9, "标\n签"},
		{"one row", "a\nb\n", 80, 1, ""},
		{"unknown size", strings.Repeat("x", 500) + "\ny\n", 0, 0, strings.Repeat("x", 500) + "\ny"},
	} {
		if got := cli.RowsThatFit(tt.frame, tt.columns, tt.height); strings.Join(got, "\n") != tt.want || tt.want == "" && len(got) > 0 {
			t.Errorf("%s: %q; want %q", tt.name, got, strings.Split(tt.want, "\n"))
		}
	}
}

// FuzzRowsThatFit: no row is wider than the screen, no more are shown than it has, and with enough
// of them nothing is lost.
func FuzzRowsThatFit(f *testing.F) {
	f.Add("tag\n标签 \x1b[K\n", 3, 4)
	f.Fuzz(func(t *testing.T, frame string, columns, height int) {
		columns, height = max(columns, 1)%300+1, max(height, 1)%300+1
		rows := cli.RowsThatFit(frame, columns, height)
		tooWide := slices.ContainsFunc(rows, func(row string) bool { return len([]rune(row)) > columns })
		if tooWide || len(rows) >= height {
			t.Errorf("%d rows on a screen of %d x %d: %q", len(rows), columns, height, rows)
		}
		if all := strings.Join(cli.RowsThatFit(frame, columns, len(frame)+2), ""); all != strings.ReplaceAll(frame, "\n", "") {
			t.Errorf("%q became %q", frame, all)
		}
	})
}
