package app

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics serves the state of the node for Prometheus, and that of its process under the
// usual names (go_…, process_…). Each scrape reads the engines, so that no number is kept
// twice, and two nodes in one process share nothing.
func (a *App) metrics() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{a}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// collector is the node as Prometheus sees it.
type collector struct{ app *App }

// Describe says nothing in advance: which samples there are depends on the modes and
// on what they are doing.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the samples of one scrape.
func (c collector) Collect(to chan<- prometheus.Metric) { c.app.sample(samples{to}, time.Now()) }

func (a *App) sample(s samples, now time.Time) {
	s.gauge("leaf_build_info", "Always 1, with the version.", 1, "version", a.opts.Version)
	for _, n := range a.alarms.Counts() {
		s.counter("leaf_alarms_total", "Alarms that began.", n.Raised, "code", n.Code)
	}
	for _, n := range a.alarms.Counts() {
		s.gauge("leaf_alarms_active", "Alarms that last.", float64(n.Active), "code", n.Code)
	}
	if a.cfg.Alarm.Webhook != "" {
		h := a.alarms.Webhook()
		s.counter("leaf_alarm_webhook_sent_total", "Posts that the webhook accepted.", h.Sent)
		s.counter("leaf_alarm_webhook_failed_total", "Attempts to post that failed.", h.Failed)
		s.counter("leaf_alarm_webhook_dropped_total", "Changes of alarms that were never posted.", h.Dropped)
	}
	a.sampleLimits(s)
	for _, server := range a.public {
		if server.sample != nil {
			server.sample(s)
		}
	}
	if a.alloc != nil {
		a.sampleSegment(s)
	}
	if a.worker != nil {
		a.sampleSnowflake(s, now)
	}
}

func (a *App) sampleSegment(s samples) {
	st := a.alloc.Status()
	s.flag("leaf_segment_ready", "1 if segment mode can issue IDs now.", st.Ready)
	s.gauge("leaf_segment_tags", "Tags known.", float64(st.Tags))
	s.counter("leaf_segment_loads_total", "Ranges loaded.", st.Loads)
	s.counter("leaf_segment_load_failures_total", "Loads that failed.", st.Failures)
	s.counter("leaf_segment_unknown_tags_total", "Look-ups of tags that the database does not have.", st.Unknown)
	s.counter("leaf_segment_vanished_tags_total", "Readings of a database's tags that lacked most of those that were there.", st.Vanished)
	s.counter("leaf_segment_regresses_total", "Ranges refused, because a store went backwards.", st.Regresses)
	s.counter("leaf_segment_waits_total", "Calls that had to wait for a load.", st.Waits)
	s.counter("leaf_segment_abandoned_calls_total", "Calls of a store given up, because they ignored their deadline.", st.Abandoned)
	s.counter("leaf_segment_lost_ids_total", "IDs of reserved ranges that were dropped.", st.Lost)
}

func (a *App) sampleSnowflake(s samples, now time.Time) {
	st := a.worker.Status()
	ahead := func(unixMilli int64) float64 { return time.UnixMilli(unixMilli).Sub(now).Seconds() }
	s.flag("leaf_snowflake_ready", "1 if snowflake mode can issue IDs now.", st.Ready)
	s.gauge("leaf_snowflake_worker_id", "The worker ID, -1 without one.", float64(st.Number))
	s.gauge("leaf_snowflake_layout_ends_seconds", "Time left until the layout has no IDs any more.", st.End.Sub(now).Seconds())
	if st.Number >= 0 {
		s.flag("leaf_snowflake_confirmed", "1 if the registry knows the claim, 0 if it stems from the node's own file.", st.Confirmed)
		s.gauge("leaf_snowflake_bound_ahead_seconds", "How far the time bound T in the registry lies ahead of the clock.", ahead(st.Bound))
		s.gauge("leaf_snowflake_inner_bound_ahead_seconds", "How far the time bound t in the node's own file lies ahead of the clock.", ahead(st.Inner))
		s.gauge("leaf_snowflake_position_ahead_seconds", "How far the end of the time that was issued from lies ahead of the clock; negative for a quiet service.", ahead(st.Position))
	}
	if !st.Asked.IsZero() {
		s.gauge("leaf_snowflake_peers_asked", "Nodes asked for their time at the last comparison.", float64(st.Clock.Asked))
		s.gauge("leaf_snowflake_peers_answered", "Nodes that answered.", float64(st.Clock.Answered))
		if st.Clock.Answered > 0 {
			s.gauge("leaf_snowflake_clock_offset_seconds", "This node's clock less the median of the other nodes' clocks.", -st.Clock.Median.Seconds())
		}
	}
	s.counter("leaf_snowflake_claims_total", "Worker IDs claimed.", st.Claims)
	s.counter("leaf_snowflake_losses_total", "Claims lost.", st.Losses)
	s.counter("leaf_snowflake_refusals_total", "Attempts to claim that failed.", st.Refusals)
	s.counter("leaf_snowflake_renew_failures_total", "Renewals that failed.", st.RenewFailures)
	s.counter("leaf_snowflake_clock_errors_total", "Calls refused because of the clock.", st.ClockErrors)
}

// samples is the receiver of one scrape.
type samples struct{ to chan<- prometheus.Metric }

func (s samples) gauge(name, help string, v float64, label ...string) {
	s.add(name, help, prometheus.GaugeValue, v, label)
}

func (s samples) counter(name, help string, v int64, label ...string) {
	s.add(name, help, prometheus.CounterValue, float64(v), label)
}

func (s samples) flag(name, help string, on bool) {
	v := 0.0
	if on {
		v = 1
	}
	s.gauge(name, help, v)
}

// add sends a sample; label is nothing, or a name and its value.
func (s samples) add(name, help string, kind prometheus.ValueType, v float64, label []string) {
	var names, values []string
	if len(label) == 2 {
		names, values = label[:1], label[1:]
	}
	s.to <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, v, values...)
}
