package chaos

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"
)

//go:embed report.gohtml
var page string

// WriteHTML writes the document as one page that needs nothing else: no script, no
// network.
func (d *Document) WriteHTML(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"verdict":  verdict,
		"timeline": newTimeline,
		"seconds":  func(x time.Duration) string { return fmt.Sprintf("%.1f s", x.Seconds()) },
		"short":    func(x time.Duration) string { return x.Round(10 * time.Millisecond).String() },
		"round":    func(x time.Duration) string { return x.Round(time.Second).String() },
		"join":     func(all []string) string { return strings.Join(all, ", ") },
		"date":     func(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" },
		"isFault":  func(k Kind) bool { return k.Name != afterHeal && k.Name != noFault },
		"got":      Kind.outcomes,
		"class":    shade,
		"deadline": deadline.String,
	}).Parse(page)
	if err != nil {
		return err
	}
	return t.Execute(w, d)
}

// shade is the class of a cell of the table: how far from all.
func shade(s Share) string {
	switch {
	case s.All == 0:
		return "none"
	case s.InTime == s.All:
		return "all"
	case s.InTime*100 >= s.All*95:
		return "most"
	}
	return "some"
}
