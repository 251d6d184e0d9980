package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sessiond/internal/engine"
)

// metrics of one server, in a registry of its own.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(deps *Deps) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sessiond_http_requests_total", Help: "Requests by route and status.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sessiond_http_request_seconds", Help: "Time to answer, by route.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 30},
		}, []string{"route"}),
	}
	listeners := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sessiond_event_listeners", Help: "Open event streams.",
	}, func() float64 { return float64(deps.Events.count()) })
	m.registry.MustRegister(m.requests, m.seconds, listeners, stored{deps}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// observe counts a request. route is the pattern and not the path, which callers choose.
func (m *metrics) observe(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// stored reads at each scrape what the database counts, and whether and where the daemon stores.
type stored struct{ *Deps }

// Describe implements prometheus.Collector. What is collected depends on what is stored.
func (stored) Describe(chan<- *prometheus.Desc) {}

// scrapeTime bounds the reading for one scrape.
const scrapeTime = 5 * time.Second

// Collect implements prometheus.Collector.
func (s stored) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	send := func(kind prometheus.ValueType, v float64, name, help string, labels prometheus.Labels) {
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("sessiond_"+name, help, nil, labels), kind, v)
	}
	gauge := func(v float64, name, help string) {
		if v >= 0 { // else it is unknown
			send(prometheus.GaugeValue, v, name, help, nil)
		}
	}
	accepts := 0.0
	if s.Store.Health().Err == nil {
		accepts = 1
	}
	gauge(accepts, "accepts_writes", "1 while the database accepts writes, 0 while /readyz fails.")
	send(prometheus.CounterValue, float64(s.Store.FailedWrites()), "failed_writes_total",
		"Writes that failed because of the disk or the database file.", nil)
	if s.Spans != nil {
		sent, dropped, skipped := s.Spans.Counts()
		for outcome, n := range map[string]int64{"sent": sent, "dropped": dropped, "skipped": skipped} {
			send(prometheus.CounterValue, float64(n), "otlp_spans_total",
				"Spans by outcome since the start: sent, dropped (the collector refuses them), skipped (over a day old).",
				prometheus.Labels{"outcome": outcome})
		}
	}
	disk := s.Store.Disk()
	gauge(float64(disk.Database), "database_bytes", "Size of sessions.db.")
	gauge(float64(disk.Log), "wal_bytes", "Size of its write-ahead log.")
	gauge(float64(disk.Free), "disk_free_bytes", "Free space of its file system.")
	if at := engine.NewestBackup(s.BackupDir); !at.IsZero() {
		gauge(max(0, s.Now().Sub(at).Seconds()), "backup_age_seconds",
			"Age of the newest backup in the backup folder; absent without one.")
	}
	last, err := s.Store.LastMessageID(ctx)
	if err == nil {
		var mark int64
		mark, err = s.Search.Mark(ctx)
		gauge(max(0, float64(last-mark)), "index_lag_messages",
			"Messages that the search index lacks, at most; searches read the newest of them.")
	}
	counter := func(v float64, name, help string, labels prometheus.Labels) {
		send(prometheus.CounterValue, v, name, help, labels)
	}
	if err = errors.Join(err, s.ledger(ctx, counter)); err != nil {
		out <- prometheus.NewInvalidMetric(prometheus.NewDesc("sessiond_database", "The database.", nil, nil), err)
	}
}

// ledger counts compactions and model calls.
func (s stored) ledger(ctx context.Context,
	counter func(v float64, name, help string, labels prometheus.Labels),
) error {
	compactions, err := s.Store.CompactionTotals(ctx)
	if err != nil {
		return err
	}
	for _, c := range compactions {
		labels := prometheus.Labels{"status": string(c.Status), "strategy": string(c.Strategy), "trigger": string(c.Trigger)}
		counter(float64(c.Count), "compactions_total", "Compactions by outcome.", labels)
		counter(float64(c.SavedTokens), "compaction_saved_tokens_total", "Tokens that compactions removed from contexts.",
			labels)
		counter(float64(c.DurationMS)/1e3, "compaction_seconds_total", "Time spent on compactions.", labels)
	}
	calls, err := s.Store.CallTotals(ctx)
	if err != nil {
		return err
	}
	for _, c := range calls {
		labels := prometheus.Labels{"purpose": string(c.Purpose), "status": c.Status}
		counter(float64(c.Count), "model_calls_total", "Calls in the ledger by purpose.", labels)
		counter(float64(c.CostNanoUSD)/1e9, "model_cost_usd_total", "Cost of the calls in the ledger whose price is known.",
			labels)
	}
	return nil
}
