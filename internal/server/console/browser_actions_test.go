package console_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/number"
	"github.com/leaf-idgen/leaf/segment"
)

// TestActions carries out each action, and looks at the node for what came of it.
func TestActions(t *testing.T) {
	t.Parallel()
	a := node(t, nil)
	b := open(t, consoleOf(a), 1280, 900)
	b.signIn()

	b.visit("rows")
	b.click("#create")
	b.put("#field-tag", script)
	b.put("#field-start", "9007199254740993") // 2^53 + 1
	b.put("#field-step", "2000")
	b.click("#cancel")
	if _, err := manage.Ask(t.Context(), a.Backend(), manage.GetTag{Name: script}); err == nil {
		t.Error("the tag exists although the dialog was cancelled")
	}
	b.click("#create")
	b.put("#field-tag", script)
	b.put("#field-start", "9007199254740993")
	b.click("#confirm")
	b.until(`!document.querySelector('dialog')`)
	if tag, err := manage.Ask(t.Context(), a.Backend(), manage.GetTag{Name: script}); err != nil || tag.MaxID != 9007199254740993 {
		t.Errorf("created: %+v, %v", tag, err)
	}

	b.click("#create") // what is refused is said, and the dialog stays
	b.put("#field-tag", script)
	b.click("#confirm")
	b.until(`document.querySelector('dialog .fault').textContent.includes('exists')`)
	b.click("#cancel")

	b.click(`tbody tr [data-do="edit"]`) // the first row by name
	b.put("#field-step", "5000")
	b.click("#confirm")
	b.until(`!document.querySelector('dialog')`)
	if tag, err := manage.Ask(t.Context(), a.Backend(), manage.GetTag{Name: script}); err != nil || tag.Step != 5000 {
		t.Errorf("edited: %+v, %v", tag, err)
	}

	b.click("#create") // a period is for a new tag
	b.put("#field-tag", "invoice")
	b.put("#field-period", "week")
	b.click("#confirm")
	b.until(`document.querySelector('dialog .fault').textContent.includes('none, day, month or year')`)
	b.put("#field-period", "day")
	b.put("#field-period_zone", "Europe/Berlin")
	b.put("#field-format", "INV-{yyyyMMdd}-{seq:06}")
	b.click("#field-strict")
	b.shot("create")
	b.click("#confirm")
	b.until(`!document.querySelector('dialog')`)
	b.shows("begins anew each day")
	want := segment.Options{Order: segment.OrderStrict, Format: "INV-{yyyyMMdd}-{seq:06}", Period: number.Day, PeriodZone: "Europe/Berlin"}
	if tag, err := manage.Ask(t.Context(), a.Backend(), manage.GetTag{Name: "invoice"}); err != nil || tag.Options != want {
		t.Errorf("created: %+v, %v; want %+v", tag, err, want)
	}

	b.click(`tbody tr [data-do="limit"]`)
	b.put("#field-rate", "7")
	block := manage.SetTagLimit{Name: script, LimitChange: manage.LimitChange{Blocked: new(true)}}
	if _, err := manage.Ask(t.Context(), a.Backend(), block); err != nil { // another operator, while the dialog is open
		t.Fatal(err)
	}
	b.click("#confirm")
	b.until(`!document.querySelector('dialog')`)
	b.visit("limits")
	b.shows("blocked")
	limits, err := manage.Ask(t.Context(), a.Backend(), manage.ListLimits{})
	if err != nil || len(limits.Limits) != 1 || limits.Limits[0].Rate != 7 || !limits.Limits[0].Blocked {
		t.Errorf("limited: %+v, %v", limits.Limits, err)
	}
	b.click(`tbody tr button`) // Edit
	b.click("#field-blocked")
	b.click("#confirm")
	b.shows("limited")

	b.visit("cluster")
	b.click("#weight")
	b.put("#field-weight", "250")
	b.click("#confirm")
	b.until(`!document.querySelector('dialog')`)
	if nodes, err := manage.Ask(t.Context(), a.Backend(), manage.ListNodes{}); err != nil || len(nodes.Nodes) != 1 || nodes.Nodes[0].Weight != 250 {
		t.Errorf("weighed: %+v, %v", nodes, err)
	}

	b.visit("audit") // each action is there, also the one that was refused
	b.shows("admin.token, in the console")
	b.shows("step 1000 → 5000")
	b.shows("refused")
	b.until(`document.querySelectorAll('tbody script').length === 0`)
	b.put("#audit-tag", script)
	b.until(`document.querySelectorAll('tbody tr').length === 6 && !document.body.innerText.includes('node weight')`)
	b.shot("audit")

	b.visit("overview")
	b.click("#drain")
	b.put("#field-delay", "an hour")
	b.click("#confirm")
	b.until(`document.querySelector('dialog .fault').textContent.includes('duration')`)
	b.put("#field-delay", "1s")
	b.click("#confirm")
	b.until(`!document.querySelector('dialog')`)
	b.shows("The node is stopping.")
}

// atTag opens the page of a tag that a node has taken IDs of.
func atTag(t *testing.T) (*app.App, *tab) {
	t.Helper()
	a := node(t, nil)
	if _, err := manage.Ask(t.Context(), a.Backend(), manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 100, Step: 10}}); err != nil {
		t.Fatal(err)
	}
	take(t, a, "order")
	b := open(t, consoleOf(a), 1280, 900)
	b.signIn()
	b.visit("tags")
	b.click("tbody button.link")
	return a, b
}

// TestRepairShowsItsPlan: a repair is confirmed with its plan in view.
func TestRepairShowsItsPlan(t *testing.T) {
	t.Parallel()
	a, b := atTag(t)
	b.click("#repair")
	b.shows("IDs go on at")
	b.shows("Restart afterwards the programs that keep IDs of the tag in memory")
	first := eval[string](b, `[...document.querySelectorAll('dialog .fact')].find((e) => e.innerText.includes('IDs go on at')).querySelector('dd').textContent`)
	b.shot("repair")
	b.click("#confirm")
	b.until(`!document.querySelector('dialog')`)
	want, err := strconv.ParseInt(first, 10, 64)
	if tag, tagErr := manage.Ask(t.Context(), a.Backend(), manage.GetTag{Name: "order"}); err != nil || tagErr != nil || tag.MaxID < want {
		t.Errorf("the plan said %q, and the row is %+v: %v %v", first, tag, err, tagErr)
	}
}

// TestRepairNamesNodesThatItDoesNotReach: a repair that goes on without a node names it, in its plan and when it is done.
func TestRepairNamesNodesThatItDoesNotReach(t *testing.T) {
	t.Parallel()
	_, b := atTag(t)
	eval[bool](b, `((real) => {
		window.fetch = async (path, options) => {
			const reply = await real(path, options);
			if (!String(path).includes('/repair')) return reply;
			const body = await reply.json();
			(body.plan || body).untold = [options.method === 'POST' ? 'node-after' : 'node-before'];
			return Response.json(body, { status: reply.status });
		};
		return true;
	})(window.fetch)`)
	b.click("#repair")
	b.shows("Not told: node-before.")
	b.click("#confirm")
	b.shows("is repaired.")
	b.shows("Not told: node-after.")
	b.click("#cancel")
	b.until(`!document.querySelector('dialog')`)
}

// TestSessionLosesItsToken: when the token of a session is exchanged, the page asks for one.
func TestSessionLosesItsToken(t *testing.T) {
	t.Parallel()
	var cfg config.Config
	a := node(t, func(c *config.Config) { cfg = *c })
	b := open(t, consoleOf(a), 1280, 900)
	b.put("#token", "a wrong token\r")
	b.shows("does not accept the token")
	b.signIn()
	if got := eval[string](b, `document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage) + location.href`); strings.Contains(got, token) || strings.Contains(got, "leaf-console") {
		t.Errorf("a script can read: %s", got)
	}
	b.visit("rows")
	b.click("#create") // a dialog is open meanwhile
	cfg = withToken(a, cfg, "another-token-of-the-tests-0123456789")
	if _, err := a.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	b.until(`document.querySelector('#token')`)
	b.shows("Your session has ended.")
	if eval[int](b, `document.querySelectorAll('dialog, header.bar').length`) != 0 {
		t.Error("the page is still there")
	}
	b.put("#token", cfg.Admin.Tokens[0]+"\r")
	b.until(`document.querySelector('header.bar')`)
	b.click("#sign-out")
	b.until(`document.querySelector('#token')`)
}

// TestLateAnswerAfterSignOut: an answer to the session that was left comes while the next token is being typed.
func TestLateAnswerAfterSignOut(t *testing.T) {
	t.Parallel()
	b := open(t, consoleOf(node(t, nil)), 1280, 900)
	b.signIn()
	eval[bool](b, `(() => {
		const usual = window.fetch;
		window.fetch = (path, options) => !path.startsWith('api/rows') ? usual(path, options) :
			new Promise((answer) => { window.late = () => answer(new Response('{}', { status: 401 })); });
		return true;
	})()`)
	b.visit("rows")
	b.until("window.late")
	b.click("#sign-out")
	b.put("#token", "half of the next tok")
	eval[int](b, `(window.late(), setTimeout(() => { window.seen = true; }))`)
	b.until("window.seen") // what follows the answer has run
	if got := eval[string](b, `document.querySelector('#token').value`); got != "half of the next tok" {
		t.Errorf("the field has %q", got)
	}
}

func withToken(a *app.App, c config.Config, token string) config.Config {
	c.HTTP.Addr, c.Admin.Tokens = a.Addr(), []string{token}
	return c
}

// TestReadOnly: without admin.token the page is there and has no action; so is the public
// one, which the configuration asks for.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	a := node(t, func(c *config.Config) { c.Admin.Tokens, c.HTTP.Console = nil, true })
	take(t, a, "leaf-segment-test")
	for _, url := range []string{consoleOf(a), "http://" + a.Addr() + "/console/"} {
		b := open(t, url, 1280, 900)
		b.shows("read-only")
		b.shows("No alarm.") // live, or asked for
		for _, name := range []string{"tags", "rows", "cluster", "snowflake", "overview"} {
			b.visit(name)
			b.until(`document.querySelector('.page')`)
			if n := eval[int](b, `document.querySelectorAll('#drain, #create, #weight, #edit, [data-do], [data-page="limits"], [data-page="tokens"]').length`); n != 0 {
				t.Errorf("%s, %s: %d actions", url, name, n)
			}
		}
		b.visit("tags")
		b.shows("leaf-segment-test")
	}
}

// TestPhoneAndDark: on a phone nothing is wider than the screen, and dark is dark.
func TestPhoneAndDark(t *testing.T) {
	t.Parallel()
	a := node(t, nil)
	busy(t, a)
	b := open(t, consoleOf(a), 390, 844)
	b.dark()
	b.signIn()
	for i, name := range []string{"overview", "tags", "rows", "snowflake", "tools", "cluster", "limits", "audit", "tokens"} {
		b.do(keys(strconv.Itoa(i + 1))) // the pages have keys
		b.until(fmt.Sprintf(`document.querySelector('[data-page=%q][aria-current]')`, name))
		b.until(`document.querySelector('.page') && !document.body.innerText.includes('Loading…')`)
		time.Sleep(100 * time.Millisecond)
		if wide := eval[float64](b, `document.documentElement.scrollWidth`); wide > 390 {
			t.Errorf("%s is %v pixels wide", name, wide)
		}
		b.shot("phone-" + name)
	}
	if got := eval[string](b, `getComputedStyle(document.body).backgroundColor`); got != "rgb(18, 21, 24)" {
		t.Errorf("the background of the dark page is %s", got)
	}
	b.until(`document.querySelector('#theme')`)
	eval[bool](b, `(document.querySelector('#theme').value = 'light', document.querySelector('#theme').dispatchEvent(new Event('change')))`)
	if got := eval[string](b, `getComputedStyle(document.body).backgroundColor`); got != "rgb(246, 247, 248)" {
		t.Errorf("the background of the light page is %s", got)
	}
	eval[bool](b, `(document.querySelector('#language').value = 'zh', document.querySelector('#language').dispatchEvent(new Event('change')))`)
	b.shows("总览")
	b.do(keys("1"))
	b.shows("没有告警")
	b.shot("phone-chinese")
}
