package console_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

const token = "a-token-of-the-tests-0123456789abcdef"

// browser is the Chromium that all tests of this package share. Each test has cookies and
// storage of its own.
var browser shared

type shared struct {
	once  sync.Once
	ctx   context.Context //nolint:containedctx // of the process, see chromedp
	close func()
}

func init() { browser.close = func() {} }

func (s *shared) start(t *testing.T) context.Context {
	t.Helper()
	path := server.Program(t, "chromium", "chromium")
	s.once.Do(func() {
		allocator, end := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(path), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
			chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("lang", "en"), chromedp.Flag("disable-dev-shm-usage", true),
			chromedp.Flag("disable-background-networking", true), chromedp.Flag("hide-scrollbars", true))
		ctx, quit := chromedp.NewContext(allocator)
		if err := chromedp.Do(ctx); err != nil {
			end()
			t.Fatalf("start Chromium: %v", err)
		}
		s.ctx = ctx
		s.close = func() {
			quit()
			end()
		}
	})
	if s.ctx == nil {
		t.Fatal("Chromium did not start")
	}
	return s.ctx
}

// tab is a page of the browser.
type tab struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // of the tab, see chromedp

	mu     sync.Mutex
	faults []string // what the browser reported
}

// open opens an address in a new browser context of this size. The test fails if the browser
// reports a fault of a script, or a breach of the content security policy.
func open(t *testing.T, url string, width, height int64) *tab {
	t.Helper()
	b := &tab{t: t}
	ctx, cancel := chromedp.NewContext(browser.start(t), chromedp.WithNewBrowserContext(), chromedp.WithListener(b.hear))
	ctx, stop := context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(func() {
		cancel()
		stop()
	})
	b.ctx = ctx
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, f := range b.faults {
			t.Errorf("the browser reports: %s", f)
		}
	})
	b.do(chromedp.EmulateViewport(width, height), chromedp.Navigate(url))
	return b
}

func (b *tab) hear(e any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := e.(type) {
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, fmt.Sprintf("%s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" && !strings.Contains(e.Entry.Text, "Failed to load resource") {
			b.faults = append(b.faults, e.Entry.Text+" "+e.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		b.faults = append(b.faults, "a dialog of the browser: "+e.Message)
	}
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("%v; the page shows:\n%s", err, b.text())
	}
}

func (b *tab) text() string {
	text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body.innerText.slice(0, 2000)`))
	return text
}

// eval evaluates an expression of JavaScript.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v; the page shows:\n%s", expression, err, b.text())
	}
	return v
}

// until waits until an expression is true.
func (b *tab) until(expression string) {
	b.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(40 * time.Second); !eval[bool](b, "Boolean("+expression+")"); <-tick.C {
		if time.Now().After(end) {
			b.t.Fatalf("never true: %s; the page shows:\n%s", expression, b.text())
		}
	}
}

// shows waits for a text on the page.
func (b *tab) shows(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// click clicks an element, when it is there.
func (b *tab) click(css string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector(%q)?.checkVisibility()`, css))
	b.do(chromedp.Click(chromedp.CSS(css)))
}

// put types a text into an element, in place of what is there.
func (b *tab) put(css, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector(%q)?.checkVisibility()`, css))
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[any](fmt.Sprintf(`document.querySelector(%q).select()`, css)))
		return err
	}), chromedp.SendKeys(chromedp.CSS(css), text))
}

// signIn shows the token to the page.
func (b *tab) signIn() {
	b.t.Helper()
	b.put("#token", token+"\r")
	b.until(`document.querySelector('header.bar')`)
}

// visit shows a page by its link.
func (b *tab) visit(name string) {
	b.t.Helper()
	b.click(`[data-page="` + name + `"]`)
	b.until(`document.querySelector('[data-page="` + name + `"][aria-current]')`)
}

// dark makes the system of the browser dark.
func (b *tab) dark() {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// shot writes a picture into LEAF_SCREENSHOTS, if that is set.
func (b *tab) shot(name string) {
	b.t.Helper()
	folder := os.Getenv("LEAF_SCREENSHOTS")
	if folder == "" {
		return
	}
	b.do(chromedp.Sleep(600 * time.Millisecond)) // transitions end
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// node starts a node with an embedded database and a token for administrators.
func node(t *testing.T, edit func(*config.Config)) *app.App {
	t.Helper()
	dir, err := os.MkdirTemp("", "leaf") //nolint:usetesting // the name of a test makes the path too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.DataDir, c.HTTP.Addr, c.StorePrivate, c.Node.Zone = dir, "127.0.0.1:0", true, "a"
	c.Node.Discovery = config.DiscoveryStore
	c.Admin.Tokens = []string{token}
	if edit != nil {
		edit(&c)
	}
	a, err := app.New(c, app.Options{Version: "v1.0.0", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := errors.Join(a.Stop(ctx), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a
}

// consoleOf returns the address of a node's console.
func consoleOf(a *app.App) string { return "http://" + a.AddrOf("admin") + "/console/" }

// take asks a node for an ID of a tag, over HTTP.
func take(t *testing.T, a *app.App, tag string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.Addr()+"/api/segment/get/"+tag, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("take an ID of %s: %d %s", tag, resp.StatusCode, body)
	}
}

// keys presses keys on the page.
func keys(text string) chromedp.Action[chromedp.Void] { return chromedp.KeyEvent(text) }
