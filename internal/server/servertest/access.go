package servertest

import (
	"errors"
	"strings"

	"github.com/leaf-idgen/leaf"
)

func disabledMode(b *bench) {
	for _, off := range []string{segment, snowflake} {
		f := counting()
		on := snowflake
		access := leaf.Anyone(nil, fakeIssuer{f, snowflake})
		if off == snowflake {
			on, access = segment, leaf.Anyone(fakeIssuer{f, segment}, nil)
		}
		wire := b.start(b, access)
		for _, w := range ways {
			got, err := w.ask(b.call(b.patience), wire, "order")
			switch {
			case w.mode == on && err != nil:
				b.Errorf("%s is off: %v: %v; want IDs", off, w, err)
			case w.mode == off && (!errors.Is(err, leaf.ErrDisabled) || len(got) > 0):
				b.Errorf("%s is off: %v = %v, %v; want ErrDisabled", off, w, got, err)
			case w.mode == off && !strings.Contains(err.Error(), off):
				b.Errorf("%s is off: %v: %v; want the mode named", off, w, err)
			}
		}
	}
}

func unauthenticated(b *bench) {
	f := counting()
	wire := b.start(b, &gate{token: "open sesame", inner: f.access()})
	for range 2 {
		for _, w := range ways {
			if got, err := w.ask(b.call(b.patience), wire, "order"); !errors.Is(err, leaf.ErrUnauthenticated) || len(got) > 0 {
				b.Errorf("%v = %v, %v; want ErrUnauthenticated", w, got, err)
			}
		}
	}
	b.notAsked(f)
}

func credentials(b *bench) {
	f := counting()
	for _, shown := range []leaf.Credentials{
		{Token: "s3cret"},
		{Token: "s3cret", Name: "billing"},
		{Token: "wrong"},
		{Token: "wrong", Name: "billing"},
		{Token: "s3cre"},
		{Token: "s3cret2"},
	} {
		g := &gate{token: "s3cret", inner: f.access()}
		wire := b.opt.StartAs(b, g, shown)
		for _, w := range ways {
			_, err := w.ask(b.call(b.patience), wire, "order")
			if shown.Token == g.token && err != nil {
				b.Errorf("%+v: %v: %v; want IDs", shown, w, err)
			}
			if shown.Token != g.token && !errors.Is(err, leaf.ErrUnauthenticated) {
				b.Errorf("%+v: %v: %v; want ErrUnauthenticated", shown, w, err)
			}
		}
		arrived := false
		for _, c := range g.seen() {
			switch c {
			case shown:
				arrived = true
			case leaf.Credentials{}, leaf.Credentials{Name: shown.Name}: // before it showed them
			default:
				b.Errorf("shown %+v, arrived %+v", shown, c)
			}
		}
		if !arrived {
			b.Errorf("%+v did not arrive, but %+v", shown, g.seen())
		}
	}
}
