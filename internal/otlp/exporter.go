// Package otlp sends spans of model calls, tools and compactions to an OpenTelemetry collector, by OTLP over HTTP in
// JSON.
//
// Nothing waits for it. It reads the ledger behind the place that it sent before, which it keeps in a file, so the
// database is the queue: a collector that is away gets later what it missed. What is older than a day is left out, as
// an import of old histories is.
package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Ledger is the part of the store that is read.
type Ledger interface {
	LedgerEnd(ctx context.Context) (store.LedgerEnd, error)
	LedgerCalls(ctx context.Context, after, through int64, limit int) ([]store.LedgerCall, error)
	LedgerTools(ctx context.Context, after, through int64, limit int) ([]store.LedgerTool, error)
	LoggedEvents(ctx context.Context, after, through int64) ([]session.Event, error)
	EachHead(ctx context.Context, ids []int64, head session.Head, yield func(*session.Message) error) error
}

// Exporter sends spans. Send is called by one goroutine.
type Exporter struct {
	Endpoint string      // of a collector
	Header   http.Header // of each request; may be nil
	Content  bool        // send texts, arguments and results, too, masked
	Excludes func(project, directory string) bool
	Kept     string // the file that says how far was sent
	Ledger   Ledger
	Version  string // sessiond's
	Log      zerolog.Logger
	Now      func() time.Time

	sent, dropped, skipped atomic.Int64

	at       *store.LedgerEnd // how far was sent; nil: not known yet
	failures int              // in a row
	said     string           // the last failure that was logged
}

// HeadersOf returns the headers that OpenTelemetry's own variable names: name=value,name=value, the values as in URLs.
func HeadersOf(environ []string) http.Header {
	headers := http.Header{}
	for _, pair := range environ {
		list, ok := strings.CutPrefix(pair, "OTEL_EXPORTER_OTLP_HEADERS=")
		if !ok {
			continue
		}
		for one := range strings.SplitSeq(list, ",") {
			name, value, ok := strings.Cut(one, "=")
			decoded, err := url.PathUnescape(strings.TrimSpace(value))
			if ok && err == nil {
				headers.Set(strings.TrimSpace(name), decoded)
			}
		}
	}
	return headers
}

// Counts returns how many spans the collector took, how many it refused for good, and how many were too old to send.
func (e *Exporter) Counts() (sent, dropped, skipped int64) {
	return e.sent.Load(), e.dropped.Load(), e.skipped.Load()
}

const (
	pause       = 5 * time.Second // between two looks at the ledger
	longest     = 5 * time.Minute // between two attempts
	requestTime = 10 * time.Second
	oldest      = 24 * time.Hour // of a span
	batch       = 200            // calls, and runs of tools, in a request
	contentful  = 20             // the same, with their content
	mostTries   = 6              // of a batch that the collector fails at
	maxAnswer   = 64 << 10       // bytes
)

// Send sends what was written since the last time, and returns how long to wait before the next.
func (e *Exporter) Send(ctx context.Context) time.Duration {
	more, err := e.send(ctx)
	var refused *refusal
	switch {
	case ctx.Err() != nil:
		return pause
	case err == nil:
		e.failures, e.said = 0, ""
		if more {
			return 0
		}
		return pause
	}
	e.failures++
	if text := err.Error(); text != e.said { // a log is no place for the same line every few seconds
		e.Log.Warn().Str("error", text).Msg("spans were not sent; sessiond tries again")
		e.said = text
	}
	wait := min(longest, time.Second<<min(e.failures, 9))
	if errors.As(err, &refused) && refused.after > 0 {
		wait = min(longest, refused.after)
	}
	return wait
}

// send sends one batch. more: another one is there.
func (e *Exporter) send(ctx context.Context) (more bool, err error) {
	end, err := e.Ledger.LedgerEnd(ctx)
	if err != nil {
		return false, err
	}
	if e.at == nil {
		e.at = e.read()
	}
	if e.at == nil || e.at.Epoch != end.Epoch || e.at.Call > end.Call {
		return false, e.keep(end) // it begins now, or a backup was restored
	}
	e.at.Part, e.at.Event = min(e.at.Part, end.Part), min(e.at.Event, end.Event) // a purge may delete the newest
	spans, next, err := e.collect(ctx, end)
	if err != nil || next == *e.at {
		return false, err
	}
	if len(spans) > 0 {
		if err := e.deliver(ctx, spans); err != nil {
			return false, err
		}
	}
	return next != end, e.keep(next)
}

// deliver posts spans. It drops those that the collector will never take.
func (e *Exporter) deliver(ctx context.Context, spans []span) error {
	rejected, err := e.post(ctx, request(spans, e.Version))
	var refused *refusal
	if errors.As(err, &refused) && (refused.forGood || refused.isServers() && e.failures+1 >= mostTries) {
		e.Log.Warn().Int("spans", len(spans)).Str("error", err.Error()).Msg("the collector refuses spans; they are dropped")
		e.dropped.Add(int64(len(spans)))
		return nil
	}
	if err == nil {
		e.dropped.Add(rejected)
		e.sent.Add(int64(len(spans)) - rejected)
	}
	return err
}

// refusal is an answer that is no success.
type refusal struct {
	status  int
	forGood bool          // the same would be refused again
	after   time.Duration // the collector says when to try again; 0: it does not
	line    string
}

func (r *refusal) Error() string { return r.line }

// isServers reports whether the collector failed at the spans. One that is busy or away says so with 502, 503 or 504.
func (r *refusal) isServers() bool { return r.status == http.StatusInternalServerError }

func (e *Exporter) post(ctx context.Context, body []byte) (rejected int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	address, err := url.Parse(e.Endpoint)
	if err != nil {
		return 0, err
	}
	if !strings.HasSuffix(address.Path, "/v1/traces") {
		address = address.JoinPath("v1/traces")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	for name, values := range e.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "sessiond/"+e.Version)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if res.StatusCode/100 != 2 {
		return 0, refusalOf(res, address, e.Now())
	}
	if err != nil {
		return 0, err
	}
	return rejectedOf(answer), nil
}

// refusalOf says what an answer means, as the specification of OTLP does: a request that is wrong is not repeated. A
// wrong address or token is not the spans' fault: they wait.
func refusalOf(res *http.Response, address *url.URL, now time.Time) *refusal {
	r := &refusal{status: res.StatusCode, line: fmt.Sprintf("POST %s: %s", address.Redacted(), res.Status)}
	switch res.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		r.forGood = true
	}
	after := res.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil {
		r.after = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		r.after = at.Sub(now)
	}
	return r
}

// rejectedOf returns how many spans an answer rejects. An answer that is no JSON rejects none: its status counts.
func rejectedOf(answer []byte) int64 {
	var said struct {
		PartialSuccess struct {
			RejectedSpans any `json:"rejectedSpans"` // an int64, which JSON of protobuf writes as a string
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &said) != nil {
		return 0
	}
	n, err := strconv.ParseInt(fmt.Sprint(said.PartialSuccess.RejectedSpans), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// read returns how far was sent before this start, nil if nothing says so.
func (e *Exporter) read() *store.LedgerEnd {
	raw, err := os.ReadFile(e.Kept)
	at := &store.LedgerEnd{}
	if err == nil {
		err = json.Unmarshal(raw, at)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			e.Log.Warn().Err(err).Msg("how far spans were sent is not known: they are sent from now on")
		}
		return nil
	}
	return at
}

// keep writes how far was sent.
func (e *Exporter) keep(at store.LedgerEnd) error {
	raw, err := json.Marshal(at)
	if err == nil {
		err = os.WriteFile(e.Kept+".new", raw, 0o600)
	}
	if err == nil {
		err = os.Rename(e.Kept+".new", e.Kept)
	}
	e.at = &at // also if the file cannot be written: this daemon sends nothing twice
	return err
}
