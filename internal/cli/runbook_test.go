package cli_test

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/cli"
	"github.com/leaf-idgen/leaf/internal/test/port"
)

// ofTheMachine stands for commands of another program: nothing here runs them.
const ofTheMachine = "not ours"

// documented has each command in the text of docs/OPERATIONS.md, by the heading above it, and the
// situation in which it is typed: one of situations, which types its commands in the order of this
// table, or a test by its name.
var documented = []struct {
	section, command, situation string

	code int
	says string // in the output
}{
	{section: "Database high availability", command: "leaf tag repair", situation: "TestRepairAsTheTextsSay"},
	{section: "A store in etcd", command: "leaf schema apply", situation: "TestCommandsInEtcd"},
	{section: "A store in etcd", command: "leaf tag repair", situation: "TestRepairAsTheTextsSay"},
	{section: "Backup and restore drill", command: "leaf tag list", situation: "TestOperationsDocument"},
	{section: "Backup and restore drill", command: "leaf tag repair TAG", situation: "segment TestRestoredRowIsFound"},
	{section: "Backup and restore drill", command: "leaf tag repair TAG --above NUMBER", situation: "segment TestRegressBesideALostDirectory"},
	{section: "Backup and restore drill", command: "leaf sequence repair NAME --all", situation: "internal/manage TestRepairEveryRow"},
	{"Backup and restore drill", "leaf limit list", "a limit refuses", 0, "blocked"},
	{section: "Backup and restore drill", command: "leaf import", situation: "TestImportAcrossTheSwitch"},
	{section: "Backup and restore drill", command: "leaf tag set TAG --max-id NUMBER", situation: "TestEmbeddedDatabaseAsTheDocumentSays"},
	{section: "Backup and restore drill", command: "leaf schema apply", situation: "TestBackupInANewDatabaseAsTheTextSays"},
	{section: "Backup and restore drill", command: "leaf tag show TAG", situation: "TestScripts"},
	{section: "Backup and restore drill", command: "leaf token list", situation: "TestNamedTokensOfANode"},
	{section: "Backup and restore drill", command: "leaf worker init", situation: "TestWaitSaysHowToAvoidIt"},
	{section: "Backup and restore drill", command: "leaf worker list", situation: "TestOperationsDocument"},

	{section: moveSection, command: "leaf tag list", situation: "TestMoveToAnotherDatabaseAsTheDocumentSays"},
	{section: moveSection, command: "leaf sequence repair NAME --all", situation: "internal/manage TestRepairEveryRow"},
	{section: moveSection, command: "kubectl scale --replicas=0", situation: ofTheMachine},
	{section: moveSection, command: "leaf schema apply --store NEW --data-dir EMPTY", situation: "TestMoveToAnotherDatabaseAsTheDocumentSays"},
	{section: moveSection, command: "leaf worker init", situation: "TestWaitSaysHowToAvoidIt"},
	{section: moveSection, command: "leaf tag create TAG --start NUMBER", situation: "TestCommandsInEtcd"},
	{section: moveSection, command: "leaf sequence create NAME --start NUMBER", situation: "TestScripts"},

	{section: embeddedSection, command: "leaf tag set TAG --max-id NUMBER", situation: "TestEmbeddedDatabaseAsTheDocumentSays"},
	{section: embeddedSection, command: "leaf tag list", situation: "TestEmbeddedDatabaseAsTheDocumentSays"},
	{section: embeddedSection, command: "leaf tag create TAG --start NUMBER", situation: "TestEmbeddedDatabaseAsTheDocumentSays"},
	{section: embeddedSection, command: "leaf tag repair TAG", situation: "TestEmbeddedDatabaseAsTheDocumentSays"},
	{section: embeddedSection, command: "leaf sequence repair NAME --all", situation: "internal/manage TestRepairEveryRow"},
	{section: embeddedSection, command: "leaf sequence repair NAME --all --above NUMBER", situation: "internal/manage TestRepairEveryRow"},
	{section: embeddedSection, command: "leaf sequence create NAME --start NUMBER", situation: "TestScripts"},
	{section: embeddedSection, command: "leaf tag create TAG", situation: "TestCreateAgainAsTheTextSays"},

	{"Runbook", "leaf status", "a row went back", 1, "regress (leaf-segment-test)"},
	{"LeafRegress", "leaf tag list", "a row went back", 0, "latched"},
	{"LeafRegress", "leaf tag repair TAG --plan", "a row went back", 0, "first ID"},
	{"LeafRegress", "leaf tag repair TAG", "a row went back", 0, "no node issues"},
	{section: "LeafRegress", command: "leaf tag repair TAG --above NUMBER", situation: "segment TestRegressBesideALostDirectory"},
	{section: "LeafRegress", command: "leaf sequence repair NAME", situation: "TestScripts"},
	{section: "LeafRegress", command: "leaf sequence repair NAME --all", situation: "internal/manage TestRepairEveryRow"},

	{"LeafRow", "leaf tag show TAG", "a row cannot be used", 0, "step"},
	{"LeafRow", "leaf tag set TAG --step 2000", "a row cannot be used", 0, "2000"},

	{"LeafFormat", "leaf tag show TAG", "a format is used up", 0, "INV-{seq:04}"},
	{"LeafFormat", "leaf tag set TAG --format INV-{seq:08}", "a format is used up", 0, "INV-{seq:08}"},

	{section: "LeafVanished", command: "leaf tag delete", situation: "segment TestTagsThatACommandHasDeleted"},

	{"LeafRequestsSlow", "leaf status", "callers wait in vain", 0, "LASTS"},
	{"LeafRequestsFail", "leaf status", "callers wait in vain", 0, "exhausted (leaf-segment-test)"},
	{"LeafExhausted", "leaf tag set TAG --min-step 400000", "callers wait in vain", 0, "400000"},

	{"Install", "leaf status --quiet --alive", "the database does not answer", 0, ""},
	{"LeafStore", "leaf status", "the database does not answer", 1, "store (default)"},
	{"LeafSegmentNotReady", "leaf status", "the database does not answer", 1, "has not answered yet"},
	{"LeafDirectory", "leaf node list", "the database does not answer", 4, "connection refused"},

	{"LeafClaim", "leaf worker list", "no worker ID is free", 0, "7"},
	{"LeafSnowflakeNotReady", "leaf status", "no worker ID is free", 0, "claim (worker)"},
	{section: "LeafSnowflakeNotReady", command: "leaf worker init", situation: "TestWaitSaysHowToAvoidIt"},
	{section: "LeafClock", command: "leaf worker confirm-clock", situation: "internal/test/proof TestConfirmClockAsTheAlarmSays"},

	{section: "LeafRegistry", command: "leaf schema apply", situation: "driver/sqldb TestSlotsWithoutTables"},
	{"LeafConfiguration", "leaf config check --diff", "the configuration is wrong", 2, `log.level="loud"`},
	{"LeafConfiguration", "leaf reload", "the configuration is wrong", 0, "warn"},

	{"LeafLimitReached", "leaf limit list", "a limit refuses", 0, "blocked"},
	{"LeafLimitReached", "leaf limit set TAG --rate 2000", "a limit refuses", 0, "2000 per second"},
	{"LeafLimitReached", "leaf limit set TAG --unblock", "a limit refuses", 0, "limited"},
	{"LeafLimitReached", "leaf limit set --client NAME --rate 2000", "a limit refuses", 0, "shop"},

	{"LeafStockLow", "leaf drain", "the stock ends", 0, ""},

	{section: "LeafFence", command: "leaf drain", situation: "internal/test/proof TestStrictOrder"},
	{section: "LeafOrderForwarded", command: "leaf node list", situation: "TestScripts"},
	{section: "LeafOrderForwarded", command: "leaf drain", situation: "internal/test/proof TestStrictOrder"},

	{section: "Install", command: "systemctl start", situation: ofTheMachine},
	{section: "Install", command: "systemctl reload leaf", situation: ofTheMachine},
	{section: "Install", command: "systemctl restart leaf", situation: ofTheMachine},
	{section: "LeafDisk", command: "df -h", situation: ofTheMachine},
	{section: "LeafClock", command: "chronyc tracking", situation: ofTheMachine},
	{section: "LeafClockOffset", command: "chronyc tracking", situation: ofTheMachine},
	{section: "LeafDown", command: "systemctl status leaf", situation: ofTheMachine},
	{section: "LeafDown", command: "kubectl describe pod", situation: ofTheMachine},
}

// situation is a node in the state that an alert is about, with tag leaf-segment-test.
type situation struct {
	dir    string            // of the node
	before map[string]func() // what the section tells to do before a command
	after  func()            // looks at what came of the commands
}

var situations = map[string]func(t *testing.T) situation{
	"a row went back": func(t *testing.T) situation {
		r := newRestoredTable(t)
		return situation{dir: r.nodes[0].dir, after: func() { r.goesOn(t) }}
	},
	"a row cannot be used": func(t *testing.T) situation {
		p, seen := withoutRange(t)
		return situation{dir: p.dir, after: func() {
			p.await(t, "alarm ended")
			p.awaitIDs(t, seen, 3000)
		}}
	},
	"a format is used up": func(t *testing.T) situation {
		p := serve(t, dataDir(t), "--no-snowflake-enable")
		leafOK(t, "tag", "set", "leaf-segment-test", "--format", "INV-{seq:04}", "--max-id", "9500", "--data-dir", p.dir)
		p.await(t, "code=format")
		return situation{dir: p.dir, after: func() { p.await(t, "alarm ended") }}
	},
	"callers wait in vain": func(t *testing.T) situation {
		p := serve(t, dataDir(t), "--no-snowflake-enable", "--segment-max-wait", "50ms")
		seen := distinct{}
		p.awaitIDs(t, seen, 10)
		unlock := lockDatabase(t, filepath.Join(p.dir, "leaf.db"))
		p.takeUntil(t, seen, "code=exhausted")
		return situation{dir: p.dir, before: map[string]func(){"leaf tag set TAG --min-step 400000": unlock}, after: func() {
			p.awaitIDs(t, seen, 3000)
			p.await(t, "alarm ended")
		}}
	},
	"the database does not answer": func(t *testing.T) situation {
		p := serve(t, dataDir(t), "--store", "mysql://leaf@"+port.Unused(t)+"/leaf")
		p.await(t, "code=store")
		return situation{dir: p.dir}
	},
	"no worker ID is free": func(t *testing.T) situation {
		store := "sqlite:" + filepath.Join(t.TempDir(), "shared.db")
		at := []string{"--store", store, "--snowflake-worker-range", "7-7"}
		leafOK(t, "schema", "apply", "--store", store, "--data-dir", dataDir(t))
		leafOK(t, "worker", "init", "--store", store, "--data-dir", dataDir(t))
		workerOf(t, serve(t, dataDir(t), at...))
		p := serve(t, dataDir(t), at...)
		p.await(t, "code=claim")
		return situation{dir: p.dir}
	},
	"the configuration is wrong": func(t *testing.T) situation {
		file := filepath.Join(t.TempDir(), "leaf.yaml")
		write := func(level string) {
			if err := os.WriteFile(file, []byte("reload-interval: 0s\nlog: {level: "+level+"}\n"), 0o600); err != nil {
				t.Error(err)
			}
		}
		write("info")
		p := serve(t, dataDir(t), "--config", file, "--no-snowflake-enable")
		write("loud")
		if code, text := runLeaf(t, "reload", "--data-dir", p.dir); code != 2 {
			t.Fatalf("leaf reload of a wrong file: exit code %d, %s", code, text)
		}
		p.await(t, "code=configuration")
		return situation{dir: p.dir, before: map[string]func(){"leaf reload": func() { write("warn") }}, after: func() {
			if out := outputOf(t, "status", "--data-dir", p.dir); !strings.Contains(out, "alarms     none") {
				t.Errorf("after the correction:\n%s", out)
			}
		}}
	},
	"a limit refuses": func(t *testing.T) situation {
		p := serve(t, dataDir(t), "--no-snowflake-enable")
		leafOK(t, "limit", "set", "leaf-segment-test", "--rate", "1", "--block", "--data-dir", p.dir)
		ask := func() (refused bool) {
			status, _, err := httpGet(p.addr, "/api/segment/get/leaf-segment-test?count=2")
			return err != nil || status != 200
		}
		if !ask() {
			t.Fatal("the limit refuses nothing")
		}
		return situation{dir: p.dir, after: func() {
			if ask() {
				t.Error("the higher limit refuses")
			}
		}}
	},
	"the stock ends": func(t *testing.T) situation {
		p, _ := withoutRange(t)
		return situation{dir: p.dir, after: func() {
			if err := <-p.done; err != nil {
				t.Errorf("the node ended with %v; log:\n%s", err, p.log)
			}
		}}
	},
}

// withoutRange is a node that gets no range, because the row has no step.
func withoutRange(t *testing.T) (*process, distinct) {
	t.Helper()
	p := serve(t, dataDir(t), "--no-snowflake-enable")
	seen := distinct{}
	seen.add(t, p.ids(t, 10))
	operate(t, "sqlite:"+filepath.Join(p.dir, "leaf.db"), "UPDATE leaf_alloc SET step = 0")
	p.takeUntil(t, seen, "code=row")
	return p, seen
}

// takeUntil takes IDs until the log holds a text.
func (p *process) takeUntil(t *testing.T, seen distinct, text string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !strings.Contains(p.log.String(), text); {
		if time.Now().After(end) {
			t.Fatalf("%q is not in the log:\n%s", text, p.log)
		}
		if status, body, err := httpGet(p.addr, "/api/segment/get/leaf-segment-test?count=50"); err == nil && status == 200 {
			seen.add(t, idsIn(t, body))
		}
	}
}

// awaitIDs takes n IDs from a node, which may wait a moment before it tries its database again.
func (p *process) awaitIDs(t *testing.T, seen distinct, n int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); n > 0; {
		status, body, err := httpGet(p.addr, "/api/segment/get/leaf-segment-test?count=50")
		switch {
		case err == nil && status == 200:
			seen.add(t, idsIn(t, body))
			n -= 50
		case time.Now().After(end):
			t.Fatalf("%d %s, %v; log:\n%s", status, body, err, p.log)
		default:
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// lockDatabase keeps every other process from writing to an SQLite file until unlock.
func lockDatabase(t *testing.T, file string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_busy_timeout=10000&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}

var (
	codeSpan   = regexp.MustCompile("`([^`]+)`")
	heading    = regexp.MustCompile(`^#{2,3} (.*)`)
	inDocument = regexp.MustCompile(`^(leaf|df|chronyc|systemctl|kubectl) `)
)

// commandsIn returns the commands in the text of a document as SECTION: COMMAND, without those of its
// blocks, which TestOperationsDocument runs.
func commandsIn(t *testing.T, path string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	section, paragraph, fenced := "", "", false
	see := func() {
		for _, m := range codeSpan.FindAllStringSubmatch(paragraph, -1) {
			command := strings.Join(strings.Fields(m[1]), " ")
			if name := section + ": " + command; inDocument.MatchString(command) && !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
		paragraph = ""
	}
	for line := range strings.Lines(string(text)) {
		if h := heading.FindStringSubmatch(line); h != nil {
			see()
			section = strings.TrimSpace(h[1])
		}
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case !fenced && !strings.HasPrefix(line, "    "):
			paragraph += line
		}
	}
	see()
	return found
}

// TestRunbookCommands types the commands of each section of the runbook as they are written, on a
// node in the state that the section is about. Each command of the document is in the table.
func TestRunbookCommands(t *testing.T) {
	t.Parallel()
	found, listed := commandsIn(t, "../../docs/OPERATIONS.md"), []string{}
	for _, d := range documented {
		name := d.section + ": " + d.command
		listed = append(listed, name)
		if !slices.Contains(found, name) {
			t.Errorf("OPERATIONS.md has not %s", name)
		}
		folder, test, other := strings.Cut(d.situation, " Test")
		if !other {
			folder, test = "internal/cli", strings.TrimPrefix(d.situation, "Test")
		}
		if situations[d.situation] == nil && d.situation != ofTheMachine && !hasTest(t, filepath.Join("../..", folder), "Test"+test) {
			t.Errorf("%s: there is no situation and no test %s", name, d.situation)
		}
	}
	for _, name := range found {
		if !slices.Contains(listed, name) {
			t.Errorf("no test types %s", name)
		}
	}
	for name, cause := range situations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := cause(t)
			for _, d := range documented {
				if d.situation != name {
					continue
				}
				if do := s.before[d.command]; do != nil {
					do()
				}
				var out bytes.Buffer
				words := strings.Fields(strings.NewReplacer("TAG", "leaf-segment-test", "NAME", "shop").Replace(d.command))[1:]
				p := cli.Process{Args: words, Stdout: &out, Stderr: &out, Environ: []string{"HOME=" + t.TempDir(), patient, "LEAF_DATA_DIR=" + s.dir}}
				if code := cli.Run(t.Context(), p); code != d.code || !strings.Contains(out.String(), d.says) {
					t.Errorf("%s: %s: exit code %d, want %d and %q:\n%s", d.section, d.command, code, d.code, d.says, &out)
				}
			}
			if s.after != nil {
				s.after()
			}
		})
	}
}
