package codex

import (
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// record is one line of a rollout, brought to one shape for all eras.
type record struct {
	line    jsonx.Object // as it stands
	kind    string       // the outer type; items of the first era are response_items
	sub     string       // payload.type
	payload jsonx.Object
	raw     []byte // of the payload
	bytes   []byte // of the line, where they are no UTF-8
	offset  int64
	number  int32 // of the line, from 1
	at      session.Time
	timed   bool
	ordinal int64
	ordered bool // there is an ordinal
}

// parseRecord parses a line. Its shape alone tells what it is: newer versions continue files of
// older ones. ok is false for a line that is no JSON object.
func parseRecord(line []byte) (r record, ok bool) {
	o, exact, ok := history.ParseLine(line)
	if !ok {
		return record{}, false
	}
	r = record{line: o, kind: o.String("type"), ordinal: -1}
	raw := line
	if !exact {
		r.bytes, raw = line, []byte(o.Column())
	}
	r.at, r.timed = history.ParseTime(o.String("timestamp"))
	if n, ok := history.Number(o.Get("ordinal")); ok && n >= 0 && n < 1<<53 {
		r.ordinal, r.ordered = int64(n), true
	}
	payload := o.Get("payload")
	switch {
	case r.kind != "" && len(payload) > 0 && payload[0] == '{':
		r.payload, r.raw = o.Inner("payload"), payload
	case o.String("record_type") == typeFiller:
		r.kind = typeFiller
	case r.kind == "" && o.String("id") != "" && o.String("timestamp") != "":
		r.kind, r.payload, r.raw = typeMeta, o, raw
	case payload == nil && r.kind != "" && isItem(r.kind, o):
		r.kind, r.payload, r.raw = typeItem, o, raw
	}
	r.sub = r.payload.String("type")
	return r, true
}

// isItem reports whether a line without an envelope is an item of the first era.
func isItem(kind string, o jsonx.Object) bool {
	switch kind {
	case "message":
		return o.Get("role") != nil
	case "reasoning", "ghost_snapshot":
		return true
	}
	return strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_output")
}

// isRollout reports whether a first line can be that of a rollout.
func (r *record) isRollout() bool {
	return r.kind == typeMeta && r.payload.String("id") != "" || r.kind == typeFiller
}

// speaks reports whether the record is of the conversation: those that the keys go through.
func (r *record) speaks() bool {
	switch r.kind {
	case typeItem:
		return r.sub != "ghost_snapshot"
	case typeCompacted, typeAgents:
		return true
	case typeEvent:
		return r.sub == "thread_rolled_back"
	}
	return false
}

// isEvent reports whether the record is an event of a type.
func (r *record) isEvent(sub string) bool { return r.kind == typeEvent && r.sub == sub }

func (r *record) isTurnStart() bool { return r.isEvent("task_started") || r.isEvent("turn_started") }

// isReply reports whether the record is an item that the model made.
func (r *record) isReply() bool {
	if r.kind != typeItem {
		return false
	}
	switch r.sub {
	case "message":
		return r.payload.String("role") == "assistant"
	case "reasoning":
		return true
	}
	return strings.HasSuffix(r.sub, "_call")
}

// isUser reports whether the record is an item in the user's role.
func (r *record) isUser() bool {
	return r.kind == typeItem && r.sub == "message" && r.payload.String("role") == "user"
}

// isEcho reports whether the record is an event between a reply's items that does not end it.
func (r *record) isEcho() bool {
	if r.kind != typeEvent {
		return false
	}
	switch r.sub {
	case "agent_message", "agent_reasoning", "agent_reasoning_raw_content", "item_completed":
		return true
	}
	return false
}

// says is the canonical form of what the record says, whatever file and version it stands in.
func (r *record) says() jsonx.Object {
	o := make(jsonx.Object, 0, len(r.payload)+1)
	for _, f := range r.payload {
		switch f.Key {
		case "id", "metadata", "internal_chat_message_metadata_passthrough", "timestamp", "ordinal":
			continue
		}
		if string(f.Value) != "null" {
			o = append(o, f)
		}
	}
	return append(o, jsonx.Member{Key: " kind", Value: []byte(session.JSONOf(r.kind))})
}

// texts returns the texts of a message's content, or of a value that is a text itself.
func texts(content []byte) []string {
	if text, ok := jsonx.Text(content); ok || text != "" {
		return []string{text}
	}
	var found []string
	elements, _ := jsonx.ReadArray(content)
	for _, element := range elements {
		if o, ok := jsonx.ReadFields(element); ok {
			if text := o.String("text"); text != "" {
				found = append(found, text)
			}
		}
	}
	return found
}

// joined returns the texts under one another.
func joined(content []byte) string { return strings.Join(texts(content), "\n") }

// Kinds of text in the user's role that no person typed.
const (
	wrapsContext = "context"    // instructions, environment, hooks
	wrapsShell   = "user_shell" // a command that the person ran
	wrapsAbort   = "aborted"    // a note that the turn was interrupted
)

// wrapperOf returns which program's text a message is, "" for none: one of its texts begins and
// ends with a known pair. Source: codex, contextual_user_message.rs.
func wrapperOf(texts []string) string {
	for _, text := range texts {
		text = strings.TrimSpace(text)
		for _, pair := range [...]struct{ open, end, kind string }{
			{"# AGENTS.md instructions for ", "</INSTRUCTIONS>", wrapsContext},
			{"<user_instructions>", "</user_instructions>", wrapsContext},
			{"<environment_context>", "</environment_context>", wrapsContext},
			{"<skill>", "</skill>", wrapsContext},
			{"<user_shell_command>", "</user_shell_command>", wrapsShell},
			{"<turn_aborted>", "</turn_aborted>", wrapsAbort},
			{"<subagent_notification>", "</subagent_notification>", wrapsContext},
			{"<additional_context>", "</additional_context>", wrapsContext},
			{"<environments_instructions>", "</environments_instructions>", wrapsContext},
			{"<apps_instructions>", "</apps_instructions>", wrapsContext},
			{"<skills_instructions>", "</skills_instructions>", wrapsContext},
			{"<plugins_instructions>", "</plugins_instructions>", wrapsContext},
			{"<hook_prompt", "</hook_prompt>", wrapsContext},
		} {
			if hasPrefixFold(text, pair.open) && hasSuffixFold(text, pair.end) {
				return pair.kind
			}
		}
	}
	return ""
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func hasSuffixFold(s, suffix string) bool {
	return len(s) >= len(suffix) && strings.EqualFold(s[len(s)-len(suffix):], suffix)
}
