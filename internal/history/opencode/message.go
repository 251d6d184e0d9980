package opencode

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// resultsSuffix ends the external id of the results of a step: the step's own and this.
const resultsSuffix = "#r"

// decode returns what is stored of a message: a message, or for a reply that called tools two for
// each of its steps. author is who wrote the prompts of the session.
func decode(r *record, in *message, author session.Origin) (d history.Decoded) {
	if r.why != "" {
		return history.Decoded{Messages: []history.Message{verbatim(r, in)}}
	}
	o := in.data.Object
	pieces := segments(in.parts, r.role)
	for i := range pieces {
		s := &pieces[i]
		base := session.Message{
			Kind: session.KindMessage, Dialect: "opencode", CreatedAt: r.at, ExternalID: r.segmentKey(i), InContext: true,
			Display: true, Parts: s.says,
		}
		switch r.role {
		case "assistant":
			reply(&base, r, o)
			if len(s.results) > 0 && base.Finish == "" {
				base.Finish = session.FinishToolCalls
			}
		case "system":
			base.Role, base.Origin = session.System, session.Program
		case "marker":
			base.Kind, base.Origin, base.InContext = session.KindMarker, session.Program, false
		default:
			prompt(&base, r, o, in.parts, author)
		}
		if i == 0 {
			base.Extra = extraOf(r, o.Without("id", "sessionID"), s.aside)
		} else {
			base.Extra = extraOf(nil, nil, s.aside)
		}
		d.Messages = append(d.Messages, history.Message{Message: base})
		if len(s.results) > 0 {
			d.Messages = append(d.Messages, history.Message{Message: session.Message{
				Kind: session.KindMessage, Role: session.Tool, Origin: session.ByTool, Dialect: "opencode",
				CreatedAt:  endOf(s, r.at),
				ExternalID: base.ExternalID + resultsSuffix, InContext: true, Display: true, Parts: s.results,
			}})
		}
	}
	for i := range len(d.Messages) - 2 { // the reply ends with its last step
		if m := &d.Messages[i].Message; m.Role == session.Assistant {
			m.Finish = session.FinishToolCalls
		}
	}
	if r.role == "assistant" {
		if call := callOf(r, o, in.parts); call != nil {
			d.Calls = []history.Call{*call}
		}
	}
	return d
}

// reply fills in what opencode says of a model's message.
func reply(m *session.Message, r *record, o jsonx.Object) {
	m.Role, m.Origin = session.Assistant, session.Model
	m.Provider, m.Model = clean(o.String("providerID")), clean(o.String("modelID"))
	m.Finish = finishOf(o.String("finish"), o.Get("error"))
	if r.open {
		m.Finish = session.FinishAborted // its program died
	}
	if r.summary {
		m.InContext, m.Display = false, false // the overlay says it
	}
	if len(m.Parts) == 0 {
		if text := errorText(o.Get("error")); text != "" {
			m.Parts = []session.Part{{Kind: session.PartData, Text: text}}
		}
	}
}

// finishes are the ways in which a reply ends, by the names of opencode and of its errors.
var finishes = map[string]session.Finish{
	"stop": session.FinishStop, "tool-calls": session.FinishToolCalls, "length": session.FinishLength,
	"error":          session.FinishError,
	"content-filter": session.FinishRefusal, "MessageAbortedError": session.FinishAborted,
	"aborted":                  session.FinishAborted,
	"MessageOutputLengthError": session.FinishLength, "ContentFilterError": session.FinishRefusal,
}

func finishOf(finish string, failure []byte) session.Finish {
	if !isSet(failure) {
		return finishes[finish]
	}
	e, _ := jsonx.ReadFields(failure)
	return cmp.Or(finishes[cmp.Or(e.String("name"), e.String("type"))], session.FinishError)
}

// prompt fills in who made a message in the user's role: a text that opencode wrote is marked.
func prompt(m *session.Message, r *record, o jsonx.Object, parts []part, author session.Origin) {
	m.Role, m.Origin = session.User, author
	if r.request {
		m.Kind, m.Role, m.Origin, m.InContext = session.KindMarker, "", session.Program, false
		m.Parts = append(m.Parts, session.Part{Kind: session.PartData, Text: "asked for a summary"})
		return
	}
	written, texts := 0, 0
	for _, p := range parts {
		if p.String("type") != "text" {
			continue
		}
		if texts++; string(p.Get("synthetic")) == "true" {
			written++
		}
	}
	if texts > 0 && texts == written {
		m.Origin = session.Program
	}
	if o.String("type") == "shell" {
		m.Kind, m.Origin = session.KindBash, session.Person
	}
	shown := false
	for i := range m.Parts {
		shown = shown || m.Parts[i].Kind != session.PartData
	}
	m.InContext = shown
}

// extraOf keeps what no column says: the message's own fields, parts that say nothing, and
// what it is known by.
func extraOf(r *record, rest jsonx.Object, aside []jsontext.Value) session.JSON {
	var extra jsonx.Object
	if r != nil {
		extra = append(extra, jsonx.MemberOf("hash", r.hash))
		rest = slices.Clone(rest)
		for i := range rest {
			switch rest[i].Key {
			case "error":
				rest[i].Value = withoutHeaders(rest[i].Value)
			case "summary":
				rest[i].Value = withoutDiffs(rest[i].Value)
			}
		}
		if r.open {
			extra = append(extra, jsonx.MemberOf("note", "not finished when it was imported"))
		}
	}
	if len(rest) > 0 {
		extra = append(extra, jsonx.Member{Key: "message", Value: raw(rest.Column())})
	}
	if len(aside) > 0 {
		extra = append(extra, jsonx.Member{Key: "parts", Value: jsonx.Array(aside)})
	}
	return extra.Column()
}

// withoutDiffs keeps of a summary of changes which files they were: with their texts before
// and after they can be megabytes, and the tools' calls say them, too.
func withoutDiffs(summary []byte) []byte {
	o, ok := jsonx.ReadFields(summary)
	if !ok {
		return summary
	}
	diffs, ok := jsonx.ReadArray(o.Get("diffs"))
	if !ok {
		return summary
	}
	for i, diff := range diffs {
		if fields, ok := jsonx.ReadFields(diff); ok {
			diffs[i] = fields.Without("before", "after", "patch").Value()
		}
	}
	return o.With("diffs", jsonx.Array(diffs)).Column()
}

// endOf returns the time of the last result of a step.
func endOf(s *segment, at session.Time) session.Time {
	for i := range s.says {
		var extra struct {
			State struct {
				Time struct {
					End jsontext.Value `json:"end"`
				} `json:"time"`
			} `json:"state"`
		}
		if s.says[i].Kind == session.PartToolCall && json.Unmarshal(s.says[i].Extra, &extra) == nil {
			if end, ok := history.UnixMilli(extra.State.Time.End); ok && end.After(at.Time) {
				at = end
			}
		}
	}
	return at
}

// verbatim keeps a message as text, out of the context and beside the path.
func verbatim(r *record, in *message) history.Message {
	text := in.data.plain()
	for i := range in.parts {
		text += "\n" + in.parts[i].plain()
	}
	m := history.Verbatim([]byte(text), r.why)
	m.Dialect, m.ExternalID, m.CreatedAt = "opencode", r.key, r.at
	o, _ := jsonx.ReadFields(m.Extra)
	m.Extra = o.With("hash", session.JSONOf(r.hash)).Column()
	return history.Message{Message: m}
}

// usageOf reads what a reply used, or one step of it. Until 1.3 opencode's output held the
// reasoning, later it does not: the total tells. Rows of version 2, which have a type, have no total.
func usageOf(o jsonx.Object) session.Call {
	u := o.Inner("tokens")
	cache := u.Inner("cache")
	c := session.Call{
		InputTokens: history.Count(u.Get("input")), OutputTokens: history.Count(u.Get("output")),
		ReasoningTokens: history.Count(u.Get("reasoning")),
		CacheReadTokens: history.Count(cache.Get("read")), CacheWriteTokens: history.Count(cache.Get("write")),
	}
	total, version2 := history.Count(u.Get("total")), o.String("type") == "assistant" || o.String("type") == "compaction"
	if version2 || total > 0 && total == c.ContextTokens()+c.ReasoningTokens {
		c.OutputTokens += c.ReasoningTokens
	}
	if cost, ok := history.NanoUSD(o.Get("cost")); ok {
		c.CostNanoUSD = &cost
	}
	return c
}

// callOf returns the model call of a reply, nil if it used nothing. A message of several steps may
// tell only the last one's usage: then its steps say more.
func callOf(r *record, o jsonx.Object, parts []part) *history.Call {
	c, steps, n := usageOf(o), session.Call{}, 0
	for _, step := range parts {
		if step.String("type") != "step-finish" {
			continue
		}
		s := usageOf(step.Object)
		n++
		steps.InputTokens, steps.OutputTokens, steps.ReasoningTokens = steps.InputTokens+s.InputTokens,
			steps.OutputTokens+s.OutputTokens, steps.ReasoningTokens+s.ReasoningTokens
		steps.CacheReadTokens, steps.CacheWriteTokens = steps.CacheReadTokens+s.CacheReadTokens,
			steps.CacheWriteTokens+s.CacheWriteTokens
		if s.CostNanoUSD != nil && steps.CostNanoUSD != nil {
			*s.CostNanoUSD += *steps.CostNanoUSD
		}
		steps.CostNanoUSD = cmp.Or(s.CostNanoUSD, steps.CostNanoUSD)
	}
	if n > 1 && steps.ContextTokens() > c.ContextTokens() {
		c = steps
		c.Metadata, c.Sum = session.JSONOf(map[string]string{"note": fmt.Sprintf("the sum of its %d steps", n)}), true
	}
	if own := steps.CostNanoUSD; own != nil && c.CostNanoUSD != nil && *own < *c.CostNanoUSD &&
		slices.ContainsFunc(parts, startsSession) {
		c.CostNanoUSD = own // Kilo adds the cost of a sub-agent, which has its own session
	}
	if c.ContextTokens() == 0 && (c.CostNanoUSD == nil || *c.CostNanoUSD == 0) {
		return nil
	}
	c.CreatedAt, c.Provider, c.Model = r.at, clean(o.String("providerID")), clean(o.String("modelID"))
	if r.summary {
		c.Purpose = session.PurposeSummary
	}
	if r.failed {
		c.Status, c.Error = session.CallFailed, errorText(o.Get("error"))
	}
	if end, ok := history.UnixMilli(o.Inner("time").Get("completed")); ok {
		if took := end.Sub(r.at.Time).Milliseconds(); took >= 0 {
			c.LatencyMS = &took
		}
	}
	// A fork's copy says the same, whatever its ids.
	c.ExternalID = "opencode:" + jsonx.Fingerprint(jsonx.Object{
		jsonx.MemberOf("at", r.at.UnixMilli()), jsonx.MemberOf("model", c.Provider+"/"+c.Model),
		jsonx.MemberOf("tokens", []int64{c.InputTokens, c.OutputTokens, c.CacheReadTokens, c.CacheWriteTokens}),
	})
	return &history.Call{Call: c, MessageKey: r.key}
}

// startsSession reports whether a part is a call that started the session of a sub-agent.
func startsSession(p part) bool {
	return p.String("type") == "tool" && p.Inner("state").Inner("metadata").String("sessionId") != ""
}

// total adds what the session's row says that it used in all, as one call, where there are replies of
// which none says it: Kilo CLI writes so, and opencode did for a while.
func (r *reader) total() {
	isReply := func(m *record) bool { return m.role == "assistant" && m.copyOf == nil }
	if r.waits || !slices.ContainsFunc(r.records, isReply) || r.records[0].copyOf != nil {
		return
	}
	number := func(key, column string) jsonx.Member {
		return jsonx.Member{Key: key, Value: orNull(r.about.row.Get("tokens_" + column))}
	}
	cache := jsonx.Object{number("read", "cache_read"), number("write", "cache_write")}
	tokens := jsonx.Object{
		number("input", "input"), number("output", "output"), number("reasoning", "reasoning"),
		{Key: "cache", Value: cache.Value()},
	}
	c := usageOf(jsonx.Object{
		jsonx.MemberOf("type", "assistant"),
		{Key: "cost", Value: r.about.row.Get("cost")},
		{Key: "tokens", Value: tokens.Value()},
	})
	if c.ContextTokens() == 0 && (c.CostNanoUSD == nil || *c.CostNanoUSD == 0) {
		return
	}
	if r.firstCall() != nil {
		return
	}
	c.CreatedAt, c.Provider, c.Model, c.Directory = r.about.created, r.about.provider, r.about.model,
		clean(r.about.directory)
	c.Metadata = session.JSONOf(map[string]string{"note": "the session's total: its messages do not say what they used"})
	c.ExternalID, c.Sum = "total:"+clean(r.about.id), true
	r.c.Call(history.Call{Call: c})
}
