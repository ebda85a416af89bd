package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/leaf-idgen/leaf/segment"
)

// loadedBackup is what the error about the database of another cluster says to do after a backup was loaded into a new one.
var loadedBackup = regexp.MustCompile(`if a backup of cluster \w+ was loaded into a new database, stop all nodes( and Java servers)? before you run that, then start (?:them|the nodes) with (their own|new) data directories[^;]* repair every tag(, as docs/OPERATIONS\.md#backup-and-restore-drill says)?;`)

// TestBackupInANewDatabaseAsTheTextSays: the server of the database is lost. The operator makes the tables on another one, whose
// leaf_meta gets an ID of its own, and loads a dump of leaf_alloc alone. A Java server may have taken ranges since the dump, which no
// node knows. The node says what to do, and no ID repeats.
func TestBackupInANewDatabaseAsTheTextSays(t *testing.T) {
	t.Parallel()
	t.Run("nodes alone", func(t *testing.T) { t.Parallel(); restoreInANewDatabase(t, 1500) })
	t.Run("beside a Java server", func(t *testing.T) { t.Parallel(); restoreInANewDatabase(t, 20_000) })
}

// restoreInANewDatabase has a node issue 1,500 IDs, and a Java server those up to last.
func restoreInANewDatabase(t *testing.T, last int64) {
	t.Helper()
	const tag = "leaf-segment-test"
	dir, folder, seen := dataDir(t), t.TempDir(), distinct{}
	store := func(name string) string { return "sqlite:" + filepath.Join(folder, name) }
	for _, name := range []string{"lost.db", "new.db"} {
		at := []string{"--store", store(name), "--data-dir", dataDir(t)}
		leafOK(t, append([]string{"schema", "apply"}, at...)...)
		leafOK(t, append([]string{"tag", "create", tag}, at...)...) // in the new one, the row as the dump has it
	}
	p := serve(t, dir, "--store", store("lost.db"), "--no-snowflake-enable")
	seen.add(t, p.ids(t, 1500))
	p.end(t, syscall.SIGTERM)
	for id := int64(1501); id <= last; id++ {
		seen.add(t, []int64{id})
	}

	_, text := runLeaf(t, "serve", "--http-addr", "127.0.0.1:0", "--data-dir", dir, "--store", store("new.db"), "--no-snowflake-enable")
	says, statement := loadedBackup.FindStringSubmatch(text), regexp.MustCompile(`UPDATE leaf_meta SET value = '\w+' WHERE name = 'cluster_id'`).FindString(text)
	wipe := regexp.MustCompile(`DELETE FROM leaf_worker_namespace`).FindString(text) // else the numbers are free, and know nothing of what was issued since
	if says == nil || statement == "" || wipe == "" {
		t.Fatalf("the start beside the restored rows does not say what to do: %s", text)
	}
	operate(t, store("new.db"), statement)
	operate(t, store("new.db"), wipe)
	if says[2] == "new" {
		dir = dataDir(t)
	}
	repair := []string{"tag", "repair", tag, "--data-dir", dir}
	if last > 1500 && says[1] != "" && says[3] != "" { // the page says --above where Java servers have served the tag
		repair = append(repair, "--above", strconv.FormatInt(last+3*segment.MaxStep, 10))
	}
	p = serve(t, dir, "--store", store("new.db"), "--no-snowflake-enable")
	leafOK(t, repair...)
	seen.add(t, p.ids(t, 1500))
}

// TestFenceLostBesideABackupAsTheTextsSay: a backup is loaded into the database, and the node has lost its fence files, too. What
// leaf fence rebuild and the alarm say is done. No ID repeats.
func TestFenceLostBesideABackupAsTheTextsSay(t *testing.T) {
	t.Parallel()
	const tag = "leaf-segment-test"
	dir, store, seen := dataDir(t), "sqlite:"+filepath.Join(t.TempDir(), "shared.db"), distinct{}
	at := []string{"--store", store, "--data-dir", dir}
	leafOK(t, append([]string{"schema", "apply"}, at...)...)
	leafOK(t, append([]string{"tag", "create", tag}, at...)...)
	p := serve(t, dir, "--store", store, "--no-snowflake-enable")
	seen.add(t, p.ids(t, 1500))
	p.end(t, syscall.SIGTERM)
	operate(t, store, "UPDATE leaf_alloc SET max_id = 1")
	for _, name := range []string{"fence", "fence-end"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}

	says := leafOK(t, append([]string{"fence", "rebuild"}, at...)...)
	p = serve(t, dir, "--store", store, "--no-snowflake-enable")
	p.await(t, "was rebuilt; the tag is latched")
	repair := []string{"tag", "repair", tag, "--data-dir", dir}
	for _, text := range []string{says, p.log.String()} {
		if regexp.MustCompile(`If a backup was loaded into the database since .*then each repair needs --above|if a backup was loaded into the database since then, .* gone with its data directory`).MatchString(text) {
			repair = append(repair[:5:5], "--above", strconv.FormatInt(1500+3*segment.MaxStep, 10))
		} else {
			t.Errorf("an operator who reads only this repairs from the row of the backup: %s", text)
		}
	}
	leafOK(t, repair...)
	seen.add(t, p.ids(t, 1500))
}
