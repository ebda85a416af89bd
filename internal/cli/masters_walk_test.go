package cli_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
	"github.com/leaf-idgen/leaf/internal/test/long"
)

// TestWalksOfMasters: a tag goes from one division over databases to another, while rows, databases and data directories
// are lost. An operator does what docs/MASTERS.md and the refusals say, on a machine that knows all nodes or none. No
// ID repeats, and no text leads to a command that does not help.
func TestWalksOfMasters(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	seeds := []uint64{211, 269} // which have found something
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
			}
		})
	}
}

const (
	walkStep  = 1000 // fixed: the largest range
	exhausted = 4    // exit code
)

type mastersWalk struct {
	t       *testing.T
	rng     *rand.Rand
	folder  string
	rule    string
	nodes   []string // data directories
	seen    distinct
	takes   []int64         // by start of a node: the highest ID so far
	unseen  int             // of the last starts, how many have IDs that no table has
	gaps    bool            // a row was lost, ever
	missing map[string]bool // databases of the rule whose row was lost, and is not made again
	typed   int64           // the highest start that was typed
	log     []string
}

func newMastersWalk(t *testing.T, seed uint64) *mastersWalk {
	t.Helper()
	w := &mastersWalk{t: t, rng: rand.New(rand.NewPCG(seed, 1)), folder: t.TempDir(), nodes: []string{dataDir(t), dataDir(t)}, seen: distinct{}, missing: map[string]bool{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the walk:\n%s", strings.Join(w.log, "\n"))
		}
	})
	w.rule = w.draw()
	w.follow(w.machine(), "schema", "apply")
	w.create()
	return w
}

func (w *mastersWalk) draw() string {
	rules := []string{"a", "c", "a,b*1000", "b,a*1000", "a,c*1000", "a,b,c*1000", "d,c,b,a*2000", "b,d*2000"}
	return rules[w.rng.IntN(len(rules))]
}

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
	return append(words, "--tag-rule", "order="+w.rule, "--data-dir", dir)
}

func (w *mastersWalk) run(dir string, words ...string) (code int, text string) {
	var out, errs bytes.Buffer
	near := "LEAF_SEGMENT_NEAR=" + w.databases()[w.rng.IntN(len(w.databases()))]
	code = cli.Run(w.t.Context(), cli.Process{Args: w.with(dir, words...), Stdout: &out, Stderr: &errs, Environ: []string{"HOME=" + dir, patient, near}})
	if text = errs.String(); code == 0 {
		text = out.String()
	}
	w.log = append(w.log, fmt.Sprintf("%s: leaf %s: %d", w.rule, strings.Join(words, " "), code))
	if code != 0 {
		w.log = append(w.log, text)
	}
	return code, text
}

func (w *mastersWalk) databases() []string {
	list, _, _ := strings.Cut(w.rule, "*")
	return strings.Split(list, ",")
}

func (w *mastersWalk) act() {
	w.t.Helper()
	switch n := w.rng.IntN(20); {
	case n < 8:
		w.take()
	case n < 10:
		w.unseen = 0
	case n < 12:
		i := w.rng.IntN(len(w.nodes))
		w.nodes[i] = dataDir(w.t)
		w.log = append(w.log, fmt.Sprintf("node %d is gone with its data directory", i))
	case n < 14:
		w.loseRow()
	case n < 15:
		w.loseDatabase()
	case n < 18:
		w.mend()
	default:
		w.change()
	}
}

// take takes IDs as a node does that is near one of the databases.
func (w *mastersWalk) take() {
	w.t.Helper()
	i, n := w.rng.IntN(len(w.nodes)), 1+w.rng.IntN(3*walkStep)
	code, text := w.run(w.nodes[i], "next", "order", "-n", strconv.Itoa(n))
	if code == exhausted {
		return // on a busy machine
	}
	if code != 0 && len(w.missing) == 0 {
		w.t.Fatalf("node %d: %s", i, text)
	}
	high := w.highest(0)
	for word := range strings.FieldsSeq(text) {
		if id, err := strconv.ParseInt(word, 10, 64); err == nil && code == 0 {
			w.seen.add(w.t, []int64{id})
			high = max(high, id)
		}
	}
	w.takes = append(w.takes, high)
	w.unseen++
}

// highest returns the highest ID but for those of the last starts.
func (w *mastersWalk) highest(unseen int) int64 {
	if n := len(w.takes) - unseen; n > 0 {
		return w.takes[n-1]
	}
	return 0
}

func (w *mastersWalk) loseRow() {
	dbs := w.databases()
	db := dbs[w.rng.IntN(len(dbs))]
	statements := []string{"DELETE FROM leaf_alloc"}
	if w.rng.IntN(2) == 0 {
		statements = append(statements, "DELETE FROM leaf_repair", "DELETE FROM leaf_repair_node")
	}
	operate(w.t, w.file(db), statements...)
	w.log = append(w.log, "the rows of "+db+" are gone")
	w.gaps, w.missing[db] = true, true
}

func (w *mastersWalk) loseDatabase() {
	db := string("abcd"[w.rng.IntN(4)])
	for _, end := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(w.file(db) + end)
	}
	w.log = append(w.log, "database "+db+" is lost")
	w.gaps, w.missing[db] = true, true
	w.follow(w.knows(db), "schema", "apply", "--accept-rule", "--lost", db)
	w.mend()
}

// mend makes the rows again that are gone.
func (w *mastersWalk) mend() {
	w.t.Helper()
	if len(w.missing) > 0 {
		w.create()
	}
}

func (w *mastersWalk) create() {
	w.t.Helper()
	create := []string{"tag", "create", "order", "--step", strconv.Itoa(walkStep), "--fixed-step"}
	if dbs := w.databases(); !slices.ContainsFunc(dbs, func(db string) bool { return !w.missing[db] }) {
		// A machine that knows nothing cannot tell it from a tag that never was.
		w.typed = max(w.highest(w.unseen), w.typed) + w.add(int64(len(dbs)), 2000)
		create = append(create, "--start", strconv.FormatInt(w.typed, 10))
	}
	w.follow(w.machine(), create...)
	clear(w.missing)
}

func (w *mastersWalk) change() {
	w.t.Helper()
	w.mend()
	w.rule = w.draw()
	w.follow(w.machine(), "schema", "apply", "--accept-rule")
	w.create()
}

// add is what a text says to add to the highest ID in the tables: three times the largest range for each start of a node since,
// and what clients hold, which is what no table has.
func (w *mastersWalk) add(times, block int64) int64 {
	return times * (block + 3*walkStep*int64(w.unseen+1) + 3*walkStep*int64(w.unseen))
}

var (
	walkAdds   = regexp.MustCompile(`plus (\d+) times the sum of one block, (\d+)`)
	walkAbove  = regexp.MustCompile(`Add --above NUMBER.* or (\d+) if that is higher`)
	walkGone   = regexp.MustCompile(`If it was lost with its database.* or (\d+) if that is higher,`)
	walkStart  = regexp.MustCompile(`use --start (\d+) or more`)
	walkNotAll = regexp.MustCompile(`nothing but a start above every number of the tag in your own tables`)
	walkLost   = regexp.MustCompile(`if no node can ever reach (?:it again|the database that the rule had), .*?(--lost \w)`)
	walkMoved  = regexp.MustCompile(`of tag "(\S+)": its row in store "(\w)".*Stop all nodes, set max_id in store "\w" to (\d+) or more with SQL`)
	walkSet    = regexp.MustCompile(`run: leaf tag set '(\S+)' --max-id (\d+)`)
	walkExists = regexp.MustCompile(`tag "order" exists|conflict: the tag exists`)
)

// follow runs a command, and does what its refusals say until it ends.
func (w *mastersWalk) follow(dir string, words ...string) {
	w.t.Helper()
	flag := func(name string, value int64) {
		if i := slices.Index(words, name); i >= 0 {
			words = slices.Delete(words, i, i+2)
		}
		words = append(words, name, strconv.FormatInt(value, 10))
		w.typed = max(w.typed, value)
	}
	for range 12 {
		code, text := w.run(dir, words...)
		if code == 0 {
			return
		}
		add := w.add(1, 0)
		if m := walkAdds.FindStringSubmatch(text); m != nil {
			times, _ := strconv.ParseInt(m[1], 10, 64)
			block, _ := strconv.ParseInt(m[2], 10, 64)
			add = w.add(times, block)
		}
		known := w.highest(w.unseen)
		if strings.Contains(text, "if the tag was given a higher number since, by --start, --above or max_id, begin with that one") {
			known = max(known, w.typed)
		}
		switch m := []string(nil); {
		case walkExists.MatchString(text):
			return
		case match(walkAbove, text, &m):
			least, _ := strconv.ParseInt(m[1], 10, 64)
			flag("--above", max(least, known)+add)
		case match(walkGone, text, &m):
			least, _ := strconv.ParseInt(m[1], 10, 64)
			flag("--start", max(least, known)+add)
		case match(walkStart, text, &m):
			least, _ := strconv.ParseInt(m[1], 10, 64)
			if w.gaps {
				least = max(least, known) + add
			}
			flag("--start", least)
		case walkNotAll.MatchString(text):
			flag("--start", known+add)
		case match(walkLost, text, &m):
			words = append(words, strings.Fields(m[1])...)
		case match(raiseRow, text, &m), match(walkMoved, text, &m):
			operate(w.t, w.file(m[2]), "UPDATE leaf_alloc SET max_id = "+m[3]+" WHERE biz_tag = '"+m[1]+"'")
		case match(walkSet, text, &m):
			w.follow(dir, "tag", "set", m[1], "--max-id", m[2])
		default:
			w.t.Fatalf("leaf %s: no text says what to do: %s", strings.Join(words, " "), text)
		}
	}
	w.t.Fatalf("leaf %s: the texts do not come to an end", strings.Join(words, " "))
}

func match(re *regexp.Regexp, text string, m *[]string) bool {
	*m = re.FindStringSubmatch(text)
	return *m != nil
}
