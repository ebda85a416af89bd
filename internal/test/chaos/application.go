package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
	goclient "github.com/leaf-idgen/leaf/client" // client is one of a node here
	"github.com/leaf-idgen/leaf/client/cache"
	"github.com/leaf-idgen/leaf/discovery"
)

const (
	// callerTime is the deadline of an application's calls.
	callerTime = 2 * time.Second
	// callerRate is how many it makes in a second.
	callerRate = 20
)

// application takes the IDs of the tag with stock with the Go client, which knows all
// nodes. It is not a client of one node, so what it gets stands by itself in the report.
type application struct {
	name   string
	client *goclient.Client
	begin  time.Time

	mu      sync.Mutex
	samples []sample
	ids     []int64

	violations int64 // answers that the client's own check did not like; set when run returns
}

// newApplication makes a client of all nodes.
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
	return &application{name: name, client: c, begin: begin}, nil
}

// applications are one without and one with a cache.
func applications(nodes []*node, begin time.Time) ([]*application, error) {
	plain, err := newApplication("Go client", nodes, begin)
	if err != nil {
		return nil, err
	}
	cached, err := newApplication("Go client with cache", nodes, begin, goclient.WithCache(cache.Config{Span: 300 * time.Millisecond}))
	return []*application{plain, cached}, err
}

// run calls until ctx ends, each call in a goroutine of its own: one that waits does
// not keep others from being made.
func (a *application) run(ctx context.Context) {
	var calls sync.WaitGroup
	for pause(ctx, time.Second/callerRate) == nil {
		calls.Go(func() { a.call(context.WithoutCancel(ctx)) })
	}
	calls.Wait()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = a.client.Close(end) // nothing is under way
	a.violations = a.client.Stats().Violations
}

func (a *application) call(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callerTime)
	defer cancel()
	due := time.Since(a.begin)
	id, err := a.client.Next(ctx, "stock")
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
		a.ids = append(a.ids, id)
	}
}

// write logs all IDs, in growing order: those of several nodes come in any.
func (a *application) write(l *idLog) error {
	slices.Sort(a.ids)
	return l.write("stock", 1, a.ids)
}

// judgeApplications checks what the Go client promises: when one node is killed, no call
// fails.
func (r *run) judgeApplications() {
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
			if e := r.at(s.due); e == nil || e.Pair || e.Fault != nodeKilled {
				continue
			}
			if killed.count(s.outcome == ok); s.outcome != ok && first == "" {
				first = fmt.Sprintf("; the first after %.2f s: %s", s.due.Seconds(), s.outcome)
			}
		}
		r.report.check(a.violations == 0, "%s: %d answers that repeat IDs or step back", a.name, a.violations)
		if killed.All > 0 {
			failures := killed.All - killed.InTime
			busy := r.report.Machine.Starved(r.report.Ran)
			r.report.checkUnless(busy, failures == 0, "%s, while one of three nodes is killed: %d failed requests of %d%s", a.name, failures, killed.All, first)
		}
		rest := outcomes.outcomes()
		if rest != "" {
			rest = "; the others: " + rest
		}
		r.report.check(true, "%s, all faults together, a tag with stock within %v: %s of %d calls%s", a.name, callerTime, whole, whole.All, rest)
	}
}
