package app

import (
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// maxAlarmReasons bounds how many alarms stand in /readyz: a lost database is one
// alarm for each of its tags.
const maxAlarmReasons = 20

// ready says whether every enabled mode can issue and may, since the limits are known, why not, and what needs attention.
// A mode that nobody asked for does not count (snowflakeIsExtra), but if it is left
// out, the reasons say so.
func (a *App) ready() (ready bool, reasons []string) {
	stage, leaving := a.drain.now()
	if ready = !leaving; leaving {
		reasons = append(reasons, "the node is being stopped: "+stage)
	}
	segment, snowflake := a.limits.Held()
	if segment && a.alloc != nil || snowflake && a.worker != nil {
		ready = false
		reasons = append(reasons, "the limits of tags and clients were not read yet")
	}
	if a.alloc != nil {
		st := a.alloc.Status()
		ready = ready && st.Ready
		reasons = append(reasons, st.Reasons...)
	}
	if a.worker != nil {
		st := a.worker.Status()
		ready = ready && (st.Ready || a.lacksTables(st))
		switch {
		case !st.Ready:
			reasons = append(reasons, fmt.Sprintf("snowflake mode is %s: %s", st.State, st.Reason))
		case st.Reason != "":
			reasons = append(reasons, "snowflake mode: "+st.Reason)
		}
	}
	if a.leftOut != nil {
		reasons = append(reasons, "snowflake mode is off: "+a.leftOut.Error())
	}
	active := a.alarms.Active()
	for i, alarm := range active {
		if i == maxAlarmReasons {
			reasons = append(reasons, fmt.Sprintf("and %d more alarms; the log has them", len(active)-i))
			break
		}
		reasons = append(reasons, alarmReason(alarm))
	}
	return ready, reasons
}

func alarmReason(a leaf.Alarm) string {
	text := fmt.Sprintf("alarm %s (%s): %s", a.Code, a.Subject, a.Text)
	if a.Do != "" {
		text += "; " + a.Do
	}
	return text
}
