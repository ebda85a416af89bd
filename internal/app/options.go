package app

import (
	"cmp"
	"io/fs"
	"log/slog"
	"os"

	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/limit"
)

// Options are what a program decides, not its user.
type Options struct {
	Logger  *slog.Logger // default: discard
	Version string       // shown by commands
	Notes   []string     // of Load, for the log

	Warnings []string // of Load, for the log

	// Reload makes Run read the configuration again, with Load, and put into force what
	// can change while the node runs (App.Reload). nil: no signal does. Without Load nothing
	// does.
	Reload <-chan os.Signal
	Load   func() (cfg config.Config, files map[string]fs.FileInfo, err error)

	// Files are those that the configuration comes from, as Load returns them
	// (Loaded.Files): a change of one is a reload, too.
	Files map[string]fs.FileInfo

	// Level is that of Logger, for a reload. nil: it needs a restart.
	Level *slog.LevelVar

	// Warn gets what the user of a command should know beside its result. nil: it is dropped.
	Warn func(text string)

	// Snowflake says that the user asked for snowflake mode (Loaded.AsksForSnowflake). A node
	// that can never serve it then does not start.
	Snowflake bool

	// IsSet reports whether a key was set, also to its default (Loaded.IsSet). nil: none was.
	IsSet func(key string) bool

	// Manager is told how the node is, by Run.
	Manager Manager

	// NoEmbedded is why a command must not work on the embedded database, nil if it may.
	NoEmbedded error

	makeLost     bool // leaf.db is made again where it is lost
	withoutFence bool // a fence that is refused keeps no command from its work
	stopped      bool // the command needs all nodes stopped

	selfCheck  func()                          // of the watchdog; default: that of the engines
	openFiles  func() uint64                   // the limit of this process, 0 for none; default: the system's
	interfaces func() ([]Interface, error)     // default: those of this machine
	limits     func(s limit.Store) limit.Store // what stands before a database when limits are read; default: nothing
}

// logger is Logger, or one that discards.
func (o Options) logger() *slog.Logger { return cmp.Or(o.Logger, slog.New(slog.DiscardHandler)) }
