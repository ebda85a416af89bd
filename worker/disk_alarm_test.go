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
		{"the number is lost and no other is free", 0, func(n *node) {
			n.w.records.set(func(r *records) {
				for number := range n.cfg.Numbers.Hi {
					rec := r.byNum[number]
					rec.Number, rec.Nonce, rec.Version, rec.Bound = number, "somebody else's", "theirs", n.clock.Now().Add(24*time.Hour).UnixMilli()
					r.byNum[number] = rec
				}
			})
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			run(t, worker.Leased, func(w *world) {
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
