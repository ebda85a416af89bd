package worker

import (
	"fmt"
	"strings"

	"github.com/leaf-idgen/leaf"
)

// damageSubject is the subject of the alarm about records that cannot be read.
const damageSubject = "records"

// inspect raises an alarm about records that cannot be read, and ends it when there are
// none; and one about numbers that run out. It is called after a claim, and while there are some.
func (h *Holder) inspect() {
	ctx, cancel := h.rt.WithTimeout(h.base, h.cfg.Timeout)
	defer cancel()
	_, h.inspected = h.read()
	records, err := h.reg.List(ctx)
	if err != nil {
		h.log.Debug("the records of the worker IDs cannot be read, to look for damaged ones", "error", err)
		return
	}
	h.forecast(records)
	const named = 3
	var texts []string
	count := 0
	for _, r := range records {
		if r.Damage == "" {
			continue
		}
		if count++; count > named {
			continue
		}
		what := fmt.Sprintf("worker ID %d", r.Number)
		if r.Number < 0 {
			what = "an entry without a number"
		}
		texts = append(texts, what+": "+r.Damage)
	}
	if h.damaged = count > 0; !h.damaged {
		h.cfg.Alarms.Clear(leaf.AlarmRegistry, damageSubject)
		return
	}
	if count > named {
		texts = append(texts, fmt.Sprintf("and %d more", count-named))
	}
	h.cfg.Alarms.Raise(leaf.Alarm{
		Code: leaf.AlarmRegistry, Subject: damageSubject,
		Text: fmt.Sprintf("%d records of registry %s cannot be read, and no claim takes their numbers: %s", count, h.info.Name, strings.Join(texts, "; ")),
		Do:   "nothing while other numbers are free; if a newer version of leaf wrote them, update this node",
	})
}

// reinspect looks again, once an interval, while there is damage.
func (h *Holder) reinspect() {
	if _, elapsed := h.read(); h.damaged && elapsed-h.inspected >= h.cfg.Clock.Interval {
		h.inspect()
	}
}
