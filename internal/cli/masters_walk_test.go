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

// TestWalksOfMasters: tags go from one division over databases to another, while rows, databases, data directories and fences are lost,
// one database or all are restored, and commands end half-way. An operator does what the documents and the refusals say, on a machine
// that knows all nodes or none. No ID repeats, and no text leads to a command that does not help.
func TestWalksOfMasters(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	seeds := []uint64{1029, 1256}
	if long.Asked() {
		for seed := range uint64(100) {
			seeds = append(seeds, 2000+seed)
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

// walkConfig is the configuration of the nodes and commands.
type walkConfig struct {
	stores []string // databases, the first one first
	rules  []string // of the tags
}

type mastersWalk struct {
	t      *testing.T
	rng    *rand.Rand
	folder string
	tags   []*walkTag
	nodes  []string // data directories
	lost   []string // databases that are lost, and not made again
	backup []string // databases of which there is a backup
	walkConfig
	old     walkConfig      // the one before
	running bool            // the nodes run
	changes int             // of the rule
	saved   map[string]int  // by name of a backup, how many changes there were before it
	site    []string        // databases of which there are backups of one moment
	ended   int             // nodes that are gone with their data directories
	told    map[string]int  // by row, above the numbers of how many of these it is; -1: a rule since has handed out IDs above it
	losses  map[string]bool // data directories since which a database has lost something
	gaps    bool            // a row was lost, ever
	log     []string
}

// walkTag is what the operator and the test know of a tag.
type walkTag struct {
	name, rule string
	seen       distinct
	takes      []int64         // by start of a node: the highest ID so far
	unseen     int             // of the last starts, how many have IDs that no table has
	typed      int64           // the highest number that was typed
	missing    map[string]bool // databases of the rule whose row is not there; true: because a command ended half-way
	forgotten  bool            // all its rows were lost: a machine that knows nothing cannot tell it from a tag that never was
}

func newMastersWalk(t *testing.T, seed uint64) *mastersWalk {
	t.Helper()
	w := &mastersWalk{t: t, rng: rand.New(rand.NewPCG(seed, 1)), folder: t.TempDir(), told: map[string]int{}, losses: map[string]bool{}, saved: map[string]int{}, nodes: []string{dataDir(t), dataDir(t)}}
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
	w.changes++
	w.old, w.walkConfig = w.walkConfig, walkConfig{}
	for _, tag := range w.tags {
		tag.rule = one(w, []string{"a", "c", "a,b*1000", "b,a*1000", "a,c*1000", "a,b,c*1000", "d,c,b,a*2000", "b,d*2000"})
		clear(tag.missing)
		for _, db := range tag.databases() {
			tag.missing[db] = true
		}
	}
	for _, db := range []string{"a", "b", "c", "d"} {
		used := false
		for _, tag := range w.tags {
			used = used || slices.Contains(tag.databases(), db)
		}
		if used || w.rng.IntN(2) == 0 || db == "d" && len(w.stores) < 2 {
			w.stores = append(w.stores, db)
		}
	}
	w.rng.Shuffle(len(w.stores), func(i, j int) { w.stores[i], w.stores[j] = w.stores[j], w.stores[i] })
	switch order, user := w.tags[0].rule, w.tags[1].rule; w.rng.IntN(4) {
	case 0:
		w.rules = []string{"order=" + order, "*=" + user}
	case 1:
		w.rules = []string{"u*=" + user, "o*=" + order}
	case 2:
		w.rules = []string{"user=" + user, "o*=" + order}
	default:
		w.rules = []string{"order=" + order, "user=" + user}
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
	words = append(slices.Clone(words), "--data-dir", dir)
	if !w.running {
		words = append(words, w.flags()...)
	}
	return words
}

// flags name the configuration.
func (w *mastersWalk) flags() (words []string) {
	for _, db := range w.stores {
		words = append(words, "--store", db+"=sqlite:"+w.file(db))
	}
	for _, rule := range w.rules {
		words = append(words, "--tag-rule", rule)
	}
	return words
}

func (w *mastersWalk) run(dir string, words ...string) (code int, text string) {
	var out, errs bytes.Buffer
	near := "LEAF_SEGMENT_NEAR=" + one(w, w.stores)
	if w.running {
		near = patient
	}
	code = cli.Run(w.t.Context(), cli.Process{Args: w.with(dir, words...), Stdout: &out, Stderr: &errs, Environ: []string{"HOME=" + dir, patient, near}})
	if text = errs.String(); code == 0 {
		text = out.String()
	}
	w.note("%s; %s on %s: leaf %s: %d", strings.Join(w.stores, ","), strings.Join(w.rules, " "), filepath.Base(dir), strings.Join(words, " "), code)
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
	switch n := w.rng.IntN(36); {
	case n < 10:
		w.take(one(w, w.tags))
	case n < 12:
		one(w, w.tags).unseen = 0
	case n < 14:
		i := w.rng.IntN(len(w.nodes))
		w.nodes[i] = dataDir(w.t)
		w.ended++
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
	case n < 29:
		w.restore()
	case n < 31:
		w.early()
	case n < 33:
		w.rebuild()
	case n < 34:
		w.saveAll()
	default:
		w.restoreAll()
	}
}

// early runs tag create while a database may be lost: it does not answer, or is there and empty.
func (w *mastersWalk) early() {
	w.t.Helper()
	tag := one(w, w.tags)
	if len(w.lost) == 0 {
		return
	}
	w.run(w.machine(), "tag", "create", tag.name, "--start", strconv.Itoa(1+w.rng.IntN(5000)))
	for db, row := range tag.rows() {
		if _, missing := tag.missing[db]; missing && w.maxID(db, row) >= 0 {
			w.note("row %s was made early", row)
			delete(tag.missing, db)
		}
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
	if len(w.old.rules) > 0 && w.rng.IntN(4) == 0 { // a node that still has the rule before
		now := w.walkConfig
		w.walkConfig = w.old
		defer func() { w.walkConfig = now }()
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
