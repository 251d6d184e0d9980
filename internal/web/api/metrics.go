package api

import (
	"context"
	"net/http"
	"strconv"
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

func newMetrics(ledger *store.Store, feed *Feed) *metrics {
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
	}, func() float64 { return float64(feed.count()) })
	m.registry.MustRegister(m.requests, m.seconds, listeners, newStored(ledger), collectors.NewGoCollector(),
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
