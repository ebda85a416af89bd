package owner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
)

// tellDamage raises an alarm about slots whose records cannot be read, and ends it when there are none. Such a slot gets
// no owner: a node that takes it must name the version of the record, which cannot be read. After an operator has deleted
// the record, a node writes a new one (see mark). The alarm waits until a record has been damaged for a lease, because a
// reader may see half of a write that has two steps.
func (s *Slots) tellDamage(now time.Time) {
	for n := range s.damage {
		if s.view.damage[n] == "" {
			delete(s.damage, n)
		}
	}
	var numbers []int64
	for n, why := range s.view.damage {
		s.damage.note(n, why, now)
		if s.damage.unchangedFor(n, s.longest, now) {
			numbers = append(numbers, n)
		}
	}
	subject := s.cfg.alarmSubject() + " damaged"
	if len(numbers) == 0 {
		s.cfg.Alarms.Clear(leaf.AlarmRegistry, subject)
		return
	}
	slices.Sort(numbers)
	const named = 3
	var texts []string
	for _, n := range numbers[:min(named, len(numbers))] {
		name := fmt.Sprintf("record %d", n)
		if n < 0 {
			name = "an entry without a number"
		}
		texts = append(texts, name+": "+s.view.damage[n])
	}
	if more := len(numbers) - named; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	s.cfg.Alarms.Raise(leaf.Alarm{
		Code: leaf.AlarmRegistry, Subject: subject,
		Text: fmt.Sprintf("no node issues tags in strict order of %d of the %d slots, because their records in the registry of slots cannot be read: %s", len(numbers), s.cfg.Slots, strings.Join(texts, "; ")),
		Do:   "if a newer version of leaf wrote the records, update this node; otherwise delete them: the rows with these ids in leaf_slot and leaf_slot_bound, or each key in etcd that the text names. The nodes make them anew within seconds, and no ID repeats",
	})
}
