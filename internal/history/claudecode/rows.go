package claudecode

import (
	"errors"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// row takes one row, whose place in the file is known.
func (r *reader) row(w *row) error {
	id, st := r.streamOf(w)
	if id != "" {
		if err := r.flush(); err != nil {
			return err
		}
		if w.kind != typeAssistant {
			if err := r.close(id, st); err != nil {
				return err
			}
		}
		return r.handle(id, st, w)
	}
	open := &st.reply
	switch {
	case len(open.rows) == 0:
	case w.reply() != "" && w.reply() == open.id && !w.made() && len(open.rows) < maxRows:
		return r.handle(id, st, w)
	case w.within() && len(r.queue) < maxQueue:
		r.queue = append(r.queue, w)
		return nil
	default:
		if err := r.flush(); err != nil {
			return err
		}
	}
	return r.handle(id, st, w)
}

// Bounds of a reply that is gathered: its rows, and rows that came up between them.
const (
	maxRows  = 512
	maxQueue = 64
)

// within tells whether a row may stand between the rows of one reply.
func (w *row) within() bool {
	data, _ := history.Fields(w.Get("data"))
	return w.uuid == "" && isState(w.kind) || w.kind == typeProgress && data.String("type") == "hook_progress"
}

// flush ends the reply of the file's own stream and takes the rows that waited behind it.
func (r *reader) flush() error {
	main := r.state.stream("")
	if err := r.close("", main); err != nil {
		return err
	}
	queue := r.queue
	r.queue = nil
	for _, w := range queue {
		if err := r.handle("", main, w); err != nil {
			return err
		}
	}
	return nil
}

// streamOf tells of which conversation a row is: the file's own, or a sub-agent's that stands
// in it.
func (r *reader) streamOf(w *row) (string, *stream) {
	id := ""
	if r.agent == "" && w.side && w.linked() {
		if agent := plain(w.String("agentId")); agent != "" {
			id = "agent-" + agent
		} else if of, ok := r.state.Side.get(w.parent); ok && w.parent != "" {
			id = of.Key
		} else {
			id = "side-" + w.uuid
		}
		put(&r.state.Side, w.uuid, place{Key: id})
	}
	return id, r.state.stream(id)
}

// handle turns a row into what it becomes.
func (r *reader) handle(id string, st *stream, w *row) error {
	if !w.linked() {
		return r.stateRow(id, st, w)
	}
	if done, err := r.repeated(st, w); done || err != nil {
		return err
	}
	switch w.kind {
	case typeAssistant:
		return r.assistant(id, st, w)
	case typeProgress:
		return r.progress(id, st, w)
	}
	at, note, err := r.attach(id, st, w)
	if err != nil {
		return err
	}
	switch w.kind {
	case typeUser:
		return r.user(id, st, w, at, note)
	case typeSystem:
		return r.system(id, st, w, at, note)
	case typeAttachment:
		return r.attachment(id, st, w, at, note)
	}
	r.pass(st, at, w.uuid)
	r.put(id, st, w, history.Message{Message: aside(session.KindUnknown, "")}, at, note, true)
	return nil
}

// attach finds the message that a row follows. Rows that hang on its parent and are passed by
// what comes after, such as the results of calls that ran side by side, lie before it.
func (r *reader) attach(id string, st *stream, w *row) (at place, note string, err error) {
	named := w.parent
	if named == "" && w.String("subtype") == "compact_boundary" {
		if named = plain(w.String("logicalParentUuid")); named == "" {
			return st.Tip, "", nil
		}
		if at, ok, err := r.resolve(id, st, named); ok || err != nil {
			return r.onward(st, at), "", err
		}
		return st.Tip, "", nil // it names a row of another file
	}
	switch {
	case named == w.uuid:
		return place{}, "it named itself as its parent", nil
	case named == "" && (!st.Spoken || w.kind != typeUser && w.kind != typeAssistant):
		return st.Tip, "", nil // behind states that begin a file, or a hook that begins a session anew
	case named == "":
		return place{}, "", nil
	}
	at, ok, err := r.resolve(id, st, named)
	switch {
	case err != nil:
		return at, "", err
	case !ok && r.continues && id == "":
		return at, "", errAnew
	case !ok:
		return place{}, "its parent is not in the file before it", nil
	}
	return r.onward(st, at), "", nil
}

// maxOnward ends a chain of passed rows, which a damaged state could make endless.
const maxOnward = 100_000

func (r *reader) onward(st *stream, at place) place {
	for range maxOnward {
		next, ok := st.Onward.get(at.Key)
		if !ok || at.Key == "" {
			break
		}
		at = next
	}
	return at
}

// resolve finds the message that stands for a row.
func (r *reader) resolve(id string, st *stream, uuid string) (place, bool, error) {
	if at, ok := st.Alias.get(uuid); ok {
		return at, true, nil
	}
	if uuid == st.Tip.Key {
		return st.Tip, true, nil
	}
	if st.batch != nil && st.batch.keys[uuid] {
		return place{Key: uuid}, true, nil
	}
	of, err := r.sessionOf(id)
	if err != nil || of == "" {
		return place{}, false, err
	}
	found, err := r.known.Message(r.ctx, of, uuid)
	return place{Key: uuid}, found != nil, err
}

// pass lets what follows a message go on behind a row that hangs on it.
func (r *reader) pass(st *stream, at place, key string) {
	if at.Key != "" {
		put(&st.Onward, at.Key, place{Key: key})
	}
}

// reply gathers the rows of one response.
type reply struct {
	id    string
	rows  []*row
	at    place
	note  string
	bytes int
}

// ended tells whether the response said that nothing more comes.
func (o *reply) ended() bool {
	switch o.rows[len(o.rows)-1].message.String("stop_reason") {
	case "end_turn", "stop_sequence", "max_tokens", "refusal", "model_context_window_exceeded":
		return true
	}
	return o.rows[len(o.rows)-1].made()
}

// assistant takes a row of a response.
func (r *reader) assistant(id string, st *stream, w *row) error {
	open := &st.reply
	if len(open.rows) > 0 && (w.reply() != open.id || w.made() || open.supersededBy(w)) {
		if err := r.close(id, st); err != nil {
			return err
		}
	}
	if len(open.rows) == 0 {
		at, note, err := r.attach(id, st, w)
		if err != nil {
			return err
		}
		*open = reply{id: w.reply(), at: at, note: note}
		if id == "" {
			r.hold = r.here()
		}
	}
	open.rows = append(open.rows, w)
	if open.bytes += w.size; open.bytes > history.MaxBatchBytes || len(open.rows) >= maxRows || w.made() {
		return r.close(id, st)
	}
	return nil
}

// user takes a row in the user's role.
func (r *reader) user(id string, st *stream, w *row, at place, note string) error {
	says := w.speaker()
	st.Spoken = true
	if says == saysSummary {
		r.summary(id, st, w, at, note)
		return nil
	}
	msgs, ok := r.decode(w.said())
	if !ok {
		r.problem("a message that is not as it should be; kept raw")
		r.put(id, st, w, history.Message{Message: aside(session.KindUnknown, "")}, at, note, true)
		return nil
	}
	for i := range msgs {
		m := &msgs[i]
		if m.Role != session.User {
			r.result(st, w, m)
			continue
		}
		m.Origin = session.Program
		switch says {
		case saysPerson:
			if id == "" && r.agent == "" {
				m.Origin = session.Person
			}
		case saysShell:
			m.Kind, m.Origin = session.KindBash, session.Person
		}
		m.Display = !w.flag("isMeta")
	}
	if says == saysResult || w.flag("isMeta") {
		r.pass(st, at, w.uuid)
	}
	r.putAll(id, st, w, msgs, at, note)
	return nil
}

// putAll adds the messages of one row. The last one has the row's name.
func (r *reader) putAll(id string, st *stream, w *row, msgs []session.Message, at place, note string) {
	for i := range msgs {
		m := history.Message{Message: msgs[i]}
		if i < len(msgs)-1 {
			m.ExternalID = w.uuid + "/" + string(rune('0'+i))
			r.put(id, st, w, m, at, note, false)
			st.batch.batch.Records.Read--
			st.batch.batch.Records.Imported--
			at, note = st.Tip, ""
			continue
		}
		r.put(id, st, w, m, at, note, false)
	}
}

// system takes a note of the program.
func (r *reader) system(id string, st *stream, w *row, at place, note string) error {
	text := plain(w.String("content"))
	m := aside(session.KindMarker, text)
	switch subtype := w.String("subtype"); subtype {
	case "compact_boundary":
		r.boundary(st, w)
		m.Display = false
		r.put(id, st, w, history.Message{Message: m}, at, note, false)
		return nil
	case "turn_duration", "stop_hook_summary", "bridge_status":
		m = aside(session.KindCustom, text)
	case "local_command":
		if command := commandOf(text); command != "" {
			m.Parts = []session.Part{session.TextPart(command)}
		}
	case "api_error":
		failure, _ := history.Fields(w.Get("error"))
		m.Parts = []session.Part{session.TextPart(strings.TrimSpace("API error " + plain(failure.String("message"))))}
	case "microcompact_boundary", "model_refusal_fallback", "api_refusal", "informational", "away_summary", "error", "session_start", "":
		if text == "" {
			m.Parts = []session.Part{session.TextPart(strings.TrimSpace(strings.ReplaceAll(subtype, "_", " ")))}
		}
	default:
		m.Kind = session.KindUnknown
	}
	r.pass(st, at, w.uuid)
	r.put(id, st, w, history.Message{Message: m}, at, note, m.Kind == session.KindUnknown)
	switch w.String("subtype") {
	case "microcompact_boundary":
		return r.cleared(id, st, w)
	case "model_refusal_fallback", "api_refusal":
		return r.retract(id, st, w, uuids(w.Get("retractedMessageUuids")))
	}
	return nil
}

// attachment takes text that the program put into the context, or a record of its own.
func (r *reader) attachment(id string, st *stream, w *row, at place, note string) error {
	a, _ := history.Fields(w.Get("attachment"))
	kind := a.String("type")
	m := session.Message{Kind: session.KindCustomMessage, Role: session.User, Origin: session.Program, InContext: true}
	raw := false
	switch kind {
	case "queued_command":
		text := plain(promptOf(a))
		m.Parts, m.Display, m.Kind = []session.Part{session.TextPart(text)}, true, session.KindMessage
		origin, _ := history.Fields(a.Get("origin"))
		if by := origin.String("kind"); speakerOf(text) == saysPerson && (by == "" || by == "human") && a.String("commandMode") != "task-notification" && r.agent == "" && id == "" {
			m.Origin = session.Person
		}
		m.InContext = text != ""
	case "file", "nested_memory", "edited_text_file", "hook_additional_context", "skill_listing", "invoked_skills", "deferred_tools_delta",
		"mcp_instructions_delta", "agent_listing_delta", "plan_mode", "plan_mode_exit", "task_reminder", "todo_reminder", "date_change",
		"compact_file_reference", "task_status", "read_truncation_notice", "dynamic_skill", "auto_mode", "ultra_effort_enter",
		"ultra_effort_exit", "total_tokens_reminder", "batching_reminder_sent", "silent_turn_reminder":
		if text := readable(a); text != "" {
			m.Parts = []session.Part{session.TextPart(text)}
		} else {
			m = aside(session.KindCustom, "")
		}
	case "hook_success", "hook_non_blocking_error", "hook_blocking_error", "command_permissions", "goal_status", "budget_usd":
		m = aside(session.KindCustom, "")
	default:
		m, raw = aside(session.KindUnknown, ""), true
	}
	r.pass(st, at, w.uuid)
	r.put(id, st, w, history.Message{Message: m}, at, note, raw)
	return nil
}

// readable gives the text that an attachment brings, "" where it has none of its own.
func readable(a history.Object) string {
	for _, key := range []string{"content", "text", "snippet", "message", "reminder"} {
		raw := a.Get(key)
		if text, _ := history.Text(raw); strings.TrimSpace(text) != "" {
			return text
		}
		if inner, ok := history.Fields(raw); ok {
			if text := readable(inner); text != "" {
				return text
			}
			if file, ok := history.Fields(inner.Get("file")); ok {
				if text := readable(file); text != "" {
					return text
				}
			}
		}
		if elements, ok := history.Elements(raw); ok {
			var texts []string
			for _, e := range elements {
				if text, _ := history.Text(e); text != "" {
					texts = append(texts, text)
				} else if o, ok := history.Fields(e); ok && o.String("type") == "text" {
					texts = append(texts, o.String("text"))
				}
			}
			if len(texts) > 0 {
				return plain(strings.Join(texts, "\n"))
			}
		}
	}
	return ""
}

// aside is a message out of the context, with its words, if it has some.
func aside(kind session.Kind, text string) session.Message {
	m := session.Message{Kind: kind, Origin: session.Program, Display: kind != session.KindCustom}
	if text != "" {
		m.Parts = []session.Part{session.TextPart(text)}
	}
	return m
}

// progress follows what runs. It is no part of the conversation, but rows name it as their
// parent; that of a sub-agent without a file of its own is all there is of it.
func (r *reader) progress(id string, st *stream, w *row) error {
	at, _, err := r.attach(id, st, w)
	if err != nil && !errors.Is(err, errAnew) {
		return err
	}
	if err != nil {
		return err
	}
	put(&st.Alias, w.uuid, at)
	data, _ := history.Fields(w.Get("data"))
	if data.String("type") != "agent_progress" {
		r.records.Skip(skipProgress, 1)
		return nil
	}
	return r.agentProgress(w, data)
}
