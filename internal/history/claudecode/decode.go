package claudecode

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// decoded tells what a row becomes.
type decoded struct {
	messages []session.Message
	said     func() ([]session.Message, bool) // instead of messages; false: they are not as they should be
	rows     []*row                           // of a reply; nil: the one row
	behind   bool                             // what follows the row's parent goes on behind the row
	own      bool                             // no other session may have it
	problem  string
	overlay  *history.Compaction // that begins with it
}

// aside is a message out of the context, with its words, if it has some.
func aside(kind session.Kind, text string) session.Message {
	m := session.Message{Kind: kind, Origin: session.Program, Display: kind != session.KindCustom}
	if text != "" {
		m.Parts = []session.Part{session.TextPart(text)}
	}
	return m
}

// inUsersRole is a message of a text that the model sees as the user's.
func inUsersRole(kind session.Kind, origin session.Origin, text string) session.Message {
	return session.Message{
		Kind: kind, Role: session.User, Origin: origin, InContext: text != "", Display: kind == session.KindMessage,
		Parts: []session.Part{session.TextPart(text)},
	}
}

// put adds the messages of a row behind another one.
func (r *reader) put(st *stream, w *row, at place, d decoded) {
	key := r.nameInOrigin(st, w)
	_, again := st.before[key]
	st.messageOf[key], st.messageOf[w.uuid], st.tip = key, key, key
	if again {
		r.in.Skip(history.SkipDuplicate, max(len(d.rows), 1))
		return
	}
	st.before[key] = at.key
	if d.behind && at.key != "" {
		st.next[at.key] = key
	}
	st.Add(history.Entry{
		Key: key, Parent: at.key, At: w.offset, Line: w.number, Records: max(len(d.rows), 1), Own: d.own,
		Decode: func() history.Decoded { return r.decode(st, w, at, d) },
	})
	if st.Silent != "" && !d.own && (w.kind == typeUser || w.kind == typeAssistant) {
		if found, _ := st.Find(key); found.Session == "" { // the session says something of its own
			st.Silent = ""
		}
	}
}

// decode makes the messages of a row. The last one has the row's name.
func (r *reader) decode(st *stream, w *row, at place, d decoded) history.Decoded {
	out := history.Decoded{Problem: d.problem}
	if l, ok := w.limit(); ok {
		st.Limit(l)
	}
	add := func(m session.Message, of *row, name string) {
		st.describe(&m, of)
		m.ExternalID, m.CreatedAt = name, of.at
		m.Extra = r.rest(of, &m, at)
		if m.Dialect == "" {
			m.Dialect = string(session.SourceClaudeCode)
		}
		out.Messages = append(out.Messages, history.Message{Message: m})
		at = place{key: name}
	}
	messages := d.messages
	if d.said != nil {
		var ok bool
		if messages, ok = d.said(); !ok {
			out.Problem = "a message whose content has an unknown form; kept raw"
			if w.kind == typeAssistant {
				out.Problem = "a reply whose content has an unknown form; kept raw"
			}
			messages = []session.Message{aside(session.KindUnknown, "")}
			for i, of := range d.rows {
				m, ok := r.reply(d.rows[i : i+1])
				if !ok {
					m = []session.Message{aside(session.KindUnknown, "")}
					out.Line = cmp.Or(out.Line, of.number)
				}
				if messages = m; i < len(d.rows)-1 {
					add(m[0], of, of.uuid)
				}
			}
		}
	}
	out.Raw = out.Problem != "" || d.said == nil && messages[0].Kind == session.KindUnknown
	for i, m := range messages {
		name := ""
		if i < len(messages)-1 {
			name = w.uuid + "/" + string(rune('0'+i))
		}
		add(m, w, name)
	}
	if d.overlay != nil {
		out.Compactions = []history.Compaction{*d.overlay}
	}
	return out
}

// rest keeps, beside what the dialect keeps, the row's own fields that no column and no session
// says already. What a result repeats for display is left out where it is large.
func (r *reader) rest(w *row, m *session.Message, at place) session.JSON {
	drop := []string{"uuid", "timestamp", "isSidechain", "userType"}
	if m.Kind != session.KindUnknown {
		drop = append(drop, "message")
	}
	if m.Dialect == anthropic.Name {
		drop = append(drop, "rendered", "renderedRole") // the message says it
	}
	if w.kind == typeUser || w.kind == typeAssistant {
		drop = append(drop, "type") // the role says it
	}
	same := func(key, value string) {
		if w.String(key) == value {
			drop = append(drop, key)
		}
	}
	same("sessionId", r.trunk)
	same("session_id", r.trunk)
	same("cwd", r.cwd)
	same("gitBranch", r.branch)
	same("version", r.version)
	if at.key == w.parent && w.parent != "" || w.parent == "" && string(w.Get("parentUuid")) == "null" {
		drop = append(drop, "parentUuid")
	}
	line := w.Without(drop...)
	if display := line.Get("toolUseResult"); len(display) > session.BlobThreshold {
		left, o := jsonx.Object{jsonx.MemberOf("omitted_bytes", len(display))}, w.Inner("toolUseResult")
		for _, key := range []string{"agentId", "runId"} { // link what the call started
			if raw := o.Get(key); raw != nil {
				left = left.With(key, raw)
			}
		}
		line = line.With("toolUseResult", left.Column())
	}
	if !m.InContext && (m.Kind == session.KindUnknown || m.Kind == session.KindCustom) {
		line = shareLarge(line, m)
	}
	o, _ := jsonx.ReadFields(m.Extra)
	add := func(key string, raw []byte) { o = append(o, jsonx.Member{Key: key, Value: raw}) }
	if len(line) > 0 {
		add("line", []byte(line.Column()))
	}
	if at.note != "" {
		add("note", []byte(session.JSONOf(at.note)))
	}
	if w.bytes != nil {
		add("bytes", []byte(session.JSONOf(base64.StdEncoding.EncodeToString(w.bytes))))
	}
	return o.Column()
}

// leastShared is the size in bytes from which a value of a row of the program is stored once for all rows.
const leastShared = 1 << 10

// shareLarge moves large values of a line into parts of its message, as blobs: the program writes copies of its
// requests, whose tools and system prompts are the same in each. The line names them by their hashes.
func shareLarge(line jsonx.Object, m *session.Message) jsonx.Object {
	move := func(path string, raw []byte) []byte {
		sum := sha256.Sum256(raw)
		m.Parts = append(m.Parts, session.Part{
			Kind: session.PartData, Blob: &session.Blob{MediaType: "application/json", Data: raw},
			Extra: jsonx.Object{jsonx.MemberOf("line", path)}.Column(),
		})
		return []byte(jsonx.Object{jsonx.MemberOf("blob", hex.EncodeToString(sum[:]))}.Column())
	}
	line = slices.Clone(line)
	for i := range line {
		f := &line[i]
		if len(f.Value) < leastShared {
			continue
		}
		inner, isObject := jsonx.ReadFields(f.Value)
		if !isObject {
			f.Value = move(f.Key, f.Value)
			continue
		}
		inner = slices.Clone(inner)
		for k := range inner {
			if v := &inner[k]; len(v.Value) >= leastShared && len(m.Parts) < session.MaxParts {
				v.Value = move(f.Key+"."+v.Key, v.Value)
			}
		}
		f.Value = []byte(inner.Column())
	}
	return line
}

// said decodes an entry in the provider's dialect, so that it can be exported as the model saw it.
func (r *reader) said(message []byte) ([]session.Message, bool) {
	if len(message) == 0 {
		return nil, false
	}
	out, err := anthropic.Decode([]jsontext.Value{message})
	return out.Messages, err == nil && len(out.Messages) > 0
}

// close makes one message of the rows of a response.
func (r *reader) close(st *stream) {
	open := st.open
	if open == nil {
		return
	}
	st.open = nil
	last := open.last()
	goesOn := st.bill != nil && st.bill.id == open.id // behind the results of its own calls
	if st.bill != nil && !goesOn {
		r.settle(st)
	}
	st.spoken = true
	named := *last // a reply has the time of its first row, and the rest of its last
	named.at, named.parent = open.rows[0].at, open.rows[0].parent
	r.put(st, &named, open.at, decoded{
		rows: open.rows, behind: goesOn, overlay: st.superseded(open.rows),
		said: func() ([]session.Message, bool) { return r.reply(open.rows) },
	})
	for _, w := range open.rows {
		st.messageOf[w.uuid] = st.tip
		for _, o := range w.blocks {
			if o.String("type") != "tool_use" {
				continue
			}
			if call := plain(o.String("id")); call != "" && !w.at.IsZero() {
				st.called[call] = w.at.UnixMilli()
			}
			r.noteStarter(st, o)
		}
	}
	r.charge(st, open)
}

// reply decodes the rows of a response.
func (r *reader) reply(rows []*row) ([]session.Message, bool) {
	message, ok := whole(rows)
	if !ok {
		return nil, false
	}
	messages, ok := r.said(message)
	if !ok {
		return nil, false
	}
	m, last := messages[0], rows[len(rows)-1]
	m.Provider, m.Model = "anthropic", plain(last.message.String("model"))
	if last.made() {
		m.Provider, m.Model, m.Origin, m.InContext, m.Finish = "", "", session.Program, false, session.FinishError
	} else if m.Finish == "" && len(m.Calls()) > 0 {
		m.Finish = session.FinishToolCalls
	}
	if last.flag("isAbortedMidStream") {
		m.Finish = session.FinishAborted
	}
	return []session.Message{m}, true
}

// whole puts the pieces of a response together: the last one with the blocks of all. ok is false where one
// holds something else.
func whole(rows []*row) (message []byte, ok bool) {
	last := rows[len(rows)-1]
	if len(rows) == 1 {
		return last.message.Column(), true
	}
	var blocks []jsontext.Value
	for _, w := range rows {
		content := w.message.Get("content")
		elements, ok := jsonx.ReadArray(content)
		switch {
		case ok:
		case len(content) > 0 && content[0] == '"':
			text := jsonx.Object{{Key: "type", Value: []byte(`"text"`)}, {Key: "text", Value: content}}
			elements = []jsontext.Value{jsontext.Value(text.Column())}
		default:
			return nil, false
		}
		blocks = append(blocks, elements...)
	}
	all := append(jsonx.Object(nil), last.message...)
	for i := range all {
		if all[i].Key == "content" {
			all[i].Value = jsonx.Array(blocks)
		}
	}
	return all.Column(), true
}

// charge notes that a response has a newer message.
func (r *reader) charge(st *stream, open *reply) {
	first, last := open.rows[0], open.last()
	if b := r.bills[open.id]; last.made() || b == nil || !b.told {
		return
	}
	if st.bill == nil || st.bill.id != open.id {
		st.bill = &openCall{id: open.id, at: first.at, dir: plain(first.String("cwd"))}
	}
	st.bill.key, st.bill.ended = st.tip, false
	for _, w := range open.rows {
		st.bill.ended = st.bill.ended || w.endsReply()
	}
}

// settle puts a response on the ledger: nothing more comes of it.
func (r *reader) settle(st *stream) {
	if !r.in.Old(r.here) { // else an earlier reading did
		for _, call := range r.bills[st.bill.id].calls(st.bill) {
			st.Call(call)
		}
	}
	st.bill = nil
}

// user decodes a row in the user's role.
func (r *reader) user(st *stream, w *row, at place) {
	st.spoken = true
	says := w.speaker()
	if says == saysSummary {
		r.summary(st, w, at)
		return
	}
	meta := w.flag("isMeta") && says != saysPerson
	took := map[string]int64{} // by id of the call: since it was written
	for _, call := range w.answers() {
		if began, ok := st.called[call]; ok && w.timed {
			took[call] = w.at.UnixMilli() - began
		}
		delete(st.called, call)
		st.answered[call] = w.uuid
	}
	r.noteStarted(st, w)
	if st != r.main && w.parent == "" {
		call := r.main.prompts[r.digest(w.text)]
		r.main.Starts(w.offset, st.New.SourceID, r.main.starters[call], call)
	}
	r.put(st, w, at, decoded{behind: says == saysResult || meta, said: func() ([]session.Message, bool) {
		messages, ok := r.said(w.message.Column())
		for i := range messages {
			m := &messages[i]
			if m.Role != session.User {
				w.timeResults(m, took)
				continue
			}
			m.Origin, m.Display = session.Program, !meta && says != saysNotice
			switch {
			case says == saysPerson && r.isTrunk(st):
				m.Origin = session.Person
			case says == saysShell:
				m.Kind, m.Origin = session.KindBash, session.Person
			}
		}
		return messages, ok
	}})
}

// timeResults adds to results of tools how long they took: what the program says, else the time
// since the call was written.
func (w *row) timeResults(m *session.Message, took map[string]int64) {
	display := w.Inner("toolUseResult")
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != session.PartToolResult {
			continue
		}
		ms, ok := took[p.CallID]
		delete(took, p.CallID)
		for _, key := range []string{"durationMs", "totalDurationMs"} {
			if n, is := history.Number(display.Get(key)); is && n >= 0 && n < 1e12 {
				ms, ok = int64(n), true
			}
		}
		if ok && ms >= 0 {
			p.DurationMS = &ms
		}
	}
}

// system decodes a note of the program.
func (r *reader) system(st *stream, w *row, at place) {
	kind, text, subtype := session.KindMarker, plain(w.String("content")), w.String("subtype")
	orSubtype := cmp.Or(text, strings.TrimSpace(strings.ReplaceAll(subtype, "_", " ")))
	d := decoded{behind: true}
	switch subtype {
	case "compact_boundary":
		st.cut, d.behind = newCut(w), false
	case "turn_duration", "stop_hook_summary", "bridge_status":
		kind = session.KindCustom
	case "local_command":
		if command := session.CommandLine(text); command != "" {
			text = command
		}
	case "api_error":
		text = strings.TrimSpace("API error " + plain(w.Inner("error").String("message")))
	case "microcompact_boundary":
		text, d.overlay = orSubtype, st.clear(w)
	case "model_refusal_fallback", "api_refusal":
		text, d.overlay = orSubtype, st.retract(w, uuids(w.Get("retractedMessageUuids")))
	case "informational", "away_summary", "error", "session_start", "":
		text = orSubtype
	default:
		kind = session.KindUnknown
	}
	m := aside(kind, text)
	m.Display = m.Display && subtype != "compact_boundary"
	d.messages = []session.Message{m}
	r.put(st, w, at, d)
}

// attachment decodes text that the program put into the context, or a record of its own.
func (r *reader) attachment(st *stream, w *row, at place) {
	a := w.Inner("attachment")
	m := aside(session.KindCustom, "")
	if w.Get("rendered") != nil {
		r.rendered(st, w, at)
		return
	}
	switch a.String("type") {
	case "queued_command":
		m = inUsersRole(session.KindMessage, r.queuedBy(st, a), plain(promptOf(a)))
	case "file", "nested_memory", "edited_text_file", "hook_additional_context", "skill_listing", "invoked_skills",
		"deferred_tools_delta",
		"mcp_instructions_delta", "agent_listing_delta", "plan_mode", "plan_mode_exit", "task_reminder", "todo_reminder",
		"date_change",
		"compact_file_reference", "task_status", "read_truncation_notice", "dynamic_skill", "auto_mode", "ultra_effort_enter",
		"ultra_effort_exit", "total_tokens_reminder", "batching_reminder_sent", "silent_turn_reminder":
		if text := readable(a); text != "" {
			m = inUsersRole(session.KindCustomMessage, session.Program, text)
		}
	case "hook_success", "hook_non_blocking_error", "hook_blocking_error", "command_permissions", "goal_status",
		"budget_usd", "prompt_snapshot", "session_context", "deferred_tools_record":
	default:
		m = aside(session.KindUnknown, "")
	}
	r.put(st, w, at, decoded{messages: []session.Message{m}, behind: true})
}

// queuedBy returns who queued a command: a person, or a program.
func (r *reader) queuedBy(st *stream, a jsonx.Object) session.Origin {
	by := a.Inner("origin").String("kind")
	isWords := speakerOf(plain(promptOf(a))) == saysPerson && (by == "" || by == "human")
	if r.isTrunk(st) && isWords && a.String("commandMode") != "task-notification" {
		return session.Person
	}
	return session.Program
}

// rendered decodes an attachment of a version that writes what it sent for it, and in which role:
// that is the context, word for word. One for which nothing was sent is a record of its own.
func (r *reader) rendered(st *stream, w *row, at place) {
	var blocks []jsontext.Value
	sent, _ := jsonx.ReadArray(w.Get("rendered"))
	for _, e := range sent {
		content := jsonx.Object{}
		if o, ok := jsonx.ReadFields(e); ok {
			content = o
		}
		raw := content.Get("content")
		if elements, ok := jsonx.ReadArray(raw); ok {
			blocks = append(blocks, elements...)
		} else if text, _ := jsonx.Text(raw); text != "" {
			block := jsonx.Object{{Key: "type", Value: []byte(`"text"`)}, {Key: "text", Value: raw}}
			blocks = append(blocks, jsontext.Value(block.Column()))
		}
	}
	a := w.Inner("attachment")
	queued := a.String("type") == "queued_command"
	if len(blocks) == 0 {
		r.put(st, w, at, decoded{messages: []session.Message{aside(session.KindCustom, "")}, behind: true})
		return
	}
	role := string(session.User)
	if w.String("renderedRole") == string(session.System) && !queued {
		role = string(session.System)
	}
	r.put(st, w, at, decoded{behind: true, said: func() ([]session.Message, bool) {
		entry := jsonx.Object{jsonx.MemberOf("role", role), {Key: "content", Value: jsonx.Array(blocks)}}
		messages, ok := r.said(entry.Column())
		for i := range messages {
			m := &messages[i]
			m.Kind, m.Origin, m.Display = session.KindCustomMessage, session.Program, false
			if queued {
				m.Kind, m.Origin, m.Display = session.KindMessage, r.queuedBy(st, a), true
			}
		}
		return messages, ok && len(messages) == 1
	}})
}

// promptOf returns what a person typed while a turn ran.
func promptOf(a jsonx.Object) string { return textOf(a.Get("prompt")) }

// textOf returns the text of a content: a string, or a list of texts and blocks.
func textOf(content []byte) string {
	var w row
	w.parseBlocks(content)
	return w.text
}

// readable returns the text that an attachment brings, "" where it has none of its own.
func readable(a jsonx.Object) string {
	for _, key := range []string{"content", "text", "snippet", "message", "reminder", "file"} {
		raw := a.Get(key)
		text := textOf(raw)
		if inner, ok := jsonx.ReadFields(raw); ok {
			text = readable(inner)
		}
		if strings.TrimSpace(text) != "" {
			return plain(text)
		}
	}
	return ""
}
