package worker

import (
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// numbersSubject is the subject of the alarm about worker IDs that run out, and
// usedUpPercent is where it begins.
const (
	numbersSubject = "worker IDs"
	usedUpPercent  = 80
)

// forecast raises an alarm when most numbers of a shared registry of fixed numbers are
// used up, and ends it below that. Such a registry counts up and takes none back, so the
// highest number counts, not how many records there are.
func (h *Holder) forecast(records []Record) {
	if h.info.Kind != Fixed || !h.info.Shared {
		return
	}
	numbers := h.cfg.Numbers
	used, total := int64(0), numbers.Len()
	for _, r := range records {
		used = max(used, min(r.Number+1-numbers.Lo, total))
	}
	if used*100 < total*usedUpPercent {
		h.cfg.Alarms.Clear(leaf.AlarmExhausted, numbersSubject)
		return
	}
	h.cfg.Alarms.Raise(leaf.Alarm{
		Code: leaf.AlarmExhausted, Subject: numbersSubject,
		Text: fmt.Sprintf("%d of %d worker IDs of registry %s are used up: each new address takes one, and none returns. With the last one no new address can start", used, total, h.info.Name),
		Do:   "if the addresses of nodes change, give the nodes stable ones; or stop all nodes of the name, and Java servers for good, " + LongestWait + ", and then start the nodes with a leased registry, never by a rolling restart: see docs/SNOWFLAKE.md",
	})
}
