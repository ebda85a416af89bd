package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/leaf-idgen/leaf/idlog"
)

// Verdict is what the logs of a run showed.
type Verdict struct {
	Logs       int
	IDs        uint64
	Duplicates uint64 // IDs that appear more than once, over all nodes
	WithinNode uint64 // of those, the ones that one node repeated by itself; not for tags in strict order
	Disorders  uint64 // replies that were not larger than the one before from the same process
	Later      uint64 // replies of tags in strict order to calls that began after another one had ended
	Inversions uint64 // those of them that were not larger than a reply from before
	Odd        int    // snowflake IDs whose time is nowhere near that of their arrival
	Turns      int    // worker IDs that two processes used in turns
	Examples   []string
}

// memory is enough for all logs of a run; the check is the same with less.
const memory = 64 << 20

// verify checks all logs: over all nodes, and each node's by themselves. Those of tags in strict order are
// checked by themselves: a node hands out the IDs of others, and the order is that of time.
func verify(ctx context.Context, folder string, logs []*idLog) (Verdict, error) {
	var v Verdict
	var all, strict []string
	ofNode := map[string][]string{}
	var tenants []tenant
	for _, l := range logs {
		if l.strict {
			strict = append(strict, l.files...)
			continue
		}
		all = append(all, l.files...)
		ofNode[l.node] = append(ofNode[l.node], l.files...)
		v.Odd += l.odd
		v.Examples = append(v.Examples, l.unreasonable...)
		for k, s := range l.spans {
			tenants = append(tenants, tenant{k.worker, fmt.Sprintf("process %d of node %s", k.life, l.node), *s})
		}
	}
	if err := v.check(ctx, idlog.Options{Memory: memory, Temp: folder}, all); err != nil {
		return v, err
	}
	if err := v.check(ctx, idlog.Options{Memory: memory, Temp: folder, AnyOrder: true, Strict: true}, strict); err != nil {
		return v, err
	}
	for node, files := range ofNode {
		own, err := idlog.Check(ctx, idlog.Options{Memory: memory, Temp: folder, AnyOrder: true}, files...)
		if err != nil {
			return v, fmt.Errorf("logs of node %s: %w", node, err)
		}
		v.WithinNode += own.Total.Duplicates
	}
	inTurns := turns(tenants)
	v.Turns = len(inTurns)
	v.Examples = append(v.Examples, inTurns[:min(len(inTurns), 5)]...)
	return v, nil
}

// check adds what package idlog finds in some logs.
func (v *Verdict) check(ctx context.Context, o idlog.Options, files []string) error {
	if len(files) == 0 {
		return nil
	}
	found, err := idlog.Check(ctx, o, files...)
	if err != nil {
		return err
	}
	v.Logs += len(files)
	v.IDs, v.Duplicates, v.Disorders = v.IDs+found.Total.IDs, v.Duplicates+found.Total.Duplicates, v.Disorders+found.Total.Disorders
	v.Later, v.Inversions = v.Later+found.Total.Later, v.Inversions+found.Total.Inversions
	short := func(p idlog.Place) string {
		p.File = filepath.Join(filepath.Base(filepath.Dir(p.File)), filepath.Base(p.File))
		return p.String()
	}
	for _, d := range found.Duplicates {
		var places []string
		for _, p := range d.Places {
			places = append(places, short(p))
		}
		v.Examples = append(v.Examples, fmt.Sprintf("%s: %d times, at %s", d, d.Times, strings.Join(places, " ")))
	}
	for _, d := range found.Disorders {
		v.Examples = append(v.Examples, fmt.Sprintf("%s: %s after %d", short(d.Place), d.Record, d.After))
	}
	for _, i := range found.Inversions {
		v.Examples = append(v.Examples, fmt.Sprintf("%s: %s began after the end of %s at %s", short(i.AfterPlace), i.After, i.Before, short(i.BeforePlace)))
	}
	for _, log := range found.Logs {
		if log.Torn != nil {
			return fmt.Errorf("log %s is torn: %v", log.Name, log.Torn)
		}
	}
	return nil
}
