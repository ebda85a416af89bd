package cli_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// lostCure is what the alarm about lost files says to type when a database was deleted.
var lostCure = regexp.MustCompile(`If the whole data directory or a database was deleted, first run, for each tag: leaf (tag create TAG --start NUMBER), or, if it says that the tag exists: leaf (tag set TAG --max-id NUMBER)`)

// TestLostDatabaseAsTheTextSays: the database of a running node, or its whole data directory,
// is deleted. What the alarm says is typed, literally, and what the refusals say in turn.
// Then the node goes on, and no ID repeats.
func TestLostDatabaseAsTheTextSays(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]bool{"the data directory": false, "the file of the store": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, file := dataDir(t), filepath.Join(t.TempDir(), "shared.db")
			at := []string{"--data-dir", dir}
			if store {
				at = append(at, "--store", "sqlite:"+file)
				leafOK(t, append([]string{"schema", "apply"}, at...)...)
				leafOK(t, append([]string{"tag", "create", "leaf-segment-test"}, at...)...)
			}
			seen := distinct{}
			p := serve(t, dir, append(slices.Clone(at[2:]), "--no-snowflake-enable")...)
			seen.add(t, p.ids(t, 1500))
			if store {
				for _, end := range []string{"", "-wal", "-shm"} {
					_ = os.Remove(file + end)
				}
			} else if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			p.await(t, "this node issues no IDs any more")
			says := lostCure.FindStringSubmatch(p.log.String())
			if says == nil {
				t.Fatalf("the alarm does not say %v:\n%s", lostCure, p.log)
			}
			if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) { // lost before the first contact with the database, it ends by itself
				t.Fatal(err)
			}
			t.Log("ended with an error, because what it did not write is lost:", <-p.done)

			var used int64
			for id := range seen {
				used = max(used, id)
			}
			number := strconv.FormatInt(used+3*segment.MaxStep, 10)
			typed := func(command string) []string {
				return append(strings.Fields(strings.NewReplacer("TAG", "leaf-segment-test", "NUMBER", number).Replace(command)), at...)
			}
			if store { // an operator who starts the node first is told to make the tables
				_, text := runLeaf(t, append([]string{"serve", "--http-addr", "127.0.0.1:0"}, at...)...)
				run := regexp.MustCompile(`run leaf (schema apply --data-dir) "([^"]+)" --store "([^"]+)"`).FindStringSubmatch(text)
				if run == nil {
					t.Fatalf("the start without the file: %s", text)
				}
				leafOK(t, append(strings.Fields(run[1]), run[2], "--store", run[3])...)
			}
			code, text := runLeaf(t, typed(says[1])...)
			if run := ourCommand.FindStringSubmatch(text); code != 0 && run != nil {
				leafOK(t, slices.Concat(strings.Fields(run[1]), []string{"--store", run[2], "--data-dir", dir})...)
				code, text = runLeaf(t, typed(says[1])...)
			}
			switch {
			case code == 0:
			case strings.Contains(text, "exists"):
				leafOK(t, typed(says[2])...)
			default:
				t.Fatalf("leaf %s: exit code %d, %s", says[1], code, text)
			}
			p = serve(t, dir, append(slices.Clone(at[2:]), "--no-snowflake-enable")...)
			seen.add(t, p.ids(t, 1500))
		})
	}
}

// TestLostStoreOfSeveralAsTheTextSays: one of several databases is lost for good. The refusal of the start names a
// command that makes it again as the store that it was, with the ID that all nodes know.
func TestLostStoreOfSeveralAsTheTextSays(t *testing.T) {
	t.Parallel()
	dir, files := dataDir(t), t.TempDir()
	west := filepath.Join(files, "west.db")
	with := []string{
		"--store", "east=sqlite:" + filepath.Join(files, "east.db"), "--store", "west=sqlite:" + west,
		"--tag-rule", "leaf-segment-test=east,west*1000", "--tag-rule", "*=east",
	}
	at := append([]string{"--data-dir", dir}, with...)
	settings := append(slices.Clone(with), "--no-snowflake-enable")
	leafOK(t, append([]string{"schema", "apply"}, at...)...)
	leafOK(t, append([]string{"tag", "create", "leaf-segment-test"}, at...)...)
	seen := distinct{}
	p := serve(t, dir, settings...)
	seen.add(t, p.ids(t, 1500))
	awaitContent(t, filepath.Join(dir, "cluster"), "west")
	p.end(t, syscall.SIGTERM)
	for _, end := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(west + end)
	}

	_, text := runLeaf(t, append([]string{"serve", "--http-addr", "127.0.0.1:0"}, at...)...)
	run := regexp.MustCompile(`run leaf (schema apply [a-z -]*--data-dir) "([^"]+)", with the stores and tag rules of this node,`).FindStringSubmatch(text)
	if run == nil {
		t.Fatalf("the start without the file: %s", text)
	}
	leafOK(t, slices.Concat(strings.Fields(run[1]), []string{run[2]}, with)...)
	var used int64
	for id := range seen {
		used = max(used, id)
	}
	leafOK(t, append([]string{"tag", "create", "leaf-segment-test", "--start", strconv.FormatInt(used+2*(3*segment.MaxStep+1000), 10)}, at...)...)
	p = serve(t, dir, settings...)
	seen.add(t, p.ids(t, 1500))
}

// TestLostRecordOfSeveralAsTheTextSays: one of several databases has lost the table with the rule, and nothing else. The refusal says to
// restore that table from a backup, which is older than the IDs.
func TestLostRecordOfSeveralAsTheTextSays(t *testing.T) {
	t.Parallel()
	folder, dir, seen := t.TempDir(), dataDir(t), distinct{}
	file, backup := filepath.Join(folder, "a.db"), filepath.Join(folder, "a.backup")
	with := func(words ...string) []string {
		return append(words, "--store", "a=sqlite:"+file, "--store", "b=sqlite:"+filepath.Join(folder, "b.db"), "--tag-rule", "order=a,b*1000", "--tag-rule", "*=a", "--data-dir", dir)
	}
	take := func() {
		t.Helper()
		seen.add(t, printedIDs(t, leafOK(t, with("next", "order", "-n", "3000")...)))
	}
	leafOK(t, with("schema", "apply")...)
	leafOK(t, with("tag", "create", "order")...)
	take()
	operate(t, file, "VACUUM INTO '"+backup+"'")
	take()

	operate(t, file, "DROP TABLE leaf_meta")
	leafFails(t, regexp.MustCompile("run, with the settings of this node: (leaf schema apply)"), with("tag", "create", "user")...)
	leafFails(t, regexp.MustCompile("if only its table leaf_meta is lost, (restore that from a backup)"), with("schema", "apply")...)
	operate(t, file, "ATTACH '"+backup+"' AS b; DELETE FROM main.leaf_meta; INSERT INTO main.leaf_meta SELECT * FROM b.leaf_meta")
	take()
	leafOK(t, with("schema", "apply")...)
	leafOK(t, with("tag", "create", "user")...)
}

// TestLostRecordAsTheTextSays: the only database has lost the table with the ID of the cluster, and nothing else. Made again by a
// command that knows no ID, it would be another cluster's for every node.
func TestLostRecordAsTheTextSays(t *testing.T) {
	t.Parallel()
	dir, store, seen := dataDir(t), "sqlite:"+filepath.Join(t.TempDir(), "shared.db"), distinct{}
	leafOK(t, "schema", "apply", "--store", store, "--data-dir", dataDir(t))
	leafOK(t, "tag", "create", "leaf-segment-test", "--step", "10", "--store", store, "--data-dir", dataDir(t))
	p := serve(t, dir, "--store", store, "--no-snowflake-enable")
	seen.add(t, p.ids(t, 5))
	awaitContent(t, filepath.Join(dir, "cluster"), "default")
	operate(t, store, "DROP TABLE leaf_meta")
	says := regexp.MustCompile(`stop all nodes, and make it with (--data-dir) of one of them, .*?; run: leaf (schema apply --store)`)
	for end := time.Now().Add(20 * time.Second); !says.MatchString(p.log.String()); {
		if _, _, err := httpGet(p.addr, "/api/segment/get/leaf-segment-test"); err != nil || time.Now().After(end) {
			t.Fatalf("%v; log:\n%s", err, p.log)
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	t.Log("ended:", <-p.done)
	said := says.FindStringSubmatch(p.log.String())
	for line := range strings.Lines(p.log.String()) {
		if strings.Contains(line, "run: leaf schema apply --store") && !says.MatchString(line) {
			t.Errorf("this line alone leads to another ID: %s", line)
		}
	}
	leafOK(t, append(strings.Fields(said[2]), store, said[1], dir)...)
	p = serve(t, dir, "--store", store, "--no-snowflake-enable")
	p.awaitIDs(t, seen, 100)
}

// TestLostStoreOfSeveralMadeElsewhere: one of several databases is lost for good, and the operator makes it again without the
// data directory of a node, so it has another ID. The refusal of the start says what to do, and no ID repeats.
func TestLostStoreOfSeveralMadeElsewhere(t *testing.T) {
	t.Parallel()
	const tag = "leaf-segment-test"
	dir, files := dataDir(t), t.TempDir()
	east, west, again := filepath.Join(files, "east.db"), filepath.Join(files, "west.db"), filepath.Join(files, "again.db")
	with := func(second string) []string {
		return []string{"--store", "east=sqlite:" + east, "--store", "west=sqlite:" + second, "--tag-rule", tag + "=west", "--tag-rule", "*=east"}
	}
	leafOK(t, append([]string{"schema", "apply", "--data-dir", dataDir(t)}, with(west)...)...)
	leafOK(t, append([]string{"tag", "create", tag, "--data-dir", dataDir(t)}, with(west)...)...)
	seen := distinct{}
	p := serve(t, dir, append(with(west), "--no-snowflake-enable")...)
	seen.add(t, p.ids(t, 1500))
	awaitContent(t, filepath.Join(dir, "cluster"), "west")
	p.end(t, syscall.SIGTERM)

	made := append([]string{"schema", "apply", "--data-dir", dataDir(t)}, with(again)...)
	leafOK(t, append(made, "--accept-rule", "--lost", "west")...)
	serves := leafFails(t, regexp.MustCompile(`leaf (serve) with these settings`), append([]string{"next", tag, "--data-dir", dir}, with(again)...)...)
	_, text := runLeaf(t, append([]string{serves, "--http-addr", "127.0.0.1:0", "--data-dir", dir, "--no-snowflake-enable"}, with(again)...)...)
	said := regexp.MustCompile(`run in it: (UPDATE leaf_meta SET .* WHERE name = 'cluster_id'); .*is lost for good, and this one was made empty in its place, stop all nodes, run that UPDATE, make each missing tag .*\(leaf tag create TAG --start NUMBER\), and start the nodes with their own data directories`).FindStringSubmatch(text)
	if said == nil {
		t.Fatalf("the start on a database that was made in place of a lost one: %s", text)
	}
	operate(t, "sqlite:"+again, said[1])
	leafOK(t, append([]string{"tag", "create", tag, "--start", strconv.FormatInt(1500+3*segment.MaxStep, 10), "--data-dir", dataDir(t)}, with(again)...)...)
	p = serve(t, dir, append(with(again), "--no-snowflake-enable")...)
	seen.add(t, p.ids(t, 1500))
}

// TestWorkersOfALostStoreOfSeveral: the command knows no tag rule, and the first of several databases has no tables. With that one
// alone, leaf schema apply would make it the only database of another cluster.
func TestWorkersOfALostStoreOfSeveral(t *testing.T) {
	t.Parallel()
	files := t.TempDir()
	first := "sqlite:" + filepath.Join(files, "east.db")
	operate(t, first, "CREATE TABLE other (id int)")
	for _, registry := range [][]string{nil, {"--snowflake-registry", "sql", "--snowflake-registry-address", first}} {
		_, text := runLeaf(t, append([]string{"worker", "list", "--data-dir", dataDir(t), "--store", "east=" + first, "--store", "west=sqlite:" + filepath.Join(files, "west.db")}, registry...)...)
		if !strings.Contains(text, "run, with the settings of this node: leaf schema apply") {
			t.Errorf("leaf worker list %v beside a database without tables: %s", registry, text)
		}
	}
}

// TestFenceAndDatabaseLostAsTheTextsSay: the fence files and the database are lost together. Whichever command
// the operator begins with, and however the texts lead to one another, they come to an end, and no ID repeats.
func TestFenceAndDatabaseLostAsTheTextsSay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		store bool // shared, beside the data directory
		first []string
	}{
		{"embedded, from the start", false, []string{"serve", "--http-addr", "127.0.0.1:0"}},
		{"embedded, from fence rebuild", false, []string{"fence", "rebuild"}},
		{"a store, from the start", true, []string{"serve", "--http-addr", "127.0.0.1:0"}},
		{"a store, from fence rebuild", true, []string{"fence", "rebuild"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, file := dataDir(t), filepath.Join(t.TempDir(), "shared.db")
			at := []string{"--data-dir", dir}
			if tt.store {
				at = append(at, "--store", "sqlite:"+file)
				leafOK(t, append([]string{"schema", "apply"}, at...)...)
				leafOK(t, append([]string{"tag", "create", "leaf-segment-test"}, at...)...)
			} else {
				file = filepath.Join(dir, "leaf.db")
			}
			settings := append(slices.Clone(at[2:]), "--no-snowflake-enable")
			seen := distinct{}
			p := serve(t, dir, settings...)
			seen.add(t, p.ids(t, 1500))
			awaitContent(t, filepath.Join(dir, "cluster"), "{") // by which the node knows that it used the database
			p.end(t, syscall.SIGTERM)
			for _, lost := range []string{file, file + "-wal", file + "-shm", filepath.Join(dir, "fence"), filepath.Join(dir, "fence-end")} {
				_ = os.Remove(lost)
			}

			var used int64
			for id := range seen {
				used = max(used, id)
			}
			create := append([]string{"tag", "create", "leaf-segment-test", "--start", strconv.FormatInt(used+3*segment.MaxStep, 10)}, at...)
			made, commands := false, [][]string{append(slices.Clone(tt.first), at...)}
			for typed := 0; len(commands) > 0; typed++ {
				next := commands[len(commands)-1]
				code, text := runLeaf(t, next...)
				t.Logf("leaf %s: %d %s", strings.Join(next, " "), code, text)
				if typed == 10 {
					t.Fatal("the texts lead to one another without an end")
				}
				if code == 0 {
					commands = commands[:len(commands)-1]
					made = made || next[0] == "tag"
					continue
				}
				switch lost, rebuild := lostFile.FindStringSubmatch(text), strings.Contains(text, "run: leaf fence rebuild"); {
				case lost != nil:
					apply := append(strings.Fields(lost[1]), lost[2])
					if lost[3] != "" {
						apply = append(apply, "--store", lost[3])
					}
					commands = append(commands[:len(commands)-1], create, apply)
					if next[0] == "fence" {
						commands = [][]string{create, next, apply} // what failed is typed again
					}
				case rebuild:
					commands = append(commands, append([]string{"fence", "rebuild"}, at...))
				default:
					t.Fatal("no text says what to type")
				}
			}
			if !made {
				leafOK(t, create...)
			}
			p = serve(t, dir, settings...)
			seen.add(t, p.ids(t, 1500))
		})
	}
}

// TestFenceAndStoreOfSeveralLostAsTheTextsSay: the fence files are lost, and with them one of several databases. The texts lead to
// commands that succeed, each typed with the settings of the node, and no ID repeats.
func TestFenceAndStoreOfSeveralLostAsTheTextsSay(t *testing.T) {
	t.Parallel()
	dir, files := dataDir(t), t.TempDir()
	with := func(words ...string) []string {
		return append(words, "--data-dir", dir, "--store", "a=sqlite:"+filepath.Join(files, "a.db"), "--store", "b=sqlite:"+filepath.Join(files, "b.db"),
			"--tag-rule", "order=a,b*1000", "--tag-rule", "*=a")
	}
	seen := distinct{}
	take := func() {
		t.Helper()
		seen.add(t, printedIDs(t, leafOK(t, with("next", "order", "-n", "10")...)))
	}
	leafOK(t, with("schema", "apply")...)
	leafOK(t, with("tag", "create", "order")...)
	take()
	for _, lost := range []string{filepath.Join(files, "b.db"), filepath.Join(dir, "fence"), filepath.Join(dir, "fence-end")} {
		if err := os.Remove(lost); err != nil {
			t.Fatal(err)
		}
	}

	rebuild := with("fence", "rebuild")
	apply := leafFails(t, regexp.MustCompile(`run leaf (schema apply [a-z -]*)--data-dir`), rebuild...)
	leafOK(t, with(strings.Fields(apply)...)...)
	leafFails(t, regexp.MustCompile(`run: leaf (fence rebuild)`), with("next", "order")...)
	leafOK(t, rebuild...)
	leafOK(t, with("tag", "create", "order", "--start", strconv.Itoa(2*(3*segment.MaxStep+1000)))...)
	leafOK(t, with("tag", "repair", "order~1of2~1000", "--above", strconv.Itoa(3*segment.MaxStep))...)
	take()
}

// lostFile is what a refusal says to type when the file of a database is lost for good.
var lostFile = regexp.MustCompile(`run leaf (schema apply --data-dir) "([^"]+)"(?: --store "([^"]+)")?, and then, for each tag, leaf tag create TAG --start NUMBER, with that --data-dir, the stores of this node, the options`)

// awaitContent waits until a file has a text, which a node that runs writes.
func awaitContent(t *testing.T, path, text string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		content, _ := os.ReadFile(path)
		if strings.Contains(string(content), text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s has %q, and not %q", path, content, text)
		}
	}
}
