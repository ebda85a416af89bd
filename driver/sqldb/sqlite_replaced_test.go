package sqldb_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"modernc.org/sqlite"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// replaceFunction is an SQL function that replaces the file whose path it is given. A
// trigger that calls it does so in the middle of a transaction.
const replaceFunction = "leaf_test_replace"

func init() {
	sqlite.MustRegisterScalarFunction(replaceFunction, 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		path, _ := args[0].(string)
		return int64(1), errors.Join(os.Remove(path), os.Remove(path+"-wal"), os.Remove(path+"-shm"), os.WriteFile(path, nil, 0o600))
	})
}

// removeFile deletes a database as an operator would, under whoever uses it.
func removeFile(t *testing.T, path string) {
	t.Helper()
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// TestRecordsFileReplaced: a claim in a file that nobody else sees any more is lost.
func TestRecordsFileReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leaf.db")
	applySchema(t, "sqlite:"+path)
	a := openRecords(t, "sqlite:"+path)
	if _, err := a.Namespace(t.Context(), &worker.StoredNamespace{Namespace: worker.Namespace{Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	r := put(t, a, first())

	removeFile(t, path)
	r.Bound += 1000
	if version, err := a.Put(t.Context(), r); !errors.Is(err, worker.ErrSchema) {
		t.Errorf("Put without a file = %q, %v; want ErrSchema", version, err)
	}
	applySchema(t, "sqlite:"+path)
	if version, err := a.Put(t.Context(), r); !errors.Is(err, worker.ErrLost) {
		t.Errorf("Put into another file = %q, %v; want ErrLost", version, err)
	}
	if ns, err := a.Namespace(t.Context(), nil); err != nil || ns != nil {
		t.Errorf("Namespace of another file = %+v, %v; want none", ns, err)
	}
	others := first()
	others.Nonce = "of b"
	others = put(t, openRecords(t, "sqlite:"+path), others)
	if got := only(t, a); got != others {
		t.Errorf("List = %+v; want what the other process wrote, %+v", got, others)
	}
}

// TestStoreFileReplaced: ranges come from the file that everybody sees.
func TestStoreFileReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leaf.db")
	tag := segment.NewRow{Tag: "a", Start: 1, Step: 7}
	a, b := open(t, "sqlite:"+path), open(t, "sqlite:"+path)
	bind(t, a)
	if err := b.Expect(a.KnownCluster()); err != nil { // or a would refuse the file that b makes
		t.Fatal(err)
	}
	if err := a.Create(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
	reserve(t, a, 1)
	reserve(t, a, 8)

	removeFile(t, path)
	if res, err := a.Reserve(t.Context(), request(7)); !errors.Is(err, segment.ErrSchema) {
		t.Errorf("Reserve without a file = %v, %v; want ErrSchema", res, err)
	}
	bind(t, b)
	if res, err := a.Reserve(t.Context(), request(7)); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("Reserve from another file = %v, %v; want ErrUnknownTag", res, err)
	}
	if err := b.Create(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
	reserve(t, b, 1)
	reserve(t, a, 8)
	reserve(t, b, 15)

	removeFile(t, path)
	bind(t, b)
	if err := b.Create(t.Context(), segment.NewRow{Tag: "a", Start: 22, Step: 7}); err != nil {
		t.Fatal(err)
	}
	if err := a.ReturnUnused(t.Context(), "a", 22, 20); err != nil {
		t.Error(err)
	}
	reserve(t, b, 20)
	removeFile(t, path)
	if above, err := a.Raise(t.Context(), "a", 1000); !errors.Is(err, segment.ErrSchema) {
		t.Errorf("Raise without a file = %d, %v; want ErrSchema", above, err)
	}
}

// reserve expects a range that starts at lo.
func reserve(t *testing.T, s *sqldb.Store, lo int64) {
	t.Helper()
	if res, err := s.Reserve(t.Context(), request(7)); err != nil || res.Range.Lo != lo {
		t.Errorf("Reserve = %v, %v; want a range from %d on", res, err, lo)
	}
}

// TestFileReplacedMeanwhile: what was committed to a file that has lost its name in
// the middle of the transaction did not happen.
func TestFileReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, event string
		call        func(ctx context.Context, s *sqldb.Store, r *sqldb.Records, own worker.Record) error
		want        error // nil: any
	}{
		{"renewal", "UPDATE ON leaf_worker", func(ctx context.Context, _ *sqldb.Store, r *sqldb.Records, own worker.Record) error {
			_, err := r.Put(ctx, own)
			return err
		}, worker.ErrLost},
		{"claim", "INSERT ON leaf_worker", func(ctx context.Context, _ *sqldb.Store, r *sqldb.Records, own worker.Record) error {
			own.Number, own.Version = own.Number+1, ""
			_, err := r.Put(ctx, own)
			return err
		}, worker.ErrLost},
		{"Namespace", "INSERT ON leaf_worker_namespace", func(ctx context.Context, _ *sqldb.Store, r *sqldb.Records, _ worker.Record) error {
			_, err := r.Namespace(ctx, &worker.StoredNamespace{})
			return err
		}, nil},
		{"Reserve", "UPDATE ON leaf_alloc", func(ctx context.Context, s *sqldb.Store, _ *sqldb.Records, _ worker.Record) error {
			res, err := s.Reserve(ctx, request(7))
			if err != nil && res != (segment.Reservation{}) {
				t.Errorf("Reserve = %v beside %v", res, err)
			}
			return err
		}, nil},
		{"ReturnUnused", "UPDATE ON leaf_alloc", func(ctx context.Context, s *sqldb.Store, _ *sqldb.Records, _ worker.Record) error {
			return s.ReturnUnused(ctx, "a", 100, 50)
		}, nil},
		{"Raise", "UPDATE ON leaf_alloc", func(ctx context.Context, s *sqldb.Store, _ *sqldb.Records, _ worker.Record) error {
			_, err := s.Raise(ctx, "a", 1000)
			return err
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "leaf.db")
			s, r := open(t, "sqlite:"+path), openRecords(t, "sqlite:"+path)
			bind(t, s)
			if err := s.Create(t.Context(), segment.NewRow{Tag: "a", Start: 100, Step: 7}); err != nil {
				t.Fatal(err)
			}
			own := put(t, r, first())
			execAll(t, raw(t, path), "CREATE TRIGGER replace_file AFTER "+c.event+" BEGIN SELECT "+replaceFunction+"('"+path+"'); END")
			err := c.call(t.Context(), s, r, own)
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Fatalf("got %v, want an error, %v", err, c.want)
			}
			if info, err := os.Stat(path); err != nil || info.Size() > 0 {
				t.Errorf("the trigger did not replace the file: %v, %v", info, err)
			}
		})
	}
}

// TestFileReplacedLeftovers: a -wal or -shm beside no database belongs to processes that still
// have the old one open. One that was made beside them would share them.
func TestFileReplacedLeftovers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leaf.db")
	a, b := open(t, "sqlite:"+path), open(t, "sqlite:"+path)
	bind(t, a)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"-wal", "-shm"} {
		if err := b.Bind(t.Context(), segment.Binding{Store: "default"}); err == nil || !strings.Contains(err.Error(), path+end) {
			t.Errorf("Bind beside %s: %v; want an error that names it", end, err)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("the refused Bind made a file: %v", err)
		}
		if err := os.Remove(path + end); err != nil {
			t.Fatal(err)
		}
	}
	bind(t, b)
	before, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil { // of the old file
		t.Error(err)
	}
	if after, err := os.Stat(path + "-wal"); err != nil || !os.SameFile(before, after) {
		t.Errorf("the last process of the old file took the new one's -wal with it: %v, %v", after, err)
	}
}
