package cli

import (
	"fmt"
	"io"
	"time"
)

// sayLater prints what a command waits for when it still runs after a second. The caller calls
// stop before the command ends; after that nothing is printed.
func sayLater(w io.Writer, text string) (stop func()) {
	said := make(chan struct{})
	timer := time.AfterFunc(time.Second, func() {
		defer close(said)
		fmt.Fprintln(w, "leaf: "+text)
	})
	return func() {
		if !timer.Stop() {
			<-said
		}
	}
}
