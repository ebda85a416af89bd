package chaos

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteText writes the document for a terminal.
func (d *Document) WriteText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Chaos: %d runs, %s\n\n", len(d.Reports), d.verdict())
	for _, reason := range d.Unrun {
		fmt.Fprintf(&b, "NOT RUN: %s\n\n", reason)
	}
	fmt.Fprintf(&b, "made    %s UTC\ncommand %s\ncommit  %s\nmachine %s\n", d.Made.UTC().Format(time.DateTime), d.Command, d.Commit, d.Machine)
	for _, r := range d.Reports {
		r.text(&b)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// verdict claims nothing for runs that were not made.
func (d *Document) verdict() string {
	if len(d.Reports) == 0 {
		return "nothing was shown"
	}
	return verdict(d.Failed())
}

func verdict(failed bool) string {
	if failed {
		return "a promise was BROKEN"
	}
	return "every promise was kept"
}

// text writes one report.
func (r *Report) text(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n== %s: %s\n%s\nPromise: %s\n", r.Topology, verdict(r.Failed()), r.About, r.Expect)
	fmt.Fprintf(b, "Seed %d; %s; %d requests in %v; %d IDs verified in %d logs\n\n", r.Seed, strings.Join(r.Versions, ", "),
		r.Requests, r.Ran.Round(time.Second), r.Verdict.IDs, r.Verdict.Logs)
	for _, c := range r.Checks {
		mark := "ok    "
		if !c.Kept {
			mark = "BROKEN"
		}
		fmt.Fprintf(b, "  %s %s\n", mark, c.Text)
	}
	if r.Kept != "" {
		fmt.Fprintf(b, "  logs of nodes and clients: %s\n", r.Kept)
	}
	fmt.Fprintf(b, "\nRequests answered within %v, for tags in strict order within %v, while the fault was on:\n\n", deadline, strictDeadline)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "times\ton\tall\tits nodes\tothers\ttags with stock\tstrict order\tslowest return\t  fault\n")
	for _, k := range r.Kinds {
		fired, slowest := fmt.Sprint(k.Fired), k.Slowest.Round(10*time.Millisecond).String()
		if k.Name == noFault || k.Name == afterHeal {
			fired, slowest = "", ""
		}
		fmt.Fprintf(t, "%s\t%.1fs\t%s\t%s\t%s\t%s\t%s\t%s\t  %s\n", fired, k.On.Seconds(), k.All, k.Aimed, k.Other, k.Stock, k.Strict, slowest, k.Name)
	}
	_ = t.Flush() // into a buffer
	fmt.Fprint(b, "\nWhat the others got:\n\n")
	for _, k := range r.Kinds {
		if text := k.outcomes(); text != "" {
			fmt.Fprintf(b, "  %s: %s\n", k.Name, text)
		}
	}
	fmt.Fprint(b, "\nFaults in the order in which they came:\n\n")
	for _, e := range r.Events {
		fmt.Fprintf(b, "  %7.1fs  %6.2fs, served %5.2fs after  %s\n", e.Begin.Seconds(), (e.Healed - e.Begin).Seconds(), (e.Green - e.Healed).Seconds(), e)
	}
}

// String names the event and on whom it came.
func (e Event) String() string {
	text := e.Fault + " (" + e.Target
	if e.Note != "" && e.Note != e.Target {
		text += "; " + e.Note
	}
	text += ")"
	if e.Pair {
		text += ", one of two"
	}
	return text
}
