package usage

import (
	"errors"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func TestFromProviderParsesEachForm(t *testing.T) {
	nano := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name, provider, usage string
		want                  session.Call
	}{
		{
			"OpenAI chat, with cache and reasoning", "openai",
			`{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306,
			  "prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":0},
			  "completion_tokens_details":{"reasoning_tokens":192,"accepted_prediction_tokens":0}}`,
			session.Call{InputTokens: 86, CacheReadTokens: 1920, OutputTokens: 300, ReasoningTokens: 192},
		},
		{
			"OpenAI chat without details", "openai", `{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29}`,
			session.Call{InputTokens: 19, OutputTokens: 10},
		},
		{
			"Ollama", "ollama", `{"prompt_eval_count":26,"eval_count":290,"eval_duration":4709213000}`,
			session.Call{InputTokens: 26, OutputTokens: 290},
		},
		{
			"Anthropic's fast mode", "anthropic", `{"input_tokens":5,"output_tokens":6,"cache_read_input_tokens":7,"service_tier":"standard","speed":"fast"}`,
			session.Call{InputTokens: 5, CacheReadTokens: 7, OutputTokens: 6, ServiceTier: "fast"},
		},
		{
			"a tier that is no name", "anthropic", `{"input_tokens":5,"output_tokens":6,"cache_read_input_tokens":7,"service_tier":"x\u001b[2J"}`,
			session.Call{InputTokens: 5, CacheReadTokens: 7, OutputTokens: 6, ServiceTier: "unknown"},
		},
		{
			"details that are null", "", `{"prompt_tokens":19,"completion_tokens":10,"prompt_tokens_details":null,"completion_tokens_details":null}`,
			session.Call{InputTokens: 19, OutputTokens: 10},
		},
		{
			"DeepSeek's cache hits", "deepseek", `{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}`,
			session.Call{InputTokens: 36, CacheReadTokens: 64, OutputTokens: 5},
		},
		{
			"xAI, whose completion leaves reasoning out", "xai",
			`{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}`,
			session.Call{InputTokens: 32, OutputTokens: 103, ReasoningTokens: 94},
		},
		{
			"OpenRouter, with its cost", "openrouter", `{"prompt_tokens":194,"completion_tokens":2,"total_tokens":196,"cost":0.00095}`,
			session.Call{InputTokens: 194, OutputTokens: 2, CostNanoUSD: nano(950_000), PriceSource: Reported},
		},
		{
			"OpenAI responses", "openai",
			`{"input_tokens":81,"input_tokens_details":{"cached_tokens":64},"output_tokens":1035,"output_tokens_details":{"reasoning_tokens":832},"total_tokens":1116}`,
			session.Call{InputTokens: 17, CacheReadTokens: 64, OutputTokens: 1035, ReasoningTokens: 832},
		},
		{
			"Codex", "openai", `{"input_tokens":7000,"cached_input_tokens":6400,"output_tokens":120,"reasoning_output_tokens":64,"total_tokens":7120}`,
			session.Call{InputTokens: 600, CacheReadTokens: 6400, OutputTokens: 120, ReasoningTokens: 64},
		},
		{
			"Anthropic, cache beside the input", "anthropic",
			`{"input_tokens":21,"cache_creation_input_tokens":188086,"cache_read_input_tokens":500,"output_tokens":393,
			  "cache_creation":{"ephemeral_5m_input_tokens":188086,"ephemeral_1h_input_tokens":0},"service_tier":"standard"}`,
			session.Call{InputTokens: 21, CacheReadTokens: 500, CacheWriteTokens: 188086, OutputTokens: 393},
		},
		{
			"Anthropic under another provider's name", "bedrock", `{"input_tokens":5,"cache_read_input_tokens":90,"output_tokens":7}`,
			session.Call{InputTokens: 5, CacheReadTokens: 90, OutputTokens: 7},
		},
		{
			"Anthropic's cache writes by lifetime only", "anthropic", `{"input_tokens":5,"output_tokens":7,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20}}`,
			session.Call{InputTokens: 5, CacheWriteTokens: 30, CacheWrite1h: 20, OutputTokens: 7},
		},
		{
			"Gemini, with thoughts, cache and tools", "google",
			`{"promptTokenCount":1000,"cachedContentTokenCount":600,"candidatesTokenCount":50,"thoughtsTokenCount":200,"toolUsePromptTokenCount":30,"totalTokenCount":1280}`,
			session.Call{InputTokens: 430, CacheReadTokens: 600, OutputTokens: 250, ReasoningTokens: 200},
		},
		{
			"Gemini, blocked before it answered", "google", `{"promptTokenCount":12,"totalTokenCount":12}`,
			session.Call{InputTokens: 12},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := testkit.Must(FromProvider(c.provider, session.JSON(c.usage)))(t)
			c.want.Provider = c.provider
			testkit.Equal(t, c.want, got)
		})
	}
}

func TestFromProviderNamesInvalidField(t *testing.T) {
	for _, c := range []struct{ name, usage, field string }{
		{"no object", `[1,2]`, "usage"},
		{"null", `null`, "usage"},
		{"no JSON", `{"prompt_tokens":`, "usage"},
		{"nothing at all", ``, "usage"},
		{"no known form", `{"tokens":5}`, "usage"},
		{"a text", `{"prompt_tokens":"many"}`, "usage.prompt_tokens"},
		{"a fraction", `{"input_tokens":1.5}`, "usage.input_tokens"},
		{"a negative", `{"promptTokenCount":-1}`, "usage.promptTokenCount"},
		{"too much", `{"input_tokens":1e300}`, "usage.input_tokens"},
		{"a nested text", `{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":"3"}}`, "usage.prompt_tokens_details.cached_tokens"},
		{"details that are no object", `{"prompt_tokens":5,"prompt_tokens_details":7}`, "usage.prompt_tokens_details"},
		{"more cached than sent", `{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":6}}`, "usage.prompt_tokens_details.cached_tokens"},
		{"more reasoning than output", `{"input_tokens":5,"output_tokens":1,"output_tokens_details":{"reasoning_tokens":2}}`, "usage.output_tokens_details.reasoning_tokens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := FromProvider("", session.JSON(c.usage))
			var e *session.Error
			if !errors.As(err, &e) || e.Code != session.Invalid || len(e.Fields) != 1 || e.Fields[0].Path != c.field {
				t.Fatalf("got %v (%+v), want an invalid %s", err, e, c.field)
			}
			if strings.Contains(e.Message, "%!") {
				t.Errorf("badly formatted: %s", e.Message)
			}
		})
	}
}

func FuzzFromProvider(f *testing.F) {
	f.Add("openai", `{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":3}}`)
	f.Add("anthropic", `{"input_tokens":5,"cache_creation":{"ephemeral_5m_input_tokens":1}}`)
	f.Add("google", `{"promptTokenCount":5,"totalTokenCount":9}`)
	f.Fuzz(func(t *testing.T, provider, raw string) {
		call, err := FromProvider(provider, session.JSON(raw))
		if err == nil && min(call.InputTokens, call.CacheReadTokens, call.CacheWriteTokens, call.OutputTokens,
			call.ReasoningTokens) < 0 {
			t.Errorf("negative tokens from %s: %+v", raw, call)
		}
	})
}
