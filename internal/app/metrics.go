package app

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leaf-idgen/leaf/internal/meter"
)

// openMetrics makes the page for Prometheus: the state of the node, and that of its process
// under the usual names (go_…, process_…). Each scrape reads the engines, so that no number is
// kept twice, and two nodes in one process share nothing. The public port and that of the
// administrator serve one page, because it remembers which tags it names.
func (a *App) openMetrics() {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{a}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	a.metrics = promhttp.HandlerFor(r, promhttp.HandlerOpts{CoalesceGather: true})
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
	a.sampleAlarms(s)
	a.sampleTraces(s)
	a.sampleRequests(s)
	a.sampleLimits(s)
	a.sampleServers(s)
	a.sampleBackends(s)
	modes := a.modes()
	if a.alloc != nil {
		s.flag("leaf_segment_ready", "1 if segment mode issues IDs on this node now.", modes.Segment.Ready)
		a.sampleSegment(s)
		a.sampleTags(s, now)
		a.order.sample(s)
		a.sequences.sample(s)
	}
	if a.worker != nil {
		s.flag("leaf_snowflake_ready", "1 if snowflake mode issues IDs on this node now.", modes.Snowflake.Ready)
		a.sampleSnowflake(s, now)
	}
}

func (a *App) sampleAlarms(s samples) {
	for _, n := range a.alarms.Counts() {
		s.counter("leaf_alarms_total", "Alarms that began.", n.Raised, "code", n.Code)
		s.gauge("leaf_alarms_active", "Alarms that are active.", float64(n.Active), "code", n.Code)
	}
	if a.cfg.Alarm.Webhook != "" {
		h := a.alarms.Webhook()
		s.counter("leaf_alarm_webhook_sent_total", "Posts that the webhook accepted.", h.Sent)
		s.counter("leaf_alarm_webhook_failed_total", "Attempts to post that failed.", h.Failed)
		s.counter("leaf_alarm_webhook_dropped_total", "Changes of alarms that were never posted.", h.Dropped)
	}
}

func (a *App) sampleTraces(s samples) {
	if a.tracer != nil {
		n := a.tracer.Stats()
		s.counter("leaf_trace_spans_sent_total", "Spans that the collector has.", n.Sent)
		s.counter("leaf_trace_spans_dropped_total", "Spans that the collector did not take, and those that were too many.", n.Dropped)
	}
}

func (a *App) sampleRequests(s samples) {
	for _, m := range a.meters {
		for _, n := range m.Counts() {
			s.counter("leaf_requests_total", "Requests for IDs, by protocol, mode and result.", n.Requests, "protocol", m.Protocol(), "mode", n.Mode, "result", n.Result)
			if n.IDs > 0 || n.Result == "ok" {
				s.counter("leaf_ids_issued_total", "IDs issued to clients.", n.IDs, "protocol", m.Protocol(), "mode", n.Mode)
			}
		}
		m.Collect(s.to)
	}
}

func (a *App) sampleServers(s samples) {
	for _, server := range a.public {
		st := server.stats()
		s.gauge("leaf_connections", "Connections of clients that are open.", float64(st.open), "protocol", server.section)
		s.gauge("leaf_connections_limit", "Connections that may be open.", float64(a.conns.of(server.section)), "protocol", server.section)
		s.counter("leaf_connections_refused_total", "Connections refused because as many as may be open were.", st.refused, "protocol", server.section)
		if server.sample != nil {
			server.sample(s)
		}
	}
	if pair := a.certificate.Load(); pair != nil && pair.Leaf != nil {
		s.gauge("leaf_certificate_expires_timestamp_seconds", "When the certificate of the servers expires, in Unix time.", float64(pair.Leaf.NotAfter.Unix()))
	}
}

// sampleBackends names no host: a stranger may read the page.
func (a *App) sampleBackends(s samples) {
	for _, b := range a.backends(a.alarms.Active()) {
		name := "" // the others have one of a kind
		if b.Kind == "store" {
			name = b.Name
		}
		s.flag("leaf_backend_up", "1 if what the node depends on works.", b.Healthy, "kind", b.Kind, "name", name)
	}
	for _, h := range a.dbs.loads {
		h.Collect(s.to)
	}
}

func (a *App) sampleSegment(s samples) {
	st := a.alloc.Status()
	s.gauge("leaf_segment_tags", "Tags known.", float64(st.Tags))
	s.counter("leaf_segment_loads_total", "Ranges loaded.", st.Loads)
	s.counter("leaf_segment_load_failures_total", "Loads that failed.", st.Failures)
	s.counter("leaf_segment_unknown_tags_total", "Look-ups of tags that the database does not have.", st.Unknown)
	s.counter("leaf_segment_vanished_tags_total", "Readings of a database's tags that lacked most of those that were there.", st.Vanished)
	s.counter("leaf_segment_regresses_total", "Ranges refused, because a store went backwards.", st.Regresses)
	s.counter("leaf_segment_races_total", "Ranges dropped, because another node moved the cluster fence first.", st.Races)
	s.counter("leaf_segment_waits_total", "Calls that had to wait for a load.", st.Waits)
	s.counter("leaf_segment_abandoned_calls_total", "Calls of a store given up, because they ignored their deadline.", st.Abandoned)
	for _, l := range st.LostBy {
		s.counter("leaf_segment_lost_ids_total", "IDs of reserved ranges that were dropped, by reason.", l.IDs, "reason", l.Reason)
	}
}

// sampleTags names the busiest tags.
func (a *App) sampleTags(s samples, now time.Time) {
	named, rest := a.tags.Look(now, a.alloc.Usages())
	add := func(tag string, issued int64, rate float64, stock int64, lasts float64, latched, failing int) {
		s.counter("leaf_tag_ids_issued_total", "IDs issued of a tag.", issued, "tag", tag)
		s.gauge("leaf_tag_ids_per_second", "IDs issued per second, over one to two sync intervals.", rate, "tag", tag)
		s.gauge("leaf_tag_stock_ids", "IDs in memory.", float64(stock), "tag", tag)
		s.gauge("leaf_tag_stock_seconds", "How long the stock lasts at this rate; of several tags the shortest.", lasts, "tag", tag)
		s.gauge("leaf_tag_latched", "Tags that issue nothing until they are repaired.", float64(latched), "tag", tag)
		s.gauge("leaf_tag_load_failing", "Tags whose last load failed.", float64(failing), "tag", tag)
	}
	for _, u := range named {
		add(u.Tag, u.Issued, u.Rate, u.Stock, u.Lasts(), one(u.Latched), one(u.Failures > 0))
		s.gauge("leaf_tag_step", "IDs in the last range.", float64(u.Length), "tag", u.Tag)
	}
	if rest.Tags > 0 || rest.Issued > 0 {
		add(meter.Other, rest.Issued, rest.Rate, rest.Stock, rest.Lasts, rest.Latched, rest.Failing)
	}
	s.gauge("leaf_tags_in_use", "Tags that were used since the start.", float64(len(named)+rest.Tags))
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func (a *App) sampleSnowflake(s samples, now time.Time) {
	st := a.worker.Status()
	ahead := func(unixMilli int64) float64 { return time.UnixMilli(unixMilli).Sub(now).Seconds() }
	s.gauge("leaf_snowflake_worker_id", "The worker ID, -1 without one.", float64(st.Number))
	s.gauge("leaf_snowflake_layout_ends_seconds", "Time left until the layout has no IDs any more.", st.End.Sub(now).Seconds())
	s.gauge("leaf_snowflake_horizon_seconds", "How far the registry lets the time bound T lie ahead.", st.Horizon.Seconds())
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

// samples is the receiver of one scrape. Samples of one metric need not follow one another.
type samples struct{ to chan<- prometheus.Metric }

func (s samples) gauge(name, help string, v float64, labels ...string) {
	s.add(name, help, prometheus.GaugeValue, v, labels)
}

func (s samples) counter(name, help string, v int64, labels ...string) {
	s.add(name, help, prometheus.CounterValue, float64(v), labels)
}

func (s samples) flag(name, help string, on bool, labels ...string) {
	s.gauge(name, help, float64(one(on)), labels...)
}

// add sends a sample; labels are names, each before its value.
func (s samples) add(name, help string, kind prometheus.ValueType, v float64, labels []string) {
	var names, values []string
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	s.to <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, v, values...)
}
