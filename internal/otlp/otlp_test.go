package otlp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rs/zerolog"

	"sessiond/internal/dialect"
	"sessiond/internal/otlp"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
	"sessiond/internal/tokens"
)

// collector is a fake one. It checks what it gets by the rules of OTLP's JSON and of the conventions.
type collector struct {
	*httptest.Server
	t      *testing.T
	mu     sync.Mutex
	spans  map[string]map[string]any // attributes of the spans that it took, by name
	times  map[string]time.Duration
	taken  int
	header http.Header
	answer func(w http.ResponseWriter) // instead of taking it; nil: 200
}

func newCollector(t *testing.T) *collector {
	c := &collector{t: t, spans: map[string]map[string]any{}, times: map[string]time.Duration{}}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
		c.t.Errorf("%s %s of %s", r.Method, r.URL, r.Header.Get("Content-Type"))
	}
	raw := testkit.Must(io.ReadAll(r.Body))(c.t)
	c.header = r.Header
	if c.answer != nil {
		c.answer(w)
		return
	}
	c.check(raw)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{}`)
}

var hex = regexp.MustCompile(`^[0-9a-f]+$`)

// check fails for what a collector would reject: unknown fields, wrong ids, numbers that are no strings.
func (c *collector) check(raw []byte) {
	type value struct {
		String *string  `json:"stringValue"`
		Int    *string  `json:"intValue"`
		Double *float64 `json:"doubleValue"`
		Array  *struct {
			Values jsontext.Value `json:"values"`
		} `json:"arrayValue"`
	}
	type attributes []struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	var body struct {
		Resources []struct {
			Resource struct {
				Attributes attributes `json:"attributes"`
			} `json:"resource"`
			Scopes []struct {
				Scope struct {
					Name    string `json:"name"`
					Version string `json:"version"`
				} `json:"scope"`
				SchemaURL string `json:"schemaUrl"`
				Spans     []struct {
					TraceID    string     `json:"traceId"`
					SpanID     string     `json:"spanId"`
					Name       string     `json:"name"`
					Kind       int        `json:"kind"`
					Start      string     `json:"startTimeUnixNano"`
					End        string     `json:"endTimeUnixNano"`
					Attributes attributes `json:"attributes"`
					Events     []struct {
						Time       string     `json:"timeUnixNano"`
						Name       string     `json:"name"`
						Attributes attributes `json:"attributes"`
					} `json:"events"`
					Status struct {
						Code int `json:"code"`
					} `json:"status"`
				} `json:"spans"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	if err := json.Unmarshal(raw, &body, json.RejectUnknownMembers(true)); err != nil {
		c.t.Errorf("%v in %.2000s", err, raw)
		return
	}
	scope := body.Resources[0].Scopes[0]
	if scope.Scope.Name != "sessiond" || scope.Scope.Version != "1.2.3" ||
		!strings.Contains(scope.SchemaURL, "/gen-ai") ||
		body.Resources[0].Resource.Attributes[0].Key != "service.name" {
		c.t.Errorf("scope %+v of %+v", scope.Scope, body.Resources[0].Resource)
	}
	for _, s := range scope.Spans {
		start, errStart := strconv.ParseInt(s.Start, 10, 64)
		end, errEnd := strconv.ParseInt(s.End, 10, 64)
		if len(s.TraceID) != 32 || len(s.SpanID) != 16 || !hex.MatchString(s.TraceID+s.SpanID) || errStart != nil ||
			errEnd != nil || start > end || s.Kind < 1 || s.Kind > 5 || s.Name == "" || s.Status.Code > 2 {
			c.t.Errorf("span %+v", s)
		}
		of := map[string]any{"trace": s.TraceID, "status": s.Status.Code, "kind": s.Kind}
		for _, a := range s.Attributes {
			switch _, twice := of[a.Key]; {
			case twice || a.Key == "":
				c.t.Errorf("%s has %q twice", s.Name, a.Key)
			case a.Value.String != nil:
				of[a.Key] = *a.Value.String
			case a.Value.Int != nil:
				of[a.Key] = testkit.Must(strconv.ParseInt(*a.Value.Int, 10, 64))(c.t)
			case a.Value.Double != nil:
				of[a.Key] = *a.Value.Double
			case a.Value.Array != nil:
				of[a.Key] = string(a.Value.Array.Values)
			default:
				c.t.Errorf("%s has no value in %s", a.Key, s.Name)
			}
		}
		required := []string{"gen_ai.operation.name"}
		switch of["gen_ai.operation.name"] {
		case "chat":
			required = append(required, "gen_ai.provider.name")
		case "execute_tool":
			required = append(required, "gen_ai.tool.name")
		default:
			required = []string{"sessiond.compaction.strategy"}
		}
		for _, key := range required {
			if of[key] == nil || of[key] == "" {
				c.t.Errorf("%s lacks %s", s.Name, key)
			}
		}
		for _, e := range s.Events {
			of["event"] = e.Name
		}
		c.spans[s.Name], c.times[s.Name] = of, time.Duration(end-start)
		c.taken++
	}
}

// rig is a database with an exporter to a collector.
type rig struct {
	*otlp.Exporter
	t    *testing.T
	to   *collector
	s    *store.Store
	now  time.Time
	id   session.ID
	said int
}

func newRig(t *testing.T, content bool) *rig {
	t.Helper()
	r := &rig{t: t, to: newCollector(t), now: time.Date(2026, 2, 11, 10, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return r.now }
	dir := t.TempDir()
	r.s = testkit.Must(store.Open(t.Context(), storetest.New(t, filepath.Join(dir, "sessions.db")), store.Options{
		Now: clock, Zone: time.UTC, Log: zerolog.Nop(), Measure: tokens.Reference().Measure,
	}))(t)
	t.Cleanup(func() { testkit.Check(t, r.s.Close()) })
	r.id = testkit.Must(r.s.CreateSession(t.Context(), store.NewSession{}))(t).ID
	r.Exporter = r.fresh(dir, content)
	return r
}

func (r *rig) fresh(dir string, content bool) *otlp.Exporter {
	return &otlp.Exporter{
		Endpoint: r.to.URL, Content: content, Kept: filepath.Join(dir, "otlp.json"), Ledger: r.s, Version: "1.2.3",
		Log: zerolog.New(zerolog.NewTestWriter(r.t)), Now: func() time.Time { return r.now },
		Excludes: func(_, directory string) bool { return strings.HasPrefix(directory, "/private") },
	}
}

// turn appends a turn with a tool, and its call.
func (r *rig) turn() {
	r.t.Helper()
	r.said++
	say := func(call *session.Call, messages string) {
		var raw []jsontext.Value
		testkit.Check(r.t, json.Unmarshal([]byte(messages), &raw))
		decoded := testkit.Must(dialect.Decode(dialect.OpenAIChat, raw))(r.t)
		testkit.Must(r.s.Append(r.t.Context(), store.Append{Session: r.id, Messages: decoded.Messages, Call: call}))(r.t)
		r.now = r.now.Add(2 * time.Second)
	}
	call := func(status string) *session.Call {
		return &session.Call{
			Provider: "google", Model: "gemini-3", Status: status, InputTokens: 100, CacheReadTokens: 20, CacheWriteTokens: 3,
			OutputTokens: 7, ReasoningTokens: 2, LatencyMS: new(int64(1500)), CostNanoUSD: new(int64(5e6)),
			Error: "quoted words",
		}
	}
	n := r.said
	say(nil, `[{"role":"user","content":"how high is the water?"}]`)
	say(call("ok"), fmt.Sprintf(`[{"role":"assistant","content":"I look. password=hunter2hunter2","tool_calls":[{"id":"c%d","type":"function","function":{"name":"tide","arguments":"{\"place\":\"pier\"}"}}]}]`, n))
	say(nil, fmt.Sprintf(`[{"role":"tool","tool_call_id":"c%d","content":"three metres"}]`, n))
	say(call("failed"), `[{"role":"assistant","content":"Three."}]`)
}

func (r *rig) send() time.Duration {
	r.t.Helper()
	for range 100 {
		if wait := r.Send(r.t.Context()); wait > 0 {
			return wait
		}
	}
	r.t.Fatal("it never ends")
	return 0
}

func TestSpansOfATurn(t *testing.T) {
	r := newRig(t, false)
	r.turn() // before the first start: it is not sent
	r.send()
	if r.to.taken != 0 {
		t.Fatalf("%d spans of before", r.to.taken)
	}
	r.turn()
	r.send()
	if r.to.taken != 3 {
		t.Fatalf("%d spans: %v", r.to.taken, r.to.spans)
	}
	chat, tool := r.to.spans["chat gemini-3"], r.to.spans["execute_tool tide"]
	want := map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "gcp.gemini", "gen_ai.request.model": "gemini-3",
		"gen_ai.response.model": "gemini-3", "gen_ai.conversation.id": string(r.id),
		"gen_ai.usage.input_tokens":            int64(123),
		"gen_ai.usage.cache_read.input_tokens": int64(20), "gen_ai.usage.cache_write.input_tokens": int64(3),
		"gen_ai.usage.output_tokens": int64(7), "gen_ai.usage.reasoning.output_tokens": int64(2), "error.type": "_OTHER",
		"sessiond.purpose": "chat", "sessiond.program": "sessiond", "sessiond.cost_usd": 0.005, "kind": 3, "status": 2,
		"trace": chat["trace"],
	}
	testkit.Equal(t, want, chat)
	testkit.Equal(t, map[string]any{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "tide", "gen_ai.tool.call.id": "c2",
		"gen_ai.conversation.id": string(r.id), "sessiond.program": "sessiond", "kind": 1, "status": 0,
		"trace": chat["trace"],
	}, tool)
	if r.to.times["chat gemini-3"] != 1500*time.Millisecond || r.to.times["execute_tool tide"] != 2*time.Second {
		t.Errorf("times %v", r.to.times)
	}
	r.send()
	r.Exporter = r.fresh(filepath.Dir(r.Kept), false) // after a restart
	r.send()
	if r.to.taken != 3 {
		t.Errorf("%d spans: some twice", r.to.taken)
	}
	through := testkit.Must(r.s.Session(t.Context(), r.id))(t).HeadID
	testkit.Must(r.s.AddCompaction(t.Context(), session.Compaction{
		SessionID: r.id, Strategy: session.StrategyTruncate, Trigger: session.TriggerManual, Status: session.StatusDone,
		ThroughID: through, TokensBefore: 90, TokensAfter: 9, DurationMS: 40,
	}))(t)
	r.send()
	of := r.to.spans["sessiond.compaction"]
	if of["event"] != "sessiond.compaction.done" || of["sessiond.compaction.strategy"] != "truncate" ||
		of["sessiond.compaction.tokens_before"] != int64(90) || r.to.times["sessiond.compaction"] != 40*time.Millisecond {
		t.Errorf("the compaction is %v", of)
	}
	sent, dropped, skipped := r.Counts()
	testkit.Equal(t, [3]int64{1, 0, 0}, [3]int64{sent, dropped, skipped})
}

func TestContentIsSentWhenAskedForAndMasked(t *testing.T) {
	r := newRig(t, true)
	r.Header = otlp.HeadersOf([]string{"A=1", "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20x, x-y=z,bad"})
	r.send()
	r.turn()
	r.send()
	all := fmt.Sprint(r.to.spans)
	for _, want := range []string{"how high is the water?", "Three.", `{"place":"pier"}`, "three metres", "finish_reason"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in %s", want, all)
		}
	}
	if strings.Contains(all, "hunter2") || strings.Contains(all, "quoted words") {
		t.Errorf("a secret is sent: %s", all)
	}
	if r.to.header.Get("Authorization") != "Bearer x" || r.to.header.Get("X-Y") != "z" {
		t.Errorf("headers %v", r.to.header)
	}
	r.id = testkit.Must(r.s.CreateSession(t.Context(), store.NewSession{Directory: "/private/x"}))(t).ID
	clear(r.to.spans)
	r.turn()
	r.send()
	all = fmt.Sprint(r.to.spans)
	if strings.Contains(all, "water") || strings.Contains(all, "pier") || len(r.to.spans) == 0 {
		t.Errorf("an excluded project: %s", all)
	}
}

// A collector that misbehaves delays spans, and loses only those that it refuses itself.
func TestACollectorThatMisbehaves(t *testing.T) {
	status := func(code int, headers ...string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(code)
		}
	}
	body := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { fmt.Fprint(w, text) }
	}
	for _, c := range []struct {
		name          string
		answer        func(http.ResponseWriter)
		tries         int
		wait          time.Duration // after the first
		sent, dropped int64         // after another that is fine
	}{
		{"busy", status(429, "Retry-After", "7"), 1, 7 * time.Second, 3, 0},
		{"busy for a day", status(429, "Retry-After", "86400"), 1, 5 * time.Minute, 3, 0},
		{"busy until a time", status(503, "Retry-After", "Wed, 11 Feb 2026 10:00:38 GMT"), 1, 30 * time.Second, 3, 0},
		{"fails once", status(500), 1, 2 * time.Second, 3, 0},
		{"fails at these spans", status(500), 6, 2 * time.Second, 0, 3},
		{"away for long", status(502), 9, 2 * time.Second, 3, 0},
		{"refuses them", status(400), 1, 5 * time.Second, 0, 3},
		{"a wrong token", status(401), 9, 2 * time.Second, 3, 0},
		{"moved", status(302, "Location", "http://127.0.0.1:1/"), 1, 2 * time.Second, 3, 0},
		{"takes a part", body(`{"partialSuccess":{"rejectedSpans":"1","errorMessage":"x"}}`), 1, 5 * time.Second, 2, 1},
		{"wrong JSON", body(`<html>`), 1, 5 * time.Second, 3, 0},
		{"hangs up", func(w http.ResponseWriter) { panic(http.ErrAbortHandler) }, 1, 2 * time.Second, 3, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			r.send()
			r.turn()
			r.to.answer = c.answer
			for n := range c.tries {
				if wait := r.send(); n == 0 && wait != c.wait {
					t.Errorf("it waits %s, want %s", wait, c.wait)
				}
			}
			r.to.answer = nil
			r.send()
			sent, dropped, _ := r.Counts()
			if sent != c.sent || dropped != c.dropped {
				t.Errorf("sent %d, dropped %d; want %d and %d", sent, dropped, c.sent, c.dropped)
			}
		})
	}
}

// What hangs, or is not there, is left at the end of the daemon, and disturbs nothing.
func TestACollectorThatHangs(t *testing.T) {
	r := newRig(t, false)
	r.send()
	r.turn()
	ctx, cancel := context.WithCancel(t.Context())
	hangs := make(chan struct{})
	r.to.answer = func(http.ResponseWriter) {
		cancel()
		<-hangs
	}
	r.Send(ctx)
	close(hangs)
	r.to.answer = nil
	r.Endpoint = "http://127.0.0.1:1"
	if wait := r.send(); wait != 2*time.Second {
		t.Errorf("nobody there: it waits %s", wait)
	}
	r.turn() // the store goes on
	r.Endpoint = r.to.URL + "/v1/traces"
	r.send()
	if r.to.taken != 6 {
		t.Errorf("%d spans", r.to.taken)
	}
}

func TestManyAndOldSpans(t *testing.T) {
	r := newRig(t, false)
	r.send()
	for range 250 {
		r.turn()
	}
	r.send()
	if r.to.taken != 750 {
		t.Errorf("%d spans of 250 turns", r.to.taken)
	}
	r.turn()
	r.now = r.now.Add(25 * time.Hour)
	r.send()
	if sent, _, skipped := r.Counts(); sent != 750 || skipped != 3 {
		t.Errorf("%d sent, %d skipped", sent, skipped)
	}
	testkit.Check(t, os.WriteFile(r.Kept, []byte("{"), 0o600))
	r.Exporter = r.fresh(filepath.Dir(r.Kept), false)
	r.send()
	r.turn()
	r.send()
	if r.to.taken != 753 {
		t.Errorf("%d spans after the file broke", r.to.taken)
	}
}
