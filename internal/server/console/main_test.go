package console_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/leaf-idgen/leaf/internal/server/console"
)

func TestMain(m *testing.M) {
	if os.Getenv("LEAF_SCREENSHOTS") == "" { // pictures show a node as it is
		console.Faster()
	}
	goleak.VerifyTestMain(withBrowser{m})
}

// withBrowser ends the browser that the tests share before goroutines are counted.
type withBrowser struct{ m *testing.M }

func (w withBrowser) Run() int {
	defer func() { browser.close() }() // whichever it is by then
	return w.m.Run()
}
