package codex

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/responses"
	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// reply gathers the items of one reply.
type reply struct {
	items []*record
	keys  []string
	bytes int
}

// item takes one item of the conversation.
func (r *reader) item(rec *record) {
	switch {
	case rec.sub == "ghost_snapshot":
		r.aside(rec, session.KindCustom, "")
		return
	case rec.isReply():
		r.reply.items = append(r.reply.items, rec)
		r.reply.keys = append(r.reply.keys, r.state.advance(rec))
		if r.reply.bytes += len(rec.raw); r.reply.bytes > history.MaxBatchBytes {
			r.closeReply("")
		}
		return
	}
	before, key := r.state.Tip, r.state.advance(rec)
	who := speaker{}
	switch {
	case rec.isUser():
		who = r.user(rec, before)
	case rec.sub == "agent_message":
		r.state.beginTurn(before)
	}
	r.put(key, rec, 1, func() history.Decoded {
		msgs, ok := r.decode(rec)
		if !ok {
			return r.undecoded(rec)
		}
		m := &msgs[len(msgs)-1]
		switch {
		case m.Role == session.User && rec.isUser():
			who.name(m)
		case m.Role == session.System:
			m.Display = false
		case m.Role == session.Tool:
			result(rec, m, r.state.Calls)
		case rec.sub == "agent_message":
			*m = agentMessage(rec)
		case m.Kind == session.KindUnknown:
			m.InContext = false
			if rec.sub == "configuration_update" || rec.sub == "additional_tools" || rec.sub == "compaction_summary" ||
				rec.sub == "context_compaction" {
				m.Kind, m.Display = session.KindCustom, false
			}
		}
		return together(msgs, key, []*record{rec})
	})
	delete(r.state.Calls, rec.payload.String("call_id"))
}

// decode reads items in the dialect of the provider, so that they can be given back as the
// model saw them. ok is false when that form does not hold them. The messages are good until
// the next.
func (r *reader) decode(items ...*record) ([]session.Message, bool) {
	raw := make([]jsontext.Value, len(items))
	for i, rec := range items {
		raw[i] = rec.raw
	}
	decoded, err := responses.Decode(raw)
	return decoded.Messages, err == nil && len(decoded.Messages) > 0
}

// closeReply adds the items of a reply as one message. It does nothing when there are none.
func (r *reader) closeReply(finish session.Finish) {
	if len(r.reply.items) == 0 {
		return
	}
	open := r.reply
	r.reply = reply{}
	last := len(open.items) - 1
	records := 0 // without those that an earlier reading stored, which ended within the reply
	for _, rec := range open.items {
		if !r.in.Old(rec.offset) {
			records++
		}
	}
	r.put(open.keys[last], open.items[last], records, func() history.Decoded { return r.say(&open, finish) })
	if !r.state.Copying || r.inherits {
		r.spoken = open.keys[last]
	}
	for _, rec := range open.items {
		call := rec.payload.String("call_id")
		r.state.opened(call, rec.at)
		if rec.payload.String("name") == spawnTool {
			r.spawns[call] = open.keys[last]
		}
	}
}

func (r *reader) say(open *reply, finish session.Finish) history.Decoded {
	if msgs, ok := r.decode(open.items...); ok {
		r.finished(msgs, finish)
		if slices.ContainsFunc(open.items, r.isSummary) {
			for i := range msgs {
				msgs[i].Display = false // the compaction shows it
			}
		}
		return together(msgs, open.keys[len(open.keys)-1], open.items)
	}
	var all history.Decoded
	for i, rec := range open.items {
		one := r.undecoded(rec)
		if msgs, ok := r.decode(rec); ok {
			r.finished(msgs, "")
			one = together(msgs, open.keys[i], open.items[i:i+1])
		} else {
			one.Messages[0].ExternalID = open.keys[i]
		}
		all.Messages = append(all.Messages, one.Messages...)
		all.Raw = all.Raw || one.Raw
		if one.Problem != "" && all.Problem == "" && !r.in.Old(rec.offset) { // an earlier reading told of that
			all.Problem, all.Line = one.Problem, int(rec.number)
		}
	}
	return all
}

// isSummary reports whether an item is the text of a compaction, which its record repeats. Newer versions mark it.
func (r *reader) isSummary(rec *record) bool {
	return r.summaries[rec.offset] || string(rec.line.Inner("metadata").Get("compaction_output")) == "true"
}

// finished says who made a reply and how it ended.
func (r *reader) finished(msgs []session.Message, finish session.Finish) {
	for i := range msgs {
		m := &msgs[i]
		if m.Kind == session.KindUnknown {
			m.InContext = false
			continue
		}
		m.Provider, m.Model, m.Finish = r.state.Provider, r.state.Model, finish
		if finish != "" || i < len(msgs)-1 {
			continue
		}
		results, says := map[string]bool{}, false
		for _, p := range m.Results() {
			results[p.CallID] = true
		}
		for j := range m.Parts {
			switch p := &m.Parts[j]; {
			case p.Kind == session.PartToolCall && !results[p.CallID]:
				m.Finish = session.FinishToolCalls
			case p.Kind == session.PartText:
				says = true
			}
		}
		if m.Finish == "" && says {
			m.Finish = session.FinishStop
		}
	}
}

// undecoded keeps an item that the dialect cannot hold, on its place in the conversation.
func (r *reader) undecoded(rec *record) history.Decoded {
	m := session.Message{Kind: session.KindUnknown, Origin: session.Program, Display: true, CreatedAt: rec.at}
	m.Extra = keepLine(rec.line)
	d := history.Alone(m)
	d.Raw, d.Problem = true,
		"an item of type "+strconv.Quote(plainText(rec.sub))+" whose fields have an unknown form; kept raw"
	return d
}

// together makes the messages that records became into one entry. The last one has the key of
// the last record, by which what follows knows it.
func together(msgs []session.Message, key string, items []*record) history.Decoded {
	var d history.Decoded
	for i := range msgs {
		m := history.Message{Message: msgs[i]}
		m.ExternalID, m.CreatedAt = key, items[len(items)-1].at
		if i < len(msgs)-1 {
			m.ExternalID = key + "/" + strconv.Itoa(i)
		} else if lines := envelopes(items); lines != nil {
			m.Extra = jsonx.Object{{Key: "lines", Value: lines}}.Column()
		}
		if i == 0 {
			m.CreatedAt = items[0].at
		}
		d.Raw = m.Kind == session.KindUnknown
		d.Messages = append(d.Messages, m)
	}
	return d
}

// envelopes keeps what stood around items, beside their times; nil where there was nothing.
func envelopes(items []*record) []byte {
	list, some := []byte{'['}, false
	for i, rec := range items {
		if i > 0 {
			list = append(list, ',')
		}
		around := jsonx.Object{}
		if rec.line.Get("payload") != nil {
			around = rec.line.Without("timestamp", "type", "payload")
		}
		if rec.bytes != nil {
			around = append(around, jsonx.Member{
				Key:   "bytes",
				Value: []byte(session.JSONOf(base64.StdEncoding.EncodeToString(rec.bytes))),
			})
		}
		some = some || len(around) > 0
		list = append(list, around.Value()...)
	}
	if !some {
		return nil
	}
	return append(list, ']')
}

// speaker says who made a message in the user's role.
type speaker struct {
	kind   session.Kind // "": as it is
	origin session.Origin
	hidden bool
}

func (s speaker) name(m *session.Message) {
	m.Origin = s.origin
	if s.kind != "" {
		m.Kind = s.kind
	}
	if s.hidden {
		m.Display = false
	}
}

// user returns who made a message in the user's role.
func (r *reader) user(rec *record, before string) speaker {
	said := texts(rec.payload.Get("content"))
	kind := wrapperOf(said)
	witnessed := r.person[rec.offset]
	switch {
	case r.state.Summary != "" && digestOf(strings.Join(said, "\n")) == r.state.Summary:
	case kind == wrapsShell:
		return speaker{kind: session.KindBash, origin: session.Person}
	case kind == wrapsAbort:
	case witnessed, kind == "" && (!r.witnesses || r.history == paginated): // an aborted turn leaves no witness there
		r.state.beginTurn(before)
		r.kept.say(strings.Join(said, "\n"))
		if r.agent { // the words of the session that started it
			return speaker{origin: session.Program}
		}
		return speaker{origin: session.Person}
	default:
		r.kept.wrap(strings.Join(said, "\n"))
		return speaker{origin: session.Program, hidden: true}
	}
	return speaker{origin: session.Program}
}

// agentMessage is a message between agents.
func agentMessage(rec *record) session.Message {
	m := session.Message{
		Kind: session.KindMessage, Role: session.User, Origin: session.Program, Dialect: responses.Name, InContext: true,
		Display: true,
		Author:  plainText(rec.payload.String("author")),
	}
	for _, text := range texts(rec.payload.Get("content")) {
		m.Parts = append(m.Parts, session.TextPart(text))
	}
	if len(m.Parts) == 0 {
		m.Parts = []session.Part{session.TextPart("")}
		m.InContext = false
	}
	m.Parts = m.Parts[:min(len(m.Parts), session.MaxParts)]
	m.Parts[0].Extra = jsonx.Object{{Key: "item", Value: rec.raw}}.Column()
	return m
}

// result adds to a tool's output what it says of its run: whether it failed and how long it
// took; else the time since the call was written is taken for that.
func result(rec *record, m *session.Message, began map[string]int64) {
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != session.PartToolResult {
			continue
		}
		code, known, seconds := runOf(p.Content())
		if known && p.IsError == nil {
			p.IsError = new(code != 0)
		}
		at, open := began[p.CallID]
		switch {
		case seconds >= 0:
			p.DurationMS = new(int64(math.Round(seconds * 1000)))
		case open && rec.timed:
			if ms := rec.at.UnixMilli() - at; ms >= 0 {
				p.DurationMS = &ms
			}
		}
	}
}

// headOf is how far into an output its run is looked for.
const headOf = 400

// runOf reads what Codex writes of a command's run: older versions {"output", "metadata":
// {"exit_code", "duration_seconds"}}, newer ones lines before the output. seconds is -1 where
// it is not said.
func runOf(output string) (code int64, known bool, seconds float64) {
	if o, ok := jsonx.ReadObject([]byte(output)); ok {
		metadata, is := jsonx.ReadFields(o.Get("metadata"))
		if !is {
			return 0, false, -1
		}
		exit, said := history.Number(metadata.Get("exit_code"))
		took, timed := history.Number(metadata.Get("duration_seconds"))
		if !timed || took < 0 || took > maxSeconds {
			took = -1
		}
		return int64(exit), said, took
	}
	head := output[:min(len(output), headOf)]
	seconds = -1
	if found := wallTimeLine.FindStringSubmatch(head); found != nil {
		if n, err := strconv.ParseFloat(found[1], 64); err == nil && n <= maxSeconds {
			seconds = n
		}
	}
	if found := exitCodeLine.FindStringSubmatch(head); found != nil {
		n, err := strconv.ParseInt(found[1], 10, 32)
		return n, err == nil, seconds
	}
	return 0, false, seconds
}

const maxSeconds = 1e7

var (
	wallTimeLine = pattern.New(`(?m)^Wall time: ([0-9]+(?:\.[0-9]+)?) seconds`)
	exitCodeLine = pattern.New(`(?m)^(?:Process exited with code|Exit code:) (-?[0-9]+)`)
)
