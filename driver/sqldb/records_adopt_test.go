package sqldb_test

import (
	"cmp"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

// forkTable is the script of the fork, and of a fork of that.
func forkTable(created, updated string) string {
	return "CREATE TABLE `leaf_workerid_alloc` (`id` bigint(20) NOT NULL AUTO_INCREMENT, `ip` varchar(127) DEFAULT NULL," +
		" `port` varchar(127) DEFAULT NULL, `ip_port` varchar(127) NOT NULL, `max_timestamp` bigint(20) DEFAULT NULL," +
		" `" + created + "` timestamp NULL DEFAULT NULL, `" + updated + "` timestamp NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP," +
		" PRIMARY KEY (`id`), UNIQUE KEY `idx_ipport` (`ip_port`) USING BTREE) ENGINE=InnoDB AUTO_INCREMENT=0"
}

func TestReserved(t *testing.T) {
	for name, create := range map[string]string{
		"the fork": forkTable("create_time", "update_time"), "a fork of it": forkTable("gmt_create", "gmt_modified"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := server.MariaDB(t)
			applySchema(t, d.URL())
			s := openRecords(t, d.URL())
			if all, err := s.Reserved(t.Context()); err != nil || all != nil {
				t.Fatalf("Reserved without the table = %+v, %v; want none", all, err)
			}
			execAll(t, d.Open(t), create, `INSERT INTO leaf_workerid_alloc (id, ip_port, max_timestamp) VALUES
				(1, '10.0.0.1:8080', 1763000000000), (2, '10.0.0.2:8080', NULL), (3, '10.0.0.3:8080', 9223372036854775807), (5000, '10.0.0.4:8080', -5)`)
			before := time.Now().UnixMilli()
			all, err := s.Reserved(t.Context())
			if err != nil || len(all) != 4 {
				t.Fatalf("Reserved = %+v, %v; want four", all, err)
			}
			slices.SortFunc(all, func(a, b worker.Adoptable) int { return cmp.Compare(a.Number, b.Number) })
			if unknown := all[1].Floor; unknown < before+9_990 || unknown > time.Now().UnixMilli()+10_010 {
				t.Errorf("floor without a time = %d; want 10 s from now, %d", unknown, before)
			}
			all[1].Floor = 0
			want := []worker.Adoptable{
				{Number: 1, Address: "10.0.0.1:8080", Floor: 1_763_000_010_000},
				{Number: 2, Address: "10.0.0.2:8080"},
				{Number: 3, Address: "10.0.0.3:8080", Floor: math.MaxInt64},
				{Number: 5000, Address: "10.0.0.4:8080", Floor: 9_995},
			}
			if !slices.Equal(all, want) {
				t.Errorf("Reserved = %+v; want %+v", all, want)
			}
		})
	}
}

// TestAdoption: an address of the fork goes on with its number above its time, and
// nobody else gets it, also when all others are taken.
func TestAdoption(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	applySchema(t, d.URL())
	const now = 1_763_000_000_000
	execAll(t, d.Open(t), forkTable("create_time", "update_time"),
		"INSERT INTO leaf_workerid_alloc (id, ip_port, max_timestamp) VALUES (1, '10.0.0.1:8080', 1762999999000), (2, '10.0.0.2:8080', 1762999000000)")
	p := worker.NewPool(openRecords(t, d.URL()))
	ns := worker.Namespace{Name: "test", Fingerprint: "layout"}
	if err := p.Init(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		address       string
		number, floor int64 // number 0: none is left
	}{
		{"10.0.0.9:8080", 3, 0},
		{"10.0.0.1:8080", 1, 1_763_000_009_000},
		{"10.0.0.8:8080", 0, 0},
		{"10.0.0.2:8080", 2, 1_762_999_010_000},
	} {
		r, err := p.Claim(t.Context(), worker.Request{
			Namespace: ns, Address: c.address, Nonce: c.address, Numbers: leaf.Range{Lo: 1, Hi: 4}, Now: now, Bound: now + 60_000, Margin: 5000,
		})
		if c.number == 0 {
			if !errors.Is(err, worker.ErrFull) {
				t.Errorf("Claim by %s = %+v, %v; want ErrFull", c.address, r, err)
			}
			continue
		}
		if err != nil || r.Number != c.number || r.Floor != c.floor {
			t.Errorf("Claim by %s = %+v, %v; want number %d from %d", c.address, r, err, c.number, c.floor)
		}
	}
}

// TestForkNodeThatStartsLater: while nodes of the fork are replaced one by one, one of them
// starts again at a new port. The fork counts ids up, and does not look at our table; our
// next node does not take the number that the fork has just given.
func TestForkNodeThatStartsLater(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	applySchema(t, d.URL())
	db := d.Open(t)
	execAll(t, db, forkTable("create_time", "update_time"), "INSERT INTO leaf_workerid_alloc (ip_port, max_timestamp) VALUES ('10.0.0.1:8080', 1762999000000)")
	p := worker.NewPool(openRecords(t, d.URL()))
	ns := worker.Namespace{Name: "test", Fingerprint: "layout"}
	if err := p.Init(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	claim := func(address string) (int64, error) {
		const now = 1_763_000_000_000
		r, err := p.Claim(t.Context(), worker.Request{
			Namespace: ns, Address: address, Nonce: address, Numbers: leaf.Range{Lo: 1, Hi: 4}, Now: now, Bound: now + 60_000, Margin: 5000,
		})
		return r.Number, err
	}
	if n, err := claim("10.0.0.1:8080"); n != 1 || err != nil {
		t.Errorf("the fork's address has number %d, %v; want its own, 1", n, err)
	}
	execAll(t, db, "INSERT INTO leaf_workerid_alloc (ip_port, max_timestamp) VALUES ('10.0.0.2:9090', 1762999999000)")
	if n, err := claim("10.0.0.3:8080"); n != 3 || err != nil {
		t.Errorf("our next node has number %d, %v; want 3: the fork has just given 2", n, err)
	}
	if n, err := claim("10.0.0.4:8080"); !errors.Is(err, worker.ErrFull) {
		t.Errorf("one more node has number %d, %v; want ErrFull", n, err)
	}
}

// TestReservedOfAnotherTable: a table that is not the fork's bars the start, because nobody
// knows what its numbers are.
func TestReservedOfAnotherTable(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		s := openRecords(t, url)
		execAll(t, db, "CREATE TABLE leaf_workerid_alloc (id bigint, ip_port text)")
		if all, err := s.Reserved(t.Context()); !errors.Is(err, worker.ErrForeign) || !strings.Contains(err.Error(), "max_timestamp") {
			t.Errorf("Reserved = %+v, %v; want ErrForeign", all, err)
		}
	})
}

// TestUnreadableRowOfTheFork: a row that cannot be read keeps its number from everybody and
// no other number from anybody, and is shown.
func TestUnreadableRowOfTheFork(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		for name, tt := range map[string]struct {
			id, time string
			number   int64
			damage   string
		}{
			"not a time":        {"1", "'yesterday'", 1, "max_timestamp"},
			"no number":         {"NULL", "'1'", 0, "NULL"},
			"not a number":      {"'one'", "'1'", -1, "one"},
			"far beyond a time": {"1", "'99999999999999999999'", 1, "max_timestamp"},
		} {
			t.Run(name, func(t *testing.T) {
				execAll(t, db, "DROP TABLE IF EXISTS leaf_workerid_alloc", "CREATE TABLE leaf_workerid_alloc AS SELECT "+tt.id+" AS id, '10.0.0.1:8080' AS ip_port, "+tt.time+
					" AS max_timestamp UNION ALL SELECT "+map[bool]string{true: "'2'", false: "2"}[tt.number < 0]+", '10.0.0.2:8080', '1'")
				p := worker.NewPool(openRecords(t, url))
				ns := worker.Namespace{Name: "test", Fingerprint: "layout"}
				if err := p.Init(t.Context(), ns); err != nil {
					t.Fatal(err)
				}
				const now = 1_763_000_000_000
				for _, address := range []string{"10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080"} {
					r, err := p.Claim(t.Context(), worker.Request{
						Namespace: ns, Address: address, Nonce: name + address, Numbers: leaf.Range{Lo: 0, Hi: 8}, Now: now, Bound: now + 60_000, Margin: 5000,
					})
					if err != nil || r.Number == tt.number || (r.Number == 2) != (address == "10.0.0.2:8080") {
						t.Errorf("Claim by %s = %+v, %v; want not number %d, and 2 for the address of its row only", address, r, err, tt.number)
					}
				}
				all, err := p.List(t.Context())
				if err != nil || !slices.ContainsFunc(all, func(r worker.Record) bool { return r.Number == tt.number && strings.Contains(r.Damage, tt.damage) }) {
					t.Errorf("List = %+v, %v; want number %d with the damage", all, err, tt.number)
				}
				for _, table := range tables {
					execAll(t, db, "DELETE FROM "+table)
				}
			})
		}
	})
}

// TestReservedHidden: MySQL does not tell a user with rights on single tables whether
// another one is there.
func TestReservedHidden(t *testing.T) {
	t.Parallel()
	i := server.OwnMariaDB(t)
	applySchema(t, i.URL())
	admin := i.Open(t)
	execAll(t, admin, "CREATE USER 'narrow'@'%' IDENTIFIED BY 'secret'")
	for _, table := range tables {
		execAll(t, admin, "GRANT SELECT, INSERT, UPDATE, DELETE ON "+table+" TO 'narrow'@'%'")
	}
	s := openRecords(t, "mysql://narrow:secret@"+i.Addr()+"/"+i.Name())
	if _, err := s.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Reserved(t.Context()); !errors.Is(err, worker.ErrSchema) || !strings.Contains(err.Error(), "grant") {
		t.Errorf("Reserved = %+v, %v; want ErrSchema that says what to grant", all, err)
	}
	execAll(t, admin, "GRANT SELECT ON "+i.Name()+".* TO 'narrow'@'%'")
	s = openRecords(t, "mysql://narrow:secret@"+i.Addr()+"/"+i.Name())
	if all, err := s.Reserved(t.Context()); err != nil || all != nil {
		t.Errorf("Reserved with the right to read = %+v, %v; want none", all, err)
	}
}
