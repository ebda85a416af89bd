package console_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/console"
	"github.com/leaf-idgen/leaf/segment"
)

// script is a tag that is markup, too.
const script = `<script>alert(1)</script>`

// busy creates tags and takes IDs of them until the test ends.
func busy(t *testing.T, a *app.App) {
	t.Helper()
	tags := []string{"order", "invoice", "shipment/eu", "user", script, "payment.refund", "coupon", "audit"}
	for i, tag := range tags {
		row := segment.NewRow{Tag: tag, Start: 1_000_000_000_000_000_000 + int64(i)*1_000_000_000, Step: int64(1000 << i), Description: "made by a test"}
		if _, err := manage.Ask(t.Context(), a.Backend(), manage.CreateTag{NewRow: row}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i, tag := range tags {
		all.Go(func() {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for n := 0; ; n++ {
				_, err := manage.Ask(ctx, a.Backend(), manage.Next{Tag: tag, N: 1 + (i*37+n*11)%400})
				if err != nil && ctx.Err() == nil && !leaf.ClassOf(err).Retryable { // a slow disk is not what the pages are about
					t.Error(err)
				}
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
}

// TestPages shows each page of a node that works.
func TestPages(t *testing.T) {
	a := node(t, nil)
	busy(t, a)
	b := open(t, consoleOf(a), 1280, 900)
	b.signIn()
	b.shows("Segment mode")
	b.shows("No alarm.")
	b.until(`document.querySelectorAll('.mode .pill.ok').length === 2`)
	b.until(`!document.body.innerText.includes('no sample yet')`)
	b.shot("overview")

	b.visit("tags")
	b.shows(script) // as text
	if n := eval[int](b, `document.querySelectorAll('tbody script').length`); n != 0 {
		t.Errorf("the name of a tag became %d elements", n)
	}
	before := eval[string](b, `document.querySelector('td.ranges [role=img]').title`)
	b.until(fmt.Sprintf(`document.querySelector('td.ranges [role=img]').title !== %q`, before)) // live
	b.until(`[...document.querySelectorAll('td.rate span')].every((e) => e.textContent !== '–')`)
	b.click(`[data-sort="rate"]`)
	b.until(`document.querySelector('th[aria-sort="descending"] [data-sort="rate"]') !== null`)
	b.shot("tags")
	b.click("tbody button.link")
	b.shows("Next ID")
	b.shot("tag")
	b.do(chromedp.KeyEvent("\x1b")) // Escape
	b.until(`document.querySelector('aside.panel').hidden`)
	b.put("#search", "SHIP")
	b.until(`document.querySelectorAll('table.tags tbody tr').length === 1`)

	b.visit("rows")
	b.until(`/\b100000000300\d{7}\b/.test(document.body.innerText)`) // beyond 2^53, no digit lost
	b.shows("made by a test")
	b.shot("rows")

	b.visit("snowflake")
	b.shows("Bound T")
	b.shows("years")
	b.shows("running")
	b.shot("snowflake")

	b.visit("tools")
	b.put("#decode-id", "2124763524523454485\r")
	b.shows("2026-")
	b.click("#encode button")
	b.click("#span button")
	b.until(`document.querySelector('#span code') && document.querySelector('#encode .answer .id')`)
	b.shot("tools")

	b.visit("cluster")
	b.shows("this node")
	b.shows("v1.0.0")
	for _, protocol := range []string{"http", "grpc", "resp"} {
		b.shows(protocol + " " + a.AddrOf(protocol))
	}
	b.until(`document.querySelectorAll('tbody .pill.ok').length === 1`)
	b.shot("cluster")

	b.visit("limits")
	b.shows("No tag and no client has a limit.")
}

// TestHiddenPageHasNoStream: a page in the background ends its stream, and opens one again when it is shown.
func TestHiddenPageHasNoStream(t *testing.T) {
	t.Parallel()
	alarms := []console.Alarm{{Code: "clock", Subject: "<b>self</b>", Text: `<img src=x onerror="alert(1)">`, Do: "run leaf worker confirm-clock"}}
	s := serve(t, &fake{alarms: alarms}, "", nil)
	b := open(t, s.url, 1280, 900)
	b.shows("clock · <b>self</b>")
	b.shows(alarms[0].Text)
	b.shows("What to do: " + alarms[0].Do)
	b.until(`document.querySelectorAll('.alarms img, .alarms b b').length === 0`)
	hide := func(hidden bool, streams int) {
		t.Helper()
		eval[bool](b, fmt.Sprintf(`(Object.defineProperty(document, 'hidden', {value: %t, configurable: true}), document.dispatchEvent(new Event('visibilitychange')))`, hidden))
		for end := time.Now().Add(10 * time.Second); console.Streams(s.console) != streams; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("hidden: %t, streams: %d, want %d", hidden, console.Streams(s.console), streams)
			}
		}
	}
	hide(true, 0)
	hide(false, 1)
}
