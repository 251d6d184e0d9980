package codex

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"sessiond/internal/dialect/responses"
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// take turns one line, of a size in the file, into what it becomes.
func (r *reader) take(line []byte, at int64, size int) error {
	if own, rec, ok := r.held.Take(at); ok && bytes.Equal(own, line) && !history.DeeperThan(own, history.MaxDepth) {
		return r.placed(&rec, at)
	}
	small := len(line) < 64<<10
	if small { // a reply's items are kept until it is whole
		line = bytes.Clone(line)
	}
	o, exact, ok := history.ParseLine(line)
	switch {
	case size > history.MaxLine:
		r.skip(history.SkipLarge)
		r.problem(r.state.Line, "the line is over 64 MiB; left out")
		return r.closeReply("")
	case !ok && len(bytes.TrimSpace(line)) == 0:
		r.skip(history.SkipBlank)
		return nil
	case !ok:
		return r.verbatim(line, "not a JSON object")
	case history.DeeperThan(line, history.MaxDepth):
		return r.verbatim(line, "nested too deep")
	}
	raw := line
	if !exact {
		raw = []byte(o.JSON())
	}
	rec := recordOf(o, raw)
	if rec.isReply() && !small {
		raw = bytes.Clone(raw)
		o, _ = history.Fields(raw)
		rec = recordOf(o, raw)
	}
	if !exact {
		rec.bytes = bytes.Clone(line)
	}
	return r.placed(&rec, at)
}

// placed takes a record at its place in the file.
func (r *reader) placed(rec *record, at int64) error {
	rec.offset, rec.number, rec.cuts = at, r.state.Line, r.cuts
	if rec.timed {
		r.state.LastAt = rec.at
	} else {
		rec.at = r.state.LastAt
	}
	return r.record(rec)
}

// skip counts a record that leaves no trace.
func (r *reader) skip(reason string) { r.batch.Records.Skip(reason, 1) }

// record dispatches by the kind of record.
func (r *reader) record(rec *record) error {
	if !rec.isReply() && !rec.isEcho() && !r.novel() {
		if err := r.closeReply(finishOf(rec)); err != nil {
			return err
		}
	}
	if done, err := r.copied(rec); done || err != nil {
		return err
	}
	if r.novel() && rec.kind != typeMeta {
		r.aside(rec, session.KindUnknown, "")
		return nil
	}
	switch rec.kind {
	case typeMeta:
		r.meta(rec)
	case typeFiller:
		r.skip(skipFiller)
	case typeItem:
		return r.item(rec)
	case typeEvent:
		r.event(rec)
	case typeContext:
		r.turnContext(rec)
	case typeCompacted:
		r.compacted(rec)
	case typeUsage:
		r.usageRecord(rec)
	case typeAgents:
		r.betweenAgents(rec)
	case typeWorld:
		world, _ := history.Fields(rec.payload.Get("state"))
		if model := plainText(world.String("model")); model != "" {
			r.state.Model = model
		}
		r.aside(rec, session.KindCustom, "")
	case typeAgentMeta, "retained_context", "security_risk_score", "realtime_item", "rollout_reference":
		r.aside(rec, session.KindCustom, "")
	default:
		r.aside(rec, session.KindUnknown, "")
	}
	return nil
}

// novel tells whether the file is of a mode that nobody here knows: then nothing is guessed,
// and all records are kept as they are.
func (r *reader) novel() bool {
	return r.history != "" && r.history != "legacy" && r.history != paginated
}

// finishOf tells how a reply ended that this record comes after.
func finishOf(rec *record) session.Finish {
	if rec.kind == typeEvent && rec.sub == "turn_aborted" {
		return session.FinishAborted
	}
	return ""
}

// meta counts a header. The first of the file is the session itself.
func (r *reader) meta(rec *record) {
	switch {
	case rec.payload.String("id") != r.id:
		r.skip(skipOrigin)
	case r.headed:
		r.skip(skipHeader)
	case r.existing != nil:
		r.skip(history.SkipKnown)
	default:
		r.batch.Records.Import(1)
	}
	r.headed = true
}

// reply gathers the items of one reply.
type reply struct {
	items []*record
	keys  []string
	bytes int
}

// item takes one item of the conversation.
func (r *reader) item(rec *record) error {
	switch {
	case rec.sub == "ghost_snapshot":
		r.aside(rec, session.KindCustom, "")
		return nil
	case rec.isReply():
		r.reply.items = append(r.reply.items, rec)
		r.reply.keys = append(r.reply.keys, r.state.advance(rec))
		if r.reply.bytes += r.cuts.Size(rec.raw); r.reply.bytes > history.MaxBatchBytes {
			return r.closeReply("")
		}
		return nil
	}
	before, key := r.state.Tip, r.state.advance(rec)
	msgs, ok := r.decode(rec)
	if !ok {
		r.undecoded(rec, key)
		return nil
	}
	m := &msgs[len(msgs)-1]
	switch {
	case m.Role == session.User:
		r.user(rec, m, before)
	case m.Role == session.System:
		m.Display = false
	case m.Role == session.Tool:
		r.result(rec, m)
	case rec.sub == "agent_message":
		*m = agentMessage(rec)
		r.state.beginTurn(before)
	case m.Kind == session.KindUnknown:
		m.InContext = false
		if rec.sub == "configuration_update" || rec.sub == "additional_tools" || rec.sub == "compaction_summary" || rec.sub == "context_compaction" {
			m.Kind, m.Display = session.KindCustom, false
		}
	}
	r.add(msgs, []string{key}, []*record{rec})
	return nil
}

// decode reads items in the dialect of the provider, so that they can be given back as the
// model saw them. ok is false when that form does not hold them. The messages are good until
// the next.
func (r *reader) decode(items ...*record) ([]session.Message, bool) {
	raw := make([]json.RawMessage, len(items))
	for i, rec := range items {
		raw[i] = rec.raw
	}
	decoded, err := r.decoder.Decode(raw)
	return decoded.Messages, err == nil && len(decoded.Messages) > 0
}

// closeReply gives the items of a reply as one message. It does nothing when there are none.
func (r *reader) closeReply(finish session.Finish) error {
	if len(r.reply.items) == 0 {
		return nil
	}
	open := r.reply
	r.reply = reply{}
	if done, err := r.copiedReply(&open); done || err != nil {
		return err
	}
	r.say(&open, finish)
	return nil
}

func (r *reader) say(open *reply, finish session.Finish) {
	msgs, ok := r.decode(open.items...)
	if !ok {
		for i, rec := range open.items {
			if msgs, ok := r.decode(rec); ok {
				r.finished(msgs, "")
				r.add(msgs, open.keys[i:i+1], open.items[i:i+1])
			} else {
				r.undecoded(rec, open.keys[i])
			}
		}
		return
	}
	r.finished(msgs, finish)
	r.add(msgs, open.keys, open.items)
	for _, rec := range open.items {
		r.state.opened(rec.payload.String("call_id"), rec.at)
	}
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
func (r *reader) undecoded(rec *record, key string) {
	m := session.Message{Kind: session.KindUnknown, Origin: session.Program, Display: true}
	r.problem(rec.number, "an item of the type "+strconv.Quote(plainText(rec.sub))+" that is not as it should be; kept raw")
	m.Extra = history.Object{{Key: "line", Raw: []byte(rec.line.JSON())}}.JSON()
	r.put(history.Message{Message: m}, key, rec, true)
}

// add puts the messages that records of the conversation became behind the tip. The last one
// has the key of the last record, by which what follows knows it.
func (r *reader) add(msgs []session.Message, keys []string, items []*record) {
	last := keys[len(keys)-1]
	for i := range msgs {
		m := history.Message{Message: msgs[i], Records: 1}
		key, rec := last, items[len(items)-1]
		if i < len(msgs)-1 {
			key = last + "/" + strconv.Itoa(i)
		} else {
			m.Records = len(items)
		}
		if i == 0 {
			rec = items[0]
		}
		if lines := envelopes(items); lines != nil && i == len(msgs)-1 {
			m.Extra = history.Object{{Key: "lines", Raw: lines}}.JSON()
		}
		if m.Kind == session.KindUnknown {
			r.put(m, key, rec, i == len(msgs)-1)
			continue
		}
		r.put(m, key, rec, false)
		if i < len(msgs)-1 {
			r.batch.Records.Imported--
			r.batch.Records.Read--
		}
	}
}

// envelopes keeps what stood around items, beside their times; nil where there was nothing.
func envelopes(items []*record) []byte {
	list, some := []byte{'['}, false
	for i, rec := range items {
		if i > 0 {
			list = append(list, ',')
		}
		around := history.Object{}
		if rec.line.Get("payload") != nil {
			around = rec.line.Without("timestamp", "type", "payload")
		}
		if rec.bytes != nil {
			around = append(around, history.Field{Key: "bytes", Raw: []byte(session.JSONOf(base64.StdEncoding.EncodeToString(rec.bytes)))})
		}
		some = some || len(around) > 0
		list = append(list, objectJSON(around)...)
	}
	if !some {
		return nil
	}
	return append(list, ']')
}

// put adds one message at the tip and counts its records.
func (r *reader) put(m history.Message, key string, rec *record, raw bool) {
	m.ExternalID, m.CreatedAt = key, rec.at
	m.ParentKey, m.ParentSession = r.state.Tip.Key, r.state.Tip.Session
	if m.Dialect == "" {
		m.Dialect = "codex"
	}
	if r.inherits {
		m.Metadata = session.JSON(`{"inherited":true}`)
		if m.Origin == session.Person {
			m.Origin = session.Program
		}
		m.Display = false
	}
	r.batch.Messages = append(r.batch.Messages, m)
	r.size += history.Size(&m)
	r.state.Tip = place{Key: key}
	records := max(m.Records, 1)
	if raw {
		r.batch.Records.KeepRaw(records)
	} else {
		r.batch.Records.Import(records)
	}
	if m.Role == session.Assistant && m.Kind == session.KindMessage {
		r.spoken = key
	}
}

// user tells who made a message in the user's role.
func (r *reader) user(rec *record, m *session.Message, before place) {
	said := texts(rec.payload.Get("content"))
	kind := wrapperOf(said)
	witnessed := r.person[rec.number]
	m.Origin = session.Program
	switch {
	case r.state.Summary != "" && r.digestOf(strings.Join(said, "\n")) == r.state.Summary:
	case kind == wrapsShell:
		m.Kind, m.Origin = session.KindBash, session.Person
	case kind == wrapsAbort:
	case witnessed, kind == "" && (!r.witnesses || r.history == paginated): // an aborted turn leaves no witness there
		if m.Origin = session.Person; r.agent {
			m.Origin = session.Program // the words of whoever started it
		}
		r.state.beginTurn(before)
		r.kept.say(strings.Join(said, "\n"))
		return
	default:
		m.Display = false
		r.kept.wrap(strings.Join(said, "\n"))
	}
}

// agentMessage is a message between agents.
func agentMessage(rec *record) session.Message {
	m := session.Message{
		Kind: session.KindMessage, Role: session.User, Origin: session.Program, Dialect: responses.Name, InContext: true, Display: true,
		Author: plainText(rec.payload.String("author")),
	}
	for _, text := range texts(rec.payload.Get("content")) {
		m.Parts = append(m.Parts, session.TextPart(text))
	}
	if len(m.Parts) == 0 {
		m.Parts = []session.Part{session.TextPart("")}
		m.InContext = false
	}
	m.Parts = m.Parts[:min(len(m.Parts), session.MaxParts)]
	m.Parts[0].Extra = history.Object{{Key: "item", Raw: rec.raw}}.JSON()
	return m
}
