package cli_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/leaf-idgen/leaf/internal/test/long"
)

// gone notes that the rows of a database are not there.
func (w *mastersWalk) gone(db string) {
	for _, tag := range w.tags {
		if slices.Contains(tag.databases(), db) {
			w.lostRow(tag, db)
		}
	}
}

func (w *mastersWalk) lostRow(tag *walkTag, db string) {
	w.gaps, tag.missing[db] = true, false
	w.lossAll()
	tag.forgotten = tag.forgotten || len(tag.missing) == len(tag.databases())
}

func (w *mastersWalk) loseRows() {
	db := one(w, one(w, w.tags).databases())
	if slices.Contains(w.lost, db) {
		return
	}
	statements := []string{"DELETE FROM leaf_alloc"}
	if w.rng.IntN(2) == 0 {
		statements = append(statements, "DELETE FROM leaf_repair", "DELETE FROM leaf_repair_node")
	}
	operate(w.t, w.file(db), statements...)
	w.note("the rows of %s are gone", db)
	w.gone(db)
}

func (w *mastersWalk) remove(db string) {
	for _, end := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(w.file(db) + end)
	}
}

func (w *mastersWalk) loseDatabase() {
	db := one(w, w.stores)
	if slices.Contains(w.lost, db) {
		return
	}
	w.remove(db)
	w.note("database %s is lost", db)
	w.gone(db)
	if w.lost = append(w.lost, db); w.rng.IntN(2) == 0 {
		w.mend()
	}
}

// interrupt has a command make the rows of a tag up to one database.
func (w *mastersWalk) interrupt(tag *walkTag, create []string) {
	w.t.Helper()
	at := one(w, slices.Sorted(maps.Keys(tag.missing)))
	operate(w.t, w.file(at), "CREATE TRIGGER refuse BEFORE INSERT ON leaf_alloc BEGIN SELECT RAISE(FAIL, 'interrupted'); END")
	w.note("the next command ends at database %s", at)
	w.follow(w.machine(), create...)
	operate(w.t, w.file(at), "DROP TRIGGER refuse")
	for db, row := range tag.rows() {
		if _, missing := tag.missing[db]; missing && w.maxID(db, row) >= 0 {
			delete(tag.missing, db)
		}
	}
}

// set moves a row on, or gives it another step.
func (w *mastersWalk) set() {
	w.t.Helper()
	tag := one(w, w.tags)
	db := one(w, tag.databases())
	row := tag.rows()[db]
	at := w.maxID(db, row)
	if at < 0 {
		return
	}
	to := at + int64(w.rng.IntN(200*walkStep))
	if code, text := w.run(w.machine(), "tag", "set", row, "--max-id", strconv.FormatInt(to, 10), "--step", strconv.Itoa(1+w.rng.IntN(walkStep))); code == 0 {
		w.given(row, to)
	} else if len(w.lost) == 0 {
		w.t.Fatalf("tag set: %s", text)
	}
}

func (w *mastersWalk) deleteRow() {
	w.t.Helper()
	tag := one(w, w.tags)
	db := one(w, tag.databases())
	if code, _ := w.run(w.machine(), "tag", "delete", tag.rows()[db], "--yes"); code == 0 {
		w.lostRow(tag, db)
	}
}

// save makes a backup of a database.
func (w *mastersWalk) save() {
	w.t.Helper()
	db := one(w, w.stores)
	if slices.Contains(w.lost, db) {
		return
	}
	w.copy(db, ".backup")
	w.note("backup of %s", db)
	if !slices.Contains(w.backup, db) {
		w.backup = append(w.backup, db)
	}
}

// saveAll makes backups of all databases in one moment.
func (w *mastersWalk) saveAll() {
	w.t.Helper()
	if len(w.lost) > 0 {
		return
	}
	w.site = w.stores
	for _, db := range w.site {
		w.copy(db, ".site")
	}
	w.note("backup of all")
}

// restoreAll puts the backups of one moment in the place of all databases.
func (w *mastersWalk) restoreAll() {
	w.t.Helper()
	if len(w.lost) > 0 || len(w.site) == 0 {
		return
	}
	for _, db := range w.site {
		w.put(db, ".site")
	}
	w.note("all databases are restored")
	w.restored(w.stores, ".site")
}

// restored does what docs/OPERATIONS.md says after databases were restored from backups of that name.
func (w *mastersWalk) restored(dbs []string, backup string) {
	w.t.Helper()
	w.gaps = true
	w.lossAll()
	w.follow(w.knows(dbs[0]), "schema", "apply")
	for _, tag := range w.tags {
		for db, row := range tag.rows() {
			if w.saved[db+backup] != w.changes {
				w.told[row] = -1
			}
		}
		for _, db := range tag.databases() {
			row := tag.rows()[db]
			switch {
			case !slices.Contains(dbs, db):
			case w.maxID(db, row) < 0:
				w.lostRow(tag, db)
				tag.forgotten = tag.forgotten || w.told[row] < 0
			default:
				delete(tag.missing, db)
				w.repair(tag, row)
			}
		}
	}
	w.create()
}

// repair repairs a row after a loss of commits.
func (w *mastersWalk) repair(tag *walkTag, row string) {
	w.t.Helper()
	if w.told[row] != w.ended || !long.Asked() { // a repair that asks nodes takes seconds
		to := max(tag.highest(tag.unseen), tag.typed) + w.add(4, 2000, tag)
		w.follow(w.machine(), "tag", "repair", row, "--above", strconv.FormatInt(to, 10))
		w.told[row] = w.ended
		return
	}
	stop := w.serve()
	defer stop()
	w.follow(one(w, w.nodes), "tag", "repair", row)
}

func (w *mastersWalk) copy(db, backup string) {
	w.t.Helper()
	_ = os.Remove(w.file(db) + backup)
	operate(w.t, w.file(db), "VACUUM INTO '"+w.file(db)+backup+"'")
	w.saved[db+backup] = w.changes
}

func (w *mastersWalk) put(db, backup string) {
	w.t.Helper()
	w.remove(db)
	content, err := os.ReadFile(w.file(db) + backup)
	if err == nil {
		err = os.WriteFile(w.file(db), content, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// restore puts a backup in the place of a database, and does what docs/OPERATIONS.md says after that.
func (w *mastersWalk) restore() {
	w.t.Helper()
	if len(w.backup) == 0 || len(w.lost) > 0 {
		return
	}
	db := one(w, w.backup)
	if !slices.Contains(w.stores, db) {
		return
	}
	w.put(db, ".backup")
	w.note("database %s is restored", db)
	w.restored([]string{db}, ".backup")
}

// lossAll notes that a database has lost something since the nodes took numbers.
func (w *mastersWalk) lossAll() {
	for _, dir := range w.nodes {
		w.losses[dir] = true
	}
}

// serve starts the nodes.
func (w *mastersWalk) serve() (stop func()) {
	var running []*process
	w.note("the nodes are started")
	for _, dir := range w.nodes {
		running = append(running, serve(w.t, dir, append(w.flags(), "--no-snowflake-enable")...))
	}
	w.running = true
	return func() {
		w.running = false
		for _, p := range running {
			p.end(w.t, syscall.SIGTERM)
		}
		w.note("the nodes are stopped")
	}
}

// rebuild makes the fence of a node anew that has lost it.
func (w *mastersWalk) rebuild() {
	w.t.Helper()
	if len(w.lost) > 0 {
		return
	}
	dir := one(w, w.nodes)
	if _, err := os.Stat(filepath.Join(dir, "fence")); err != nil {
		return
	}
	for _, name := range []string{"fence", "fence-end"} {
		_ = os.Remove(filepath.Join(dir, name))
	}
	w.note("fence of %s is gone", filepath.Base(dir))
	if w.losses[dir] {
		w.ended++
	}
	w.follow(dir, "fence", "rebuild")
	for _, tag := range w.tags {
		for _, db := range tag.databases() {
			if row := tag.rows()[db]; w.maxID(db, row) >= 0 {
				w.repair(tag, row)
			}
		}
	}
	w.losses[dir] = false
}
