package qwencode

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/history/geminicli"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// reader replays one session.
type reader struct {
	*history.Conversation
	in        *history.Intake
	tip       string             // the newest message
	messageOf map[string]string  // a row: the message that stands for it
	before    map[string]string  // a message: its parent
	says      map[string]string  // fingerprint of a content: the newest message that says it
	took      map[string]float64 // calls of tools: milliseconds
	response  *telemetry         // whose reply has not come
	call      history.Call       // of it
	told      bool               // telemetry tells of responses: what replies say does not count
}

// read is the replay of a session.
func read(in *history.Intake) {
	w := history.FirstEvent(in, func(*row) bool { return true })
	if w == nil {
		in.Fail(session.Errorf(session.Invalid,
			"no session of Qwen Code: its first lines hold no row with a uuid and a sessionId"))
		return
	}
	r := &reader{
		in: in, messageOf: map[string]string{}, before: map[string]string{}, says: map[string]string{},
		took: map[string]float64{},
	}
	history.EachEvent(in, r.begin(w), r.row)
	if r.response != nil && in.ReplyWaits(true, false) {
		in.LookAgain()
	} else {
		r.settle()
	}
	if r.Fresh() > 0 || r.Here == nil {
		r.Head = r.tip
	}
}

// begin begins the conversation of the first row, and returns its time.
func (r *reader) begin(w *row) (created session.Time) {
	if created = w.Time; !w.Timed {
		created = session.At(r.in.Found.ModifiedAt)
	}
	id := history.Plain(w.Session)
	new := history.NewSession{
		Source: session.SourceQwenCode, SourceID: id, CreatedAt: &created, Directory: history.Plain(w.CWD),
		GitBranch: history.Plain(w.Branch),
		Metadata: session.JSONOf(map[string]any{
			string(session.SourceQwenCode): map[string]string{"version": history.Plain(w.Version)},
		}),
	}
	if w.Agent != "" {
		new.SourceID, new.Kind = id+"/"+history.Plain(w.Agent), "subagent"
	}
	r.Conversation = r.in.Conversation(new)
	r.Silent, r.tip = skipSilent, r.Base()
	switch origin := history.Plain(w.Origin.Session); {
	case w.Agent != "":
		r.LinkOrAwait(id, session.ParentChild)
	case origin != "" && origin != id:
		if parent := r.LinkOrAwait(origin, session.ParentFork); parent != nil {
			r.ForkedFrom(parent)
		}
	}
	return created
}

// row reads one row. The parent of one whose parent is missing is the newest message.
func (r *reader) row(w *row) {
	if w.Line.Number == 1 && history.ParseHandover(w.Line.Bytes) != nil {
		r.system(w) // the title
		r.in.Skip(history.SkipHandedOver, 1)
		return
	}
	at, known := r.messageOf[w.Parent]
	if w.Parent != "" && !known || w.Wrong != "" {
		at = r.tip
	}
	var decode func() history.Decoded
	switch {
	case w.Wrong != "":
		decode = func() history.Decoded { return w.Raw(w.Wrong, session.SourceQwenCode) }
	case w.Type == "user" || w.Type == "tool_result":
		r.speak(w)
		decode = func() history.Decoded { return history.Alone(w.said(r.took)) }
	case w.Type == "assistant":
		r.speak(w)
		call := r.callOf(w)
		decode = func() history.Decoded { return w.reply(call) }
	case w.Type == "system":
		if r.telemetry(w) {
			r.messageOf[w.UUID] = at
			r.in.ImportOnce(r.Conversation, 1)
			return
		}
		overlays := r.system(w)
		decode = func() history.Decoded {
			d := history.Alone(w.message(session.KindCustom, "", session.Program))
			if d.Compactions = overlays; overlays != nil {
				m := &d.Messages[0]
				m.Kind, m.Display, m.Parts = session.KindMarker, true, []session.Part{session.TextPart(overlays[0].Summary)}
			}
			return d
		}
	default:
		decode = func() history.Decoded { return w.Raw("unknown type of row", session.SourceQwenCode) }
	}
	r.before[w.Key], r.messageOf[w.UUID], r.tip = at, w.Key, w.Key
	r.Add(w.Entry(at, decode))
}

// speak notes what a message of the conversation says.
func (r *reader) speak(w *row) { r.Silent, r.says[print(w.Message.Parts)] = "", w.Key }

func print(parts jsontext.Value) string {
	return jsonx.Fingerprint(jsonx.Object{{Key: "parts", Value: []byte(parts)}})
}

// parts decodes what a row says.
func (w *row) parts() []session.Part {
	if w.Message.Parts == nil {
		return geminicli.DecodeParts(w.Message.Content)
	}
	return geminicli.DecodeParts(w.Message.Parts)
}

// said makes the message of what a person, the program or a tool says. took are durations of calls.
func (w *row) said(took map[string]float64) session.Message {
	m := w.message(session.KindMessage, session.User, session.Person)
	m.Parts = w.parts()
	if w.Type == "tool_result" {
		m.Role, m.Origin = session.Tool, session.ByTool
	} else if w.Agent != "" || cmp.Or(w.Provenance, "real_user") != "real_user" || w.Provenance == "" && w.Subtype != "" {
		m.Origin = session.Program
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind == session.PartToolResult && w.Result.Status != "" {
			p.IsError = new(w.Result.Status != "success")
		}
		if ms, ok := took[p.CallID]; ok && p.Kind == session.PartToolResult {
			p.DurationMS = new(int64(ms))
		}
	}
	return m
}

// reply makes the message of a reply with its ledger row.
func (w *row) reply(call history.Call) history.Decoded {
	m := w.message(session.KindMessage, session.Assistant, session.Model)
	m.Provider, m.Model, m.Parts, m.Finish = call.Provider, history.Plain(w.Model), w.parts(), session.FinishStop
	if len(m.Calls()) > 0 {
		m.Finish = session.FinishToolCalls
	}
	d := history.Alone(m)
	if call.MessageKey = w.Key; call.ContextTokens() > 0 {
		d.Calls = []history.Call{call}
	}
	return d
}

// callOf makes the ledger row of a reply: of the telemetry before it, or of its own usage where no
// telemetry tells it.
func (r *reader) callOf(w *row) history.Call {
	t, u := r.response, w.Usage
	if w.Agent != "" && w.Model == "" && !r.told {
		return w.call("", 0, 0, 0, 0) // the session's own file has them, with their model
	}
	if t != nil && t.Event.Agent == "" && (u == nil || t.Event.Input == u.Prompt && t.Event.Output == u.Candidates) {
		r.response = nil
		return r.call
	}
	if u == nil || r.told {
		u = &usage{}
	}
	r.settle()
	return w.call(w.Model, u.Prompt+u.Input, u.Cached, u.Candidates+u.Output, u.Thoughts)
}

// telemetry reads what a row tells of a response, which is its ledger row alone, or of how long a call
// of a tool took. It returns false for anything else.
func (r *reader) telemetry(w *row) bool {
	var t telemetry
	if w.Subtype != "ui_telemetry" || jsonx.Unmarshal(w.Payload, &t) != nil {
		return false
	}
	switch t.Event.Name {
	case "qwen-code.tool_call":
		r.took[history.Plain(t.Event.Call)] = t.Event.Duration
	case "qwen-code.api_response":
		r.settle()
		r.response, r.call, r.told = &t, t.call(w), true
		return true
	}
	return false
}

// settle adds the call of a response that no reply followed.
func (r *reader) settle() {
	if r.response == nil {
		return
	}
	r.response = nil
	r.Call(r.call)
}

// system reads a title or the overlay of a compression; nil: it makes none.
func (r *reader) system(w *row) []history.Compaction {
	var title struct {
		Custom string `json:"customTitle"`
	}
	if w.Subtype == "custom_title" && jsonx.Unmarshal(w.Payload, &title) == nil {
		r.Title = cmp.Or(history.FirstLine(history.Plain(title.Custom)), r.Title)
	}
	var d compression
	if w.Subtype != "chat_compression" || jsonx.Unmarshal(w.Payload, &d) != nil || len(d.History) == 0 {
		return nil
	}
	o := history.Compaction{Key: w.Key, ThroughKey: w.Key, Record: history.Place{Key: w.Key}}
	o.CreatedAt, o.TokensBefore, o.TokensAfter = w.Time, int64(d.Info.Before), int64(d.Info.After)
	var texts []string
	for i, content := range d.History {
		if kept := r.says[print(content.Parts)]; i > 0 && r.before[kept] != "" {
			o.ThroughKey, o.FirstKeptKey = r.before[kept], kept
			break
		}
		if content.Role == "user" {
			m := session.Message{Parts: geminicli.DecodeParts(content.Parts)}
			texts = append(texts, m.Text())
		}
	}
	o.Summary = strings.Join(texts, "\n")
	return []history.Compaction{o}
}
