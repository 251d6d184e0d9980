package dialect

import (
	"encoding/json"
	"slices"
	"strings"

	"sessiond/internal/dialect/gemini"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// sign is what gives a dialect away, and where it stands.
type sign struct{ dialect, path string }

// Detect tells in which dialect messages are written. Messages that say the same in all of
// them, {role, content:"text"}, are native; content that is an array of texts is openai.chat,
// in which it says the same as in Anthropic's form. Signs of two dialects are an error, and so is a
// dialect that this version does not read: nothing is taken for what it is not.
// Codes: Malformed, Invalid.
func Detect(raw []json.RawMessage) (string, error) {
	found := sign{dialect: Native}
	arrays := false
	for i, r := range raw {
		path := wire.Index("messages", i)
		if err := wire.Check(path, r); err != nil {
			return "", err
		}
		arrays = arrays || hasArray(r)
		for _, s := range signs(path, r) {
			switch {
			case found.path == "":
				found = s
			case s.dialect != found.dialect:
				return "", session.Errorf(session.Invalid, "%s looks like %s, %s like %s: name the dialect", found.path, found.dialect, s.path, s.dialect).
					At(s.path, "looks like %s", s.dialect)
			}
		}
	}
	if found.path == "" && arrays {
		return OpenAIChat, nil
	}
	if _, err := find(found.dialect); err != nil {
		return "", wire.Errorf(session.Invalid, found.path, "looks like %s, which this version does not read yet: it reads %s",
			found.dialect, names(func(wire.Form) bool { return true }))
	}
	return found.dialect, nil
}

func hasArray(raw json.RawMessage) bool {
	o, err := wire.ParseObject("", raw)
	return err == nil && wire.KindOf(o.Get("content")) == '['
}

// signs lists what in a message belongs to one dialect only.
func signs(path string, raw json.RawMessage) []sign {
	o, err := wire.ParseObject(path, raw)
	if err != nil {
		return nil // the form says what is wrong
	}
	var found []sign
	add := func(dialect, field string) { found = append(found, sign{dialect, wire.Join(path, field)}) }
	for _, f := range o.Members() {
		if d := fieldSign(f.Key, f.Value); d != "" {
			add(d, f.Key)
		}
	}
	for _, list := range []string{"content", "parts"} {
		if wire.KindOf(o.Get(list)) != '[' {
			continue
		}
		elements, _ := wire.ParseArray(path, o.Get(list))
		for i, e := range elements {
			if d := elementSign(list, e); d != "" {
				add(d, wire.Index(list, i))
			}
		}
	}
	return found
}

// fieldSign knows a dialect by a field of a message.
func fieldSign(field string, value json.RawMessage) string {
	switch field {
	case "tool_calls", "tool_call_id", "function_call", "refusal", "annotations", "audio", "reasoning_content", "reasoning_details", "finish_reason", "name":
		return OpenAIChat
	case "origin", "finish", "author", "external_id", "created_at", "display", "in_context", "kind", "call_id", "tool_name", "is_error", "seq":
		if field == "call_id" || field == "created_at" {
			return "" // Responses has these too
		}
		return Native
	case "candidates", "finishReason", "promptFeedback", "prompt_feedback", "usageMetadata", "usage_metadata", "modelVersion":
		return Gemini
	case "stop_reason", "stop_sequence":
		return Anthropic
	case "content":
		switch wire.KindOf(value) {
		case 'n':
			return OpenAIChat
		case '{':
			return Gemini // a candidate
		}
	case "role":
		switch role, _ := wire.TextOf(value); role {
		case "model":
			return Gemini
		case "developer", "function":
			return OpenAIChat
		}
	case "type":
		switch kind, _ := wire.TextOf(value); {
		case kind == "message":
			return "" // an Anthropic reply and a Responses item both say so; their content tells
		case kind == "reasoning", kind == "item_reference", kind == "compaction", strings.HasSuffix(kind, "_call"), strings.HasSuffix(kind, "_output"):
			return OpenAIResponses
		}
	}
	return ""
}

// elementSign knows a dialect by an element of content or parts.
func elementSign(list string, raw json.RawMessage) string {
	o, err := wire.ParseObject(list, raw)
	if err != nil {
		return ""
	}
	if list == "parts" {
		if o.Has("kind") {
			return Native
		}
		if gemini.IsPart(&o) {
			return Gemini
		}
		return ""
	}
	kind, _ := wire.TextOf(o.Get("type"))
	switch {
	case slices.Contains([]string{"image_url", "input_audio", "file", "refusal"}, kind):
		return OpenAIChat
	case slices.Contains([]string{"input_text", "output_text", "input_image", "input_file", "summary_text", "reasoning_text"}, kind):
		return OpenAIResponses
	case slices.Contains([]string{"thinking", "redacted_thinking", "image", "document", "search_result", "container_upload"}, kind),
		strings.HasSuffix(kind, "tool_use"), strings.HasSuffix(kind, "tool_result"):
		return Anthropic
	}
	return ""
}
