package trace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/requestid"
	"github.com/leaf-idgen/leaf/internal/trace"
)

// collector is a Client that keeps what is posted.
type collector struct {
	mu     sync.Mutex
	bodies []string
	status int
	hangs  bool
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.hangs {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	body, err := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies = append(c.bodies, r.Method+" "+r.URL.String()+" "+r.Header.Get("Content-Type")+"\n"+string(body))
	return &http.Response{StatusCode: c.status, Status: fmt.Sprint(c.status), Body: http.NoBody}, err
}

func (c *collector) set(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

func newTracer(c *collector, log io.Writer) *trace.Tracer {
	return trace.New(trace.Config{URL: "http://c:4318/v1/traces", Node: "n1", Version: "1.2", Logger: slog.New(slog.NewTextHandler(log, nil)), Client: &http.Client{Transport: c}})
}

// TestRequest: what a collector gets is a request of OTLP, field by field.
func TestRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &collector{status: 200}
		tracer := newTracer(c, io.Discard)
		ctx, end := context.WithCancel(t.Context())
		ran := make(chan struct{})
		go func() { defer close(ran); tracer.Run(ctx) }()
		s := tracer.Start(t.Context(), trace.Client, "segment load")
		s.Set("leaf.range", leaf.Range{Lo: 1, Hi: 11})
		time.Sleep(3 * time.Millisecond)
		s.End(nil)
		tracer.Start(asked(t, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), trace.Server, "PATCH /v1/tag").End(fmt.Errorf("%w: no", leaf.ErrBadRequest))
		time.Sleep(2 * time.Second)
		end()
		<-ran
		if len(c.bodies) != 1 || tracer.Stats() != (trace.Stats{Sent: 2}) {
			t.Fatalf("%q, %+v", c.bodies, tracer.Stats())
		}
		head, body, _ := strings.Cut(c.bodies[0], "\n")
		if head != "POST http://c:4318/v1/traces application/json" {
			t.Error(head)
		}
		random := regexp.MustCompile(`"traceId":"[0-9a-f]{32}"|"spanId":"[0-9a-f]{16}"`)
		text := random.ReplaceAllStringFunc(body, func(id string) string {
			if strings.Contains(id, "4bf92f3577b34da6a3ce929d0e0e4736") {
				return id
			}
			name, _, _ := strings.Cut(id, ":")
			return name + `:"x"`
		})
		const at = "9466848000" // synctest begins in the year 2000
		want := `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"leaf"}},{"key":"service.instance.id","value":{"stringValue":"n1"}},{"key":"service.version","value":{"stringValue":"1.2"}}]},` +
			`"scopeSpans":[{"scope":{"name":"github.com/leaf-idgen/leaf"},"spans":[` +
			`{"traceId":"x","spanId":"x","name":"segment load","kind":3,"startTimeUnixNano":"` + at + `00000000","endTimeUnixNano":"` + at + `03000000","attributes":[{"key":"leaf.range","value":{"stringValue":"[1, 11)"}}],"status":{}},` +
			`{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"x","parentSpanId":"00f067aa0ba902b7","name":"PATCH /v1/tag","kind":2,"startTimeUnixNano":"` + at + `03000000","endTimeUnixNano":"` + at + `03000000","attributes":[{"key":"error.type","value":{"stringValue":"bad_request"}}],"status":{"code":2,"message":"leaf: bad request: no"}}]}]}]}`
		if text != want {
			t.Errorf("%s\n%s", text, want)
		}
	})
}

// asked returns the context of a request with a traceparent.
func asked(t *testing.T, traceparent string) context.Context {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Traceparent", traceparent)
	return requestid.Show(httptest.NewRecorder(), r, false).Context()
}

// TestCollectorFails: spans that a collector does not take are dropped and counted, and the log says
// so once, as it does when the collector takes spans again.
func TestCollectorFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &collector{status: 503}
		var log bytes.Buffer
		tracer := newTracer(c, &log)
		ctx, end := context.WithCancel(t.Context())
		ran := make(chan struct{})
		go func() { defer close(ran); tracer.Run(ctx) }()
		for i := range 4 {
			tracer.Start(ctx, trace.Client, "load").End(nil)
			time.Sleep(2 * time.Second)
			if i == 1 {
				c.set(200)
			}
		}
		end()
		<-ran
		if got := tracer.Stats(); got != (trace.Stats{Sent: 2, Dropped: 2}) {
			t.Errorf("%+v", got)
		}
		if text := log.String(); strings.Count(text, "does not take spans") != 1 || strings.Count(text, "takes spans again") != 1 {
			t.Error(text)
		}
	})
}

// TestCollectorHangs: no call waits for a collector, also when too many spans wait, and neither does the
// end of the process.
func TestCollectorHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tracer := newTracer(&collector{hangs: true}, io.Discard)
		ctx, end := context.WithCancel(t.Context())
		ran := make(chan struct{})
		go func() { defer close(ran); tracer.Run(ctx) }()
		const many = 5000
		begun := time.Now()
		for range many {
			tracer.Start(ctx, trace.Client, "load").End(errors.New("down"))
		}
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("calls waited for %v", waited)
		}
		end()
		<-ran
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the end takes %v", took)
		}
		if got := tracer.Stats(); got != (trace.Stats{Dropped: many}) {
			t.Errorf("%+v", got)
		}
	})
}

// TestOff: without a tracer, a span costs nothing.
func TestOff(t *testing.T) { //nolint:paralleltest // it counts allocations
	var none *trace.Tracer
	if n := testing.AllocsPerRun(100, func() {
		s := none.Start(t.Context(), trace.Client, "load")
		s.Set("leaf.tag", "order")
		s.End(nil)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
