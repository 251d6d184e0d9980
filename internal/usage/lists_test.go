package usage

import (
	"slices"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// modelsDev is a list in the form of models.dev: a known model with another price, new ones, and what is none.
const modelsDev = `{
	"gateway": {"id":"gateway","models":{"claude-opus-5":{"id":"anthropic/claude-opus-5","limit":{"context":1000000,"output":128000},"cost":{"input":9,"output":90}}}},
	"anthropic": {"id":"anthropic","models":{
		"claude-opus-5": {"id":"claude-opus-5","release_date":"2026-07-24","limit":{"context":1000000,"output":128000},"cost":{"input":3,"output":15,"cache_read":0.3,"cache_write":3.75}},
		"claude-opus-9": {"id":"claude-opus-9","release_date":"2027-01-05","modalities":{"input":["text","image","pdf"],"output":["text"]},
			"limit":{"context":2000000,"input":1900000,"output":128000},
			"cost":{"input":4,"output":20,"cache_read":0.2,"cache_write":5,"tiers":[{"input":8,"output":30,"tier":{"type":"context","size":200000}}]},
			"experimental":{"modes":{"fast":{"cost":{"input":8,"output":40}}}}},
		"painter": {"id":"painter","modalities":{"input":["text"],"output":["image"]},"limit":{"context":65536,"output":1},"cost":{"input":1,"output":1}},
		"plan-only": {"id":"plan-only","limit":{"context":300000,"output":1000},"cost":{"input":0,"output":0}},
		"odd": {"id":"odd","limit":{"context":-5,"output":1}},
		"dear": {"id":"dear","limit":{"context":100000,"output":1000},"cost":{"input":-3,"output":1}},
		"text": {"id":"text","limit":"large"}
	}}
}`

func TestListOfModelsDevAddsModelsAndPrices(t *testing.T) {
	l := testkit.Must(ParseList([]byte(modelsDev), "models.dev", "2027-02-01"))(t)
	for _, name := range []string{"odd", "dear", "text"} {
		if !slices.ContainsFunc(l.Skipped, func(s string) bool { return strings.Contains(s, name) }) {
			t.Errorf("%s is not among the skipped ones: %q", name, l.Skipped)
		}
	}
	stored := NoLists()
	if models, prices, err := stored.Put(*l); err != nil || models != 2 || prices != 1 {
		t.Errorf("%d models, %d prices, %v", models, prices, err)
	}
	again := testkit.Must(ParseStored(testkit.Must(stored.Text())(t)))(t)
	c := testkit.Must(Load(nil, again.Lists...))(t)
	info, known := c.Model("claude-opus-9")
	if !known || info.Window != 1_900_000 || info.Family != "claude" || info.Source != "models.dev" ||
		!slices.Contains(info.Modalities, "file") {
		t.Errorf("%+v", info)
	}
	if info, known := c.Model("plan-only"); !known || info.Window != 300_000 || len(c.PricesOf("plan-only")) != 0 {
		t.Errorf("%+v with %v", info, c.PricesOf("plan-only"))
	}
	for _, row := range []struct {
		model, day, tier string
		prompt, want     int64
	}{
		{"claude-opus-5", "2027-01-31", "", 1000, 1000 * 5000}, // before the list
		{"claude-opus-5", "2027-02-01", "", 1000, 1000 * 3000},
		{"claude-opus-9", "2027-02-01", "", 1000, 1000 * 4000},
		{"claude-opus-9", "2027-02-01", "", 200_001, 200_001 * 8000},
		{"claude-opus-9", "2027-02-01", "fast", 1000, 1000 * 8000},
		{"claude-opus-9", "2027-01-04", "", 1000, -1}, // before its release
	} {
		call := call(row.model, row.day)
		call.InputTokens, call.CacheReadTokens, call.CacheWriteTokens, call.OutputTokens, call.ServiceTier = row.prompt, 0, 0,
			0, row.tier
		if c.Price(call); call.CostNanoUSD == nil && row.want >= 0 ||
			call.CostNanoUSD != nil && *call.CostNanoUSD != row.want {
			t.Errorf("%+v: %v", row, call.CostNanoUSD)
		}
	}
}

// A list that is older than the built-in catalogue knows nothing better of its models; nor does a program's own choice.
func TestOlderListOnlyAddsModels(t *testing.T) {
	for _, l := range []struct {
		day   string
		added bool
	}{{"2026-01-01", false}, {"2027-02-01", true}} {
		list := testkit.Must(ParseList([]byte(modelsDev), "x", l.day))(t)
		list.Added = l.added
		stored := NoLists()
		if models, prices, err := stored.Put(*list); err != nil || models != 2 || prices != 0 {
			t.Errorf("%+v: %d models, %d prices, %v", l, models, prices, err)
		}
		c := testkit.Must(Load(nil, stored.Lists...))(t)
		if call := call("claude-opus-5", "2027-03-01"); true {
			c.Price(call)
			if *call.CostNanoUSD != 1000*5000+10_000*500+100*6250+10*25_000 {
				t.Errorf("%+v: %d", l, *call.CostNanoUSD)
			}
		}
	}
}

func TestListsOfPiAreRead(t *testing.T) {
	for name, text := range map[string]string{
		"models.json":       `{"providers":{"house":{"baseUrl":"http://localhost","models":[{"id":"house-1","contextWindow":64000,"maxTokens":4000,"cost":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0}}]}}}`,
		"models-store.json": `{"house":{"models":[{"id":"house-1","type":"chat","contextWindow":64000,"maxTokens":4000,"cost":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0}}],"checkedAt":1}}`,
		"a maker's list":    `{"house":{"openai-completions":{"chat:house-1":{"id":"house-1","type":"chat","contextWindow":64000,"maxTokens":4000,"cost":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0}}}}}`,
	} {
		l := testkit.Must(ParseList([]byte(text), "pi", "2026-11-20"))(t)
		c := testkit.Must(Load(nil, *l))(t)
		if info, known := c.Model("house-1"); !known || info.Window != 64_000 {
			t.Errorf("%s: %+v", name, info)
		}
		call := call("house-1", "2026-01-01")
		if c.Price(call); call.CostNanoUSD == nil || *call.CostNanoUSD != 11_100*1000+10*2000 {
			t.Errorf("%s: %v", name, call.CostNanoUSD)
		}
	}
}

func TestParseListRejectsWhatIsNone(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": `<html>`, "half of one": modelsDev[:200], "an array": `[]`, "no model": `{"anthropic":{"models":{}}}`,
		"another program's": `{"name":"x","version":"1"}`,
	} {
		if _, err := ParseList([]byte(text), "x", "2026-11-20"); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for name, text := range map[string]string{
		"damaged":            `{"form":1,"lists":[{`,
		"of a newer version": `{"form":2,"lists":{}}`, "no lists": `"x"`,
	} {
		if _, err := ParseStored([]byte(text)); session.CodeOf(err) != session.Malformed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnknownModelHasTheWindowOfItsFamily(t *testing.T) {
	c := load(t, "")
	for name, like := range map[string]string{
		"claude-opus-8": "claude-opus-5-5", "anthropic/claude-opus-8-20270101": "claude-opus-5-5",
		"gemini-9-pro": "gemini-3.1-pro",
		"llama3.1:8b":  "", "my-model": "", "claude-opus-5": "",
	} {
		info, known := c.Model(name)
		if info.Like != like || like != "" && (known || info.Window != c.models[like].Window) {
			t.Errorf("%s: like %q, %d tokens, known %t", name, info.Like, info.Window, known)
		}
		if call := call(name, "2026-11-01"); like != "" {
			if c.Price(call); call.CostNanoUSD != nil {
				t.Errorf("%s: a guess has a price", name)
			}
		}
	}
	if info, _ := c.Model("claude-sonnet-4-5[1m]"); info.Window != 1_000_000 {
		t.Errorf("[1m]: %d tokens", info.Window)
	}
}

func TestTiersOfServiceHaveTheirPrice(t *testing.T) {
	c := load(t, "")
	for _, row := range []struct {
		model, provider, tier, day string
		want                       int64 // of a thousand tokens of input; -1: unpriced
	}{
		{"gpt-5.6-sol", "openai", "", "2026-07-09", 5_000_000},
		{"gpt-5.6-sol", "openai", "", "2026-09-10", 5_000_000},
		{"gpt-5.6-sol", "openai", "", "2026-09-11", 4_000_000},
		{"gpt-5.6", "openai", "default", "2026-09-11", 4_000_000},
		{"gpt-5.6-sol", "openai", "priority", "2026-09-11", 8_000_000},
		{"gpt-5.6-sol", "openai", "flex", "2026-09-11", 2_000_000},
		{"gemini-3.6-flash", "google", "", "2026-08-01", 750_000},
		{"claude-opus-5", "anthropic", "batch", "2026-09-11", 2_500_000},
		{"claude-opus-5", "anthropic", "priority", "2026-09-11", 5_000_000}, // capacity bought before
		{"claude-opus-4-6", "anthropic", "fast", "2026-04-11", 30_000_000},
		{"claude-opus-5-fast", "anthropic", "", "2026-09-11", 10_000_000},
		{"claude-sonnet-5", "anthropic", "fast", "2026-09-11", -1}, // nobody says what it costs
		{"grok-4-fast", "xai", "", "2026-09-11", 200_000},
		{"grok-4.5", "xai", "flex", "2026-09-11", -1},
		{"openai:gpt-5.6-sol", "", "", "2026-09-11", 4_000_000},
		{"gpt-5.6-sol-high", "openai", "", "2026-09-11", 4_000_000},
		{"deepseek-v4-pro", "ollama", "", "2026-09-11", -1},
	} {
		call := call(row.model, row.day)
		call.Provider, call.ServiceTier = row.provider, row.tier
		call.InputTokens, call.CacheReadTokens, call.CacheWriteTokens, call.OutputTokens = 1000, 0, 0, 0
		c.Price(call)
		if got := call.CostNanoUSD; got == nil && row.want >= 0 || got != nil && *got != row.want {
			t.Errorf("%+v: %v", row, got)
		}
	}
}

func TestZeroIsPricedForImportsAlone(t *testing.T) {
	c := load(t, "")
	for _, row := range []struct {
		model, provider string
		want            int64
	}{
		{"claude-sonnet-5", "anthropic", 1000*2000 + 10_000*200 + 100*2500 + 10*10_000},
		{"claude-sonnet-5", "ollama", 0},
		{"own-model", "house", 0},
		{"deepseek-chat:free", "openrouter", 0},
	} {
		call := call(row.model, "2026-11-01")
		call.Provider, call.CostNanoUSD = row.provider, new(int64)
		if c.PriceImported(call); *call.CostNanoUSD != row.want || (call.PriceSource == Reported) != (row.want == 0) {
			t.Errorf("%+v: %d by %s", row, *call.CostNanoUSD, call.PriceSource)
		}
	}
}

// scripts/models renews the catalogue with what this returns.
func TestRenewedCatalogueKeepsOldPrices(t *testing.T) {
	l := testkit.Must(ParseList([]byte(modelsDev), "models.dev", "2027-02-01"))(t)
	text := testkit.Must(Renewed(l))(t)
	before := embedded
	defer func() { embedded = before }()
	embedded = string(text)
	c := load(t, "")
	days := []string{}
	for _, p := range c.PricesOf("claude-opus-5") {
		if p.Mode == "" {
			days = append(days, p.ValidFrom)
		}
	}
	testkit.Equal(t, []string{"2026-07-24", "2027-02-01"}, days)
	if lists := c.Lists(); lists[0].Date != "2027-02-01" || lists[0].Source != SourceBuiltIn {
		t.Errorf("%+v", lists)
	}
	if _, known := c.Model("claude-opus-9"); !known {
		t.Error("the new model is missing")
	}
}
