package usage

import (
	"math"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
)

// FromProvider converts a provider's usage object into the tokens of a call, with input
// excluding cache and output including reasoning. The field names tell the form, and the
// provider's name where they leave a choice:
//
//   - OpenAI chat and what imitates it: prompt_tokens includes cached_tokens;
//     completion_tokens includes reasoning_tokens (unless total_tokens shows that it does
//     not, as with xAI)
//   - OpenAI responses: input_tokens includes cached_tokens, output_tokens reasoning_tokens;
//     Codex writes the same as cached_input_tokens and reasoning_output_tokens
//   - Anthropic: input_tokens excludes cache_read_input_tokens and
//     cache_creation_input_tokens; cache_creation splits the latter by how long it lasts
//   - Gemini: promptTokenCount includes cachedContentTokenCount, candidatesTokenCount
//     excludes thoughtsTokenCount, toolUsePromptTokenCount is input on top
//   - Ollama's own API: prompt_eval_count and eval_count, which stand in the reply itself
//
// It keeps the cost that OpenRouter reports (usage.cost, in dollars). It sets only the tokens,
// Provider, the cost and its source. Codes: Invalid, which names the field.
func FromProvider(provider string, raw session.JSON) (session.Call, error) {
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return session.Call{}, session.Errorf(session.Invalid,
			"usage is not a JSON object: send the provider's own, unchanged").
			At("usage", "is not a JSON object")
	}
	var failed error
	r := &reader{fields, "usage", &failed}
	call := session.Call{Provider: provider}
	switch {
	case r.has("promptTokenCount", "candidatesTokenCount", "totalTokenCount"):
		gemini(r, &call)
	case r.has("prompt_tokens", "completion_tokens"):
		openAIChat(r, &call)
	case r.has("prompt_eval_count", "eval_count"):
		call.InputTokens, call.OutputTokens = r.number("prompt_eval_count"), r.number("eval_count")
	case r.has("input_tokens", "output_tokens"):
		if isAnthropic(provider, r) {
			anthropic(r, &call)
		} else {
			openAIResponses(r, &call)
		}
	default:
		return session.Call{}, session.Errorf(session.Invalid,
			"usage has none of the fields prompt_tokens, input_tokens or promptTokenCount: "+
				"send tokens in their own fields instead").
			At("usage", "has no known form")
	}
	if failed != nil {
		return session.Call{}, failed
	}
	return call, nil
}

func isAnthropic(provider string, r *reader) bool {
	if r.has("cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation") {
		return true
	}
	if r.has("input_tokens_details", "output_tokens_details", "cached_input_tokens", "total_tokens") {
		return false
	}
	return strings.Contains(strings.ToLower(provider), "anthropic")
}

func openAIChat(r *reader, call *session.Call) {
	prompt, completion := r.number("prompt_tokens"), r.number("completion_tokens")
	in, out := r.object("prompt_tokens_details"), r.object("completion_tokens_details")
	cached := in.number("cached_tokens")
	if cached == 0 { // DeepSeek's and Moonshot's own names for it
		cached = max(r.number("prompt_cache_hit_tokens"), r.number("cached_tokens"))
	}
	written := in.number("cache_write_tokens")
	reasoning := out.number("reasoning_tokens")
	if total := r.number("total_tokens"); reasoning > 0 && total == prompt+completion+reasoning {
		completion += reasoning
	}
	r.checkAtMost("prompt_tokens_details.cached_tokens", cached+written, "prompt_tokens", prompt)
	r.checkAtMost("completion_tokens_details.reasoning_tokens", reasoning, "completion_tokens", completion)
	call.InputTokens, call.CacheReadTokens, call.CacheWriteTokens = prompt-cached-written, cached, written
	call.OutputTokens, call.ReasoningTokens = completion, reasoning
	if strings.EqualFold(call.Provider, "openrouter") {
		if nano, ok := r.dollars("cost"); ok {
			call.CostNanoUSD, call.PriceSource = &nano, Reported
		}
	}
}

func openAIResponses(r *reader, call *session.Call) {
	input, output := r.number("input_tokens"), r.number("output_tokens")
	in := r.object("input_tokens_details")
	cached := max(in.number("cached_tokens"), r.number("cached_input_tokens"))
	written := in.number("cache_write_tokens")
	reasoning := max(r.object("output_tokens_details").number("reasoning_tokens"), r.number("reasoning_output_tokens"))
	r.checkAtMost("input_tokens_details.cached_tokens", cached+written, "input_tokens", input)
	r.checkAtMost("output_tokens_details.reasoning_tokens", reasoning, "output_tokens", output)
	call.InputTokens, call.CacheReadTokens, call.CacheWriteTokens = input-cached-written, cached, written
	call.OutputTokens, call.ReasoningTokens = output, reasoning
}

func anthropic(r *reader, call *session.Call) {
	call.InputTokens = r.number("input_tokens")
	call.CacheReadTokens = r.number("cache_read_input_tokens")
	call.OutputTokens = r.number("output_tokens")
	for _, name := range []string{"service_tier", "speed"} {
		if tier := ServiceTier(r.text(name)); tier != "" {
			call.ServiceTier = tier
		}
	}
	by := r.object("cache_creation")
	call.CacheWrite1h = by.number("ephemeral_1h_input_tokens")
	call.CacheWriteTokens = max(r.number("cache_creation_input_tokens"),
		by.number("ephemeral_5m_input_tokens")+call.CacheWrite1h)
}

func gemini(r *reader, call *session.Call) {
	prompt, cached := r.number("promptTokenCount"), r.number("cachedContentTokenCount")
	r.checkAtMost("cachedContentTokenCount", cached, "promptTokenCount", prompt)
	call.InputTokens = prompt - cached + r.number("toolUsePromptTokenCount")
	call.CacheReadTokens = cached
	call.ReasoningTokens = r.number("thoughtsTokenCount")
	call.OutputTokens = r.number("candidatesTokenCount") + call.ReasoningTokens
}

// reader reads numbers from a JSON object and keeps the first error, with the field's path.
type reader struct {
	fields map[string]jsontext.Value
	path   string
	failed *error
}

func (r *reader) fail(field, format string, args ...any) {
	if *r.failed == nil {
		field = r.path + "." + field
		*r.failed = session.Errorf(session.Invalid, field+" "+format, args...).At(field, format, args...)
	}
}

func (r *reader) has(names ...string) bool {
	for _, name := range names {
		if _, ok := r.fields[name]; ok {
			return true
		}
	}
	return false
}

// text returns a string; "" for anything else.
func (r *reader) text(name string) (s string) {
	if json.Unmarshal(r.fields[name], &s) != nil {
		return ""
	}
	return s
}

// number returns a count; 0 for a missing one and for null.
func (r *reader) number(name string) int64 {
	n, _ := r.amount(name, 1e12, "a whole number of tokens")
	if n != math.Trunc(n) {
		r.fail(name, "is %.40s, not a whole number of tokens", r.fields[name])
	}
	return int64(n)
}

// amount returns a number from 0 to most; 0 and not ok for a missing one and for null.
func (r *reader) amount(name string, most float64, what string) (v float64, ok bool) {
	raw, ok := r.fields[name]
	if !ok || string(raw) == "null" {
		return 0, false
	}
	if json.Unmarshal(raw, &v) != nil || v < 0 || v > most {
		r.fail(name, "is %.40s, not %s", raw, what)
		return 0, false
	}
	return v, true
}

// dollars returns an amount in nano-dollars.
func (r *reader) dollars(name string) (nano int64, ok bool) {
	v, ok := r.amount(name, 1e6, "an amount in dollars")
	return int64(math.Round(v * 1e9)), ok
}

// object returns a nested object; an empty one for a missing one and for null.
func (r *reader) object(name string) *reader {
	child := &reader{path: r.path + "." + name, failed: r.failed}
	if raw, ok := r.fields[name]; ok && json.Unmarshal(raw, &child.fields) != nil {
		r.fail(name, "is not a JSON object")
	}
	return child
}

// checkAtMost checks that a part is not larger than the whole that includes it.
func (r *reader) checkAtMost(part string, n int64, whole string, of int64) {
	if n > of {
		r.fail(part, "is %d, more than the %d of %s, which include it", n, of, whole)
	}
}
