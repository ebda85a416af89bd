package sqldb_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/audit"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/segment"
)

// TestClusterID: all nodes of one database have one ID, also if they ask at the same time
// and after a restart; another database has another.
func TestClusterID(t *testing.T) {
	ids := map[string]bool{}
	for range 2 {
		url := "sqlite:" + filepath.Join(t.TempDir(), "leaf.db")
		got := make([]string, 8)
		var nodes sync.WaitGroup
		for i := range got {
			nodes.Go(func() {
				s, err := sqldb.Open(url, sqldb.Config{})
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				if err := s.Bind(t.Context(), segment.Binding{Store: "default"}); err != nil {
					t.Error(err)
				}
				if got[i], err = s.ClusterID(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		nodes.Wait()
		for _, id := range got {
			if id != got[0] || len(id) != 32 {
				t.Errorf("IDs %q", got)
			}
		}
		ids[got[0]] = true
	}
	if len(ids) != 2 {
		t.Errorf("two databases have the IDs %v", ids)
	}
}

// TestTablesOfAUsedDatabaseAreGone: the URL leads to an empty database, and the node has used another
// one. Its error does not say first that tables are to be made: they would get the cluster's ID, and
// the tags that are made there begin below what the other nodes issue.
func TestTablesOfAUsedDatabaseAreGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE other (x)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ known, rule, want, command string }{
		{"", "", "leaf_alloc, or does not let this user read it; run: leaf schema apply", "run: leaf schema apply --store"},
		{strings.Repeat("c", 32), "", "find out to which database the URL of the store leads", "run: leaf schema apply --store"},
		{strings.Repeat("c", 32), "r", "with --data-dir of one of these nodes, which gives them the ID of that cluster", "run, with the settings of this node: leaf schema apply"},
	} {
		s := openWith(t, "sqlite:"+path, sqldb.Config{Several: tt.rule != ""})
		if tt.known != "" {
			if err := s.Expect(tt.known); err != nil {
				t.Fatal(err)
			}
		}
		err := s.Verify(t.Context(), segment.Binding{Store: "default", Rule: tt.rule})
		if !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), tt.want) || !strings.HasSuffix(err.Error(), tt.command) && !strings.Contains(err.Error(), tt.command+" ") {
			t.Errorf("known %q: %v; want %q", tt.known, err, tt.want)
		}
	}
}

// TestClusterIDOfAFasterNode: a node that finds no ID, and writes its own after another node
// has written one, has the other one's. A trigger is the faster node.
func TestClusterIDOfAFasterNode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leaf.db")
	s := open(t, "sqlite:"+path)
	if _, err := s.ApplySchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	execAll(t, db, "CREATE TRIGGER faster BEFORE INSERT ON leaf_meta WHEN NEW.value <> '"+otherID+"' BEGIN"+
		" INSERT INTO leaf_meta (name, value) VALUES (NEW.name, '"+otherID+"'); SELECT RAISE(IGNORE); END")
	if id, err := s.ClusterID(t.Context()); id != otherID || err != nil {
		t.Errorf("ClusterID = %q, %v; want %s", id, err, otherID)
	}
}

const otherID = "ffffffffffffffffffffffffffffffff"

// changing is a store with the row "order" at 1001, whose database the test changes.
func changing(t *testing.T, url string, db *sql.DB) (s *sqldb.Store, id string) {
	t.Helper()
	execAll(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('order', 1, 1000, '')")
	s = open(t, url)
	if err := s.Bind(t.Context(), segment.Binding{Store: "default"}); err != nil {
		t.Fatal(err)
	}
	wantNext(t, s, 1)
	id, err := s.ClusterID(t.Context())
	if err != nil || len(id) != 32 {
		t.Fatalf("ClusterID = %q, %v", id, err)
	}
	return s, id
}

// wantNext expects the next range of "order" to begin at lo.
func wantNext(t *testing.T, s *sqldb.Store, lo int64) {
	t.Helper()
	for _, step := range []int64{1000, 0} { // in one message, and in a transaction
		res, err := s.Reserve(t.Context(), segment.Request{Tag: "order", Step: step, Length: 500, Min: 500, Max: 500})
		if err != nil || res.Range.Lo != lo {
			t.Fatalf("Reserve = %+v, %v; want a range from %d", res, err, lo)
		}
		lo = res.Range.Hi
	}
}

// TestDatabaseOfAnotherCluster: the name of the database leads to that of another cluster,
// or its dump was loaded. No load, return or repair goes there, and nothing is recorded.
func TestDatabaseOfAnotherCluster(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		s, id := changing(t, url, db)
		roles, err := auth.ParseRoles([]string{"issue"})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Post(t.Context(), segment.Notice{Tag: "theirs", Asked: 7}), s.Enter(t.Context(), segment.Member{Node: "theirs", Process: 1})); err != nil {
			t.Fatal(err)
		}
		nodes, err := s.Directory()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nodes.Close() })
		execAll(t, db, "UPDATE leaf_meta SET value = '"+otherID+"' WHERE name = 'cluster_id'", "INSERT INTO leaf_meta (name, value) VALUES ('opaque_key_0', 'their key')")
		for name, call := range map[string]func() error{
			"Reserve": func() error {
				_, err := s.Reserve(t.Context(), segment.Request{Tag: "order", Step: 1000, Length: 10, Min: 10, Max: 10})
				return err
			},
			"Reserve with another step": func() error {
				_, err := s.Reserve(t.Context(), segment.Request{Tag: "order", Min: 10, Max: 10})
				return err
			},
			"ReturnUnused": func() error {
				execAll(t, db, "UPDATE leaf_alloc SET max_id = 1001")
				err := s.ReturnUnused(t.Context(), "order", 1001, 500)
				var maxID int64
				if readErr := db.QueryRowContext(t.Context(), "SELECT max_id FROM leaf_alloc").Scan(&maxID); readErr != nil || maxID != 1001 {
					t.Errorf("the row of the other cluster is at %d, %v; want 1001", maxID, readErr)
				}
				return err
			},
			"Raise": func() error {
				_, err := s.Raise(t.Context(), "order", 1_000_000)
				return err
			},
			"Raise of a row that is high enough": func() error { return second(s.Raise(t.Context(), "order", 1)) },
			"Lookup":                             func() error { return second(s.Lookup(t.Context(), "order")) },
			"Rows":                               func() error { return second(s.Rows(t.Context())) },
			"RowsAfter":                          func() error { return second(s.RowsAfter(t.Context(), "", 10)) },
			"Agree":                              func() error { return second(s.Agree(t.Context(), "opaque_key_0", "our key")) },
			"Agree again":                        func() error { return second(s.Agree(t.Context(), "opaque_size", "our size")) },
			"Create":                             func() error { return s.Create(t.Context(), segment.NewRow{Tag: "new", Step: 10}) },
			"Update":                             func() error { return s.Update(t.Context(), "order", segment.Change{Step: new(int64(7))}) },
			"Delete":                             func() error { return s.Delete(t.Context(), "order") },
			"KeepEnds":                           func() error { return s.KeepEnds(t.Context(), map[string]int64{"order": 9}) },
			"Limits":                             func() error { _, err := s.Limits(t.Context()); return err },
			"SetTagLimit":                        func() error { return second(s.SetTagLimit(t.Context(), "order", limit.ChangeTo(limit.Rule{Rate: 1}))) },
			"SetClientLimit": func() error {
				return second(s.SetClientLimit(t.Context(), "them", limit.ChangeTo(limit.Rule{Rate: 1})))
			},
			"NamedTokens": func() error { _, err := s.NamedTokens(t.Context()); return err },
			"CreateToken": func() error {
				return s.CreateToken(t.Context(), auth.Token{Name: "them", Digest: auth.DigestOf("secret"), Roles: roles, Created: time.Unix(0, 0)})
			},
			"RevokeToken": func() error { return s.RevokeToken(t.Context(), "them") },
			"Notices":     func() error { _, err := s.Notices(t.Context()); return err },
			"Post":        func() error { return s.Post(t.Context(), segment.Notice{Tag: "order", Regress: 9}) },
			"Answer":      func() error { return s.Answer(t.Context(), segment.Answer{Tag: "order", Node: "n", High: 9}) },
			"Answers":     func() error { _, err := s.Answers(t.Context(), "order"); return err },
			"AllAnswers":  func() error { _, err := s.AllAnswers(t.Context()); return err },
			"Forget":      func() error { return s.Forget(t.Context(), "theirs", 7) },
			"Forgotten":   func() error { _, err := s.Forgotten(t.Context()); return err },
			"Enter":       func() error { return s.Enter(t.Context(), segment.Member{Node: "n", Process: 1}) },
			"Leave":       func() error { return s.Leave(t.Context(), "theirs") },
			"Nodes":       func() error { _, err := s.Nodes(t.Context()); return err },
			"Record": func() error {
				return s.Record(t.Context(), audit.Entry{ID: audit.NewID(time.Now()), Node: "n", Who: "x", Operation: "create", Object: "order", Result: audit.Done}, time.Hour)
			},
			"Entries": func() error { _, _, err := s.Entries(t.Context(), audit.Query{Limit: 1}); return err },
			"Put of the directory": func() error {
				return nodes.Put(t.Context(), discovery.Node{ID: "n", Weight: 1, HTTP: "10.0.0.1:8080"}, time.Minute)
			},
			"List of the directory": func() error { _, err := nodes.List(t.Context()); return err },
			"Bind": func() error {
				execAll(t, db, "DELETE FROM leaf_meta WHERE name <> 'cluster_id'")
				err := s.Bind(t.Context(), segment.Binding{Store: "default"})
				var rows int
				if scanErr := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM leaf_meta").Scan(&rows); scanErr != nil || rows != 1 {
					t.Errorf("leaf_meta has %d rows, %v; want none but the ID", rows, scanErr)
				}
				return err
			},
		} {
			var other *segment.ClusterError
			if err := call(); !errors.As(err, &other) || other.Own != id || other.Found != otherID {
				t.Errorf("%s: %v; want that it names %s and %s", name, err, id, otherID)
			}
		}
		execAll(t, db, "UPDATE leaf_meta SET value = '"+id+"' WHERE name = 'cluster_id'", "UPDATE leaf_alloc SET max_id = 5001")
		wantBoard(t, s)
		if err := s.Bind(t.Context(), segment.Binding{Store: "default"}); err != nil {
			t.Errorf("Bind when the database is its own again: %v", err)
		}
		wantNext(t, s, 5001)
		if err := s.ReturnUnused(t.Context(), "order", 6001, 5500); err != nil {
			t.Errorf("ReturnUnused: %v", err)
		}
	})
}

// wantBoard expects what was on the board and in the table before the database was another's.
func wantBoard(t *testing.T, s *sqldb.Store) {
	t.Helper()
	notices, err := s.Notices(t.Context())
	nodes, nodesErr := s.Nodes(t.Context())
	answers, answersErr := s.AllAnswers(t.Context())
	rows, rowsErr := s.Rows(t.Context())
	if err := errors.Join(err, nodesErr, answersErr, rowsErr); err != nil {
		t.Fatal(err)
	}
	if len(notices) != 1 || notices[0] != (segment.Notice{Tag: "theirs", Asked: 7}) || len(nodes) != 1 || nodes[0].Node != "theirs" || len(answers) != 0 {
		t.Errorf("the board has %+v, %+v and %+v; want what was there before", notices, nodes, answers)
	}
	if len(rows) != 1 || rows[0].Step != 1000 {
		t.Errorf("the rows are %+v; want one, with step 1000", rows)
	}
}

// TestClusterIDIsLost: a database that lost its ID serves on, and the next Bind puts the same ID
// back: a node that starts makes no other one. When the table of it is gone, so is what says that
// the database is still the node's own: it takes no range until the table is there again.
func TestClusterIDIsLost(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		s, id := changing(t, url, db)
		execAll(t, db, "DELETE FROM leaf_meta WHERE name = 'cluster_id'")
		wantNext(t, s, 1001)
		execAll(t, db, "DROP TABLE leaf_meta")
		for range 2 {
			if res, err := s.Reserve(t.Context(), segment.Request{Tag: "order", Step: 1000, Length: 500, Min: 500, Max: 500}); !errors.Is(err, segment.ErrSchema) {
				t.Errorf("Reserve without leaf_meta = %+v, %v; want ErrSchema", res, err)
			}
			if strings.HasPrefix(url, "sqlite:") { // Bind makes the table
				break
			}
			if err := s.Bind(t.Context(), segment.Binding{Store: "default"}); !errors.Is(err, segment.ErrSchema) {
				t.Errorf("Bind without leaf_meta: %v; want ErrSchema", err)
			}
		}
		if _, err := s.ApplySchema(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Bind(t.Context(), segment.Binding{Store: "default"}); err != nil {
			t.Error(err)
		}
		if got, err := open(t, url).ClusterID(t.Context()); got != id || err != nil {
			t.Errorf("a node that starts has the ID %s, %v; want %s", got, err, id)
		}
		wantNext(t, s, 2001)
	})
}

// TestClusterOfAnEarlierProcess: a Store that expects the ID which an earlier process read
// takes nothing from another cluster's database, and records nothing there.
func TestClusterOfAnEarlierProcess(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		_, id := changing(t, url, db)
		own := open(t, url)
		if err := own.Expect(id); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(own.Bind(t.Context(), segment.Binding{Store: "default"}), own.SameCluster(t.Context())); err != nil {
			t.Errorf("a node of this cluster: %v", err)
		}
		wantNext(t, own, 1001)

		moved := open(t, url)
		if err := moved.Expect(otherID); err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{
			"Bind":        moved.Bind(t.Context(), segment.Binding{Store: "default"}),
			"Verify":      moved.Verify(t.Context(), segment.Binding{Store: "default"}),
			"SameCluster": moved.SameCluster(t.Context()),
		} {
			var other *segment.ClusterError
			if !errors.As(err, &other) || other.Own != otherID || other.Found != id {
				t.Errorf("%s: %v; want that it names %s and %s", name, err, otherID, id)
			}
		}
		if err := own.Expect(otherID); err == nil {
			t.Error("a Store that has read one ID expects another")
		}
		execAll(t, db, "DELETE FROM leaf_meta WHERE name = 'cluster_id'")
		if err := moved.SameCluster(t.Context()); err != nil {
			t.Errorf("a database without an ID: %v", err)
		}
	})
}
