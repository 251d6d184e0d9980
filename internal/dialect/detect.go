package dialect

import (
	"encoding/json"
	"slices"
	"strings"

	"sessiond/internal/dialect/gemini"
	"sessiond/internal/dialect/responses"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// sign is a field or an element that only one dialect has, and its path. or is a second dialect
// that has it too.
type sign struct{ dialect, path, or string }

// Detect reports in which dialect messages are written. Messages that say the same in all of
// them, {role, content:"text"}, are native; content that is an array of texts is openai.chat,
// in which it says the same as in Anthropic's form. Signs of two dialects are an error: nothing
// is taken for what it is not.
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
			case found.path == "", s.dialect == found.dialect && s.or == "", s.dialect == found.or:
				found = s
			case s.dialect != found.dialect && s.or != found.dialect:
				return "", session.Errorf(session.Invalid, "%s looks like %s, %s like %s: name the dialect", found.path, found.dialect, s.path, s.dialect).
					At(s.path, "looks like %s", s.dialect)
			}
		}
	}
	if found.path == "" && arrays {
		return OpenAIChat, nil
	}
	return found.dialect, nil
}

func hasArray(raw json.RawMessage) bool {
	o, err := wire.ParseObject("", raw)
	return err == nil && wire.KindOf(o.Get("content")) == '['
}

// signs lists the signs in a message.
func signs(path string, raw json.RawMessage) []sign {
	o, err := wire.ParseObject(path, raw)
	if err != nil {
		return nil // the form says what is wrong
	}
	if responses.IsItem(&o) || responses.IsResponse(&o) {
		return []sign{{dialect: OpenAIResponses, path: path}}
	}
	var found []sign
	add := func(dialect, field string) {
		s := sign{dialect: dialect, path: wire.Join(path, field)}
		if dialect == openAI {
			s.dialect, s.or = OpenAIChat, OpenAIResponses
		}
		found = append(found, s)
	}
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

// openAI is the sign of both of OpenAI's forms. It means chat, unless something says Responses.
const openAI = "openai"

// fieldSign knows a dialect by a field of a message.
func fieldSign(field string, value json.RawMessage) string {
	switch field {
	case "tool_calls", "tool_call_id", "function_call", "refusal", "annotations", "audio", "reasoning_content", "reasoning_details", "finish_reason":
		return OpenAIChat
	case "name":
		return openAI
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
			return openAI
		case '{':
			return Gemini // a candidate
		}
	case "role":
		switch role, _ := wire.Text(value); role {
		case "model":
			return Gemini
		case "developer":
			return openAI
		case "function":
			return OpenAIChat
		}
	}
	return ""
}

// elementSign knows a dialect by an element of content or parts.
func elementSign(list string, raw []byte) string {
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
	kind, _ := wire.Text(o.Get("type"))
	switch {
	case slices.Contains([]string{"image_url", "file"}, kind):
		return OpenAIChat
	case slices.Contains([]string{"input_audio", "refusal"}, kind):
		return openAI
	case slices.Contains([]string{"input_text", "output_text", "input_image", "input_file", "summary_text", "reasoning_text"}, kind):
		return OpenAIResponses
	case slices.Contains([]string{"thinking", "redacted_thinking", "image", "document", "search_result", "container_upload"}, kind),
		strings.HasSuffix(kind, "tool_use"), strings.HasSuffix(kind, "tool_result"):
		return Anthropic
	}
	return ""
}
