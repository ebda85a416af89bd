package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/server/admin"
	"github.com/leaf-idgen/leaf/segment"
)

// Exit codes of [Run]. They do not change.
const (
	exitOK       = 0
	exitFailure  = 1 // anything else
	exitUsage    = 2 // the command line or the configuration is wrong
	exitUnknown  = 3 // no such tag
	exitNotReady = 4 // store or node not reachable, or not ready
	exitRefused  = 5 // the current state forbids it
)

const description = `Leaf hands out unique 64-bit IDs over HTTP, gRPC and the Redis protocol: dense ones, from ranges that it reserves in a database (segment mode), and ones made of time, worker ID and counter (snowflake mode).

Start: leaf serve. Then: curl http://127.0.0.1:8080/api/segment/get/leaf-segment-test
or, without tags and the database: curl http://127.0.0.1:8080/api/snowflake/get/any

Commands beside a running node talk to it through a socket in its data directory; without a node, or with --store, they open the database themselves, and those about worker IDs the registry. With --endpoint https://HOST:8081 and --admin-token-file FILE they ask a node of another machine, and open nothing on this one.

Exit codes:
  0  done
  1  failed for another reason
  2  command line or configuration wrong
  3  no such tag
  4  database or node not reachable or not ready
  5  refused: the current state forbids it`

// Process is what a command may use of the process that it runs in.
type Process struct {
	Args    []string // without the name of the program
	Environ []string // like os.Environ
	Stdout  io.Writer
	Stderr  io.Writer
}

// Run executes one command and returns its exit code. When ctx ends, a server
// stops cleanly and any other command gives up.
func Run(ctx context.Context, p Process) int {
	err := run(ctx, p)
	_, told := errors.AsType[*notReadyError](err)
	_, printed := errors.AsType[*printedError](err)
	if err != nil && !told && !printed {
		printError(p.Stderr, err)
	}
	return exitCode(err)
}

// grammar is the command line. Its commands have a method Run. A group is declared beside its
// commands.
type grammar struct {
	Serve    serveCmd      `cmd:"" help:"Run a node until SIGINT or SIGTERM."`
	Status   statusCmd     `cmd:"" help:"Show the state of the running node on one screen."`
	Next     nextCmd       `cmd:"" help:"Issue IDs, one per line."`
	Tag      tagGroup      `cmd:"" help:"Manage tags."`
	Sequence sequenceGroup `cmd:"" help:"Manage sequences: numbers of its own for each entity of a tag, such as a user."`
	Fence    fenceGroup    `cmd:"" help:"Manage what a node remembers of its ranges."`
	Limit    limitGroup    `cmd:"" help:"Limit what tags and clients get from each node."`
	Worker   workerGroup   `cmd:"" help:"Manage the worker IDs of snowflake mode."`
	Token    tokenGroup    `cmd:"" help:"Manage named tokens and their roles."`
	Audit    auditCmd      `cmd:"" help:"Show the administrative changes, the newest first."`
	Reload   reloadCmd     `cmd:"" help:"Make the running node read its configuration again."`
	Drain    drainCmd      `cmd:"" help:"Take the running node out of service, and end it."`
	Node     nodeGroup     `cmd:"" help:"Manage the nodes of the cluster."`
	Decode   decodeCmd     `cmd:"" help:"Take an ID of snowflake mode apart, or show the layouts."`
	Opaque   opaqueGroup   `cmd:"" help:"Turn IDs into numbers that tell nothing, and back."`
	Schema   schemaGroup   `cmd:"" help:"Manage the tables of a database."`
	Config   configGroup   `cmd:"" help:"Inspect the configuration."`
	Import   importCmd     `cmd:"" help:"Take over the numbers of another ID service: tags that begin above them."`
	Compare  compareCmd    `cmd:"" help:"Say whether the numbers of another ID service and those of Leaf can meet."`
	Bench    benchCmd      `cmd:"" help:"Take IDs from running nodes as load, and report rates, latencies and errors."`
	Verify   verifyCmd     `cmd:"" help:"Check logs of IDs, or IDs of running nodes, for duplicates and order."`
	Help     helpCmd       `cmd:"" help:"Show the help of a command."`
	Version  versionCmd    `cmd:"" help:"Print the version."`

	Completion completionCmd `cmd:"" help:"Print the script with which a shell completes commands, flags and tags."`
	Complete   completeCmd   `cmd:"" hidden:""`
	Man        manCmd        `cmd:"" hidden:"" help:"Write the manual pages into a folder."`

	ShowVersion kong.VersionFlag `name:"version" short:"v" help:"Print the version."`
}

// newGrammar returns the command line for these words. Where they begin with a command, it is that one alone: the
// parser takes 15 ms of processor time to read the other commands, and 45 ms with the 2,000 flags of all.
func newGrammar(words []string) any {
	g := reflect.New(onlyNamed(reflect.TypeFor[grammar](), words))
	giveFlags(g.Elem())
	return g.Interface()
}

// onlyNamed leaves those commands of a group out that the words do not name, if they name one. complete and man
// read the whole command line.
func onlyNamed(group reflect.Type, words []string) reflect.Type {
	var fields []reflect.StructField
	named := false
	for f := range group.Fields() {
		_, command := f.Tag.Lookup("cmd")
		if command && (len(words) == 0 || words[0] != strings.ToLower(f.Name) || words[0] == "complete" || words[0] == "man") {
			continue
		}
		if command {
			f.Type, named = onlyNamed(f.Type, words[1:]), true
		}
		fields = append(fields, f)
	}
	if !named {
		return group
	}
	return reflect.StructOf(fields)
}

// giveFlags gives every command the flags of the keys that it needs, by the tag of its
// settings.
func giveFlags(v reflect.Value) {
	for i := range v.NumField() {
		switch keys, ok := v.Type().Field(i).Tag.Lookup("keys"); {
		case ok:
			v.Field(i).Set(reflect.ValueOf(settingsOf(keys)))
		case v.Field(i).Kind() == reflect.Struct:
			giveFlags(v.Field(i))
		}
	}
}

// helpPrinted is how kong's call of exit, after it printed help, leaves the parser.
type helpPrinted struct{}

func run(ctx context.Context, p Process) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(helpPrinted); !ok {
				panic(r)
			}
			err = nil
		}
	}()
	args := p.Args
	if len(args) == 0 {
		args = []string{"--help"}
	}
	if args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	if err := checkArgs(args); err != nil {
		return err
	}
	parser, err := kong.New(newGrammar(args),
		kong.Name("leaf"),
		kong.Description(description),
		kong.Writers(p.Stdout, p.Stderr),
		kong.Vars{"version": versionText()},
		kong.Exit(func(int) { panic(helpPrinted{}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoAppDescFormat: true, WrapUpperBound: 100}),
		kong.ValueFormatter(func(v *kong.Value) string { return v.Help }),
	)
	if err != nil {
		return fmt.Errorf("command line: %w", err)
	}
	command, err := parser.Parse(args)
	if err != nil {
		return &usageError{explainRetired(err), helpFor(err)}
	}
	warnOfArguments(p, command)
	command.BindTo(ctx, (*context.Context)(nil))
	return command.Run(p)
}

// checkArgs refuses what the parser would misread: bytes that are no text, which JSON would
// replace silently on their way to a node, and a negative number, which looks like a flag.
func checkArgs(args []string) error {
	for i, arg := range args {
		if !utf8.ValidString(arg) {
			return leaf.BadField(fmt.Sprintf("argument %d", i+1), arg, "must be valid UTF-8")
		}
		if arg == "--" {
			return nil
		}
		if _, err := strconv.ParseFloat(arg, 64); err == nil && strings.HasPrefix(arg, "-") {
			return leaf.BadField(fmt.Sprintf("argument %d", i+1), arg, "must not be negative; the value of a flag is written --flag="+arg)
		}
	}
	return nil
}

// explainRetired adds what does the job of a flag that an earlier program had.
func explainRetired(err error) error {
	if _, flag, ok := strings.Cut(err.Error(), "unknown flag --"); ok {
		flag, _, _ = strings.Cut(flag, ",")
		flag, _, _ = strings.Cut(flag, "=")
		if text := config.Retired(flag); text != "" {
			return fmt.Errorf("--%s %s", flag, text)
		}
	}
	return err
}

// usageError is a command line that could not be understood.
type usageError struct {
	err  error
	help string // the command that explains more
}

func (e *usageError) Error() string { return fmt.Sprintf("%v; see %s", e.err, e.help) }
func (e *usageError) Unwrap() error { return e.err }

func helpFor(err error) string {
	if pe, ok := errors.AsType[*kong.ParseError](err); ok && pe.Context != nil {
		if node := pe.Context.Selected(); node != nil {
			return node.FullPath() + " --help"
		}
	}
	return "leaf --help"
}

// exitCode maps an error to the documented codes.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*noVerdictError](err); ok {
		return exitUsage
	}
	class := leaf.ClassOf(err)
	_, otherCluster := errors.AsType[*segment.ClusterError](err)
	switch {
	case class.Err == nil && (otherCluster || errors.Is(err, segment.ErrRule)):
		return exitRefused
	case errors.Is(err, segment.ErrSchema), errors.Is(err, admin.ErrNoNode), errors.Is(err, admin.ErrNoListener):
		return exitNotReady
	case class.Err == nil:
		return exitFailure
	case errors.Is(class.Err, leaf.ErrBadRequest):
		return exitUsage
	case errors.Is(class.Err, leaf.ErrUnknownTag):
		return exitUnknown
	case class.Retryable:
		return exitNotReady
	}
	return exitRefused // conflict, latched, invalid row, used up, disabled
}

// printError writes one line per problem. A command that was mistyped can quote a URL where none
// is expected, so passwords are hidden here, for all errors.
func printError(w io.Writer, err error) {
	text := err.Error()
	if a := advice(err); a != "" {
		text += "; " + a
	}
	for line := range strings.SplitSeq(config.RedactText(text), "\n") {
		line = strings.ReplaceAll(strings.TrimPrefix(line, "leaf: "), ": leaf: ", ": ") // a class below a step
		fmt.Fprintf(w, "leaf: %s\n", line)
	}
}

// advice says what to do where the error itself cannot know it.
func advice(err error) string {
	switch {
	case errors.Is(err, leaf.ErrUnknownTag):
		return "leaf tag list shows the tags, leaf tag create makes one"
	case errors.Is(err, leaf.ErrRegress):
		return "see leaf tag repair --help"
	case errors.Is(err, admin.ErrNoNode):
		return "start one with leaf serve, or name the data directory of a running one with --data-dir"
	case errors.Is(err, leaf.ErrInvalidRow):
		return segment.CorrectRow
	}
	return ""
}
