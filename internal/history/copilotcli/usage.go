package copilotcli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// provider is who answers, but for a user's own provider.
const provider = "github-copilot"

// tokens are numbers of tokens. Input includes what the cache read and wrote, output the reasoning.
type tokens struct {
	Input      float64 `json:"inputTokens"`
	Output     float64 `json:"outputTokens"`
	CacheRead  float64 `json:"cacheReadTokens"`
	CacheWrite float64 `json:"cacheWriteTokens"`
	Reasoning  float64 `json:"reasoningTokens"`
}

// plus adds o to t, sign times.
func (t tokens) plus(o tokens, sign float64) tokens {
	return tokens{
		t.Input + sign*o.Input, t.Output + sign*o.Output, t.CacheRead + sign*o.CacheRead,
		t.CacheWrite + sign*o.CacheWrite, t.Reasoning + sign*o.Reasoning,
	}
}

// usage is what a session.usage_record or a compaction says of a call of a model.
type usage struct {
	tokens
	Model      string  `json:"model"`
	Duration   float64 `json:"duration"` // milliseconds
	APICall    string  `json:"apiCallId"`
	Own        bool    `json:"isByok"` // the user's own provider
	Provider   string  `json:"providerType"`
	Accounting struct {
		Session  string  `json:"sourceSessionId"`
		Sequence float64 `json:"sequence"`
		Usage    string  `json:"usageId"`
	} `json:"accounting"`
	Rest jsontext.Value `json:",embed"`

	// Names that older builds use for a compaction.
	OldInput  float64 `json:"input"`
	OldOutput float64 `json:"output"`
	OldCached float64 `json:"cachedInput"`
}

// call makes a ledger row. Its name is unique among all sessions.
func (r *reader) call(e *event, purpose session.Purpose, model, name string, t tokens) history.Call {
	return history.Call{Call: session.Call{
		Purpose: purpose, Status: session.CallOK, Source: session.SourceCopilotCLI, ExternalID: "copilot-cli:" + plain(name),
		Provider: provider, Model: plain(model), Directory: r.directory, CreatedAt: e.Time,
		InputTokens: int64(max(0, t.Input-t.CacheRead-t.CacheWrite)), CacheReadTokens: int64(t.CacheRead),
		CacheWriteTokens: int64(t.CacheWrite),
		OutputTokens:     int64(t.Output), ReasoningTokens: int64(min(t.Reasoning, t.Output)),
	}}
}

// call makes the ledger row of an event that says the usage of one call.
func (u *usage) call(r *reader, e *event, purpose session.Purpose) history.Call {
	name := r.id + ":" + e.Key
	if a := u.Accounting; a.Session != "" && a.Usage != "" {
		name = fmt.Sprintf("%s:%.0f:%s", a.Session, a.Sequence, a.Usage)
	}
	t := u.tokens
	t.Input, t.Output, t.CacheRead = t.Input+u.OldInput, t.Output+u.OldOutput, t.CacheRead+u.OldCached
	c := r.call(e, purpose, u.Model, name, t)
	if u.Own {
		c.Provider = cmp.Or(plain(u.Provider), provider)
	}
	if u.Duration > 0 {
		c.LatencyMS = new(int64(u.Duration))
	}
	c.Metadata = jsonx.Object{}.WithRest("usage", u.Rest).Column()
	return c
}

// used keeps a usage record for the reply that follows it.
func (r *reader) used(st *stream, e *event) {
	var d struct {
		Usage usage `json:"usage"`
	}
	if !e.decode(&d) {
		r.keepRaw(st, e)
		return
	}
	r.ledger.records = true
	r.settle(st)
	st.api, st.call = d.Usage.APICall, new(d.Usage.call(r, e, session.PurposeChat))
	r.in.ImportOnce(st.Conversation, 1)
}

// settle adds the call of a usage record that no reply followed.
func (r *reader) settle(st *stream) {
	if st.call == nil {
		return
	}
	c := *st.call
	st.call = nil
	st.Call(c)
}

// metrics is what a session.shutdown says of the models.
type metrics map[string]struct {
	Requests jsontext.Value `json:"requests"` // count, and cost: premium requests, not dollars
	Usage    tokens         `json:"usage"`
}

// ledger follows the totals that the end of each segment tells. A segment reaches from a start or
// resume to the next shutdown; the usage of one that has none is lost.
type ledger struct {
	before  map[string]tokens // by model: all earlier segments
	output  float64           // of the segment's replies
	records bool              // the segment has usage records, which count instead
}

// begin begins a segment.
func (l *ledger) begin() { l.output, l.records = 0, false }

// end returns what the segment used by model. The totals are those of all segments until then (1.0.78,
// 1.0.102) or the segment's own (1.0.45): then they say what its replies say, or less than before.
func (l *ledger) end(told metrics) map[string]tokens {
	since, spent, output, own := map[string]tokens{}, map[string]tokens{}, 0.0, false
	for model, t := range told {
		rest := t.Usage.plus(l.before[model], -1)
		since[model], spent[model] = rest, t.Usage
		output, own = output+t.Usage.Output, own ||
			min(rest.Input, rest.Output, rest.CacheRead, rest.CacheWrite, rest.Reasoning) < 0
	}
	if !own && output != l.output {
		spent = since
	}
	for model, t := range spent {
		l.before[model] = l.before[model].plus(t, 1)
	}
	if l.records {
		return nil
	}
	return spent
}

// shutdown ends a segment. Without usage records each model gets one ledger row, which is no
// message's.
func (r *reader) shutdown(e *event) {
	var d struct {
		Models   metrics `json:"modelMetrics"`
		Snapshot struct {
			Models metrics `json:"modelMetrics"`
		} `json:"accountingSnapshot"` // since 1.0.102
	}
	if !e.decode(&d) {
		r.keepRaw(r.main, e)
		return
	}
	if d.Models == nil {
		d.Models = d.Snapshot.Models
	}
	spent := r.ledger.end(d.Models)
	r.ledger.begin()
	var calls []history.Call
	for _, model := range slices.Sorted(maps.Keys(spent)) {
		if spent[model] == (tokens{}) {
			continue
		}
		c := r.call(e, session.PurposeChat, model, r.id+":"+e.Key+":"+model, spent[model])
		requests, _ := jsonx.ReadFields(d.Models[model].Requests)
		c.Sum = history.Count(requests.Get("count")) != 1
		c.Metadata = jsonx.Object{jsonx.MemberOf("total", "segment")}.WithRest("requests", d.Models[model].Requests).Column()
		calls = append(calls, c)
	}
	r.aside(r.main, e, calls...)
}
