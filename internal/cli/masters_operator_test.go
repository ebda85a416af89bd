package cli_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf/segment"
)

// add is what a text says to add to the highest ID in the tables: three times the largest range for each start of a node since,
// and what clients hold, which is what no table has.
func (w *mastersWalk) add(times, block int64, tag *walkTag) int64 {
	return times * (block + 3*walkStep*int64(tag.unseen+1) + 3*walkStep*int64(tag.unseen))
}

var (
	walkAdds   = regexp.MustCompile(`plus (\d+) times the sum of one block, (\d+)`)
	walkAbove  = regexp.MustCompile(`Add --above NUMBER.* or (\d+) if that is higher`)
	walkGone   = regexp.MustCompile(`If it was lost with its database.* or (\d+) if that is higher,`)
	walkNever  = regexp.MustCompile(`If it was never there, --start (\d+) is enough`)
	walkStart  = regexp.MustCompile(`use --start (\d+) or more`)
	walkNotAll = regexp.MustCompile(`nothing but a start above every number of the tag in your own tables`)
	walkLost   = regexp.MustCompile(`if no node can ever reach (?:it again|the database that the rule had), .*?(--lost \w)`)
	walkOut    = regexp.MustCompile(`tags are also in store "(\w)", which the command does not name|the command has not store (\w)`)
	walkBack   = regexp.MustCompile(`If a backup has brought back store .*?, add (--lost \w)\.`)
	walkTimes  = regexp.MustCompile(`(?s)if no node can ever reach .* of them again, give --lost (\w) \d times`)
	walkRule   = regexp.MustCompile(`if the configured rule is right, stop all nodes, .* then add (--accept-rule)`)
	walkMoved  = regexp.MustCompile(`of tag "(\S+)": its row in store "(\w)".*Stop all nodes, and Java servers for good, set max_id in store "\w" to (\d+) or more with SQL`)
	walkSet    = regexp.MustCompile(`run: leaf tag set '(\S+)' --max-id (\d+)`)
	walkUse    = regexp.MustCompile(`could repeat some; use (\d+) or more`)
	walkID     = regexp.MustCompile(`(?:bind sqlite:\S+/(\w).db|store "(\w)": .*): the database is another cluster's: .* this node is one of cluster (\w+)`)
	walkCounts = regexp.MustCompile(`nodes take ranges from store "(\w)", .* Stop all nodes, .* and run the command again; a node that crashed counts for (\d+) minutes`)
	walkEnds   = regexp.MustCompile(`tag "\S+" exists|conflict: the tag exists|constraint failed: interrupted`)
)

// given notes a number that was typed for a row, and which docs/MASTERS.md says to multiply.
func (w *mastersWalk) given(row string, number int64) {
	if _, m, _, ok := segment.ParsePart(row); ok {
		number *= int64(len(m.Stores))
	}
	tag := w.named([]string{"tag", "", row}, "")
	tag.typed = max(tag.typed, number)
}

func (w *mastersWalk) change() {
	w.t.Helper()
	for len(w.lost) == 0 && slices.ContainsFunc(w.tags, (*walkTag).lostOne) {
		w.mend()
	}
	w.draw()
	w.follow(w.machine(), "schema", "apply", "--accept-rule")
	w.lost = nil
	w.create()
}

// mend makes the databases and rows again that are gone.
func (w *mastersWalk) mend() {
	w.t.Helper()
	if len(w.lost) > 0 {
		words := []string{"schema", "apply", "--accept-rule"}
		for _, db := range w.lost {
			words = append(words, "--lost", db)
		}
		w.follow(w.knows(w.lost[0]), words...)
		w.lost = nil
	}
	w.create()
}

// create makes the rows that are missing.
func (w *mastersWalk) create() {
	w.t.Helper()
	for _, tag := range w.tags {
		if len(tag.missing) == 0 {
			continue
		}
		create := []string{"tag", "create", tag.name, "--step", strconv.Itoa(1 + w.rng.IntN(walkStep)), "--fixed-step"}
		if tag.forgotten {
			tag.typed = max(tag.highest(tag.unseen), tag.typed) + w.add(4, 2000, tag)
			create = append(create, "--start", strconv.FormatInt(tag.typed, 10))
		}
		if w.rng.IntN(4) == 0 {
			w.interrupt(tag, create)
			if w.rng.IntN(2) == 0 {
				return
			}
		}
		w.follow(w.machine(), create...)
		for db := range tag.missing {
			w.told[tag.rows()[db]] = w.ended
		}
		clear(tag.missing)
		tag.forgotten = false
	}
}

// named returns the tag that a text or a command is about.
func (w *mastersWalk) named(words []string, text string) *walkTag {
	if len(words) > 2 && words[0] == "tag" {
		text = words[2]
	}
	for _, tag := range w.tags {
		if strings.HasPrefix(text, tag.name) || strings.Contains(text, `"`+tag.name) {
			return tag
		}
	}
	return w.tags[0]
}

// follow runs a command, and does what its refusals say until it ends.
func (w *mastersWalk) follow(dir string, words ...string) {
	w.t.Helper()
	if words[0] == "tag" {
		for _, name := range []string{"--max-id", "--above"} {
			if i := slices.Index(words, name); i >= 0 {
				to, _ := strconv.ParseInt(words[i+1], 10, 64)
				w.given(words[2], to)
			}
		}
	}
	flag := func(tags []*walkTag, name string, value int64) {
		if i := slices.Index(words, name); i >= 0 {
			words = slices.Delete(words, i, i+2)
		}
		words = append(words, name, strconv.FormatInt(value, 10))
		for _, tag := range tags {
			tag.typed = max(tag.typed, value)
		}
	}
	for range 40 {
		if words[0] == "tag" && !w.running && w.rng.IntN(3) == 0 {
			dir = w.machine()
		}
		code, text := w.run(dir, words...)
		if code == 0 {
			return
		}
		tag := w.named(words, text)
		about := []*walkTag{tag}
		if strings.Contains(text, "which counts for all such tags") {
			about = w.tags
		}
		known, add := int64(0), int64(0)
		for _, tag := range about {
			high := tag.highest(tag.unseen)
			if strings.Contains(text, "if the tag was given a higher number since, by --start, --above or max_id, begin with that one") {
				high = max(high, tag.typed)
			}
			known = max(known, high)
			times, block := int64(1), int64(0)
			if m := walkAdds.FindStringSubmatch(text); m != nil {
				times, _ = strconv.ParseInt(m[1], 10, 64)
				block, _ = strconv.ParseInt(m[2], 10, 64)
			}
			add = max(add, w.add(times, block, tag))
		}
		number := func(text string) int64 { n, _ := strconv.ParseInt(text, 10, 64); return n }
		switch m := []string(nil); {
		case walkEnds.MatchString(text):
			return
		case strings.Contains(text, "context deadline exceeded"): // on a busy machine
		case match(walkAbove, text, &m):
			flag(about, "--above", max(number(m[1]), known)+add)
		case !tag.lostOne() && match(walkNever, text, &m):
			flag(about, "--start", number(m[1]))
		case match(walkGone, text, &m):
			flag(about, "--start", max(number(m[1]), known)+add)
		case match(walkStart, text, &m):
			least := number(m[1])
			if w.gaps {
				least = max(least, known) + add
			}
			flag(about, "--start", least)
		case walkNotAll.MatchString(text):
			flag(about, "--start", known+add)
		case match(walkUse, text, &m):
			flag(about, "--above", max(number(m[1]), known)+add)
		case match(walkOut, text, &m) && !slices.Contains(w.lost, first(m)) && !slices.Contains(w.stores, first(m)) && !slices.Contains(words, "sqlite:"+w.file(first(m))):
			words = append(words, "--leave-out", "sqlite:"+w.file(first(m)))
		case match(walkBack, text, &m):
			words = append(words, strings.Fields(m[1])...)
		case match(walkTimes, text, &m):
			words = append(words, "--lost", m[1])
		case match(walkLost, text, &m) && (slices.Contains(w.lost, strings.Fields(m[1])[1]) || strings.Contains(text, "no tag rule is recorded")):
			words = append(words, strings.Fields(m[1])...)
		case w.otherID(text):
		case match(walkCounts, text, &m): // a node that could not say on a busy machine that it ended
			w.note("%s minutes pass", m[2])
			operate(w.t, w.file(m[1]), "UPDATE leaf_repair_node SET seen = seen - "+m[2]+" * 60000 WHERE biz_tag = ''")
		case match(walkRule, text, &m):
			words = append(words, m[1])
		case match(raiseRow, text, &m), match(walkMoved, text, &m):
			operate(w.t, w.file(m[2]), "UPDATE leaf_alloc SET max_id = "+m[3]+" WHERE biz_tag = '"+m[1]+"'")
			w.given(m[1], number(m[3]))
		case match(walkSet, text, &m):
			w.follow(dir, "tag", "set", m[1], "--max-id", m[2])
		default:
			w.t.Fatalf("leaf %s: no text says what to do: %s", strings.Join(words, " "), text)
		}
	}
	w.t.Fatalf("leaf %s: the texts do not come to an end", strings.Join(words, " "))
}

// otherID gives a database that was made without the data directory of a node the ID that nodes know, as their start says.
func (w *mastersWalk) otherID(text string) bool {
	m := walkID.FindStringSubmatch(text)
	if m != nil {
		operate(w.t, w.file(m[1]+m[2]), "UPDATE leaf_meta SET value = '"+m[3]+"' WHERE name = 'cluster_id'")
	}
	return m != nil
}

func match(re *regexp.Regexp, text string, m *[]string) bool {
	*m = re.FindStringSubmatch(text)
	return *m != nil
}

// first is the group that matched.
func first(m []string) string { return m[1] + m[2] }
