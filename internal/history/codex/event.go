package codex

import (
	"cmp"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// event decodes an event: those of accounting and of changes to the conversation; an event that repeats
// an item is skipped.
func (r *reader) event(rec *record) {
	switch rec.sub {
	case "user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content":
		r.echo(rec)
	case "task_started", "turn_started":
		r.skip(skipTurn)
	case "task_complete", "turn_complete":
		if failure := rec.payload.Get("error"); len(failure) > 0 && string(failure) != "null" {
			r.aside(rec, session.KindMarker, "the turn failed: "+describeFailure(failure))
		} else {
			r.skip(skipTurn)
		}
	case "turn_aborted":
		r.aside(rec, session.KindMarker, "turn aborted: "+plainText(rec.payload.String("reason")))
	case "token_count":
		r.tokenCount(rec)
	case "thread_rolled_back":
		r.rolledBack(rec)
	case "thread_settings_applied":
		settings := rec.payload.Inner("thread_settings")
		r.settings(rec, settings.String("model"), settings.String("model_provider_id"))
	case "thread_name_updated":
		r.aside(rec, session.KindMarker, "named: "+plainText(rec.payload.String("thread_name")))
	case "context_compacted":
		if r.state.Summary != "" {
			r.skip(skipCopy)
		} else {
			r.aside(rec, session.KindMarker, "context compacted")
		}
	case "error":
		r.aside(rec, session.KindMarker, "error: "+plainText(rec.payload.String("message")))
	case "entered_review_mode", "exited_review_mode":
		review := rec.payload.Inner("review_output")
		r.aside(rec, session.KindMarker, strings.TrimSpace(strings.ReplaceAll(rec.sub, "_",
			" ")+"\n"+plainText(review.String("overall_explanation"))))
	case "item_completed":
		r.completed(rec)
	case "patch_apply_end", "mcp_tool_call_end", "web_search_end", "image_generation_end", "sub_agent_activity",
		"undo_completed",
		"exec_command_end", "guardian_assessment", "view_image_tool_call", "thread_goal_updated":
		r.aside(rec, session.KindCustom, "")
	default:
		if strings.HasPrefix(rec.sub, "collab_") || strings.HasPrefix(rec.sub, "dynamic_tool_call_") {
			r.aside(rec, session.KindCustom, "")
		} else {
			r.aside(rec, session.KindUnknown, "")
		}
	}
}

// describeFailure returns what the error of a turn says.
func describeFailure(raw []byte) string {
	text, _ := jsonx.Text(raw)
	o, _ := jsonx.ReadFields(raw)
	return cmp.Or(text, o.String("message"), plainText(string(raw[:min(len(raw), 500)])))
}

// echo skips an event that repeats an item; in a file that holds no items it is the message.
func (r *reader) echo(rec *record) {
	if r.items {
		r.skip(skipCopy)
		return
	}
	if rec.sub == "user_message" {
		r.state.beginTurn(r.state.Tip)
	}
	key := r.state.advance(rec)
	r.put(key, rec, 1, func() history.Decoded {
		m := session.Message{
			Kind: session.KindMessage, Role: session.Assistant, Origin: session.Model, InContext: true,
			Display: true,
		}
		part := session.TextPart(plainText(rec.payload.String("message")))
		switch rec.sub {
		case "user_message":
			m.Role, m.Origin = session.User, session.Person
		case "agent_message":
			m.Provider, m.Model, m.Finish = r.state.Provider, r.state.Model, session.FinishStop
		default:
			part = session.Part{Kind: session.PartReasoning, Text: plainText(rec.payload.String("text"))}
			m.Provider, m.Model = r.state.Provider, r.state.Model
		}
		m.Parts = []session.Part{part}
		m.Metadata = session.JSON(`{"from":"events"}`)
		m.Extra = keepLine(rec.line.Without("timestamp"))
		return history.Alone(m)
	})
	if rec.sub != "user_message" {
		r.spoken = key
	}
}

// completed skips what repeats an item and keeps the richer account of a tool's work.
func (r *reader) completed(rec *record) {
	item := rec.payload.Inner("item")
	switch kind := item.String("type"); kind {
	case "UserMessage", "AgentMessage", "Reasoning":
		if !r.items {
			r.fromItem(rec, kind, item)
		} else {
			r.skip(skipCopy)
		}
	case "Plan":
		r.aside(rec, session.KindMarker, strings.TrimSpace("plan\n"+plainText(item.String("text"))))
	default:
		r.aside(rec, session.KindCustom, "")
	}
}

// fromItem takes the message of a file that holds no items from the event that completes it.
func (r *reader) fromItem(rec *record, kind string, item jsonx.Object) {
	text := jsonx.Member{Key: "message", Value: []byte(session.JSONOf(plainText(joined(item.Get("content")))))}
	sub := map[string]string{
		"UserMessage": "user_message", "AgentMessage": "agent_message",
		"Reasoning": "agent_reasoning",
	}[kind]
	if kind == "Reasoning" {
		text.Key = "text"
	}
	said := *rec
	said.sub, said.payload = sub, append(rec.payload.Without("message", "text"), text)
	r.echo(&said)
}

// turnContext notes the model and its settings, where they changed.
func (r *reader) turnContext(rec *record) {
	settings := contextOf(rec)
	same := settings == r.state.Context
	r.state.Context = settings
	if same {
		r.skip(skipContext)
		return
	}
	r.settings(rec, rec.payload.String("model"), "")
}

func (r *reader) settings(rec *record, model, provider string) {
	r.state.Model = cmp.Or(plainText(model), r.state.Model)
	r.state.Provider = cmp.Or(plainText(provider), r.state.Provider)
	r.beside(rec, func() session.Message {
		m := besideMessage(rec, session.KindMarker, "")
		m.Provider, m.Model = r.state.Provider, r.state.Model
		return m
	}, false)
}

// aside keeps a record out of the context, on its place: a marker with its words, an account
// that programs read, or a record of a kind that is not known.
func (r *reader) aside(rec *record, kind session.Kind, words string) {
	r.beside(rec, func() session.Message { return besideMessage(rec, kind, words) }, kind == session.KindUnknown)
}

func (r *reader) beside(rec *record, decode func() session.Message, raw bool) {
	r.put(r.state.beside(jsonx.Fingerprint(rec.line, "timestamp", "ordinal")), rec, 1, func() history.Decoded {
		d := history.Alone(decode())
		d.Raw = raw
		return d
	})
}

func besideMessage(rec *record, kind session.Kind, words string) session.Message {
	line := rec.line.Without("timestamp")
	m := session.Message{Kind: kind, Origin: session.Program, Display: kind != session.KindCustom}
	switch {
	case words != "":
		m.Parts = []session.Part{session.TextPart(words)}
	case len(rec.raw) > session.BlobThreshold:
		line = line.Without("payload")
		m.Parts = []session.Part{payloadBlob(rec)}
	}
	m.Extra = keepLine(line)
	return m
}

// keepLine keeps a record, or what is left of it, beside its message.
func keepLine(line jsonx.Object) session.JSON {
	return jsonx.Object{{Key: "line", Value: line.Value()}}.Column()
}

// payloadBlob holds the payload of a record that is too large for extra.
func payloadBlob(rec *record) session.Part {
	return session.Part{Kind: session.PartData, Blob: &session.Blob{MediaType: "application/json", Data: rec.raw}}
}

// contextOf returns what a turn context says beside its turn: equal texts are equal settings.
func contextOf(rec *record) string {
	return string(rec.payload.Without("turn_id", "root_turn_id", "current_date").Column())
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// verbatim keeps a line that is no record. Nothing hangs on it.
func (r *reader) verbatim(l history.FileLine, why string) {
	r.closeReply("")
	rec := &record{at: r.state.LastAt, offset: l.At, number: int32(l.Number)}
	tip := r.state.Tip
	r.put(r.state.beside(string(l.Bytes)), rec, 1, func() history.Decoded {
		return history.KeepRaw(l.Bytes, why, session.SourceCodex, rec.at)
	})
	if tip != "" {
		r.state.Tip = tip
	}
}

// rolledBack goes back before the last turns: what follows is another branch.
func (r *reader) rolledBack(rec *record) {
	turns, _ := history.Number(rec.payload.Get("num_turns"))
	r.state.rollBack(int(min(max(turns, 0), maxTurns+1)))
	r.put(r.state.advance(rec), rec, 1, func() history.Decoded {
		return history.Alone(besideMessage(rec, session.KindMarker,
			"rolled back "+plural(int(min(max(turns, 0), 1e6)), "turn")))
	})
}

// betweenAgents is a message between agents that enters the context.
func (r *reader) betweenAgents(rec *record) {
	r.state.beginTurn(r.state.Tip)
	r.put(r.state.advance(rec), rec, 1, func() history.Decoded {
		m := session.Message{
			Kind: session.KindMessage, Role: session.User, Origin: session.Program, InContext: true, Display: true,
			Author: plainText(rec.payload.String("author")),
			Parts:  []session.Part{session.TextPart(plainText(rec.payload.String("content")))},
			Extra:  keepLine(rec.line.Without("timestamp")),
		}
		m.InContext = m.Parts[0].Text != ""
		return history.Alone(m)
	})
}
