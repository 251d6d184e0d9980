package vscodecopilot

import (
	"path/filepath"
	"strings"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// span is a call of a model in the database of traces, which exists only where a setting asks for it.
type span struct {
	ID         string `db:"span_id"`
	Started    int64  `db:"start_time_ms"`
	Model      string `db:"model"`
	Input      int64  `db:"input_tokens"` // with what came from the cache
	Output     int64  `db:"output_tokens"`
	Cached     int64  `db:"cached_tokens"`
	Reasoning  int64  `db:"reasoning_tokens"`
	ChatID     string `db:"chat_session_id"`
	DurationMS int64  `db:"duration"`
}

// readSpans reads the calls that the chat made, if they were traced.
func (c *chat) readSpans() {
	user, _, ok := strings.Cut(c.in.Found.Path, string(filepath.Separator)+"workspaceStorage"+string(filepath.Separator))
	if !ok {
		user, _, ok = strings.Cut(c.in.Found.Path, string(filepath.Separator)+"globalStorage"+string(filepath.Separator))
	}
	path := filepath.Join(user, "globalStorage", "github.copilot-chat", "agent-traces.db")
	if _, err := history.StatSQLite(path); !ok || len(c.names) == 0 || err != nil {
		return
	}
	db, err := history.OpenSQLite(c.in.Context(), path)
	if err != nil {
		c.in.ProblemIn(path, history.Reason(err)+"; tokens are taken from the chat itself")
		return
	}
	defer db.Close() //nolint:errcheck // nothing was written
	has := db.Schema("spans")
	for _, name := range c.names {
		if !has.Has("spans", "chat_session_id") || !has.Has("spans", "input_tokens") {
			break
		}
		db.Each(func(rows *sqlx.Rows) error {
			var s span
			err := rows.StructScan(&s)
			c.spans = append(c.spans, s)
			return err
		}, `SELECT CAST(span_id AS TEXT) AS span_id, CAST(start_time_ms AS INTEGER) AS start_time_ms,
			COALESCE(`+has.Column("spans", "response_model", "NULL")+`, `+has.Column("spans", "request_model", "NULL")+`, '') AS model,
			COALESCE(input_tokens, 0) AS input_tokens, COALESCE(`+has.Column("spans", "output_tokens", "0")+`, 0) AS output_tokens,
			COALESCE(`+has.Column("spans", "cached_tokens", "0")+`, 0) AS cached_tokens, COALESCE(`+has.Column("spans", "reasoning_tokens", "0")+`, 0) AS reasoning_tokens,
			chat_session_id, CAST(COALESCE(end_time_ms - start_time_ms, 0) AS INTEGER) AS duration
			FROM spans WHERE operation_name = 'chat' AND chat_session_id = ?`, name)
	}
	if err := db.TakeErr(); err != nil {
		c.spans = nil
		c.in.ProblemIn(path, history.Reason(err)+"; tokens are taken from the chat itself")
	}
}

// usage returns the rows of the ledger of a request, from one source: the traces, else the sums of its models, else
// what is said of its last call, which is less than it used.
func (c *chat) usage(r *request) (calls []history.Call) {
	add := func(name, model string, input, cached, output int64) *history.Call {
		call := history.Call{Call: session.Call{
			ExternalID: "vscode-copilot:" + name, Provider: "copilot", Model: model, CreatedAt: r.at,
			InputTokens: max(0, input-cached), CacheReadTokens: min(cached, input), OutputTokens: output,
		}}
		calls = append(calls, call)
		return &calls[len(calls)-1]
	}
	all := jsonx.ReadObjects(r.metadata.Get("summaries"))
	for _, s := range all {
		if u := s.Inner("usage"); u != nil {
			call := add(r.id+":summary:"+s.String("toolCallRoundId"), s.String("model"), history.Count(u.Get("prompt_tokens")),
				history.Count(u.Inner("prompt_tokens_details").Get("cached_tokens")), history.Count(u.Get("completion_tokens")))
			call.Purpose = session.PurposeSummary
		}
	}
	if c.traced(r, add) {
		return calls
	}
	if totals := jsonx.ReadObjects(r.Get("modelTotals")); len(totals) > 0 {
		for _, t := range totals {
			call := add(r.id+":"+t.String("model"), t.String("model"), history.Count(t.Get("inputTokens")),
				history.Count(t.Get("cachedTokens")), history.Count(t.Get("outputTokens")))
			call.Sum = true
		}
		return calls
	}
	usage := r.Inner("result").Inner("usage")
	for _, of := range []struct {
		o             jsonx.Object
		input, output string
	}{
		{r.Object, "promptTokens", "completionTokens"},
		{usage, "promptTokens", "completionTokens"},
		{r.metadata, "promptTokens", "outputTokens"},
	} {
		if input, output := history.Count(of.o.Get(of.input)), history.Count(of.o.Get(of.output)); input+output > 0 {
			call := add(r.id, r.model, input, 0, output)
			call.Sum = true
			call.Metadata = session.JSONOf(map[string]string{"reported": "for the last call of the turn alone: a lower bound"})
			return calls
		}
	}
	return calls
}

// traced adds the calls of a request that were traced: those from its time to that of the next one.
func (c *chat) traced(r *request, add func(name, model string, input, cached, output int64) *history.Call) bool {
	id, from := r.metadata.String("sessionId"), r.at.UnixMilli()
	until := int64(0)
	if !r.until.IsZero() {
		until = r.until.UnixMilli()
	}
	found := false
	for _, s := range c.spans {
		if s.ChatID != id || s.Started < from || until > 0 && s.Started >= until {
			continue
		}
		found = true
		call := add("span:"+s.ID, s.Model, s.Input, s.Cached, s.Output)
		call.ReasoningTokens, call.LatencyMS = s.Reasoning, &s.DurationMS
		call.CreatedAt = history.TimeOf([]byte(session.JSONOf(s.Started)))
	}
	return found
}
