package worker_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// takeAll gives all numbers that n may have to somebody else.
func takeAll(n *node) { takeAllBut(n, -1) }

// takeAllBut leaves one to its holder.
func takeAllBut(n *node, one int64) {
	n.w.records.set(func(r *records) {
		for number := range n.cfg.Numbers.Hi {
			if number == one {
				continue
			}
			rec := r.byNum[number]
			rec.Number, rec.Nonce, rec.Version, rec.Bound = number, "somebody else's", "theirs", n.clock.Now().Add(24*time.Hour).UnixMilli()
			r.byNum[number] = rec
		}
	})
}

// TestDiskAlarmEnds: the alarm about the file ends soon after the disk is well, also
// where there is nothing new to write for a long time. The file then holds no less
// than it did.
func TestDiskAlarmEnds(t *testing.T) {
	tests := []struct {
		name  string
		quiet time.Duration // before the disk fails
		while func(n *node) // it fails
	}{
		{"the clock is behind what was issued", 0, func(n *node) { n.clock.step(-time.Hour) }},
		{"the clock is behind the bound only", 2 * time.Hour, func(n *node) { n.clock.step(-time.Hour) }},
		{"the number is lost and no other is free", 0, takeAll},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			run(t, worker.Fixed, func(w *world) { // a leased node would take another number
				n := w.node("a").up()
				last := n.issue(10)
				time.Sleep(test.quiet)
				n.disk.set(func(d *disk) { d.err = errors.New("input/output error") })
				time.Sleep(2 * time.Second)
				test.while(n)
				time.Sleep(10 * time.Second)
				if n.alarms.has(leaf.AlarmDisk) == "" {
					t.Fatal("no alarm about the disk")
				}
				n.disk.set(func(d *disk) { d.err = nil })
				time.Sleep(10 * time.Second)
				if text := n.alarms.has(leaf.AlarmDisk); text != "" {
					t.Errorf("the disk is well, and the alarm still says: %s", text)
				}
				content, err := n.disk.ReadFile(fileName)
				if err != nil {
					t.Fatal(err)
				}
				var file struct{ Inner int64 }
				if err := json.NewDecoder(bytes.NewReader(content)).Decode(&file); err != nil {
					t.Fatal(err)
				}
				if file.Inner <= millis(last) || file.Inner < n.Status().Inner {
					t.Errorf("the file holds t=%d, IDs were issued up to %d, t was %d", file.Inner, millis(last), n.Status().Inner)
				}
			})
		})
	}
}

// TestPeersAlarmEnds: the alarm about the offset to the peers ends when that does, also
// while the node has no number.
func TestPeersAlarmEnds(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		nodes := w.peers("a", "b")
		b := nodes["b:8080"]
		time.Sleep(2 * time.Minute)
		b.clock.step(8 * time.Second) // below the jump, above the threshold
		time.Sleep(2 * time.Minute)
		takeAllBut(b, nodes["a:8080"].Status().Number)
		time.Sleep(time.Minute)
		if b.alarms.has(leaf.AlarmClock) == "" {
			t.Fatal("no alarm about the clock")
		}
		b.clock.step(-8 * time.Second)
		time.Sleep(2 * time.Minute)
		if text := b.alarms.has(leaf.AlarmClock); text != "" {
			t.Errorf("the clock is right, and the alarm still says: %s", text)
		}
		if b.Status().Ready {
			t.Error("b has a number: the test no longer tests what it says")
		}
	})
}
