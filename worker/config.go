package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/uptime"
	"github.com/leaf-idgen/leaf/snowflake"
)

// LongestWait is what an administrator does between the stop of nodes that have their worker IDs from one place and the start of
// nodes that have them from another: only the first place knows until when its numbers were used.
const LongestWait = "wait for the longest horizon, longer after a clock was ahead (docs/SNOWFLAKE.md#operating)"

// Config tunes a Holder. Layout, Namespace, Address and Numbers have no default; the
// zero value of each other field means its default.
type Config struct {
	Layout snowflake.Layout

	// Datacenter is required if the layout has that field. It must be another one in each datacentre: each has a registry of
	// its own, which gives the same numbers.
	Datacenter *int64

	// Layouts are further layouts, each as a text of snowflake.ParseLayout. A request whose key
	// is such a text, or another text of the same layout, gets an ID of it. All other keys get
	// Layout, unless they read as a layout: then they are leaf.ErrBadRequest. Without Layouts,
	// keys are ignored. IDs are unique within one layout; those of two can be equal. So can those of one layout that are
	// issued with two registries, also where it is Layout of one program and a further layout of another.
	Layouts []string

	// Namespace is the label that all nodes of a registry share. 1 to 64 characters.
	Namespace string

	// Address is the node's identity, "ip:port". It must differ from every other
	// node's at the same registry.
	Address string

	// Numbers are the worker IDs that may be claimed, within the layout's.
	Numbers leaf.Range

	// NodeID is the identity of the data directory. A file with another is refused.
	NodeID string

	// Horizon is how far T lies in the future after a renewal: how long an outage of
	// the registry is ridden out, and how long others wait after a crash. All nodes of a registry need
	// the same one: after a wipe, the first of them decides by its own how long all numbers wait. Default
	// 10 min; at least three times Renew.
	Horizon time.Duration

	// Renew is the time between two renewals. 10 ms to 1 min; default 3 s.
	Renew time.Duration

	// Ahead is how far the inner bound t lies in the future: no clock that jumps takes
	// IDs further. It is raised three times as often. For a fixed number it is on the
	// disk, and a restart without clock trouble waits no longer. 10 ms to 1 min;
	// default 3 s.
	Ahead time.Duration

	// Lease is how long a process counts as running after its last sign of life.
	// It decides which nodes may be asked for the time, and how long a claimer that finds no
	// namespace waits; no claim ends by it. Default 15 s.
	Lease time.Duration

	// Margin is the time after T at which the number of a holder that went without a
	// release becomes free. Default 5 s.
	Margin time.Duration

	// Fresh says that this very start created the registry, so that no node can have
	// used a number before. It counts until the first claim has succeeded, and never for
	// records that are found to be gone: another node may have been faster. It does not count for a
	// Static, which no start creates. A program that sets it at each start gives numbers that are in
	// use once more, where the registry was wiped.
	Fresh bool

	// Timeout is the deadline of each call to the registry. 10 ms to 1 min; default 2 s. After a claim that has
	// ended at it, the next claim gets four times as long, but no longer than a Lease that is above Timeout.
	Timeout time.Duration

	// Tolerance and Policy are the generator's: how far a clock may step back for a
	// call to wait for it, and what happens beyond. Default 5 ms, Refuse; a negative
	// Tolerance waits for nothing.
	Tolerance time.Duration
	Policy    snowflake.Policy

	// Jump is how far the wall clock may run ahead of elapsed time between two looks
	// at it. More is a clock error until the peers or an operator confirm it. Default
	// 10 s; at least Ahead.
	Jump time.Duration

	// Standby makes a refused claim a quiet wait instead of an alarm: this node takes
	// the number over when its holder is gone. A number that does not return by itself is an
	// alarm all the same. Both nodes need one registry: New refuses Standby with Static.
	Standby bool

	// KeepOnStop leaves the claim and its T in place at a clean stop. A fixed node may
	// then restart from its file while the registry is down, and no other node gets its
	// number before T.
	KeepOnStop bool

	// Clock checks the clock against the peers'. The zero value checks nothing.
	Clock ClockCheck

	Alarms leaf.Alarms // default: leaf.NoAlarms

	// Logger: default: discard. Its handler must not block: a renewal that waits for it raises no T,
	// and issuing ends at the T that was acknowledged.
	Logger *slog.Logger

	// Nonce returns a text that is another one at each call, also of other processes and of later ones: two processes with one
	// text have one number. It is for simulations. Default: from crypto/rand.
	Nonce func() string

	// Runtime is the clock and scheduler. Default: leaf.SystemRuntime, and a generator
	// that reads the clock directly.
	Runtime leaf.Runtime

	// Elapsed returns the time since some fixed moment, which no clock step changes. It
	// should go on while the machine is suspended. Default: the time since the machine started,
	// which does on Linux; with Runtime, the monotonic part of its clock.
	Elapsed func() time.Duration
}

// ClockCheck is how the clock is compared with the peers'.
type ClockCheck struct {
	// Ask returns the peer's wall clock. ctx has the deadline Timeout. nil: no check.
	Ask func(ctx context.Context, p Peer) (time.Time, error)

	// Self is the host:port at which peers can ask this node, "" if they cannot.
	Self string

	// Threshold is the largest offset to the median of the peers. Default 5 s.
	Threshold time.Duration

	// Timeout is the deadline of one question; half of its round trip is taken off
	// the answer. Default 1 s.
	Timeout time.Duration

	// Interval is the time between two checks of a running node. Default 1 min.
	Interval time.Duration

	// RefuseAlone makes a node refuse to start if peers are announced and none of them
	// answers, or if the registry answers, but does not list them. Default: it starts with a warning.
	RefuseAlone bool
}

// WithDefaults returns c with every zero field set to its default.
func (c Config) WithDefaults() Config {
	c.Horizon = cmp.Or(c.Horizon, 10*time.Minute)
	c.Renew = cmp.Or(c.Renew, 3*time.Second)
	c.Ahead = cmp.Or(c.Ahead, 3*time.Second)
	c.Lease = cmp.Or(c.Lease, 15*time.Second)
	c.Margin = cmp.Or(c.Margin, 5*time.Second)
	c.Timeout = cmp.Or(c.Timeout, 2*time.Second)
	c.Jump = cmp.Or(c.Jump, max(10*time.Second, c.Ahead))
	c.Tolerance = cmp.Or(c.Tolerance, snowflake.DefaultTolerance)
	c.Clock.Threshold = cmp.Or(c.Clock.Threshold, 5*time.Second)
	c.Clock.Timeout = cmp.Or(c.Clock.Timeout, time.Second)
	c.Clock.Interval = cmp.Or(c.Clock.Interval, time.Minute)
	if c.Alarms == nil {
		c.Alarms = leaf.NoAlarms()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Elapsed == nil && c.Runtime == nil {
		c.Elapsed = uptime.Now
	}
	if c.Nonce == nil {
		c.Nonce = rand.Text
	}
	return c
}

// Validate returns leaf.ErrBadRequest if a field is outside its limits. New calls it
// after WithDefaults.
func (c Config) Validate(info Info) error {
	if err := c.Layout.Validate(); err != nil {
		return fmt.Errorf("%w: layout: %w", leaf.ErrBadRequest, err)
	}
	if n := len(c.Namespace); n < 1 || n > 64 {
		return leaf.BadField("namespace", c.Namespace, "must have 1 to 64 characters")
	}
	if _, _, err := net.SplitHostPort(c.Address); err != nil {
		return leaf.BadField("address", c.Address, "must be ip:port")
	}
	if c.Standby && !info.Shared && info.Kind == Fixed {
		return leaf.BadField("standby", c.Standby, "must not be set with a static worker ID: nothing refuses the number to the second node, and both would issue the same IDs")
	}
	most := int64(1) << c.Layout.WorkerBits
	if c.Numbers.Lo < 0 || c.Numbers.Len() < 1 || c.Numbers.Hi > most {
		return leaf.BadField("worker-range", fmt.Sprintf("%d-%d", c.Numbers.Lo, c.Numbers.Hi-1), fmt.Sprintf("must lie within 0-%d, the workers of the layout", most-1))
	}
	switch most := int64(1)<<c.Layout.DatacenterBits - 1; {
	case c.Datacenter == nil && most > 0:
		return leaf.BadField("datacenter", nil, fmt.Sprintf("must be 0 to %d, another one in each datacentre: the layout has that field", most))
	case c.datacenter() < 0 || c.datacenter() > most:
		return leaf.BadField("datacenter", c.datacenter(), fmt.Sprintf("must be 0 to %d", most))
	}
	if _, err := c.layouts(); err != nil {
		return err
	}
	for _, d := range []struct {
		field    string
		value    time.Duration
		min, max time.Duration
	}{
		{"renew-interval", c.Renew, 10 * time.Millisecond, time.Minute},
		{"ahead", c.Ahead, 10 * time.Millisecond, time.Minute},
		{"horizon", c.Horizon, max(3*c.Renew, c.Ahead), 24 * time.Hour},
		{"lease", c.Lease, 100 * time.Millisecond, time.Hour},
		{"margin", c.Margin, time.Millisecond, time.Hour},
		{"timeout", c.Timeout, 10 * time.Millisecond, time.Minute},
		{"clock-jump", c.Jump, c.Ahead, 24 * time.Hour},
		{"clock-threshold", c.Clock.Threshold, time.Millisecond, 24 * time.Hour},
		{"clock-timeout", c.Clock.Timeout, time.Millisecond, time.Minute},
		{"clock-interval", c.Clock.Interval, 10 * time.Millisecond, 24 * time.Hour},
	} {
		if d.value < d.min || d.value > d.max {
			return leaf.BadField(d.field, d.value, fmt.Sprintf("must be %v to %v", d.min, d.max))
		}
	}
	return nil
}

// datacenter returns that of the IDs, 0 if the layout has none.
func (c Config) datacenter() int64 {
	if c.Datacenter == nil {
		return 0
	}
	return *c.Datacenter
}

// quiet is how long a claimer that finds no namespace waits: a node that used it before
// has stopped by then, also one that does not know that it is gone (rule D). The wait
// counts from before the call, and a claim that lives may have been renewed as late as
// its end: so a long Timeout counts in place of the lease. A static number has no
// registry; its owner issued at most Ahead in the future, by a clock that may have been
// ahead by the jump that is believed at once.
func (c Config) quiet(info Info) time.Duration {
	if !info.Shared && info.Kind == Fixed {
		return c.Jump + c.Ahead + c.Margin
	}
	return c.longest()
}

// aside is the deadline of calls that a node can do without. Renewals wait for them, so they
// take no longer than the time between two of these.
func (c Config) aside() time.Duration { return min(c.Timeout, c.Renew) }

// longest is the longest wait for a floor that a crash or a wipe causes. A floor
// further away stems from a clock that is or was wrong.
func (c Config) longest() time.Duration { return max(c.Lease, c.Timeout) + c.Horizon + c.Margin }
