// Package dialect turns a provider's wire form into messages and messages into a provider's
// wire form. It is the registry; each form is a package of its own below it.
package dialect

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/dialect/gemini"
	"sessiond/internal/dialect/native"
	"sessiond/internal/dialect/openaichat"
	"sessiond/internal/dialect/responses"
	"sessiond/internal/dialect/ui"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// The names of the dialects, as messages.dialect and the wire have them.
const (
	Native          = native.Name
	OpenAIChat      = openaichat.Name
	OpenAIResponses = responses.Name
	Anthropic       = anthropic.Name
	Gemini          = gemini.Name
	UI              = ui.Name
)

// Decoded, Request and Sent are what goes in and out of every form.
type (
	Decoded = wire.Decoded
	Request = wire.Request
	Sent    = wire.Sent
)

// forms lists the dialects that this version reads and writes.
func forms() []wire.Form {
	return []wire.Form{
		native.Form(),
		openaichat.Form(),
		responses.Form(),
		anthropic.Form(),
		gemini.Form(),
		ui.Form(),
	}
}

// Decode reads messages in the dialect of that name; "" detects it. Errors carry the path of
// the value at fault: messages[3].content[0]. Codes: Malformed, Invalid, TooLarge.
func Decode(name string, raw []jsontext.Value) (Decoded, error) {
	if name == "" {
		detected, err := Detect(raw)
		if err != nil {
			return Decoded{}, err
		}
		name = detected
	}
	form, err := find(name)
	if err != nil {
		return Decoded{}, err
	}
	return form.Decode(raw)
}

// Export returns messages in the dialect of that name. What was decoded from it comes back as
// the same JSON values. Codes: Invalid.
func Export(name string, msgs []session.Message) ([]jsontext.Value, error) {
	form, err := find(name)
	if err != nil {
		return nil, err
	}
	return form.Export(msgs)
}

// FirstEntry returns how many of the messages Export makes the first entry of, in a dialect in which an entry may be
// several messages. grouped is false in one that exports each message by itself.
func FirstEntry(name string, msgs []session.Message) (n int, grouped bool) {
	form, err := find(name)
	if err != nil || form.FirstEntry == nil {
		return 0, false
	}
	return form.FirstEntry(msgs), true
}

// Send makes what a provider accepts as a request. Codes: Invalid.
func Send(name string, in Request) (Sent, error) {
	form, err := find(name)
	if err != nil {
		return Sent{}, err
	}
	if form.Send == nil {
		return Sent{}, session.Errorf(session.Invalid, "dialect %q is no provider's form: name one of %s", name,
			names(sendable))
	}
	return form.Send(in)
}

// Default is the dialect of requests that name none.
const Default = OpenAIChat

// Providers answers what a context must know of the provider that it is for.
type Providers struct{}

// RulesOf returns what a provider requires of messages. A dialect that is not Sendable counts as the default one: Send
// says what is wrong.
func RulesOf(name, provider, model string) wire.Rules {
	form, err := find(cmp.Or(name, Default))
	if err != nil || form.Rules == nil {
		form, _ = find(Default)
	}
	return form.Rules(provider, model)
}

// Fit changes a context to what its provider accepts.
func (Providers) Fit(in session.FitRequest) session.Fitted {
	return RulesOf(in.Dialect, in.Provider, in.Model).Fit(in)
}

// ResendsReasoning reports whether replies go back in a dialect with their reasoning.
func (Providers) ResendsReasoning(name string) bool {
	form, err := find(name)
	return err == nil && form.ResendsReasoning
}

// CacheReach returns in how many blocks before a mark the provider of a dialect searches its cache; 0: it needs no
// marks.
func (Providers) CacheReach(name string) int {
	form, _ := find(name)
	return form.CacheReach
}

// Names lists the dialects that Decode and Export know. Send knows those that are Sendable.
func Names() []string {
	var all []string
	for _, f := range forms() {
		all = append(all, f.Name)
	}
	return all
}

// Sendable reports whether Send knows the dialect.
func Sendable(name string) bool {
	return slices.ContainsFunc(forms(), func(f wire.Form) bool { return f.Name == name && sendable(f) })
}

func find(name string) (wire.Form, error) {
	all := forms()
	if i := slices.IndexFunc(all, func(f wire.Form) bool { return f.Name == name }); i >= 0 {
		return all[i], nil
	}
	return wire.Form{}, session.Errorf(session.Invalid, "unknown dialect %q: name one of %s", jsonx.Clip(name),
		names(func(wire.Form) bool { return true }))
}

func sendable(f wire.Form) bool { return f.Send != nil }

func names(which func(wire.Form) bool) string {
	var found []string
	for _, f := range forms() {
		if which(f) {
			found = append(found, f.Name)
		}
	}
	return strings.Join(found, ", ")
}

// sign is a field or an element that only one dialect has, and its path. or is a second dialect
// that has it too.
type sign struct{ dialect, path, or string }

// Detect reports in which dialect messages are written. Messages that say the same in all of
// them, {role, content:"text"}, are native; content that is an array of texts is openai.chat,
// in which it says the same as in Anthropic's form. Signs of two dialects are an error: nothing
// is taken for what it is not.
// Codes: Malformed, Invalid.
func Detect(raw []jsontext.Value) (string, error) {
	name, _, err := detect(raw)
	return name, err
}

// detect is Detect. signed reports whether anything tells the dialect.
func detect(raw []jsontext.Value) (name string, signed bool, err error) {
	found := sign{dialect: Native}
	arrays := false
	for i, r := range raw {
		path := jsonx.Index("messages", i)
		if err := jsonx.Check(path, r); err != nil {
			return "", false, err
		}
		arrays = arrays || hasArray(r)
		for _, s := range signs(path, r) {
			switch {
			case found.path == "", s.dialect == found.dialect && s.or == "", s.dialect == found.or:
				found = s
			case s.dialect != found.dialect && s.or != found.dialect:
				return "", true, session.Errorf(session.Invalid, "%s looks like %s, %s like %s: name the dialect", found.path,
					found.dialect, s.path, s.dialect).
					At(s.path, "looks like %s", s.dialect)
			}
		}
	}
	if found.path == "" && arrays {
		return OpenAIChat, false, nil
	}
	return found.dialect, found.path != "", nil
}

// DecodeFor reads messages of a request that names the dialect of its context. Messages with a
// sign of a dialect are of that one, whatever the context's is: an agent that changes its provider
// appends its last reply as that gave it. Plain messages, {role, content}, say the same in all
// forms: they are of the context's, and come back in it as they came. Codes as Decode.
func DecodeFor(context string, raw []jsontext.Value) (Decoded, error) {
	detected, signed, err := detect(raw)
	switch {
	case context == "":
		return Decode("", raw)
	case err != nil: // signs of two
		return Decode(context, raw)
	case !signed && arePlain(context, raw):
		return Decode(context, raw)
	}
	return Decode(detected, raw)
}

// arePlain reports whether messages have nothing but a role and a content that a dialect reads.
func arePlain(name string, raw []jsontext.Value) bool {
	if !slices.Contains([]string{OpenAIChat, OpenAIResponses, Anthropic}, name) {
		return false
	}
	return !slices.ContainsFunc(raw, func(r jsontext.Value) bool {
		o, err := jsonx.ParseObject("", r)
		role := o.String("role")
		if err != nil || len(o) != 2 || role != "user" && role != "assistant" && role != "system" {
			return true
		}
		kind := jsonx.KindOf(o.Get("content"))
		return kind != '"' && (kind != '[' || name == OpenAIResponses)
	})
}

func hasArray(raw jsontext.Value) bool {
	o, err := jsonx.ParseObject("", raw)
	return err == nil && jsonx.KindOf(o.Get("content")) == '['
}

// signs lists the signs in a message.
func signs(path string, raw jsontext.Value) []sign {
	o, err := jsonx.ParseObject(path, raw)
	if err != nil {
		return nil // the form says what is wrong
	}
	if responses.IsItem(&o) || responses.IsResponse(&o) {
		return []sign{{dialect: OpenAIResponses, path: path}}
	}
	var found []sign
	add := func(dialect, field string) {
		s := sign{dialect: dialect, path: jsonx.Join(path, field)}
		if dialect == openAI {
			s.dialect, s.or = OpenAIChat, OpenAIResponses
		}
		found = append(found, s)
	}
	for _, f := range o {
		if d := fieldSign(f.Key, f.Value); d != "" {
			add(d, f.Key)
		}
	}
	for _, list := range []string{"content", "parts"} {
		if jsonx.KindOf(o.Get(list)) != '[' {
			continue
		}
		elements, _ := jsonx.ParseArray(path, o.Get(list))
		for i, e := range elements {
			if d := elementSign(list, e); d != "" {
				add(d, jsonx.Index(list, i))
			}
		}
	}
	return found
}

// openAI is the sign of both of OpenAI's forms. It means chat, unless something says Responses.
const openAI = "openai"

// signFields are fields of a message that tell its dialect, whatever they hold. Responses has call_id and created_at,
// too.
var signFields = map[string][]string{
	OpenAIChat: {
		"tool_calls", "tool_call_id", "function_call", "refusal", "annotations", "audio", "reasoning_content",
		"reasoning_details",
		"finish_reason", "choices",
	},
	openAI: {"name"},
	Native: {"origin", "finish", "author", "external_id", "display", "in_context", "kind", "tool_name", "is_error", "seq"},
	Gemini: {
		"candidates", "finishReason", "promptFeedback", "prompt_feedback", "usageMetadata", "usage_metadata", "modelVersion",
	},
	Anthropic: {"stop_reason", "stop_sequence"},
}

// fieldSign knows a dialect by a field of a message.
func fieldSign(field string, value jsontext.Value) string {
	for dialect, fields := range signFields {
		if slices.Contains(fields, field) {
			return dialect
		}
	}
	role, _ := jsonx.Text(value)
	switch kind := jsonx.KindOf(value); {
	case field == "content" && kind == '{', field == "role" && role == "model": // a candidate's
		return Gemini
	case field == "content" && kind == 'n', field == "role" && role == "developer":
		return openAI
	case field == "role" && role == "function":
		return OpenAIChat
	}
	return ""
}

// elementSign knows a dialect by an element of content or parts.
func elementSign(list string, raw []byte) string {
	o, err := jsonx.ParseObject(list, raw)
	if err != nil {
		return ""
	}
	kind, _ := jsonx.Text(o.Get("type"))
	switch {
	case list == "parts" && o.Has("kind"):
		return Native
	case list == "parts" && kind != "":
		return UI
	case list == "parts" && gemini.IsPart(&o):
		return Gemini
	case list == "parts":
		return ""
	case slices.Contains([]string{"image_url", "file"}, kind):
		return OpenAIChat
	case slices.Contains([]string{"input_audio", "refusal"}, kind):
		return openAI
	case slices.Contains([]string{
		"input_text", "output_text", "input_image", "input_file", "summary_text",
		"reasoning_text",
	}, kind):
		return OpenAIResponses
	case slices.Contains([]string{
		"thinking", "redacted_thinking", "image", "document", "search_result",
		"container_upload",
	}, kind),
		strings.HasSuffix(kind, "tool_use"), strings.HasSuffix(kind, "tool_result"):
		return Anthropic
	}
	return ""
}
