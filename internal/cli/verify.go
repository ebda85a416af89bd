package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/idlog"
)

type verifyCmd struct {
	Files    []string      `arg:"" optional:"" name:"file" help:"ID logs."`
	Live     bool          `help:"Take IDs from running nodes instead of logs, as leaf bench does, and check those."`
	OneSpace bool          `help:"Compare IDs over all keys, as is right for snowflake IDs. Without it a number may appear once per key."`
	AnyOrder bool          `help:"Do not check that IDs increase within a log."`
	Strict   bool          `help:"Check real-time order, too: if one call ended before another one began, in any log, the IDs of the second are larger. Every record needs the times of its call, @BEGIN-END."`
	Clock    time.Duration `name:"clock-error" placeholder:"TIME" help:"With --strict: how far the clock of each machine may be from the true time, such as 5ms. (default 0, for times of one clock; at most 1h)"`
	Torn     bool          `name:"allow-torn" help:"Accept logs that end in a piece of a record, as a killed writer leaves them. The piece is reported and not read as an ID. Without it such a log gives no verdict."`
	AnyKey   bool          `name:"any-key" help:"Accept keys that all are numbers, times or addresses, and IDs without a key beside those with one. Without it such logs give no verdict: IDs of different keys are not compared."`
	Gaps     bool          `help:"Show the numbers that are missing between the lowest and the highest of each key, and count them as findings."`
	List     int           `default:"10" placeholder:"N" help:"How many findings of each kind to list with their places; all are counted. (default 10)"`
	Memory   byteSize      `default:"1GiB" placeholder:"SIZE" help:"Limit for buffers, such as 512MiB. (default 1GiB; at least 1MiB)"`
	Temp     string        `placeholder:"FOLDER" help:"Folder of the temporary file. (default: that of the system)"`
	Quiet    bool          `short:"q" help:"No progress on standard error."`
	JSON     bool          `name:"json" help:"Print JSON; 64-bit numbers are strings."`

	Load loadFlags `embed:"" group:"With --live"`
}

// Help implements kong.HelpProvider.
func (verifyCmd) Help() string {
	return `Reads logs of signed 64-bit decimal IDs, from Leaf or from another service, and reports IDs that repeat, in one log or over several, and IDs that are not larger than the one before them in their log. No node is asked without --live.

  leaf verify ids/*
  leaf verify --live --tag orders --duration 1m
  leaf verify --live --url http://a:8080 --url http://b:8080 --snowflake
  leaf verify --live --strict --sequence chat --entities 20

A log is what one client received from one node, in that order. Text, one record per line:

  1001              an ID
  orders 1001       key and ID, separated by blanks, tabs or commas
  orders 1001-2000  key and a range, both ends included
  orders 7 @50-60   with the begin and the end of the call, in nanoseconds, for --strict
  # remark

or the binary form that leaf bench --log writes. IDs are decimal numbers from -2^63 to 2^63-1. UUIDs, ULIDs, hexadecimal numbers and unsigned numbers above that are refused, and so are compressed files and standard input (-).

Any number of files of any size: what does not fit into --memory is sorted in a temporary file. The command says first how large it can get. See docs/VERIFY.md.

With --strict the calls of all logs are compared by time. Two calls are concurrent if the second began before the first ended, or at the same time; then their IDs may be in either order. leaf bench --log-format times writes such logs.

With --live the IDs that are taken are used up, and kept in a temporary folder below --temp. When something is found, the folder stays, and standard error names it. Ctrl-C ends the taking; then the IDs are checked.

Exit codes:
  0  nothing found
  1  found: repeated IDs, IDs out of order, with --strict IDs against real time, or with --gaps gaps
  2  no verdict: command line wrong, a log unreadable or torn, no ID in any log, most IDs alone in their key, keys that look like times, IDs without a key beside others, disk full, interrupted; with --strict also: a record without times, or all calls of each key concurrent; with --live also: a node gave no IDs, or none of a tag, or replies that are no IDs`
}

// Run checks logs.
func (c *verifyCmd) Run(ctx context.Context, p Process) error {
	if c.List < 0 {
		return leaf.BadField("list", c.List, "must be 0 or more")
	}
	if c.Clock != 0 && !c.Strict {
		return leaf.BadField("clock-error", c.Clock, "needs --strict")
	}
	if c.Live {
		return c.live(ctx, p)
	}
	if len(c.Files) == 0 {
		return &usageError{errors.New("expected ID logs, or --live with --tag or --snowflake"), "leaf verify --help"}
	}
	if slices.Contains(c.Files, "-") {
		return leaf.BadField("file", "-", "must name a file: standard input cannot be read twice; write it to a file first (a file named - is ./-)")
	}
	return c.check(ctx, p, c.Files, nil)
}

// check compares the IDs of logs and prints the verdict. missed is what the logs should have and do
// not, nil if that is not known.
func (c *verifyCmd) check(ctx context.Context, p Process, files []string, missed error) error {
	o := idlog.Options{
		OneSpace: c.OneSpace, AnyOrder: c.AnyOrder, Strict: c.Strict, ClockError: c.Clock, List: c.List, Memory: int64(c.Memory), Temp: c.Temp,
		Plan: func(plan idlog.Plan) { printPlan(p, plan, c.Quiet) },
	}
	if c.List == 0 {
		o.List = -1
	}
	if !c.Quiet {
		line := newProgressLine(p.Stderr)
		o.Progress = line.show
		defer line.end()
	}
	start := time.Now()
	report, err := idlog.Check(ctx, o, files...)
	if err != nil {
		return &noVerdictError{err}
	}
	v := verdict{Report: report, Seconds: time.Since(start).Seconds(), gaps: c.Gaps, anyOrder: c.AnyOrder, strict: c.Strict, allowTorn: c.Torn, anyKey: c.AnyKey, missed: missed, blank: blank(report.Logs)}
	doubt := v.doubt()
	v.Clean = v.findings() == "" && doubt == nil
	if c.JSON {
		err = printJSON(p.Stdout, v)
	} else {
		err = v.print(p.Stdout)
	}
	switch found := v.findings(); {
	case err != nil:
	case found != "":
		err = errors.New(found)
	case doubt != nil:
		err = &noVerdictError{doubt}
	}
	return err
}

// noVerdictError is why logs could not be checked. Its exit code differs from that of
// findings, so that a script cannot take the one for the other.
type noVerdictError struct{ err error }

func (e *noVerdictError) Error() string {
	text := "no verdict: " + e.err.Error()
	switch {
	case errors.Is(e.err, idlog.ErrBroken):
		text += "; see leaf verify --help for the formats"
	case errors.Is(e.err, idlog.ErrNoSpace):
		text += "; choose another folder with --temp, or more --memory"
	case errors.Is(e.err, idlog.ErrManyKeys):
		text += "; give more --memory"
	case errors.Is(e.err, errTorn):
		text += "; if the last line is whole, end it with a newline; if a killed writer left it, use --allow-torn"
	case errors.Is(e.err, errNoKey):
		text += "; put the key in front of each ID, as in: sed 's/^/KEY /' FILE; --one-space compares all IDs with each other, and --any-key accepts that they are not compared"
	case errors.Is(e.err, errNoTags):
		text += "; if the first column is no tag, leave it out, put the ID last, or use --one-space, which compares the last column of all lines; if it is one, use --any-key"
	case errors.Is(e.err, errAlone):
		text += "; if the first column is no key but a time, or the ID itself, leave it out, or put the ID last; --one-space compares the last column of all lines"
	}
	return text
}

func (e *noVerdictError) Unwrap() error { return e.err }

// byteSize is a number of bytes on the command line.
type byteSize int64

// UnmarshalText implements [encoding.TextUnmarshaler].
func (b *byteSize) UnmarshalText(text []byte) error {
	number := strings.TrimRight(string(text), "KMGTiB")
	unit, ok := map[string]int64{
		"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
		"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	}[string(text[len(number):])]
	n, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || n < 1 || n > math.MaxInt64/unit {
		return fmt.Errorf("size %q: must be a whole number of B, KiB, MiB, GiB, TiB, KB, MB, GB or TB", text)
	}
	*b = byteSize(n * unit)
	return nil
}

// sizeText shows bytes for people.
func sizeText(n int64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	f, i := float64(n), 0
	for ; f >= 1000 && i < len(units)-1; i++ {
		f /= 1000
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}
