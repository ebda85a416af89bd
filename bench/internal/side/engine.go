package side

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
)

// Tag is the one tag that Engine has.
const Tag = "bench"

// Engine returns segment mode as a node has it, on a store that costs nothing, for anyone.
// The step is large: a load per million requests is not what is measured. The caller
// calls stop.
func Engine() (access leaf.Access, stop func() error, err error) {
	ctx := context.Background()
	var undo []func() error
	stop = func() (err error) {
		for _, last := range slices.Backward(undo) {
			err = errors.Join(err, last())
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()

	folder, err := os.MkdirTemp("", "leaf-bench-")
	if err != nil {
		return nil, nil, err
	}
	undo = append(undo, func() error { return os.RemoveAll(folder) })
	dir, err := datadir.Open(folder)
	if err != nil {
		return nil, nil, err
	}
	undo = append(undo, dir.Close)
	store := memory.New()
	if err := store.Create(ctx, segment.NewRow{Tag: Tag, Start: 1, Step: segment.MaxStep}); err != nil {
		return nil, nil, err
	}
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: store}}, nil)
	if err != nil {
		return nil, nil, err
	}
	engine, err := segment.New(router, dir, segment.Config{NodeID: dir.NodeID()})
	if err != nil {
		return nil, nil, err
	}
	if err := engine.Start(ctx); err != nil {
		return nil, nil, err
	}
	undo = append(undo, func() error { return engine.Close(ctx) })
	return leaf.Anyone(engine, nil), stop, nil
}
