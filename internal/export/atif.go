package export

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// ATIF is Harbor's Agent Trajectory Interchange Format. Source: its RFC 0001.
const ATIF Format = "atif"

const atifVersion = "ATIF-v1.7"

// writeATIF writes a session's path as a trajectory, with those of its sub-agents within.
func writeATIF(ctx context.Context, out io.Writer, s *store.Store, ids []session.ID, opt *Options) (Report, error) {
	id, err := onlySession(ctx, s, ids)
	if err != nil {
		return Report{}, err
	}
	t := trajectories{
		out: bufio.NewWriter(out), store: s, opt: opt, known: map[session.ID]bool{id: true},
		report: Report{Sessions: []session.ID{id}, LeftOut: map[string]int{}},
	}
	if err := t.write(ctx, id); err != nil {
		return t.report, err
	}
	if _, err := t.out.WriteString("\n"); err != nil {
		return t.report, err
	}
	return t.report, t.out.Flush()
}

// trajectories writes a session and its sub-agents.
type trajectories struct {
	out    *bufio.Writer
	store  *store.Store
	opt    *Options
	known  map[session.ID]bool // sessions that are written, or will be
	report Report
}

// write writes the trajectory of a session.
func (t *trajectories) write(ctx context.Context, id session.ID) error {
	r, err := read(ctx, t.store, id, t.opt)
	if err != nil {
		return err
	}
	all, err := t.store.Hanging(ctx, id, mostAgents)
	if err != nil {
		return err
	}
	var agents []session.Link
	for _, l := range all {
		if l.Kind == session.ParentChild && !t.known[l.Session] && len(t.known) <= mostAgents {
			t.known[l.Session] = true
			agents = append(agents, l)
		}
	}
	w := steps{
		trajectories: t, of: r, started: map[string][]session.ID{}, calls: map[int64]usage{},
	}
	for _, l := range agents {
		w.started[l.Call] = append(w.started[l.Call], l.Session)
	}
	if err := w.readCalls(ctx); err != nil {
		return err
	}
	agent := jsonx.Encode("name", cmp.Or(string(r.Source), "sessiond"), "version", "unknown",
		"model_name", jsonx.Maybe(r.Model))
	t.text(`{"schema_version":"` + atifVersion + `","session_id":`)
	t.value(jsonx.Quote(string(id)))
	t.text(`,"trajectory_id":`)
	t.value(jsonx.Quote(string(id)))
	t.text(`,"agent":`)
	t.value(agent)
	t.text(`,"steps":[`)
	if err := r.eachOnPath(ctx, w.add); err != nil {
		return err
	}
	if w.flush(); w.written == 0 { // a session without messages: a trajectory has at least one step
		w.written++
		t.value(jsonx.Encode("step_id", jsontext.Value("1"), "source", "system", "message", ""))
	}
	t.text(`],"final_metrics":`)
	t.value(w.final())
	t.text(`,"extra":`)
	t.value(extraOf(r))
	for i, l := range agents {
		t.text([]string{`,`, `,"subagent_trajectories":[`}[btoi(i == 0)])
		if err := t.write(ctx, l.Session); err != nil {
			return err
		}
	}
	if len(agents) > 0 {
		t.text(`]`)
	}
	t.text(`}`)
	return nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// An error of the buffered writer stays, and Flush returns it.
func (t *trajectories) text(s string)          { _, _ = t.out.WriteString(s) }
func (t *trajectories) value(v jsontext.Value) { _, _ = t.out.Write(v) }

// usage is what the calls of a message used.
type usage struct {
	prompt, cached, completion int64
	cost                       float64
	priced                     bool
}

// steps writes the steps of one trajectory. A step of the agent waits for the results of its calls.
type steps struct {
	*trajectories
	of      *reading
	started map[string][]session.ID // sub-agents by the call that started them
	calls   map[int64]usage         // by messages
	waiting []*step
	size    int // bytes waiting
	written int
}

// step is a step that is not written yet.
type step struct {
	message *session.Message
	results []jsontext.Value
	open    []string // ids of calls without a result
	done    []string // and of those with one
}

func (w *steps) readCalls(ctx context.Context) error {
	for cursor := ""; ; {
		calls, next, err := w.store.Calls(ctx, w.of.ID, store.Page{Cursor: cursor, Limit: 1000})
		if err != nil {
			return err
		}
		for i := range calls {
			c := &calls[i]
			if c.MessageID == nil {
				continue
			}
			u, known := w.calls[*c.MessageID]
			u.prompt += c.PromptTokens()
			u.cached += c.CacheReadTokens
			u.completion += c.OutputTokens
			if u.priced = (u.priced || !known) && c.CostUSD != nil; c.CostUSD != nil {
				u.cost += *c.CostUSD
			}
			w.calls[*c.MessageID] = u
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}

// add adds a message of the path: a step, or the results of one that waits.
func (w *steps) add(m *session.Message) error {
	if !wire.IsTalk(m) || m.Role == "" {
		w.report.LeftOut[string(m.Kind)+" records"]++
		return nil
	}
	w.report.Messages++
	copied := *m
	s := &step{message: &copied}
	if m.Role != session.Tool {
		if m.Role != session.Assistant || len(w.waiting) >= maxWaiting || w.size >= maxWaitingBytes {
			w.flush()
		}
		w.waiting = append(w.waiting, s)
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		w.size += len(p.Content()) + len(p.Arguments)
		switch {
		case p.Kind == session.PartToolCall && m.Role == session.Assistant:
			s.open = append(s.open, callIDOf(m, i))
		case p.Kind == session.PartToolResult:
			w.result(p, s)
		case p.Kind.HasBytes():
			w.report.LeftOut[string(p.Kind)+" parts"]++
		case m.Role == session.Tool && p.Kind == session.PartText:
			w.result(p, s)
		}
	}
	if m.Role == session.Tool && len(s.results) > 0 { // of no call that waits
		w.waiting = append(w.waiting, s)
	}
	return nil
}

// callIDOf returns the id of a call. One that came without an id is named by its place.
func callIDOf(m *session.Message, at int) string {
	return cmp.Or(m.Parts[at].CallID, fmt.Sprintf("call_%s_%d", m.ID, at))
}

// result adds a result to the step of its call, else to the step of its own message, where it names no call.
func (w *steps) result(p *session.Part, own *step) {
	result := jsonx.NewObject("content", p.Content())
	for _, s := range slices.Backward(w.waiting) {
		at := slices.Index(s.open, p.CallID)
		if at < 0 && p.MatchedByName() && p.Kind == session.PartToolResult {
			made := "call_" + s.message.ID.String() + "_" // of callIDOf
			at = slices.IndexFunc(s.open, func(id string) bool { return strings.HasPrefix(id, made) })
		}
		if at < 0 && slices.Contains(s.done, p.CallID) && p.CallID != "" { // more of its result
			result.SetText("source_call_id", p.CallID)
			s.results = append(s.results, result.Value())
			return
		}
		if at < 0 {
			continue
		}
		result.SetText("source_call_id", s.open[at])
		var refs []jsontext.Value
		for _, id := range w.started[s.open[at]] {
			refs = append(refs, jsonx.Encode("trajectory_id", string(id), "session_id", string(id)))
		}
		result.Add("subagent_trajectory_ref", refs)
		if p.Failed() {
			result.Add("extra", jsonx.Encode("is_error", p.IsError))
		}
		s.done = append(s.done, s.open[at])
		s.open = slices.Delete(s.open, at, at+1)
		s.results = append(s.results, result.Value())
		return
	}
	own.results = append(own.results, result.Value())
}

// flush writes the steps that wait.
func (w *steps) flush() {
	for _, s := range w.waiting {
		if w.written > 0 {
			w.text(",")
		}
		w.written++
		o := w.encode(s)
		w.value(o.Value())
	}
	w.waiting, w.size = nil, 0
}

func (w *steps) encode(s *step) jsonx.Object {
	m := s.message
	source := "system"
	switch {
	case m.Role == session.Assistant:
		source = "agent"
	case m.Role == session.User && m.Origin == session.Person:
		source = "user"
	}
	var said, thought []string
	var calls []jsontext.Value
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Kind == session.PartText && m.Role != session.Tool, p.Kind == session.PartRefusal:
			said = append(said, p.Content())
		case p.Kind == session.PartReasoning && p.Content() != "":
			thought = append(thought, p.Content())
		case p.Kind == session.PartToolCall:
			arguments, _ := wire.ArgumentsObject(p.Arguments, "input")
			calls = append(calls, jsonx.Encode("tool_call_id", callIDOf(m, i), "function_name", cmp.Or(p.ToolName, "unknown"),
				"arguments", arguments))
		}
	}
	o := jsonx.NewObject("step_id", jsontext.Value(strconv.Itoa(w.written)),
		"timestamp", m.CreatedAt.UTC().Format(time.RFC3339Nano), "source", source, "message", strings.Join(said, "\n"))
	if source == "agent" {
		o.Add("model_name", jsonx.Maybe(m.Model), "reasoning_content", jsonx.Maybe(strings.Join(thought, "\n")),
			"tool_calls", calls)
	}
	if len(s.results) > 0 {
		o.Add("observation", jsonx.Encode("results", s.results))
	}
	if u, ok := w.calls[m.RowID]; ok && source == "agent" {
		o.Add("metrics", u.encode("", nil))
	}
	if m.ID.Session != w.of.ID {
		o.Add("is_copied_context", jsontext.Value("true"))
	}
	o.Add("extra", jsonx.Encode("message_id", m.ID.String(), "finish", jsonx.Maybe(m.Finish)))
	return o
}

// encode writes metrics. prefix is that of their names; more are fields beside them.
func (u usage) encode(prefix string, more []any) jsontext.Value {
	number := func(n int64) jsontext.Value { return jsontext.Value(strconv.FormatInt(n, 10)) }
	o := jsonx.NewObject(prefix+"prompt_tokens", number(u.prompt), prefix+"completion_tokens", number(u.completion),
		prefix+"cached_tokens", number(u.cached))
	if u.priced {
		o.Add(prefix+"cost_usd", jsontext.Value(strconv.FormatFloat(u.cost, 'f', -1, 64)))
	}
	o.Add(more...)
	return o.Value()
}

// final returns the metrics of the trajectory: those of the session, also of calls for no message.
func (w *steps) final() jsontext.Value {
	s := &w.of.Session
	u := usage{
		prompt: s.InputTokens + s.CacheReadTokens + s.CacheWriteTokens, cached: s.CacheReadTokens,
		completion: s.OutputTokens,
	}
	if u.priced = s.CostUSD != nil && s.UnpricedCalls == 0; u.priced {
		u.cost = *s.CostUSD
	}
	return u.encode("total_", []any{"total_steps", jsontext.Value(strconv.Itoa(w.written))})
}

func extraOf(r *reading) jsontext.Value {
	var compactions []jsontext.Value
	for i := range r.compactions {
		if c := &r.compactions[i]; c.Status == session.StatusDone {
			compactions = append(compactions, jsonx.Encode("id", c.ID, "strategy", string(c.Strategy),
				"trigger", string(c.Trigger), "tokens_before", jsontext.Value(strconv.FormatInt(c.TokensBefore, 10)),
				"tokens_after", jsontext.Value(strconv.FormatInt(c.TokensAfter, 10))))
		}
	}
	return jsonx.Encode("title", jsonx.Maybe(r.Title), "git_branch", jsonx.Maybe(r.GitBranch),
		"compactions", compactions)
}
