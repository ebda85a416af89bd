package segment_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// brokenDisk fails in one of the ways of a start.
type brokenDisk struct {
	*disk

	read, appendTo error
}

func (d *brokenDisk) ReadFile(name string) ([]byte, error) {
	if d.read != nil {
		return nil, d.read
	}
	return d.disk.ReadFile(name)
}

func (d *brokenDisk) Append(name string) (fence.AppendFile, error) {
	if d.appendTo != nil {
		return nil, d.appendTo
	}
	return d.disk.Append(name)
}

// TestDiskThatFailsAtTheStart: without a fence file that can be read and written there
// is no node.
func TestDiskThatFailsAtTheStart(t *testing.T) {
	failed := errors.New("input/output error")
	full := newDisk()
	full.onReplace = func(string) error { return failed }
	newer := newDisk()
	newer.files["fence"] = []byte(seal(strings.Replace(fenceHeader, `"version":1`, `"version":3`, 1)))
	for _, c := range []struct {
		name string
		disk fence.Disk
		want string
	}{
		{"read", &brokenDisk{disk: newDisk(), read: failed}, "read the fence file: input/output error"},
		{"write", full, "write the fence file: input/output error"},
		{"append", &brokenDisk{disk: newDisk(), appendTo: failed}, "open the fence file: input/output error"},
		{"newer program", newer, "of version 3, should be a leaf-fence of version 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: newStore()}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := segment.New(router, c.disk, segment.Config{NodeID: "node-1"}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("New: %v; want %q", err, c.want)
			}
		})
	}
}

// TestStartThatEnds: Start returns when its context ends, and not at all after Close.
func TestStartThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		s.set(func(s *store) {
			s.onBind = func(ctx context.Context, _ func() error) error {
				<-ctx.Done()
				return ctx.Err()
			}
		})
		a := newNode(t, s, nil, segment.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		wantErr(t, a.Start(ctx), context.DeadlineExceeded)
		closeNode(t, a)
		wantErr(t, newClosed(t).Start(t.Context()), leaf.ErrNotReady)
	})
}

func newClosed(t *testing.T) *segment.Allocator {
	t.Helper()
	a := newNode(t, newStore(), nil, segment.Config{})
	closeNode(t, a)
	return a
}
