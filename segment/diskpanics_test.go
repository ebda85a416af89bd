package segment_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// panicky is a disk of an embedding program that panics in one call, once it is armed.
type panicky struct {
	*disk

	in    string
	armed bool // of the goroutine that writes: one at a time
}

func (d *panicky) at(call string) {
	if d.armed && d.in == call {
		d.armed = false
		panic("no disk in " + call)
	}
}

func (d *panicky) Occupy(name string) (func(), error) {
	d.at("Occupy")
	return d.disk.Occupy(name)
}

func (d *panicky) ReadFile(name string) ([]byte, error) {
	d.at("ReadFile")
	return d.disk.ReadFile(name)
}

func (d *panicky) Replace(name string, content []byte) error {
	d.at("Replace")
	return d.disk.Replace(name, content)
}

func (d *panicky) Append(name string) (fence.AppendFile, error) {
	d.at("Append")
	f, err := d.disk.Append(name)
	return panickyFile{f, d}, err
}

type panickyFile struct {
	fence.AppendFile

	d *panicky
}

func (f panickyFile) Write(p []byte) (int, error) { f.d.at("Write"); return f.AppendFile.Write(p) }
func (f panickyFile) Sync() error                 { f.d.at("Sync"); return f.AppendFile.Sync() }
func (f panickyFile) Close() error                { f.d.at("Close"); return f.AppendFile.Close() }

// TestDiskPanics: a panic in the disk of an embedding program costs the call, and not the process.
// The node writes the file anew, and no range is served before its fence is on the disk.
func TestDiskPanics(t *testing.T) {
	for _, call := range []string{"Write", "Sync", "Close", "Replace"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d, al, ids := newStore(row(10)), &panicky{disk: newDisk(), in: call}, newAlarms(), newLedger()
				router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: s}}, nil)
				if err != nil {
					t.Fatal(err)
				}
				a, err := segment.New(router, d, segment.Config{NodeID: "n", MaxWait: time.Minute, Alarms: al, FixedStep: true, SyncInterval: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				if err := a.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				ids.add(t, "before", drain(t, a, "order", 10)...)
				synctest.Wait()
				d.armed = true
				if call == "Close" || call == "Replace" {
					d.set(func(d *disk) { d.onSync = func() error { d.onSync = nil; return errDown } }) // the file is written anew
				}
				ids.add(t, "after", drain(t, a, "order", 100)...)
				time.Sleep(time.Minute)
				al.want(t)
				closeNode(t, a)
				if d.armed {
					t.Error("the disk did not panic: that proves nothing")
				}
				again := node(t, s, d.disk, segment.Config{NodeID: "n"})
				ids.add(t, "the next process", drain(t, again, "order", 100)...)
			})
		})
	}
	for _, call := range []string{"Occupy", "ReadFile", "Append"} {
		t.Run(call, func(t *testing.T) {
			router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: newStore()}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			d := &panicky{disk: newDisk(), in: call, armed: true}
			if _, err := segment.New(router, d, segment.Config{NodeID: "n"}); err == nil || !strings.Contains(err.Error(), "panic in Disk."+call+": no disk in "+call) {
				t.Errorf("New: %v; want the panic", err)
			}
		})
	}
}
