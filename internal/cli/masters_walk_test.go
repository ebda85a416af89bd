package cli_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
)

// TestWalksOfMasters: tags go from one division over databases to another, while rows, databases and data directories
// are lost, a backup is restored, and commands end half-way. An operator does what docs/MASTERS.md and the refusals say, on a
// machine that knows all nodes or none. No ID repeats, and no text leads to a command that does not help.
func TestWalksOfMasters(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	seeds := []uint64{1029, 1256} // which have found something
	if long.Asked() {
		for seed := range uint64(300) {
			seeds = append(seeds, 1000+seed)
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newMastersWalk(t, seed)
			for range 25 {
				w.act()
				w.check()
			}
		})
	}
}

const (
	walkStep  = 1000 // the largest range
	exhausted = 4    // exit code
)

type mastersWalk struct {
	t      *testing.T
	rng    *rand.Rand
	folder string
	tags   []*walkTag
	nodes  []string // data directories
	lost   []string // databases that are lost, and not made again
	backup []string // databases of which there is a backup
	gaps   bool     // a row was lost, ever
	log    []string
}

// walkTag is what the operator and the test know of a tag.
type walkTag struct {
	name, rule string
	before     string // the rule before
	seen       distinct
	takes      []int64         // by start of a node: the highest ID so far
	unseen     int             // of the last starts, how many have IDs that no table has
	typed      int64           // the highest number that was typed
	missing    map[string]bool // databases of the rule whose row is not there; true: because a command ended half-way
	forgotten  bool            // all its rows were lost: a machine that knows nothing cannot tell it from a tag that never was
}

func newMastersWalk(t *testing.T, seed uint64) *mastersWalk {
	t.Helper()
	w := &mastersWalk{t: t, rng: rand.New(rand.NewPCG(seed, 1)), folder: t.TempDir(), nodes: []string{dataDir(t), dataDir(t)}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the walk:\n%s", strings.Join(w.log, "\n"))
		}
	})
	for _, name := range []string{"order", "user"} {
		w.tags = append(w.tags, &walkTag{name: name, seen: distinct{}, missing: map[string]bool{}})
	}
	w.draw()
	w.follow(w.machine(), "schema", "apply")
	w.create()
	return w
}

func (w *mastersWalk) draw() {
	for _, tag := range w.tags {
		tag.before, tag.rule = tag.rule, one(w, []string{"a", "c", "a,b*1000", "b,a*1000", "a,c*1000", "a,b,c*1000", "d,c,b,a*2000", "b,d*2000"})
		clear(tag.missing)
		for _, db := range tag.databases() {
			tag.missing[db] = true
		}
	}
}

// one draws one of some things.
func one[T any](w *mastersWalk, of []T) T { return of[w.rng.IntN(len(of))] }

// machine is where a command runs: a node's, or a new one.
func (w *mastersWalk) machine() string {
	if i := w.rng.IntN(len(w.nodes) + 1); i < len(w.nodes) {
		return w.nodes[i]
	}
	return dataDir(w.t)
}

// knows returns the data directory of a node that knows a database by its ID, if there is one.
func (w *mastersWalk) knows(db string) string {
	for _, dir := range w.nodes {
		if content, _ := os.ReadFile(filepath.Join(dir, "cluster")); strings.Contains(string(content), strconv.Quote(db)) {
			return dir
		}
	}
	return w.nodes[0]
}

func (w *mastersWalk) file(db string) string { return filepath.Join(w.folder, db+".db") }

func (w *mastersWalk) with(dir string, words ...string) []string {
	words = slices.Clone(words)
	for _, db := range []string{"a", "b", "c", "d"} {
		words = append(words, "--store", db+"=sqlite:"+w.file(db))
	}
	for _, tag := range w.tags {
		words = append(words, "--tag-rule", tag.name+"="+tag.rule)
	}
	return append(words, "--data-dir", dir)
}

func (w *mastersWalk) run(dir string, words ...string) (code int, text string) {
	var out, errs bytes.Buffer
	near := "LEAF_SEGMENT_NEAR=" + one(w, []string{"a", "b", "c", "d"})
	code = cli.Run(w.t.Context(), cli.Process{Args: w.with(dir, words...), Stdout: &out, Stderr: &errs, Environ: []string{"HOME=" + dir, patient, near}})
	if text = errs.String(); code == 0 {
		text = out.String()
	}
	w.note("%s, %s on %s: leaf %s: %d", w.tags[0].rule, w.tags[1].rule, filepath.Base(dir), strings.Join(words, " "), code)
	if code != 0 {
		w.log = append(w.log, text)
	}
	return code, text
}

func (t *walkTag) databases() []string {
	list, _, _ := strings.Cut(t.rule, "*")
	return strings.Split(list, ",")
}

// rows are the names of the tag's rows, by database.
func (t *walkTag) rows() map[string]string {
	dbs := t.databases()
	if len(dbs) == 1 {
		return map[string]string{dbs[0]: t.name}
	}
	_, block, _ := strings.Cut(t.rule, "*")
	rows := map[string]string{}
	for i, db := range dbs {
		rows[db] = fmt.Sprintf("%s~%dof%d~%s", t.name, i+1, len(dbs), block)
	}
	return rows
}

func (w *mastersWalk) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *mastersWalk) act() {
	w.t.Helper()
	switch n := w.rng.IntN(29); {
	case n < 10:
		w.take(one(w, w.tags))
	case n < 12:
		one(w, w.tags).unseen = 0
	case n < 14:
		i := w.rng.IntN(len(w.nodes))
		w.nodes[i] = dataDir(w.t)
		w.note("node %d is gone with its data directory", i)
	case n < 16:
		w.loseRows()
	case n < 17:
		w.loseDatabase()
	case n < 20:
		w.mend()
	case n < 22:
		w.change()
	case n < 24:
		w.set()
	case n < 25:
		w.deleteRow()
	case n < 27:
		w.save()
	default:
		w.restore()
	}
}

// check fails if a row that is there would hand out an ID again.
func (w *mastersWalk) check() {
	w.t.Helper()
	for _, tag := range w.tags {
		dbs := tag.databases()
		_, block, _ := strings.Cut(tag.rule, "*")
		m := segment.Masters{Block: 1, Stores: make([]int, len(dbs))}
		if len(dbs) > 1 {
			m.Block, _ = strconv.ParseInt(block, 10, 64)
		}
		highest := slices.Repeat([]int64{-1}, len(dbs))
		for id := range tag.seen {
			i, n := m.Of(id)
			highest[i] = max(highest[i], n)
		}
		for i, db := range dbs {
			if at := w.maxID(db, tag.rows()[db]); at >= 0 && at <= highest[i] {
				w.t.Fatalf("row %q has max_id=%d, and its number %d was handed out", tag.rows()[db], at, highest[i])
			}
		}
	}
}

// take takes IDs as a node does that is near one of the databases.
func (w *mastersWalk) take(tag *walkTag) {
	w.t.Helper()
	i, n := w.rng.IntN(len(w.nodes)), 1+w.rng.IntN(3*walkStep)
	if tag.before != "" && w.rng.IntN(4) == 0 { // a node that still has the rule before
		rule := tag.rule
		tag.rule = tag.before
		defer func() { tag.rule = rule }()
	}
	code, text := w.run(w.nodes[i], "next", tag.name, "-n", strconv.Itoa(n))
	if code == exhausted || w.otherID(text) { // exhausted: on a busy machine
		return
	}
	if code != 0 && len(tag.missing) == 0 && len(w.lost) == 0 && !strings.Contains(text, "rule") {
		w.t.Fatalf("node %d: %s", i, text)
	}
	high := tag.highest(0)
	for word := range strings.FieldsSeq(text) {
		if id, err := strconv.ParseInt(word, 10, 64); err == nil && code == 0 {
			tag.seen.add(w.t, []int64{id})
			high = max(high, id)
		}
	}
	tag.takes = append(tag.takes, high)
	tag.unseen++
}

// highest returns the highest ID but for those of the last starts.
func (t *walkTag) highest(unseen int) int64 {
	if n := len(t.takes) - unseen; n > 0 {
		return t.takes[n-1]
	}
	return 0
}

// lostOne reports whether a row of those that are missing was lost.
func (t *walkTag) lostOne() bool {
	return slices.Contains(slices.Collect(maps.Values(t.missing)), false)
}

// maxID returns the max_id of a row, -1 if it is not there.
func (w *mastersWalk) maxID(db, row string) (maxID int64) {
	w.t.Helper()
	if slices.Contains(w.lost, db) {
		return -1
	}
	d, err := sql.Open("sqlite", "file:"+w.file(db)+"?_busy_timeout=10000")
	if err != nil {
		w.t.Fatal(err)
	}
	defer d.Close()
	err = d.QueryRowContext(w.t.Context(), "SELECT max_id FROM leaf_alloc WHERE biz_tag = ?", row).Scan(&maxID)
	if errors.Is(err, sql.ErrNoRows) {
		return -1
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return maxID
}
