package grpcd_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/leaf-idgen/leaf/leafpb"
)

func TestStream(t *testing.T) {
	for _, tt := range requests {
		t.Run(tt.name, func(t *testing.T) {
			st := stream(t, client(t, start(t, serves(newIssuer()))))
			resp := ask(t, st, &leafpb.StreamRequest{Tag: tt.tag, Count: tt.count, Mode: tt.mode})
			if tt.code != "" {
				checkError(t, resp, tt.code)
			} else if diff := cmp.Diff(tt.want, resp.GetRanges(), protocmp.Transform()); diff != "" || resp.GetError() != nil {
				t.Errorf("got %v, ranges (-want +got):\n%s", resp, diff)
			}
			if resp := ask(t, st, &leafpb.StreamRequest{Tag: "another"}); resp.GetError() != nil || len(resp.GetRanges()) != 1 {
				t.Errorf("the stream went on with %v", resp)
			}
			if err := st.CloseSend(); err != nil {
				t.Fatal(err)
			}
			if resp, err := st.Recv(); !errors.Is(err, io.EOF) {
				t.Errorf("after the last answer: %v, %v; want the end", resp, err)
			}
		})
	}
}

// TestStreamsAreOrderedAndDistinct has many requests of different sizes in flight on
// several streams of one tag, errors in between.
func TestStreamsAreOrderedAndDistinct(t *testing.T) {
	t.Parallel()
	const streams, requests = 4, 2000
	c := client(t, start(t, serves(newIssuer())))
	var (
		mu   sync.Mutex
		seen = map[int64]bool{}
		wg   sync.WaitGroup
	)
	for range streams {
		st := stream(t, c)
		wg.Go(func() {
			for i := range requests {
				req := &leafpb.StreamRequest{Tag: "a", Count: int32(i%7 + 1)}
				if i%10 == 9 {
					req.Tag = "err.exhausted"
				}
				if err := st.Send(req); err != nil {
					t.Errorf("send: %v", err)
					return
				}
			}
			_ = st.CloseSend()
		})
		wg.Go(func() {
			last := int64(0)
			for i := range requests {
				resp, err := st.Recv()
				if err != nil {
					t.Errorf("receive: %v", err)
					return
				}
				if wrong := (i%10 == 9) != (resp.GetError().GetCode() == "exhausted"); wrong {
					t.Errorf("answer %d does not belong to its request: %v", i, resp)
				}
				n := 0
				for _, r := range resp.GetRanges() {
					for id := r.GetLo(); id < r.GetHi(); id++ {
						n++
						mu.Lock()
						if seen[id] {
							t.Errorf("%d was issued twice", id)
						}
						seen[id] = true
						mu.Unlock()
						if id <= last {
							t.Errorf("%d came after %d", id, last)
						}
						last = id
					}
				}
				if resp.GetError() == nil && n != i%7+1 {
					t.Errorf("answer %d has %d IDs, want %d", i, n, i%7+1)
				}
			}
			if resp, err := st.Recv(); !errors.Is(err, io.EOF) {
				t.Errorf("after the last answer: %v, %v", resp, err)
			}
		})
	}
	wg.Wait()
}

// TestAWaitHoldsUpItsOwnStreamOnly: behind a request that waits there are as many as the
// client can send, and another stream of the same connection is answered all the same.
func TestAWaitHoldsUpItsOwnStreamOnly(t *testing.T) {
	t.Parallel()
	seg := newIssuer()
	c := client(t, start(t, serves(seg)))
	held, free := stream(t, c), stream(t, c)
	sent := make(chan int)
	stuck := make(chan struct{}, 1)
	go func() {
		n := 0
		for held.Context().Err() == nil && n < 5_000 { // 250 KB, the client holds 64 KiB and the server 64 KiB
			watch := time.AfterFunc(time.Second, func() { stuck <- struct{}{} })
			tag := strings.Repeat("a", 40)
			if n == 0 {
				tag = "block"
			}
			if held.Send(&leafpb.StreamRequest{Tag: tag, Count: 1_000}) != nil {
				break
			}
			watch.Stop()
			n++
		}
		sent <- n
	}()
	<-seg.entered
	select {
	case <-stuck: // flow control
	case n := <-sent:
		t.Fatalf("%d requests were taken behind one that waits", n)
	}
	if calls := seg.called(); calls != 1 {
		t.Errorf("the issuer has %d calls, want the one that waits", calls)
	}
	for i := range 100 {
		if resp := ask(t, free, &leafpb.StreamRequest{Tag: "b"}); resp.GetRanges()[0].GetLo() != int64(i+1) {
			t.Fatalf("the other stream got %v", resp)
		}
	}
	close(seg.release)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 5_000 {
			if _, err := held.Recv(); err != nil {
				t.Errorf("answer %d: %v", i, err)
				return
			}
		}
	}()
	if n := <-sent; n != 5_000 {
		t.Errorf("%d were sent", n)
	}
	<-done
}

// TestSlowReader: a client that does not read stops being served, and loses its
// connection after a while, but costs nobody else anything.
func TestSlowReader(t *testing.T) {
	seg := newIssuer()
	cfg := serves(seg)
	cfg.WriteTimeout = 500 * time.Millisecond
	s := start(t, cfg)
	slow, quick := client(t, s), stream(t, client(t, s))
	st, err := slow.Stream(within(t, 30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for err == nil {
		err = st.Send(&leafpb.StreamRequest{Tag: "a", Count: 7})
	}
	if !errors.Is(err, io.EOF) || errors.Is(st.Context().Err(), context.DeadlineExceeded) {
		t.Fatalf("the stream ended with %v after %v", err, time.Since(began))
	}
	// Two windows of 64 KiB, the server's and the client's, hold some 10,000 answers.
	if calls := seg.called(); calls > 30_000 {
		t.Errorf("%d requests were answered to nobody", calls)
	}
	if resp := ask(t, quick, &leafpb.StreamRequest{Tag: "b"}); resp.GetError() != nil {
		t.Errorf("another client got %v", resp)
	}
}
