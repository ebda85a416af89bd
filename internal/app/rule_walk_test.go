package app_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
)

// TestRuleWalks: nodes of several tag rules load, an operator copies rows, and commands change the
// rule, two at a time, with the right databases to leave out or with others. They fail or are killed
// between any two steps, also while they put a rule back. In some walks the record of a database is lost, or
// comes from a backup. No number comes twice, and in the end each rule can be recorded again.
func TestRuleWalks(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	walks := long.Load(uint64(4), 300)
	for seed := range walks {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newRuleWalk(t, seed)
			for range 150 {
				w.act()
			}
			w.recover()
		})
	}
}

// walkRules are the rules of the databases a, b, c and d; the first is recorded in the beginning. One
// calls the databases by the names of others, and two are one rule with another database of one name.
var walkRules = []struct{ stores, rules []string }{
	{[]string{"a=a", "b=b"}, []string{"order=a"}},
	{[]string{"a=a", "b=b"}, []string{"user=a"}},
	{[]string{"c=c", "a=a", "b=b"}, []string{"user=c"}},
	{[]string{"c=d", "a=a", "b=b"}, []string{"user=c"}},
	{[]string{"a=b", "b=c"}, []string{"user=a"}},
	{[]string{"c=c", "b=b"}, []string{"user=c"}},
	{[]string{"=a"}, nil},
}

type ruleWalk struct {
	t        *testing.T
	rng      *rand.Rand
	dbs      map[string]*sql.DB
	urls     map[string]string
	rules    []walkRule
	commands []*walkCommand
	issued   map[string]map[int64]string // by tag: by which node
	log      []string
	ends     bool // no command is killed any more

	few      []int             // the rules of this walk
	last     int               // of them, that of the last command
	restores bool              // whether records are restored
	backups  map[string]string // by database: a record
	restored map[string]string // by database: the record from a backup; no node runs before a command has recorded another
}

type walkRule struct {
	cfg    config.Config
	router *segment.Router
	dbs    []string
	nodes  [2][]*walkStore // by node, by database
}

type walkStore struct {
	*sqldb.Store
	bound bool
}

type walkCommand struct {
	*app.RuleCommand
	name string
}

func newRuleWalk(t *testing.T, seed uint64) *ruleWalk {
	t.Helper()
	w := &ruleWalk{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), dbs: map[string]*sql.DB{}, urls: map[string]string{},
		issued: map[string]map[int64]string{"user": {}, "order": {}}, backups: map[string]string{}, restored: map[string]string{},
	}
	w.few, w.restores = w.rng.Perm(len(walkRules))[:2+w.rng.IntN(3)], w.rng.IntN(3) == 0
	if w.rng.IntN(2) == 0 { // more often than by chance both rules that differ in a database only
		w.few = append(w.few[:1], 2, 3)
	}
	dir, base := divided(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		path := filepath.Join(dir, name+".db")
		w.urls[name] = "sqlite:" + path
		if name == "c" || name == "d" {
			if _, err := w.open(name).ApplySchema(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		w.dbs[name] = openFile(t, path)
	}
	const row = "INSERT INTO leaf_alloc (biz_tag, max_id, step, update_time) VALUES (?, 1, 3, CURRENT_TIMESTAMP)"
	execute(t, w.dbs["a"], row, "order")
	execute(t, w.dbs["b"], row, "user")
	for _, r := range walkRules {
		w.rules = append(w.rules, w.rule(base, r.stores, r.rules))
	}
	return w
}

func (w *ruleWalk) open(db string) *sqldb.Store {
	w.t.Helper()
	s, err := sqldb.Open(w.urls[db], sqldb.Config{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (w *ruleWalk) rule(cfg config.Config, stores, rules []string) walkRule {
	w.t.Helper()
	r := walkRule{cfg: cfg}
	r.cfg.DataDir, r.cfg.Stores, r.cfg.TagRules = shortDir(w.t), nil, rules
	var named []segment.NamedStore
	for _, store := range stores {
		name, db, _ := strings.Cut(store, "=")
		r.dbs = append(r.dbs, db)
		if name == "" {
			r.cfg.Stores, name = append(r.cfg.Stores, w.urls[db]), "default"
		} else {
			r.cfg.Stores = append(r.cfg.Stores, name+"="+w.urls[db])
		}
		named = append(named, segment.NamedStore{Name: name})
		for n := range r.nodes {
			r.nodes[n] = append(r.nodes[n], &walkStore{Store: w.open(db)})
		}
	}
	var parsed []segment.TagRule
	for _, rule := range rules {
		tag, store, _ := strings.Cut(rule, "=")
		parsed = append(parsed, segment.TagRule{Pattern: tag, Store: store})
	}
	router, err := segment.NewRouter(named, parsed)
	if err != nil {
		w.t.Fatal(err)
	}
	r.router = router
	return r
}

func (w *ruleWalk) act() {
	w.t.Helper()
	switch n := w.rng.IntN(20); {
	case n < 7:
		w.load(w.few[w.rng.IntN(len(w.few))], w.rng.IntN(2), []string{"user", "order"}[w.rng.IntN(2)])
	case n < 9:
		w.move(w.few[w.rng.IntN(len(w.few))])
	case n < 10 && w.restores:
		w.restore([]string{"a", "b", "c", "d"}[w.rng.IntN(4)])
	case n < 13 && len(w.commands) < 2:
		if w.rng.IntN(2) == 0 {
			w.last = w.few[w.rng.IntN(len(w.few))]
		}
		w.begin(w.last, w.others(w.last, w.rng.IntN(2) == 0), nil)
	case len(w.commands) == 0:
	case n == 18:
		i := w.rng.IntN(len(w.commands))
		_, err := w.commands[i].Fail(w.t.Context())
		w.end(i, fmt.Sprintf("fails: %v", err))
	case n == 19:
		w.end(w.rng.IntN(len(w.commands)), "killed")
	default:
		i := w.rng.IntN(len(w.commands))
		for steps, all := 1+w.rng.IntN(8), len(w.commands); steps > 0 && len(w.commands) == all; steps-- {
			_ = w.step(i)
		}
	}
}

// restore makes a backup of the record of a database, or restores it. From then on an operator lets no
// node run by it.
func (w *ruleWalk) restore(db string) {
	w.t.Helper()
	if was, ok := w.backups[db]; ok && w.rng.IntN(2) == 0 {
		w.say("the record of %s is restored: %s", db, was)
		w.restored[db] = was
		execute(w.t, w.dbs[db], "DELETE FROM leaf_meta WHERE name <> 'cluster_id'")
		execute(w.t, w.dbs[db], "INSERT INTO leaf_meta (name, value) SELECT key, value FROM json_each(?)", was)
		return
	}
	if record := w.record(db); !strings.Contains(record, "none: leaf schema apply") { // not in the middle of a change
		w.backups[db] = record
	}
}

// record is what a database records of the rule, or "" if it has no record.
func (w *ruleWalk) record(db string) (record string) {
	w.t.Helper()
	if err := w.dbs[db].QueryRowContext(w.t.Context(), "SELECT json_group_object(name, value) FROM leaf_meta WHERE name <> 'cluster_id'").Scan(&record); err != nil {
		w.t.Fatal(err)
	}
	return record
}

// load is what a node does for the next range of a tag.
func (w *ruleWalk) load(rule, node int, tag string) {
	w.t.Helper()
	r := w.rules[rule]
	i := r.router.Route(tag)
	if i < 0 {
		return
	}
	s := r.nodes[node][i]
	if was, ok := w.restored[r.dbs[i]]; ok && w.record(r.dbs[i]) == was {
		return
	}
	if !s.bound {
		s.bound = s.Bind(w.t.Context(), r.router.Binding(i)) == nil
	}
	if !s.bound {
		return
	}
	res, err := s.Reserve(w.t.Context(), segment.Request{Tag: tag, Step: 3, Length: 3, Min: 3, Max: 3})
	if err != nil {
		s.bound = false
		return
	}
	by := fmt.Sprintf("node %d of rule %d", node, rule)
	w.say("%s loads %v of %s", by, res.Range, tag)
	for id := res.Range.Lo; id < res.Range.Hi; id++ {
		if other, ok := w.issued[tag][id]; ok {
			w.t.Fatalf("%s has %d of tag %s, which %s had:\n%s", by, id, tag, other, strings.Join(w.log, "\n"))
		}
		w.issued[tag][id] = by
	}
}

// loadAll lets a node of each rule of the walk try to load each tag.
func (w *ruleWalk) loadAll() {
	w.t.Helper()
	for _, rule := range w.few {
		for _, tag := range []string{"user", "order"} {
			w.load(rule, 0, tag)
		}
	}
}

// move copies the rows of all tags to where a rule expects them.
func (w *ruleWalk) move(rule int) {
	w.t.Helper()
	r := w.rules[rule]
	w.say("rows are copied for rule %d", rule)
	for tag := range w.issued {
		i := r.router.Route(tag)
		if i < 0 {
			continue
		}
		var high int64
		for _, db := range w.dbs {
			var end int64
			if err := db.QueryRowContext(w.t.Context(), "SELECT COALESCE(MAX(max_id), 0) FROM leaf_alloc WHERE biz_tag = ?", tag).Scan(&end); err != nil {
				w.t.Fatal(err)
			}
			high = max(high, end)
		}
		execute(w.t, w.dbs[r.dbs[i]], "INSERT INTO leaf_alloc (biz_tag, max_id, step, update_time) VALUES (?, ?, 3, CURRENT_TIMESTAMP) "+
			"ON CONFLICT (biz_tag) DO UPDATE SET max_id = max(max_id, excluded.max_id)", tag, high)
	}
}

// others are the databases that a rule has not, or some of them.
func (w *ruleWalk) others(rule int, some bool) (leaveOut []string) {
	for _, name := range []string{"a", "b", "c", "d"} {
		if !slices.Contains(w.rules[rule].dbs, name) && (!some || w.rng.IntN(2) == 0) {
			leaveOut = append(leaveOut, w.urls[name])
		}
	}
	return leaveOut
}

func (w *ruleWalk) begin(rule int, leaveOut, lost []string) {
	w.t.Helper()
	cfg := w.rules[rule].cfg
	cfg.DataDir = shortDir(w.t)
	c, err := app.NewRuleCommand(cfg, app.RuleChange{LeaveOut: leaveOut, Lost: lost})
	if err != nil {
		w.t.Fatal(err)
	}
	name := fmt.Sprintf("command %d for rule %d", len(w.log), rule)
	if w.rng.IntN(4) == 0 && !w.ends {
		c.Dies = func(databases int) int { return w.rng.IntN(databases + 1) }
	}
	w.commands = append(w.commands, &walkCommand{c, name})
	w.say("%s leaves out %d, lost %v", name, len(leaveOut), lost)
}

// step goes on with a command.
func (w *ruleWalk) step(i int) (err error) {
	w.t.Helper()
	done, err := w.commands[i].Step(w.t.Context())
	switch {
	case done:
		if w.end(i, fmt.Sprintf("ends: %v", err)); err == nil && !w.ends {
			w.loadAll()
		}
	case err == nil:
		w.say("%s makes a step", w.commands[i].name)
	}
	return err
}

func (w *ruleWalk) end(i int, how string) {
	w.t.Helper()
	w.say("%s: %s", w.commands[i].name, how)
	if err := w.commands[i].Close(); err != nil {
		w.t.Fatal(err)
	}
	w.commands = slices.Delete(w.commands, i, i+1)
}

func (w *ruleWalk) say(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// recover kills all commands. Those that have decided can be ended, each with its rule, and after
// that every rule can be recorded.
func (w *ruleWalk) recover() {
	w.t.Helper()
	for w.ends = true; len(w.commands) > 0; {
		w.end(0, "killed")
	}
	var failed error
	for range w.rules { // as many can have decided, each in a database that the others have not
		if failed = w.acceptAll(); failed == nil {
			return
		}
	}
	w.t.Fatalf("a rule cannot be recorded: %v\n%s", failed, strings.Join(w.log, "\n"))
}

// acceptAll records every rule, and leaves out all other databases, or as many as a command that
// had decided.
func (w *ruleWalk) acceptAll() (failed error) {
	w.t.Helper()
	for rule := range w.rules {
		all := w.others(rule, false)
		err := w.accept(rule, all)
		failed = errors.Join(failed, err)
		for some := 1; err != nil && some < 1<<len(all); some++ {
			err = w.accept(rule, slices.DeleteFunc(slices.Clone(all), func(url string) bool { return some&(1<<slices.Index(all, url)) > 0 }))
		}
		for tag := range w.issued {
			before, restored := len(w.issued[tag]), w.restored
			if err == nil { // the command has recorded the rule, perhaps with the record that was restored
				w.restored = nil
			}
			w.load(rule, 0, tag)
			if w.restored = restored; err == nil && len(w.issued[tag]) == before {
				w.t.Fatalf("rule %d is recorded, and its node takes no range of %s:\n%s", rule, tag, strings.Join(w.log, "\n"))
			}
		}
	}
	return failed
}

// accept runs a whole command alone, after the rows were moved. Where a record was restored, the
// operator calls the databases lost that a refusal says.
func (w *ruleWalk) accept(rule int, leaveOut []string) (err error) {
	w.t.Helper()
	w.move(rule)
	var lost []string
	for {
		w.begin(rule, leaveOut, lost)
		for len(w.commands) > 0 {
			err = w.step(0)
		}
		if err == nil || len(w.restored) == 0 {
			return err
		}
		name := lostName.FindStringSubmatch(err.Error())
		if name == nil || len(lost) > len(w.rules) {
			return err
		}
		lost = append(lost, name[1])
	}
}

var lostName = regexp.MustCompile(`--lost (\w+)`)
