package cli_test

import (
	"maps"
	"os"
	"slices"
	"strconv"
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
	db := one(w, []string{"a", "b", "c", "d"})
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
	db := one(w, []string{"a", "b", "c", "d"})
	if slices.Contains(w.lost, db) {
		return
	}
	_ = os.Remove(w.file(db) + ".backup")
	operate(w.t, w.file(db), "VACUUM INTO '"+w.file(db)+".backup'")
	w.note("backup of %s", db)
	if !slices.Contains(w.backup, db) {
		w.backup = append(w.backup, db)
	}
}

// restore puts a backup in the place of a database, and does what docs/OPERATIONS.md says after that.
func (w *mastersWalk) restore() {
	w.t.Helper()
	if len(w.backup) == 0 || len(w.lost) > 0 {
		return
	}
	db := one(w, w.backup)
	w.remove(db)
	content, err := os.ReadFile(w.file(db) + ".backup")
	if err == nil {
		err = os.WriteFile(w.file(db), content, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.note("database %s is restored", db)
	w.gaps = true
	w.follow(w.knows(db), "schema", "apply")
	for _, tag := range w.tags {
		row, is := tag.rows()[db]
		switch {
		case !is:
		case w.maxID(db, row) < 0:
			w.lostRow(tag, db)
		default:
			delete(tag.missing, db)
			to := max(tag.highest(tag.unseen), tag.typed) + w.add(1, 0, tag)
			w.follow(w.machine(), "tag", "repair", row, "--above", strconv.FormatInt(to, 10))
		}
	}
	w.create()
}
