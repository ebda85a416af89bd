package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
)

const minWatch = 100 * time.Millisecond

// watch shows the state of the node until ctx ends. A node that does not answer may come back,
// so its error is shown in place of the state; a command that is wrong is not tried again.
func watch(ctx context.Context, p Process, b manage.Backend, tags int, every time.Duration) error {
	terminal := isTerminal(p.Stdout) && !slices.Contains(p.Environ, "TERM=dumb") // which prints escape sequences
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		var frame bytes.Buffer
		st, err := manage.Ask(ctx, b, manage.GetStatus{Tags: tags})
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, leaf.ErrBadRequest):
			return err
		case err != nil:
			fmt.Fprintf(&frame, "%s\n", time.Now().UTC().Format(time.RFC3339))
			printError(&frame, err)
		default:
			if err := printStatus(&frame, st); err != nil {
				return err
			}
		}
		if err := repaint(p.Stdout, frame.String(), terminal); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// repaint replaces what a terminal shows, in one write and without an empty screen in between,
// so that it does not flicker. The size of the terminal may have changed since. Elsewhere a line
// separates one state from the next.
func repaint(w io.Writer, frame string, terminal bool) error {
	text := frame + "--\n"
	if terminal {
		columns, height := screenSize(w)
		text = "\x1b[H"
		for _, row := range rowsThatFit(frame, columns, height) {
			text += "\x1b[K" + row + "\n"
		}
		text += "\x1b[J"
	}
	_, err := io.WriteString(w, text)
	return err
}
