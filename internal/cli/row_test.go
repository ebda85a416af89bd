package cli_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

var (
	// rowAlarm is the line of an alarm for a row that cannot be used, with what it says to do.
	rowAlarm = regexp.MustCompile(`code=row .*do="((?:[^"\\]|\\.)*)"`)
	// setStep and setID are the cures that it names.
	setStep = regexp.MustCompile(`if the step is wrong, run: leaf (tag set TAG --step N)\.`)
	setID   = regexp.MustCompile(`If max_id cannot be read, set it in the database to (-?\d+), .* then run on any one node: leaf (tag repair TAG),`)
)

// TestRowAsTheTextsSay: another program leaves a row that cannot be used, while two nodes
// have issued IDs of the tag. What the alarm says is typed, literally. Then both nodes
// serve, and no ID repeats.
func TestRowAsTheTextsSay(t *testing.T) {
	t.Parallel()
	for _, damage := range []string{"step = NULL", "step = -7", "max_id = NULL"} {
		t.Run(damage, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "shared.db")
			store := "sqlite:" + file
			operate(t, store, "CREATE TABLE leaf_alloc (biz_tag TEXT PRIMARY KEY, max_id INTEGER, step INTEGER, description TEXT, update_time TEXT)")
			leafOK(t, "schema", "apply", "--store", store, "--data-dir", dataDir(t))
			leafOK(t, "tag", "create", "leaf-segment-test", "--step", "100", "--fixed-step", "--store", store, "--data-dir", dataDir(t))
			r := &restoredTable{seen: distinct{}, args: []string{"--store", store, "--no-snowflake-enable"}}
			for i := range r.nodes {
				r.nodes[i] = serve(t, dataDir(t), r.args...)
			}
			r.take(t, 1, 5)
			r.take(t, 0, 500)
			operate(t, store, "UPDATE leaf_alloc SET "+damage)
			var says []string
			for deadline := time.Now().Add(30 * time.Second); says == nil; says = rowAlarm.FindStringSubmatch(r.nodes[0].log.String()) {
				if time.Now().After(deadline) {
					t.Fatalf("no alarm; log:\n%s", r.nodes[0].log)
				}
				r.takeOne(t, 0)
				time.Sleep(time.Millisecond)
			}
			at := []string{"--data-dir", r.nodes[1].dir}
			if damage != "step = -7" { // which is shown
				leafFails(t, regexp.MustCompile(regexp.QuoteMeta("; "+segment.CorrectRow)+"()"), append([]string{"tag", "show", "leaf-segment-test"}, at...)...)
			}
			cure := setID
			if strings.HasPrefix(damage, "step") {
				cure = setStep
			}
			typed := cure.FindStringSubmatch(says[1])
			if typed == nil {
				t.Fatalf("the alarm says %q, want %v", says[1], cure)
			}
			if cure == setID {
				operate(t, store, "UPDATE leaf_alloc SET max_id = "+typed[1]+" WHERE biz_tag = 'leaf-segment-test'")
			}
			words := strings.NewReplacer("TAG", "leaf-segment-test", " N", " 100").Replace(typed[len(typed)-1])
			leafOK(t, append(strings.Fields(words), at...)...)
			r.serves(t)
		})
	}
}

// serves takes 250 IDs from each node. One with IDs left in memory answers some, then waits before it reads the row again.
func (r *restoredTable) serves(t *testing.T) {
	t.Helper()
	for i, n := range r.nodes {
		deadline := time.Now().Add(20 * time.Second)
		for taken := 0; taken < 250; {
			answer, ok := r.takeOne(t, i)
			switch {
			case ok:
				taken++
			case time.Now().After(deadline):
				t.Fatalf("after %d IDs: %s; log:\n%s", taken, answer, n.log)
			default:
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
}

// takeOne asks a node for one ID, and reports its answer and whether it gave one.
func (r *restoredTable) takeOne(t *testing.T, node int) (answer string, ok bool) {
	t.Helper()
	status, body, err := httpGet(r.nodes[node].addr, "/api/segment/get/leaf-segment-test")
	if err != nil || status != http.StatusOK {
		return fmt.Sprint(status, " ", body, err), false
	}
	id, err := strconv.ParseInt(strings.TrimSpace(body), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	r.add(t, []int64{id})
	return body, true
}
