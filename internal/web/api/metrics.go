package api

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sessiond/internal/store"
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
	m.registry.MustRegister(m.requests, m.seconds, listeners, newStored(deps.Store), newState(deps), collectors.NewGoCollector(),
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

// stored reads counts from the database at each scrape.
type stored struct {
	ledger                                 *store.Store
	compactions, saved, spent, calls, cost *prometheus.Desc
}

func newStored(ledger *store.Store) *stored {
	byOutcome, byPurpose := []string{"status", "strategy", "trigger"}, []string{"purpose", "status"}
	return &stored{
		ledger:      ledger,
		compactions: prometheus.NewDesc("sessiond_compactions_total", "Compactions by outcome.", byOutcome, nil),
		saved:       prometheus.NewDesc("sessiond_compaction_saved_tokens_total", "Tokens that compactions removed from contexts.", byOutcome, nil),
		spent:       prometheus.NewDesc("sessiond_compaction_seconds_total", "Time spent on compactions.", byOutcome, nil),
		calls:       prometheus.NewDesc("sessiond_model_calls_total", "Calls in the ledger by purpose.", byPurpose, nil),
		cost:        prometheus.NewDesc("sessiond_model_cost_usd_total", "Cost of the calls in the ledger whose price is known.", byPurpose, nil),
	}
}

// Describe implements prometheus.Collector.
func (s *stored) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.compactions, s.saved, s.spent, s.calls, s.cost} {
		out <- d
	}
}

// scrapeTime bounds the reading for one scrape.
const scrapeTime = 5 * time.Second

// Collect implements prometheus.Collector.
func (s *stored) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	made, err := s.ledger.CompactionTotals(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(s.compactions, err)
		return
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	for _, c := range made {
		labels := []string{string(c.Status), string(c.Strategy), string(c.Trigger)}
		counter(s.compactions, float64(c.Count), labels...)
		counter(s.saved, float64(c.SavedTokens), labels...)
		counter(s.spent, float64(c.DurationMS)/1e3, labels...)
	}
	calls, err := s.ledger.CallTotals(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(s.calls, err)
		return
	}
	for _, c := range calls {
		counter(s.calls, float64(c.Count), string(c.Purpose), c.Status)
		counter(s.cost, float64(c.CostNanoUSD)/1e9, string(c.Purpose), c.Status)
	}
}

// state reads at each scrape whether and where the daemon stores.
type state struct {
	*Deps
	accepts, failed, database, log, free, lag, backup *prometheus.Desc
}

func newState(deps *Deps) *state {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc("sessiond_"+name, help, nil, nil) }
	return &state{
		Deps:     deps,
		accepts:  desc("accepts_writes", "1 while the database accepts writes, 0 while /readyz fails."),
		failed:   desc("failed_writes_total", "Writes that failed because of the disk or the database file."),
		database: desc("database_bytes", "Size of sessions.db."),
		log:      desc("wal_bytes", "Size of its write-ahead log."),
		free:     desc("disk_free_bytes", "Free space of its file system."),
		lag:      desc("index_lag_messages", "Messages that the search index lacks, at most; searches read the newest of them."),
		backup:   desc("backup_age_seconds", "Age of the newest backup in the backup folder; absent without one."),
	}
}

// Describe implements prometheus.Collector.
func (s *state) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.accepts, s.failed, s.database, s.log, s.free, s.lag, s.backup} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (s *state) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64) {
		if v >= 0 { // else it is unknown
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
		}
	}
	accepts := 0.0
	if s.Store.Health().Err == nil {
		accepts = 1
	}
	gauge(s.accepts, accepts)
	out <- prometheus.MustNewConstMetric(s.failed, prometheus.CounterValue, float64(s.Store.FailedWrites()))
	disk := s.Store.Disk()
	gauge(s.database, float64(disk.Database))
	gauge(s.log, float64(disk.Log))
	gauge(s.free, float64(disk.Free))
	last, err := s.Store.LastMessageID(ctx)
	if err == nil {
		var mark int64
		mark, err = s.Search.Mark(ctx)
		gauge(s.lag, max(0, float64(last-mark)))
	}
	if err != nil {
		out <- prometheus.NewInvalidMetric(s.lag, err)
	}
	if at := newestBackup(s.BackupDir); !at.IsZero() {
		gauge(s.backup, max(0, s.Now().Sub(at).Seconds()))
	}
}

// newestBackup returns when the newest backup of a folder was finished; the zero time without one.
func newestBackup(dir string) (newest time.Time) {
	entries, _ := os.ReadDir(dir) // none where there is no folder
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".db") || !strings.HasPrefix(e.Name(), "sessions-") && !strings.HasPrefix(e.Name(), askedPrefix) {
			continue
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return newest
}
