package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/leaf-idgen/leaf/idlog"
)

// verdict is a report with what the command adds to it.
type verdict struct {
	Clean bool `json:"clean"`
	*idlog.Report
	Seconds float64 `json:"seconds"`

	gaps, anyOrder, strict, allowTorn, anyKey bool

	missed error  // see check
	blank  string // the first log of text that has lines and no ID, "" if there is none
}

var (
	errTorn       = errors.New("a log ends in a piece of a record")
	errMissed     = errors.New("not all were compared")
	errBlank      = errors.New("a log holds lines and no ID")
	errNoIDs      = errors.New("the logs hold no ID")
	errAlone      = errors.New("most IDs were compared with no other one")
	errNoKey      = errors.New("IDs of different keys are not compared, and some IDs have no key while others have one")
	errConcurrent = errors.New("real-time order was not checked: no call began after another one of its key had ended")
	errNoTags     = errors.New("IDs of different keys are not compared, and all keys are numbers, times or addresses")
)

// doubt returns why the logs prove nothing although no finding is in them: a log that is
// cut off may hide a repeated ID, a log without IDs is rarely what was meant, and IDs of
// different keys are not compared, so a column of times, or of the IDs themselves, in the place of
// the key hides all. A few keys have more than one ID even then: an ID that repeats is one. A column
// of seconds, or of nodes, has many. The same holds for a list of another service beside a log of
// leaf bench, which writes the tag. Of concurrent calls, strict order says nothing.
func (v *verdict) doubt() error {
	for _, l := range v.Logs {
		if l.Torn != nil && !v.allowTorn {
			return fmt.Errorf("%w: %v", errTorn, l.Torn)
		}
	}
	if v.Total.IDs == 0 {
		return errNoIDs
	}
	if v.missed != nil {
		return v.missed
	}
	if v.blank != "" {
		return fmt.Errorf("%w: %s: lines that begin with # are remarks: take the # away, quote a key that begins so, or leave the log out", errBlank, v.blank)
	}
	var alone uint64
	for i := range v.Keys {
		if v.Keys[i].IDs == 1 {
			alone++
		}
	}
	if n := len(v.Keys); n > 1 && alone > v.Total.IDs/2 {
		return fmt.Errorf("%w: %d of the %d keys have one ID only", errAlone, alone, n)
	}
	if v.strict && v.Total.Later == 0 {
		return errConcurrent
	}
	if v.anyKey || len(v.Keys) < 2 {
		return nil
	}
	if i := slices.IndexFunc(v.Keys, func(k idlog.KeyReport) bool { return k.Key == "" }); i >= 0 {
		return fmt.Errorf("%w: %d have none", errNoKey, v.Keys[i].IDs)
	}
	if v.hasText() && !slices.ContainsFunc(v.Keys, isTag) {
		return fmt.Errorf("%w: %d of them, the first is %s", errNoTags, len(v.Keys), printable(v.Keys[0].Key))
	}
	return nil
}

// blank returns the name of the first log of text that has lines and no ID. A client that got no ID
// leaves a log without any byte, or in the binary format.
func blank(logs []idlog.LogReport) string {
	i := slices.IndexFunc(logs, func(l idlog.LogReport) bool {
		if l.Records > 0 || l.Torn != nil || l.Format != idlog.Text {
			return false
		}
		info, err := os.Stat(l.Name)
		return err == nil && info.Size() > 0
	})
	if i < 0 {
		return ""
	}
	return logs[i].Name
}

// hasText reports whether people wrote a log: leaf bench writes tags.
func (v *verdict) hasText() bool {
	return slices.ContainsFunc(v.Logs, func(l idlog.LogReport) bool { return l.Format == idlog.Text })
}

// isTag reports whether a key can be a tag: it is no number, time or address, which tags rarely are.
func isTag(k idlog.KeyReport) bool {
	return strings.Trim(k.Key, "0123456789.:+-/TZ") != "" || !strings.ContainsAny(k.Key, "0123456789")
}

// findings is one line about what was found, empty if that is nothing.
func (v *verdict) findings() string {
	var found []string
	t := &v.Total
	if t.Duplicates > 0 {
		found = append(found, fmt.Sprintf("duplicate IDs: %d", t.Duplicates))
	}
	if t.Disorders > 0 {
		found = append(found, fmt.Sprintf("IDs out of order: %d", t.Disorders))
	}
	if t.Inversions > 0 {
		found = append(found, fmt.Sprintf("IDs against real time: %d", t.Inversions))
	}
	if v.gaps && t.Gaps > 0 {
		found = append(found, fmt.Sprintf("gaps: %d", t.Gaps))
	}
	return strings.Join(found, ", ")
}

// maxKeys is how many keys the text shows; JSON has them all.
const maxKeys = 50

func (v *verdict) print(w io.Writer) error {
	out := bufio.NewWriter(w)
	var records uint64
	but, empty, first := "", 0, ""
	for _, l := range v.Logs {
		records += l.Records
		if l.Records == 0 && l.Torn == nil {
			empty++
			first = cmp.Or(first, l.Name)
		}
		if l.Torn != nil {
			but = ", but for what was not read"
		}
	}
	fmt.Fprintf(out, "logs %d, records %d, IDs %d, keys %d, %.1f s\n", len(v.Logs), records, v.Total.IDs, len(v.Keys), v.Seconds)
	for _, l := range v.Logs {
		if l.Torn != nil {
			fmt.Fprintf(out, "torn: %v; not read as an ID\n", l.Torn)
		}
	}
	if empty > 0 && empty < len(v.Logs) {
		fmt.Fprintf(out, "empty: %d of %d logs hold no ID, the first is %s\n", empty, len(v.Logs), first)
	}
	fmt.Fprintln(out)
	if err := v.printKeys(out); err != nil {
		return err
	}
	for i, d := range v.Duplicates {
		if i == 0 {
			fmt.Fprintln(out, "\nduplicates, and where the first ID of each run is:")
		}
		places := make([]string, len(d.Places))
		for j, p := range d.Places {
			places[j] = p.String()
		}
		fmt.Fprintf(out, "  %v  %d times: %s", d, d.Times, strings.Join(places, ", "))
		if d.Times > uint64(len(d.Places)) {
			fmt.Fprint(out, ", ...")
		}
		fmt.Fprintln(out)
	}
	if more := v.Total.Runs - uint64(len(v.Duplicates)); more > 0 {
		fmt.Fprintf(out, "  and %d more runs of duplicates\n", more)
	}
	for i, d := range v.Disorders {
		if i == 0 {
			fmt.Fprintln(out, "\nout of order:")
		}
		fmt.Fprintf(out, "  %v\n", d)
	}
	if more := v.Total.Disorders - uint64(len(v.Disorders)); more > 0 {
		fmt.Fprintf(out, "  and %d more out of order\n", more)
	}
	for i, inv := range v.Inversions {
		if i == 0 {
			fmt.Fprintln(out, "\nagainst real time:")
		}
		fmt.Fprintf(out, "  %v\n", inv)
	}
	if more := v.Total.Inversions - uint64(len(v.Inversions)); more > 0 {
		fmt.Fprintf(out, "  and %d more against real time\n", more)
	}
	repeats, apart := "no ID repeats", ""
	if len(v.Keys) > 1 {
		repeats, apart = "no ID repeats within its key", "IDs of different keys are not compared; --one-space compares them, as is right for snowflake IDs\n"
	}
	if v.strict {
		apart = fmt.Sprintf("real-time order: %d of %d records came from a call that began after another one had ended, and have larger IDs\n", v.Total.Later, records) + apart
	}
	switch found := v.findings(); {
	case found != "":
		fmt.Fprintf(out, "\nfound: %s\n", found)
	case v.doubt() != nil: // standard error says why
	case v.anyOrder:
		fmt.Fprintf(out, "\nclean%s: %s\n%s", but, repeats, apart)
	default:
		fmt.Fprintf(out, "\nclean%s: %s, and within each log every ID is larger than the one before\n%s", but, repeats, apart)
	}
	return out.Flush() // reports the first error of all writes
}

func (v *verdict) printKeys(out io.Writer) error {
	tw := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	head := "KEY\tIDS\tDISTINCT\tDUPLICATES\tOUT OF ORDER\tLOWEST\tHIGHEST"
	if v.strict {
		head += "\tCOMPARED\tAGAINST TIME"
	}
	if v.gaps {
		head += "\tMISSING\tGAPS\tLARGEST GAP"
	}
	fmt.Fprintln(tw, head)
	row := func(name string, k *idlog.KeyReport) {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t%d\t%d", name, k.IDs, k.Distinct, k.Duplicates, k.Disorders, k.Lowest, k.Highest)
		if v.strict {
			fmt.Fprintf(tw, "\t%d\t%d", k.Later, k.Inversions)
		}
		if v.gaps {
			fmt.Fprintf(tw, "\t%d\t%d\t", k.Missing, k.Gaps)
			if g := k.Largest; g.Len > 0 {
				fmt.Fprintf(tw, "%d (%d to %d)", g.Len, g.Lo, g.Hi)
			} else {
				fmt.Fprint(tw, "-")
			}
		}
		fmt.Fprintln(tw)
	}
	for i := range v.Keys {
		if i == maxKeys {
			fmt.Fprintf(tw, "and %d more keys\n", len(v.Keys)-maxKeys)
			break
		}
		row(printable(v.Keys[i].Key), &v.Keys[i])
	}
	if len(v.Keys) != 1 {
		row("(all)", &v.Total)
	}
	return tw.Flush()
}

func printPlan(p Process, plan idlog.Plan, quiet bool) {
	if quiet {
		return
	}
	fmt.Fprintf(p.Stderr, "%d logs, %s", plan.Logs, sizeText(plan.Bytes))
	if plan.Disk > 0 {
		fmt.Fprintf(p.Stderr, "; temporary file in %s: up to %s", plan.Temp, sizeText(plan.Disk))
		if plan.Free >= 0 {
			fmt.Fprintf(p.Stderr, " of %s free", sizeText(plan.Free))
		}
	}
	fmt.Fprintln(p.Stderr)
}
