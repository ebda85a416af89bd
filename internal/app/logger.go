package app

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/leaf-idgen/leaf/internal/config"
)

// NewLogger returns the logger that c asks for, on w, and its level, which may change while it
// is used. c must be valid.
func NewLogger(w io.Writer, c config.Log) (*slog.Logger, *slog.LevelVar) {
	level := &slog.LevelVar{}
	level.Set(levelOf(c))
	opts := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		opts.ReplaceAttr = named
		return slog.New(slog.NewJSONHandler(w, opts)), level
	}
	return slog.New(slog.NewTextHandler(w, opts)), level
}

func levelOf(c config.Log) (level slog.Level) {
	_ = level.UnmarshalText([]byte(c.Level)) // the words of the key log.level are slog's
	return level
}

// named gives a value that has words for itself, such as a kind or a duration, these words
// in JSON, too: the handler would write the number behind it.
func named(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value; v.Kind() {
	case slog.KindDuration:
		a.Value = slog.StringValue(v.Duration().String())
	case slog.KindAny:
		if words, ok := v.Any().(fmt.Stringer); ok && a.Key != slog.LevelKey {
			a.Value = slog.StringValue(words.String())
		}
	}
	return a
}
