package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/internal/manage"
)

// printStatus prints one screen.
func printStatus(w io.Writer, st manage.Status) error {
	s := screen{w: w}
	s.line("leaf %s, process %d, %s, up %s", st.Version, st.PID, st.Now.UTC().Format(time.RFC3339), span(st.Now.Sub(st.Started)))
	s.row("node", st.Node+"  "+printable(st.DataDir))
	s.row("listens", addresses(st))
	if st.Stage != "serving" {
		s.row("stage", st.Stage)
	}
	for _, reason := range st.Reasons {
		s.row("", reason)
	}
	s.mode("segment", st.Segment)
	s.mode("snowflake", st.Snowflake)
	s.claim(st)
	s.alarms(st)
	if s.err == nil && st.Segment.Enabled {
		s.err = printStocks(w, st)
	}
	return s.err
}

// screen prints lines and keeps the first error.
type screen struct {
	w   io.Writer
	err error
}

func (s *screen) line(format string, args ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.w, format+"\n", args...)
	}
}

func (s *screen) row(name, text string) { s.line("%-9s  %s", name, text) }

func (s *screen) mode(name string, m manage.Mode) {
	state := "ready"
	switch {
	case !m.Enabled:
		state = "off"
	case !m.Ready:
		state = "NOT READY"
	}
	s.row(name, state)
	for _, reason := range m.Reasons {
		s.row("", reason)
	}
}

func (s *screen) claim(st manage.Status) {
	c := st.Claim
	if c == nil {
		return
	}
	text := "none"
	if c.Worker >= 0 {
		text = strconv.FormatInt(c.Worker, 10)
		if !c.Confirmed {
			text += " from this node's own file, not confirmed by the registry"
		}
		text += "; every ID lies before " + c.Bound.UTC().Format(time.RFC3339) + ", in " + span(c.Bound.Sub(st.Now))
	}
	s.row("worker ID", fmt.Sprintf("%s (%s, %s, %s)", text, c.Registry, c.Kind, c.State))
	if c.Compared.IsZero() {
		return
	}
	var peers []string
	for _, peer := range c.Peers {
		if peer.Error != "" {
			peers = append(peers, peer.Address+" no answer")
			continue
		}
		peers = append(peers, fmt.Sprintf("%s %+.3f s", peer.Address, peer.Ahead))
	}
	if len(peers) == 0 {
		peers = []string{"there were no other nodes"}
	}
	s.row("clocks", strings.Join(peers, ", ")+" ("+span(st.Now.Sub(c.Compared))+" ago)")
}

func (s *screen) alarms(st manage.Status) {
	const shown = 10
	if len(st.Alarms) == 0 {
		s.row("alarms", "none")
		return
	}
	s.row("alarms", strconv.Itoa(len(st.Alarms)+st.MoreAlarms))
	for i, a := range st.Alarms {
		if i == shown {
			s.line("  and %d more; leaf status --json and the log have them", len(st.Alarms)+st.MoreAlarms-shown)
			return
		}
		s.line("  %s (%s): %s", a.Code, printable(a.Subject), a.Text)
		if a.Do != "" {
			s.line("    do: %s", a.Do)
		}
	}
}

func printStocks(w io.Writer, st manage.Status) error {
	if _, err := fmt.Fprintf(w, "\n%d of %d tags in use, the shortest stock first\n", len(st.Tags), st.TagsUsed); err != nil || len(st.Tags) == 0 {
		return err
	}
	rows := [][]string{{"TAG", "LASTS", "STOCK", "IDS/S", "RANGE", "STATE"}}
	for _, t := range st.Tags {
		lasts := "-"
		if t.Seconds != nil {
			lasts = span(time.Duration(min(*t.Seconds, maxSpan.Seconds()) * float64(time.Second)))
		}
		rows = append(rows, []string{printable(t.Tag), lasts, strconv.FormatInt(t.Stock, 10), rateText(t.Rate), strconv.FormatInt(t.Length, 10), stockState(t)})
	}
	return printTable(w, rows)
}

func stockState(t manage.TagStock) string {
	switch {
	case t.Latched:
		return "latched: see leaf tag repair --help"
	case t.Problem != "":
		return t.Problem
	case t.Loading:
		return "loading"
	}
	return "ok"
}

// rateText has one digit behind the point only where that is something.
func rateText(rate float64) string {
	if rate >= 100 {
		return strconv.FormatFloat(rate, 'f', 0, 64)
	}
	return strconv.FormatFloat(rate, 'f', 1, 64)
}

func addresses(st manage.Status) string {
	var all []string
	for _, a := range st.List() {
		if a.Value != "" {
			all = append(all, a.Protocol+" "+a.Value)
		}
	}
	return strings.Join(all, ", ")
}

// maxSpan is the longest time that span shows.
const maxSpan = 9999 * 24 * time.Hour

// span shows a time by its two largest units, and one below a minute to the tenth of a second.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + span(-d)
	case d >= maxSpan:
		return "years"
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
