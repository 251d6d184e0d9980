// Package scripted is a model on loopback that does what a prompt tells it to. It answers in the forms of four
// providers, streamed and whole, and logs each request with the usage it reported, so that a program's history can be
// compared with what happened.
//
// A prompt has its order in parentheses, as "How high is the water? (shell: printf low)"; orders.go has the list. The
// model takes a tool's name and arguments from the tools that the request offers. A conversation and the server end
// after a number of requests, because a program that never stops asking would cost thousands.
package scripted

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// Limits of requests, in all and behind one prompt.
const (
	mostRequests = 400
	mostSteps    = 8  // calls behind one prompt, then the model answers with a text
	mostRepeats  = 60 // requests with the same newest prompt, then they fail
	mostBody     = 64 << 20
)

// Kind is what a request is for.
type Kind string

// The kinds of requests.
const (
	Turn    Kind = "turn"    // a step of a conversation
	Summary Kind = "summary" // a compaction
	Aside   Kind = "aside"   // a title, a check, an answer as JSON
	Other   Kind = "other"   // no reply of a model: lists of models, counts of tokens
)

// Usage is what a reply reports: input without the cache, output with reasoning.
type Usage struct {
	Input      int64 `json:"input"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning,omitempty"`
}

// Call is a call of a tool.
type Call struct {
	ID        string         `json:"id"`
	Namespace string         `json:"namespace,omitempty"`
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments,omitempty"`
	Input     string         `json:"input,omitempty"` // of a tool without a schema
}

// Exchange is a request with its answer.
type Exchange struct {
	Number int    `json:"number"`
	Path   string `json:"path"`
	Model  string `json:"model,omitempty"`
	Kind   Kind   `json:"kind"`
	Prompt string `json:"prompt,omitempty"` // the text with the order that was followed
	Text   string `json:"text,omitempty"`   // of the answer
	Calls  []Call `json:"calls,omitempty"`
	Usage  Usage  `json:"usage"`
	Error  string `json:"error,omitempty"`
	Body   string `json:"-"` // of the request

	At time.Time `json:"-"` // of the answer
}

// Server is the model. Its zero value is ready.
type Server struct {
	Record func(Exchange) // is called with each exchange before it is answered; nil: nobody asks
	Folder string         // the program's, for tools that want absolute paths
	// Forgets leaves the requests' bodies out of the log: a long conversation would be in it as often as it has steps.
	Forgets bool

	mu      sync.Mutex
	log     []Exchange
	repeats map[string]int
	begun   int // requests before the limits last began to count
}

// Log returns the exchanges so far.
func (s *Server) Log() []Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, mostBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f := formOf(r.URL.Path)
	x := Exchange{Path: r.URL.Path, Kind: Other, Body: string(body)}
	if f == nil {
		s.record(&x)
		answerOther(w, r.URL.Path)
		return
	}
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		http.Error(w, fmt.Sprintf("the body is no JSON object: %v", err), http.StatusBadRequest)
		return
	}
	q := f.decode(fields, r.URL.Path)
	q.folder = s.Folder
	s.answer(&q, &x)
	s.record(&x)
	if x.Error != "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest) // which no program repeats
		text, _ := json.Marshal(map[string]any{"error": map[string]any{
			"type": "invalid_request_error", "message": x.Error,
		}})
		_, _ = w.Write(text)
		return
	}
	f.encode(&writer{w: w, streamed: q.streamed}, &q, &x)
}

// answer fills an exchange.
func (s *Server) answer(q *request, x *Exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.Number = len(s.log) + 1
	x.Model = q.model
	n := int64(x.Number)
	x.Usage = usageOf(n, q.writes)
	plan(q, x)
	if s.repeats == nil {
		s.repeats = map[string]int{}
	}
	s.repeats[x.Prompt]++
	switch {
	case len(s.log)-s.begun >= mostRequests:
		x.Error = fmt.Sprintf("the scripted model answered %d requests and stops", mostRequests)
	case x.Prompt != "" && s.repeats[x.Prompt] > mostRepeats:
		x.Error = fmt.Sprintf("the scripted model had %d requests for one prompt and ends the conversation", mostRepeats)
	}
}

// Begin lets the limits of requests count anew: another program begins.
func (s *Server) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repeats, s.begun = nil, len(s.log)
}

func (s *Server) record(x *Exchange) {
	s.mu.Lock()
	x.Number, x.At = len(s.log)+1, time.Now()
	kept := *x
	if s.Forgets {
		kept.Body = ""
	}
	s.log = append(s.log, kept)
	s.mu.Unlock()
	if s.Record != nil {
		s.Record(*x)
	}
}

// answerOther answers what asks for no reply.
func answerOther(w http.ResponseWriter, path string) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(path, "/count_tokens"):
		fmt.Fprint(w, `{"input_tokens":100}`)
	case strings.HasSuffix(path, ":countTokens"):
		fmt.Fprint(w, `{"totalTokens":100}`)
	default:
		fmt.Fprint(w, `{"object":"list","data":[],"models":[]}`)
	}
}

// usageOf returns numbers that no other request has.
func usageOf(n int64, writes bool) Usage {
	u := Usage{Input: 20_011 + 17*n, CacheRead: 3_001 + 7*n, Output: 401 + 3*n, Reasoning: 101 + n}
	if writes {
		u.CacheWrite, u.Reasoning = 1_009+5*n, 0
	}
	return u
}

// form is a provider's wire form.
type form struct {
	decode func(fields map[string]any, path string) request
	encode func(*writer, *request, *Exchange)
}

func formOf(path string) *form {
	path = strings.TrimSuffix(path, "/")
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return &form{decodeChat, encodeChat}
	case strings.HasSuffix(path, "/responses"):
		return &form{decodeResponses, encodeResponses}
	case strings.HasSuffix(path, "/messages"):
		return &form{decodeMessages, encodeMessages}
	case strings.HasSuffix(path, "enerateContent"):
		return &form{decodeGemini, encodeGemini}
	}
	return nil
}

// writer writes an answer, as one object or as events.
type writer struct {
	w        http.ResponseWriter
	streamed bool
}

func (w *writer) whole(answer any) {
	w.w.Header().Set("Content-Type", "application/json")
	text, _ := json.Marshal(answer)
	_, _ = w.w.Write(text)
}

// event writes one event, with its type as its name if it has one.
func (w *writer) event(data map[string]any) {
	w.w.Header().Set("Content-Type", "text/event-stream")
	if kind, _ := data["type"].(string); kind != "" {
		fmt.Fprintf(w.w, "event: %s\n", kind)
	}
	text, _ := json.Marshal(data, json.Deterministic(true))
	fmt.Fprintf(w.w, "data: %s\n\n", text)
	if flusher, ok := w.w.(http.Flusher); ok {
		flusher.Flush()
	}
}

// request is what a program asks, in no provider's form.
type request struct {
	model    string
	folder   string
	streamed bool
	system   string
	turns    []turn
	tools    []tool
	schema   map[string]any // of the answer; nil: it is a text
	writes   bool           // the form reports what a cache stored, and no reasoning
}

// turn is one message or item of a conversation.
type turn struct {
	role  string // user, assistant, tool
	texts []string
	calls []string // names
}

type tool struct {
	namespace, name, description string
	schema                       map[string]any
	custom                       bool // takes a text
}

func (t *tool) fullName() string {
	if t.namespace == "" {
		return t.name
	}
	return t.namespace + "." + t.name
}

// object, list and text read a field of decoded JSON; another type is the zero value.
func object(v any, name string) map[string]any {
	fields, _ := v.(map[string]any)
	found, _ := fields[name].(map[string]any)
	return found
}

func list(v any, name string) []any {
	fields, _ := v.(map[string]any)
	found, _ := fields[name].([]any)
	return found
}

func text(v any, name string) string {
	fields, _ := v.(map[string]any)
	found, _ := fields[name].(string)
	return found
}

// textsOf returns the texts of a content, which is a text or a list of parts.
func textsOf(content any) (texts []string) {
	switch content := content.(type) {
	case string:
		return []string{content}
	case []any:
		for _, part := range content {
			if t := cmp.Or(text(part, "text"), text(part, "content")); t != "" {
				texts = append(texts, t)
			}
		}
	}
	return texts
}
