package worker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// panickyDisk panics at its first call of a kind.
type panickyDisk struct {
	*disk

	in    string
	fired bool // of the goroutine that uses the file: one at a time
}

func (d *panickyDisk) at(call string) {
	if d.in == call && !d.fired {
		d.fired = true
		panic("no disk in " + call)
	}
}

func (d *panickyDisk) Occupy(name string) (func(), error) {
	d.at("Occupy")
	return d.disk.Occupy(name)
}

func (d *panickyDisk) ReadFile(name string) ([]byte, error) {
	d.at("ReadFile")
	return d.disk.ReadFile(name)
}

func (d *panickyDisk) Replace(name string, content []byte) error {
	d.at("Replace")
	return d.disk.Replace(name, content)
}

// TestDiskPanics: a panic in the disk of an embedding program is a failure of the disk, and not
// the end of the process.
func TestDiskPanics(t *testing.T) {
	for _, call := range []string{"ReadFile", "Replace"} {
		t.Run(call, func(t *testing.T) {
			run(t, worker.Fixed, func(w *world) {
				n := w.node("a")
				d := &panickyDisk{disk: n.disk, in: call}
				h, err := worker.New(worker.NewPool(w.records), d, n.cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := h.Close(w.t.Context()); err != nil {
						t.Error(err)
					}
				}()
				if err := h.Start(w.t.Context()); err != nil {
					t.Fatal(err)
				}
				if text := n.alarms.has(leaf.AlarmDisk); call == "Replace" && (!strings.Contains(text, "no disk in Replace") || strings.Contains(text, "\n")) {
					t.Errorf("alarm %q, want one line with the panic", text)
				}
				time.Sleep(time.Minute)
				if _, err := h.Next(w.t.Context(), ""); err != nil || !d.fired {
					t.Errorf("after the panic: %v; fired: %v", err, d.fired)
				}
				if text := n.alarms.has(leaf.AlarmDisk); text != "" {
					t.Errorf("alarm %q", text)
				}
			})
		})
	}
}

// TestOccupyPanics: a Holder whose disk panics when it takes its file is not made.
func TestOccupyPanics(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a")
		_, err := worker.New(worker.NewPool(w.records), &panickyDisk{disk: n.disk, in: "Occupy"}, n.cfg)
		if err == nil || !strings.Contains(err.Error(), "no disk in Occupy") {
			t.Errorf("New: %v; want the panic", err)
		}
	})
}
