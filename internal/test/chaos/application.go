package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
	goclient "github.com/leaf-idgen/leaf/client" // client is one of a node here
	"github.com/leaf-idgen/leaf/client/cache"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/idlog"
)

const (
	// callerTime is the deadline of an application's calls, but for tags in strict order.
	callerTime = 2 * time.Second
	// callerRate is how many it makes in a second.
	callerRate = 20
)

// application takes the IDs of some tags with the Go client, which knows all nodes. It is not a client of one node, so what it gets stands by itself in the report.
type application struct {
	name   string
	tags   []string      // or entities, as sequence/entity
	within time.Duration // the deadline of a call
	strict bool          // the tags are in strict order
	client *goclient.Client
	begin  time.Time

	mu      sync.Mutex
	samples []sample
	answers []idlog.Record

	violations int64 // answers that the client's own check did not like; set when run returns
}

// newApplication makes a client of all nodes, for the tag with stock.
func newApplication(name string, nodes []*node, begin time.Time, options ...goclient.Option) (*application, error) {
	var all []discovery.Node
	for _, n := range nodes {
		host, _, err := net.SplitHostPort(n.addr)
		if err != nil {
			return nil, err
		}
		all = append(all, discovery.Node{ID: n.name, Weight: discovery.DefaultWeight, GRPC: net.JoinHostPort(host, grpcPort)})
	}
	options = append(options, goclient.WithUniquenessCheck(), goclient.WithLogger(slog.New(slog.DiscardHandler)))
	c, err := goclient.New(goclient.Nodes(all...), options...)
	if err != nil {
		return nil, err
	}
	return &application{name: name, tags: []string{"stock"}, within: callerTime, client: c, begin: begin}, nil
}

// applications are one without and one with a cache, and one for the tags in strict order.
func applications(nodes []*node, inOrder []string, begin time.Time) ([]*application, error) {
	plain, err := newApplication("Go client", nodes, begin)
	if err != nil {
		return nil, err
	}
	cached, err := newApplication("Go client with cache", nodes, begin, goclient.WithCache(cache.Config{Span: 300 * time.Millisecond}))
	if err != nil {
		return nil, err
	}
	strict, err := newApplication("Go client, strict order", nodes, begin)
	if err != nil {
		return nil, err
	}
	strict.tags, strict.within, strict.strict = slices.Clone(inOrder), strictDeadline, true
	for _, e := range entities {
		strict.tags = append(strict.tags, chat+"/"+e)
	}
	return []*application{plain, cached, strict}, nil
}

// run calls until ctx ends, each call in a goroutine of its own: one that waits does
// not keep others from being made.
func (a *application) run(ctx context.Context) {
	var calls sync.WaitGroup
	for i := 0; pause(ctx, time.Second/callerRate) == nil; i++ {
		calls.Go(func() { a.call(context.WithoutCancel(ctx), a.tags[i%len(a.tags)]) })
	}
	calls.Wait()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = a.client.Close(end) // nothing is under way
	a.violations = a.client.Stats().Violations
}

func (a *application) call(ctx context.Context, tag string) {
	ctx, cancel := context.WithTimeout(ctx, a.within)
	defer cancel()
	sent := time.Now()
	due := sent.Sub(a.begin)
	next, what := a.client.Next, tag
	if name, entity, is := strings.Cut(tag, "/"); is {
		next, what = a.client.Sequence(name).Next, entity
	}
	id, err := next(ctx, what)
	call := callSince(a.begin, sent)
	outcome := ok
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		outcome = timeout
	case err != nil:
		outcome = leaf.ClassOf(err).Code
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.samples = append(a.samples, sample{due, time.Since(a.begin) - due, outcome})
	if err == nil {
		a.answers = append(a.answers, idlog.Record{Key: tag, Lo: id, Hi: id, Call: call})
	}
}

// write logs all IDs, in growing order: those of several nodes come in any.
func (a *application) write(l *idLog) error {
	l.strict = a.strict
	slices.SortFunc(a.answers, func(x, y idlog.Record) int { return cmp.Compare(x.Lo, y.Lo) })
	for _, answer := range a.answers {
		if err := l.write(answer.Key, 1, []int64{answer.Lo}, answer.Call); err != nil {
			return err
		}
	}
	return nil
}

// survives reports whether no call may fail while the fault is on: when one node is killed, and for tags in strict order
// also when it leaves.
func (a *application) survives(fault string) bool {
	return fault == nodeKilled || a.strict && leaves(fault)
}

// judgeApplications checks what the Go client promises.
func (r *run) judgeApplications(t topologyDef) {
	for _, a := range r.apps {
		var killed, whole Share
		outcomes := Kind{Outcomes: map[string]int{}}
		first := ""
		for _, s := range a.samples {
			if s.due < r.served {
				continue
			}
			whole.count(s.outcome == ok)
			if s.outcome != ok {
				outcomes.Outcomes[s.outcome]++
			}
			if e := r.at(s.due); e == nil || e.Pair || !a.survives(e.Fault) {
				continue
			}
			if killed.count(s.outcome == ok); s.outcome != ok && first == "" {
				first = fmt.Sprintf("; the first after %.2f s: %s", s.due.Seconds(), s.outcome)
			}
		}
		r.report.check(a.violations == 0 || a.strict && t.unordered, "%s: %d answers that repeat IDs or step back", a.name, a.violations)
		if killed.All > 0 {
			failures, what := killed.All-killed.InTime, "killed"
			if a.strict {
				what = "killed, or stops"
			}
			busy := r.report.Machine.Starved(r.report.Ran)
			r.report.checkUnless(busy, failures == 0, "%s, while one of three nodes is %s: %d failed requests of %d%s", a.name, what, failures, killed.All, first)
		}
		rest := outcomes.outcomes()
		if rest != "" {
			rest = "; the others: " + rest
		}
		r.report.check(true, "%s, all faults together, within %v: %s of %d calls%s", a.name, a.within, whole, whole.All, rest)
	}
}
