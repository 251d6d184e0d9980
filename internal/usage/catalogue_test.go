package usage

import (
	"slices"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func load(t *testing.T, overrides string) *Catalogue {
	t.Helper()
	return testkit.Must(Load([]byte(overrides)))(t)
}

func TestModelIsFoundByEachOfItsNames(t *testing.T) {
	c := load(t, "")
	for name, want := range map[string]string{
		"claude-sonnet-4-5":                               "claude-sonnet-4-5",
		"claude-sonnet-4-5-20250929":                      "claude-sonnet-4-5",
		"openrouter/anthropic/claude-sonnet-4.5":          "claude-sonnet-4-5",
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0":    "claude-sonnet-4-5",
		"global.anthropic.claude-haiku-4-5-20251001-v1:0": "claude-haiku-4-5",
		"claude-opus-4-1@20250805":                        "claude-opus-4-1",
		"claude-sonnet-4-5-20250929[1m]":                  "claude-sonnet-4-5",
		"claude-opus-4-20250514":                          "claude-opus-4",
		"claude-3-5-sonnet-latest":                        "claude-3-5-sonnet",
		"CLAUDE-3.7-Sonnet":                               "claude-3-7-sonnet",
		"openai/gpt-4o-2024-08-06":                        "gpt-4o",
		"gpt-4.1-mini-2025-04-14":                         "gpt-4.1-mini",
		"gpt-5.1-codex-max":                               "gpt-5.1-codex-max",
		"gpt-5-chat-latest":                               "gpt-5-chat-latest",
		"models/gemini-2.5-flash-preview-09-2025":         "gemini-2.5-flash",
		"gemini-2.5-pro-preview-06-05":                    "gemini-2.5-pro",
		"google/gemini-3-pro-preview":                     "gemini-3-pro",
		"gemini-3.5-flash-lite":                           "gemini-3.5-flash-lite",
		"x-ai/grok-4.1-fast":                              "grok-4-1-fast",
		"moonshotai/kimi-k2-thinking":                     "kimi-k2-thinking",
		"accounts/fireworks/models/glm-4.6":               "glm-4.6",
		"deepseek/deepseek-chat:free":                     "deepseek-chat",
	} {
		info, known := c.Model(name)
		if !known || info.ID != want {
			t.Errorf("Model(%q) = %q, %v, want %q", name, info.ID, known, want)
		}
	}
}

func TestUnknownModelUsesAssumptions(t *testing.T) {
	c := load(t, "")
	for _, name := range []string{"", "llama3.1:8b", "claude", "my/own-model-latest", "-latest", ":"} {
		info, known := c.Model(name)
		if known || info.ID != name || info.Window != UnknownWindow || info.MaxOutput != UnknownMaxOutput ||
			info.Family != UnknownFamily {
			t.Errorf("Model(%q) = %+v, %v", name, info, known)
		}
	}
}

func TestCatalogueIsWellFormed(t *testing.T) {
	c := load(t, "")
	families := []string{"o200k", "cl100k", "claude", "gemini", "default"}
	priced := map[string]bool{}
	for _, p := range c.Prices() {
		priced[p.Model] = true
		if p.Input <= 0 || p.Output < p.Input || p.CacheRead <= 0 || p.CacheRead > p.Input || p.CacheWrite < p.CacheRead {
			t.Errorf("an odd price: %+v", p)
		}
		if p.Origin != FromCatalogue {
			t.Errorf("%s: origin %q", p.Model, p.Origin)
		}
	}
	if len(c.Models()) < 80 {
		t.Errorf("only %d models", len(c.Models()))
	}
	for _, m := range c.Models() {
		if m.Window < m.MaxOutput || m.Window < 8000 || m.MaxOutput < 500 || m.Provider == "" || !priced[m.ID] {
			t.Errorf("an odd model: %+v", m)
		}
		if !slices.Contains(families, m.Family) {
			t.Errorf("%s: family %q has no counter", m.ID, m.Family)
		}
		if !slices.Contains(m.Modalities, "text") {
			t.Errorf("%s does not read text", m.ID)
		}
		if found, known := c.Model(m.ID); !known || found.ID != m.ID {
			t.Errorf("%s is found as %q", m.ID, found.ID)
		}
	}
}

func call(model, day string) *session.Call {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	return &session.Call{
		Model: model, CreatedAt: session.At(at),
		InputTokens: 1000, CacheReadTokens: 10_000, CacheWriteTokens: 100, OutputTokens: 10,
	}
}

func TestPriceOfTheDay(t *testing.T) {
	c := load(t, "")
	for _, row := range []struct {
		name, model, day string
		want             int64 // nano-dollars; -1: unpriced
	}{
		{"all four kinds of tokens", "claude-sonnet-4-5", "2026-01-02", 1000*3000 + 10_000*300 + 100*3750 + 10*15_000},
		{"before the price fell", "o3", "2025-06-09", 1000*10_000 + 10_000*2500 + 100*10_000 + 10*40_000},
		{"on the day that it fell", "o3", "2025-06-10", 1000*2000 + 10_000*500 + 100*2000 + 10*8000},
		{"no discount for cache where none is stated", "gpt-5-pro", "2026-01-02", 11_100*15_000 + 10*120_000},
		{"a day before the model was there", "o3", "2024-01-01", -1},
		{"an unknown model", "own-model", "2026-01-02", -1},
		{"a free offer of a known model", "deepseek/deepseek-chat:free", "2026-01-02", -1},
		{
			"a revision is no offer", "us.anthropic.claude-opus-4-5-20251101-v1:0", "2026-01-02",
			1000*5000 + 10_000*500 + 100*6250 + 10*25_000,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			call := call(row.model, row.day)
			c.Price(call)
			switch {
			case row.want < 0 && (call.CostNanoUSD != nil || call.PriceSource != ""):
				t.Errorf("priced at %d by %s", *call.CostNanoUSD, call.PriceSource)
			case row.want >= 0 && (call.CostNanoUSD == nil || *call.CostNanoUSD != row.want ||
				call.PriceSource != FromCatalogue):
				t.Errorf("got %v by %q, want %d", call.CostNanoUSD, call.PriceSource, row.want)
			}
		})
	}
}

func TestPriceOfLongPromptsAndCacheWritesOfAnHour(t *testing.T) {
	c := load(t, "")
	for _, row := range []struct {
		name, model, day                       string
		input, read, write, hour, output, want int64
	}{
		{"a write of an hour costs twice the input", "claude-sonnet-4-5", "2026-01-02", 0, 0, 100, 60, 0, 40*3750 + 60*6000},
		{"more hours than writes", "claude-sonnet-4-5", "2026-01-02", 0, 0, 10, 60, 0, 10 * 6000},
		{
			"at the limit", "claude-sonnet-4-5", "2026-01-02", 100_000, 100_000, 0, 0, 10,
			100_000*3000 + 100_000*300 + 10*15_000,
		},
		{
			"the whole request above it", "claude-sonnet-4-5", "2026-01-02", 100_000, 99_001, 1000, 1000, 10,
			100_000*6000 + 99_001*600 + 1000*12_000 + 10*22_500,
		},
		{"while long prompts cost more", "claude-opus-4-6", "2026-03-12", 200_001, 0, 0, 0, 0, 200_001 * 10_000},
		{"since they do not", "claude-opus-4-6", "2026-03-13", 200_001, 0, 0, 0, 0, 200_001 * 5000},
		{"another limit", "gpt-5.4", "2026-05-01", 272_001, 0, 0, 0, 10, 272_001*5000 + 10*22_500},
		{"no tier", "claude-opus-4-7", "2026-10-01", 900_000, 0, 0, 0, 0, 900_000 * 5000},
	} {
		t.Run(row.name, func(t *testing.T) {
			call := call(row.model, row.day)
			call.InputTokens, call.CacheReadTokens, call.OutputTokens = row.input, row.read, row.output
			call.CacheWriteTokens, call.CacheWrite1h = row.write, row.hour
			if c.Price(call); call.CostNanoUSD == nil || *call.CostNanoUSD != row.want {
				t.Errorf("got %v, want %d", call.CostNanoUSD, row.want)
			}
		})
	}
}

// Ten requests of 30,000 tokens each are no long prompt.
func TestSumOfRequestsHasThePriceOfShortPrompts(t *testing.T) {
	call := call("claude-sonnet-4-5", "2026-01-02")
	call.InputTokens, call.CacheReadTokens, call.CacheWriteTokens, call.OutputTokens, call.Sum = 300_000, 0, 0, 10, true
	if load(t, "").Price(call); call.CostNanoUSD == nil || *call.CostNanoUSD != 300_000*3000+10*15_000 {
		t.Errorf("got %v", call.CostNanoUSD)
	}
}

func TestPriceKeepsReportedCost(t *testing.T) {
	c := load(t, "")
	call, cost := call("o3", "2026-01-02"), int64(0)
	call.CostNanoUSD = &cost
	c.Price(call)
	if *call.CostNanoUSD != 0 || call.PriceSource != Reported {
		t.Errorf("got %d by %q", *call.CostNanoUSD, call.PriceSource)
	}
}

func TestOverridesMergeOverTheCatalogue(t *testing.T) {
	c := load(t, `{"models":[
		{"id":"o3","window":150000,"prices":[{"valid_from":"2025-06-10","input":1,"output":2},{"valid_from":"2026-05-01","input":0.001,"output":0.002}]},
		{"id":"house-model","aliases":["gpt-house"],"provider":"house","prices":[{"valid_from":"2026-01-01","input":0,"output":0}]}]}`)
	info, _ := c.Model("o3-2025-04-16")
	if info.Window != 150_000 || info.MaxOutput != 100_000 || info.Provider != "openai" || info.Origin != FromOverride {
		t.Errorf("o3: %+v", info)
	}
	for _, row := range []struct {
		model, day string
		want       int64
		source     string
	}{
		{"o3", "2025-05-01", 1000*10_000 + 10_000*2500 + 100*10_000 + 10*40_000, FromCatalogue},
		{"o3", "2025-07-01", 11_100*1000 + 10*2000, FromOverride},
		{"o3", "2026-07-01", 11_100 + 20, FromOverride},
		{"gpt-house", "2026-07-01", 0, FromOverride},
	} {
		call := call(row.model, row.day)
		c.Price(call)
		if call.CostNanoUSD == nil || *call.CostNanoUSD != row.want || call.PriceSource != row.source {
			t.Errorf("%s on %s: %v by %q, want %d", row.model, row.day, call.CostNanoUSD, call.PriceSource, row.want)
		}
	}
}

func TestLoadRejectsInvalidCatalogue(t *testing.T) {
	for _, row := range []struct {
		name, text string
		code       session.Code
	}{
		{"no JSON", `{`, session.Malformed},
		{"a field that is misspelt", `{"models":[{"id":"a","windows":5}]}`, session.Malformed},
		{"no id", `{"models":[{"window":5}]}`, session.Invalid},
		{"a negative window", `{"models":[{"id":"a","window":-5}]}`, session.Invalid},
		{"no day", `{"models":[{"id":"a","prices":[{"valid_from":"soon","input":1,"output":1}]}]}`, session.Invalid},
		{"no output price", `{"models":[{"id":"a","prices":[{"valid_from":"2026-01-01","input":1}]}]}`, session.Invalid},
		{"less than a nano-dollar", `{"models":[{"id":"a","prices":[{"valid_from":"2026-01-01","input":0.00015,"output":1}]}]}`, session.Invalid},
		{"a tier without a limit", `{"models":[{"id":"a","prices":[{"valid_from":"2026-01-01","input":1,"output":1,"tiers":[{"input":2,"output":2}]}]}]}`, session.Invalid},
		{"a negative price", `{"models":[{"id":"a","prices":[{"valid_from":"2026-01-01","input":-1,"output":1}]}]}`, session.Invalid},
	} {
		t.Run(row.name, func(t *testing.T) {
			if _, err := Load([]byte(row.text)); session.CodeOf(err) != row.code {
				t.Errorf("got %v, want %s", err, row.code)
			}
		})
	}
}
