package openaichat

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// reasoningFields are the fields in which servers of this form return a model's reasoning. They
// want it back as it came: DeepSeek ("The reasoning_content in the thinking mode must be passed
// back to the API"), Kimi and MiniMax in a loop of tools, OpenRouter always. OpenAI's own API has
// none of them and rejects what it does not know.
func reasoningFields() []string {
	return []string{fieldReasoningContent, fieldReasoning, fieldReasoningDetails}
}

// returnsReasoning reports whether the reasoning of the message goes back: it came from the
// provider, and from a model of the family, that is asked now. What nobody said counts as the same.
func (s *sender) returnsReasoning() bool {
	m := &s.M
	if !s.request || m.Dialect != Name || isOpenAIs(s.provider, s.model) {
		return false
	}
	same := func(a, b string) bool { return a == "" || b == "" || strings.EqualFold(a, b) }
	return same(m.Provider, s.provider) && same(familyOf(m.Model), familyOf(s.model))
}

// isOpenAIs reports whether OpenAI itself answers: a router's names of its models have a maker
// before them, and gpt-oss runs elsewhere.
func isOpenAIs(provider, model string) bool {
	model = strings.ToLower(model)
	if strings.HasPrefix(model, "gpt-oss") || !slices.Contains([]string{"gpt", "o", "chatgpt", "codex"}, familyOf(model)) {
		return false
	}
	provider = strings.ToLower(provider)
	return !strings.Contains(model, "/") && (provider == "" || strings.HasPrefix(provider, "openai") ||
		strings.HasPrefix(provider, "azure"))
}

// familyOf returns the family of a model, the letters that its name begins with: deepseek of
// deepseek-ai/DeepSeek-V3.2, kimi of moonshotai/kimi-k2-thinking, qwen of qwen3-max.
func familyOf(model string) string {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	end := strings.IndexFunc(name, func(r rune) bool { return r < 'a' || r > 'z' })
	if end > 0 {
		return name[:end]
	}
	return name
}

// reasoning returns the fields of the reply's reasoning that go back.
func (s *sender) reasoning() (fields []any) {
	if !s.returnsReasoning() {
		return nil
	}
	for _, name := range reasoningFields() {
		if raw := s.reasoningField(name); raw != nil {
			fields = append(fields, name, raw)
		}
	}
	return fields
}

// reasoningField returns a field of the reply's reasoning as it came, nil for none. Details stood
// among the unknown fields once.
func (s *sender) reasoningField(name string) jsontext.Value {
	for i := range s.M.Parts {
		if p := &s.M.Parts[i]; isReasoning(p) && p.X.Field == name {
			return encodePart(p)
		}
	}
	if raw := s.M.X.Rest.Get(name); name == fieldReasoningDetails && jsonx.KindOf(raw) == '[' {
		return raw
	}
	return nil
}

// isReasoning reports whether a part is one of the reasoning fields.
func isReasoning(p *wire.Part) bool {
	return p.Kind == session.PartReasoning || p.Kind == session.PartData && p.X.Field == fieldReasoningDetails
}

// details decodes reasoning_details into a part that keeps the list as it came. Its text is what
// the list says and no other field does. Nothing is decoded of a list that has another form, or of
// one that is too large for an extra.
func (d *decoder) details(o *jsonx.Object, said string) (p wire.Part, ok bool) {
	raw := o.Get(fieldReasoningDetails)
	if jsonx.KindOf(raw) != '[' || wire.IsLarge(raw) {
		return p, false
	}
	list, err := jsonx.ParseArray(fieldReasoningDetails, raw)
	if err != nil || len(list) == 0 {
		return p, false
	}
	var texts []string
	for _, e := range list {
		detail, err := jsonx.ParseObject("", e)
		if err != nil {
			return p, false
		}
		for _, field := range []string{"text", "summary"} {
			if text := detail.String(field); text != "" {
				texts = append(texts, text)
			}
		}
	}
	p = wire.Part{Part: session.Part{Kind: session.PartReasoning}, X: wire.Extra{Field: fieldReasoningDetails, Raw: raw}}
	if said == "" {
		p.Text = strings.Join(texts, "")
	}
	return p, true
}
