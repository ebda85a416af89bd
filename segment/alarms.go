package segment

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/number"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// The texts of the engine's alarms are here, side by side. An alarm is raised and
// cleared under the lock of the state that it tells of, so that its end never
// overtakes its beginning.

func regressAlarm(tag, text string) leaf.Alarm {
	return leaf.Alarm{
		Code: leaf.AlarmRegress, Subject: tag, Text: text,
		Do: "find out why the database lost commits, " + askAllNodes,
	}
}

// latchedAlarm is for a tag that was latched when the process started.
func latchedAlarm(tag string, m fence.Mark) leaf.Alarm {
	if m.Rebuilt {
		text := fmt.Sprintf("the fence file of this node was rebuilt; the tag is latched until repaired: this node does not know up to which number of tag %q it took ranges; if a backup was loaded into the database since then, or it lost commits, this node counts as one that is gone with its data directory", tag)
		return leaf.Alarm{Code: leaf.AlarmRegress, Subject: tag, Text: text, Do: askAllNodesForAll}
	}
	return regressAlarm(tag, fmt.Sprintf("store went backwards before this start; the tag is latched until repaired: this node holds numbers of tag %q up to %d", tag, m.High))
}

// withoutRanges is a max_id with which a row waits for a repair. A Java server takes ranges from any row, and no repair asks it.
const withoutRanges = "-1, from which no node takes a range (but stop Java servers first: they do, and count as nodes that are gone with their data directories)"

// CorrectRow is what an administrator does about a row that cannot be used. A node that
// took ranges of the tag latches it when its max_id is below 0, and no node loads such a row.
const CorrectRow = "if the step is wrong, run: leaf tag set TAG --step N. If max_id cannot be read, set it in the database to " + withoutRanges + ", " + askAllNodes + ". If the numbers are used up, " + anotherTag

// anotherTag is what an administrator does who cannot use a tag any more.
const anotherTag = "create another tag, and give its IDs a column of their own, because IDs of two tags can be equal; if it has a format, give that other letters, because two tags with one format write the same texts"

// askAllNodes is what to do about a max_id that is lost, or too low. A node keeps what it has reserved in its
// data directory only: when the directory is lost, no other node knows these numbers.
const askAllNodes = askForTag + "leaf sequence repair NAME, with a cluster fence leaf sequence repair NAME --all. " + askWithout

// askAllNodesForAll is askAllNodes where only one node knows that its tags are latched.
const askAllNodesForAll = askForTag + "leaf sequence repair NAME --all, because another node does not know which rows this one has latched. " + askWithout

const (
	askForTag = "start the nodes that are stopped, then run on any one node: leaf tag repair TAG, which asks all nodes for the highest number in use; a number of your own could repeat IDs. " +
		"Rows of a sequence, NAME/seq/0000 to NAME/seq/1023, are repaired together: "
	askWithout = "If a node is gone with its data directory, or Java servers have taken ranges, which must stop first, run: leaf tag repair TAG --above NUMBER, with the number that docs/GUARANTEES.md#repair says"
)

func rowAlarm(tag string, err error) leaf.Alarm {
	do := CorrectRow
	if errors.Is(err, errBelowZero) {
		do = "find out who wrote the row, " + askAllNodes
	}
	return leaf.Alarm{
		Code: leaf.AlarmRow, Subject: tag, Text: "row cannot be used: " + firstLine(err),
		Do: do,
	}
}

// optionsAlarm is for options that were written by hand.
func optionsAlarm(tag string, err error) leaf.Alarm {
	return leaf.Alarm{
		Code: leaf.AlarmRow, Subject: tag, Text: fmt.Sprintf("the options of tag %q are ignored, and ranges have the length that they have without options: %s", tag, firstLine(err)),
		Do: "correct min_step and max_step with leaf tag set",
	}
}

// formatAlarm is for a format that was written by hand, or by a newer program.
func formatAlarm(tag string, err error) leaf.Alarm {
	return leaf.Alarm{
		Code: leaf.AlarmFormat, Subject: tag, Text: "this node answers requests for texts (format=text) with an error, and requests for numbers as before: " + firstLine(err),
		Do: "if another program version has set the format, update this node; if not, correct it: leaf tag set TAG --format TEMPLATE",
	}
}

// periodAlarm is for a period that was written by hand, or by a newer program.
func periodAlarm(tag string, err error) leaf.Alarm {
	return leaf.Alarm{
		Code: leaf.AlarmFormat, Subject: tag, Text: fmt.Sprintf("this node issues no IDs of tag %q, because it cannot tell when its numbers begin anew: %s", tag, firstLine(err)),
		Do: "if another program version has set the period, update this node; if not, correct in the database what it says of the period (in SQL the columns period and period_zone of leaf_tag_option) to what it was",
	}
}

// misfitAlarm is for tags whose numbers begin anew, of which this node issues none because of its clock.
func misfitAlarm(tag string, why error) leaf.Alarm {
	return leaf.Alarm{
		Code: leaf.AlarmClock, Subject: periodsSubject, Text: fmt.Sprintf("this node issues no IDs of tag %q, and perhaps of other tags whose numbers begin anew: %s", tag, firstLine(why)),
		Do: "compare the clocks of this node, of the other nodes and of the database, and set right the one that is wrong; the node goes on by itself, at the latest when segment.sync-interval has passed. If all are right, the numbers of the period are used up, or a clock that was ahead has moved the row to a later period: wait for that period, or " + anotherTag + ". Do not set max_id back: numbers of the later period have perhaps been issued, and would be issued again",
	}
}

// widthAlarm is for a format that 90 % of its IDs are used up of.
func widthAlarm(tag string, maxID int64, t *number.Template) leaf.Alarm {
	text := fmt.Sprintf("the IDs of tag %q soon do not fit its format: max_id is %d, and %s is for IDs up to %d", tag, maxID, t, t.Largest())
	if maxID > t.Largest() {
		text = fmt.Sprintf("new IDs of tag %q do not fit its format, and requests for their texts (format=text) fail: max_id is %d, and %s is for IDs up to %d; requests for numbers are served as before", tag, maxID, t, t.Largest())
	}
	return leaf.Alarm{
		Code: leaf.AlarmFormat, Subject: tag, Text: text,
		Do: "find out which programs and columns take the longer texts, then give the tag a template with more digits: leaf tag set TAG --format TEMPLATE (docs/NUMBERS.md)",
	}
}

func exhaustedAlarm(tag string, err error) leaf.Alarm {
	text := fmt.Sprintf("callers of tag %q are rejected: they want more IDs than are in memory and the next range did not arrive", tag)
	if err != nil {
		text += ": " + firstLine(err)
	}
	return leaf.Alarm{
		Code: leaf.AlarmExhausted, Subject: tag, Text: text,
		Do: "look for other alarms first; if there are none, raise the tag's step or segment.max-step: a range should last ten minutes",
	}
}

func storeAlarm(name string, err error) leaf.Alarm {
	return leaf.Alarm{
		Code: leaf.AlarmStore, Subject: name,
		Text: fmt.Sprintf("store %q cannot be used; its tags are served from memory while that lasts: %s", name, firstLine(err)),
		Do:   "do what the text says; if it names no cure, look at the database, and at the network between it and this node",
	}
}

// listAlarm is for a store whose loads are not known to fail.
func listAlarm(name string, err error) leaf.Alarm {
	return leaf.Alarm{
		Code: leaf.AlarmStore, Subject: name,
		Text: fmt.Sprintf("the list of tags of store %q cannot be read, so this node does not see rows that are added, changed or deleted; it loads ranges as before, unless loads fail too: %s", name, firstLine(err)),
		Do:   "do what the text says; if it names no cure, look at the database: whether it runs, and lets the user of this node read leaf_alloc within ten times segment.load-timeout",
	}
}

// loadsAlarm is for a store that may answer otherwise.
func loadsAlarm(name string, err error) leaf.Alarm {
	return leaf.Alarm{
		Code: leaf.AlarmStore, Subject: name,
		Text: fmt.Sprintf("no range can be loaded from store %q; its tags are served from memory while that lasts: %s", name, firstLine(err)),
		Do:   "look at the database: whether it runs, takes writes, and lets the user of this node update leaf_alloc",
	}
}

func vanishedAlarm(name string, missing, known, kept int) leaf.Alarm {
	return leaf.Alarm{
		Code: leaf.AlarmVanished, Subject: name,
		Text: fmt.Sprintf("the list of tags of store %q lacks %d of %d tags; this node serves %d of them until their ranges in memory are used up", name, missing, known, kept),
		Do:   "find out who deleted rows of leaf_alloc; if it was on purpose, the alarm ends when the ranges are used up and the list has a row again, or with this node's next start; if it was a mistake, put each row back into the database, with max_id " + withoutRanges + " and with the step that it had (in etcd also its options: docs/OPERATIONS.md), then " + askAllNodes + ". Rows of a sequence that were put back need --all",
	}
}

func ruleAlarm(name string, err error) leaf.Alarm {
	if other, ok := errors.AsType[*ClusterError](err); ok {
		return leaf.Alarm{
			Code: leaf.AlarmRule, Subject: name,
			Text: fmt.Sprintf("this node loads nothing from store %q any more; its tags are served from memory while that lasts: %s", name, other),
			Do:   clusterAdvice(other) + "; once the URL leads to the node's own database again, the node goes on by itself",
		}
	}
	return leaf.Alarm{
		Code: leaf.AlarmRule, Subject: name,
		Text: fmt.Sprintf("segment mode of this node issues nothing any more, not even from memory, because of the tag rule in store %q: %s", name, firstLine(err)),
		Do:   "find out who changed the tag rule; if it was on purpose, stop all nodes, because this one took ranges until now, and Java servers for good; set max_id of each row that was moved to that of its old row or more, and start the nodes with the new rule; if not, stop all nodes; before the old rule is accepted again, each row must lie above the other database's row of its tag",
	}
}

// clusterAdvice says what to do when a store leads to the database of another cluster.
func clusterAdvice(e *ClusterError) string {
	return fmt.Sprintf("find out to which database the URL of the store leads, and whether other data was loaded there, and make the URL lead to the database of cluster %[1]s; "+
		"only if it is still the database of cluster %[1]s, with its rows, and nothing but the ID was changed, run in it: UPDATE leaf_meta SET value = '%[1]s' WHERE name = 'cluster_id'; "+
		"if a backup of cluster %[1]s was loaded into a new database, stop all nodes and Java servers before you run that, then start the nodes with their own data directories, which know the numbers that the backup forgot, and repair every tag, as docs/OPERATIONS.md#backup-and-restore-drill says; if it brought back worker IDs, run DELETE FROM leaf_worker_namespace, too, before the start; "+
		"if the database of cluster %[1]s is lost for good, and this one was made empty in its place, stop all nodes, run that UPDATE, make each missing tag as docs/GUARANTEES.md#repair says of --above (leaf tag create TAG --start NUMBER), and start the nodes with their own data directories, without leaf worker init; "+
		"only if the database has other nodes, and this one is to be one of them, start it with a new data directory, and its callers then get numbers of cluster %[2]s", e.Own, e.Found)
}

// rowIsFineLocked and stockedLocked end the alarms of a tag. t.mu is held.
func (t *Tag) rowIsFineLocked(b *buffer) {
	if b.badRow != nil && !b.unread {
		b.badRow = nil
		t.alloc.alarms.Clear(leaf.AlarmRow, t.name)
	}
}

// crossedLocked begins or ends the alarm of options that are ignored, beside that of a row
// that cannot be used. err is why they are ignored. t.mu is held.
func (t *Tag) crossedLocked(err error) {
	switch {
	case err != nil:
		b := t.buffer()
		if b.crossed = true; b.badRow == nil {
			t.alloc.alarms.Raise(optionsAlarm(t.name, err))
		}
	case t.buf != nil && t.buf.crossed:
		if t.buf.crossed = false; t.buf.badRow == nil {
			t.alloc.alarms.Clear(leaf.AlarmRow, t.name)
		}
	}
}

func (t *Tag) stockedLocked(b *buffer) {
	if b.exhausted {
		b.exhausted = false
		t.alloc.alarms.Clear(leaf.AlarmExhausted, t.name)
	}
}

// firstLine returns the first line of an error: an alarm has no more.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// logged is the leaf.Alarms of an Allocator that was given none. The lines are
// written by tasks, because an alarm may be raised under a lock.
type logged struct {
	alloc *Allocator

	mu     sync.Mutex
	active map[[2]string]bool
}

func (l *logged) Raise(a leaf.Alarm) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := [2]string{a.Code, a.Subject}; !l.active[k] {
		l.active[k] = true
		l.alloc.tasks.Start(func() {
			l.alloc.log.Error(a.Text, "code", a.Code, "subject", a.Subject, "do", a.Do)
		})
	}
}

func (l *logged) Clear(code, subject string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.active, [2]string{code, subject})
}
