package app

import (
	"errors"
	"fmt"
	"slices"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// maxAlarmReasons bounds how many alarms stand in /readyz: a lost database is one
// alarm for each of its tags.
const maxAlarmReasons = 20

// ready is modes with the alarms.
func (a *App) ready() leaf.Readiness {
	r := a.modes()
	r.Reasons = append(r.Reasons, a.alarmReasons()...)
	return r
}

// modes says of each enabled mode whether it can issue and may, since the limits are
// known, why not, and what needs attention.
func (a *App) modes() leaf.Readiness {
	var r leaf.Readiness
	segmentHeld, snowflakeHeld := a.limits.Held()
	if a.alloc != nil {
		st := a.alloc.Status()
		r.Segment = held(leaf.ModeReadiness{Enabled: true, Ready: st.Ready, Reasons: st.Reasons}, segmentHeld)
	}
	if a.worker != nil {
		st := a.worker.Status()
		r.Snowflake = leaf.ModeReadiness{Enabled: true, Ready: st.Ready}
		switch {
		case !st.Ready:
			r.Snowflake.Reasons = []string{fmt.Sprintf("snowflake mode is %s: %s", st.State, st.Reason)}
		case st.Reason != "":
			r.Snowflake.Reasons = []string{"snowflake mode: " + st.Reason}
		}
		r.Snowflake = held(r.Snowflake, snowflakeHeld)
	}
	if a.leftOut != nil {
		r.Snowflake.Reasons = []string{"snowflake mode is off: " + a.leftOut.Error()}
	}
	r.Cluster = a.cluster.get()
	if err := a.files.lostError(); err != nil {
		r = r.Without("this node lost a file; its alarms say which")
	}
	if stage, leaving := a.drain.now(); leaving {
		r = r.Without("the node is being stopped: " + stage)
	}
	return r
}

// publicReady is ready for the public HTTP server. Where strangers may reach it, the
// reasons are codes: texts name hosts, users and databases. The administrator's port and
// the log have the texts.
func (a *App) publicReady() leaf.Readiness {
	r := a.ready()
	if accept.IsLoopback(a.Addr()) {
		return r
	}
	code := func(m *leaf.ModeReadiness, notReady string) {
		if m.Reasons = nil; m.Enabled && !m.Ready {
			m.Reasons = []string{notReady}
		}
	}
	code(&r.Segment, "not_ready")
	state := "not_ready" // for what the mode itself does not know, such as a stop
	if a.worker != nil {
		if st := a.worker.Status(); !st.Ready {
			state = string(st.State)
		}
	}
	code(&r.Snowflake, state)
	r.Reasons = nil
	for _, alarm := range a.alarms.Active() {
		if text := "alarm: " + alarm.Code; !slices.Contains(r.Reasons, text) {
			r.Reasons = append(r.Reasons, text)
		}
	}
	if _, leaving := a.drain.now(); leaving {
		r.Reasons = append(r.Reasons, "stopping")
	}
	return r
}

// forClients returns an error of a database, registry or directory with its class and without its text,
// which names hosts, users and databases. Alarms and log tell an administrator.
func forClients(err error) error {
	if class := leaf.ClassOf(err); err != nil && class.Err != nil && !errors.Is(err, leaf.ErrBadRequest) {
		return fmt.Errorf("%w: if that lasts, the alarms and the log of this node say why", class.Err)
	}
	return err
}

// held returns m, not ready if the node must wait for the limits of tags and clients (yes).
func held(m leaf.ModeReadiness, yes bool) leaf.ModeReadiness {
	if yes {
		m.Ready = false
		m.Reasons = append([]string{"the limits of tags and clients were not read yet"}, m.Reasons...)
	}
	return m
}

func (a *App) alarmReasons() (reasons []string) {
	active := a.alarms.Active()
	for i, alarm := range active {
		if i == maxAlarmReasons {
			reasons = append(reasons, fmt.Sprintf("and %d more alarms; the log has them", len(active)-i))
			break
		}
		reasons = append(reasons, alarmReason(alarm))
	}
	return reasons
}

func alarmReason(a leaf.Alarm) string {
	text := fmt.Sprintf("alarm %s (%s): %s", a.Code, a.Subject, a.Text)
	if a.Do != "" {
		text += "; " + a.Do
	}
	return text
}
