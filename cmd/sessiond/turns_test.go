package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

// turn is the answer of POST …/turns, as far as the test looks at it.
type turn struct {
	Context *struct {
		ID      string         `json:"context_id"`
		Request jsontext.Value `json:"request"`
		Tokens  struct {
			Total     int64 `json:"total"`
			Window    int64 `json:"window"`
			Threshold int64 `json:"threshold"`
			Reserve   int64 `json:"reserve"`
		} `json:"tokens"`
		Compaction *struct {
			ID string `json:"id"`
		} `json:"compaction"`
		Provenance []struct {
			Kind    string   `json:"kind"`
			Sources []string `json:"sources"`
		} `json:"provenance"`
	} `json:"context"`
	Problem jsontext.Value `json:"problem"`
}

// TestCompanyBThroughTurns is an agent's day over HTTP: a tool tells three prices, then turn
// after turn passes the threshold of a small window. Compaction comes by itself, no context
// passes the limit, and when somebody asks for one of the prices it is recalled, with the
// message that it comes from.
func TestCompanyBThroughTurns(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, t.TempDir())
	var made struct {
		ID session.ID `json:"id"`
	}
	testkit.Must(d.do("POST", "/v1/sessions", map[string]any{"title": "Market", "model": "gpt-4o", "window": 8000},
		&made))(t)
	path := "/v1/sessions/" + string(made.ID)
	say := func(messages ...map[string]any) turn {
		t.Helper()
		var out turn
		testkit.Must(d.do("POST", path+"/turns", map[string]any{
			"messages": messages, "dialect": "openai.chat",
			"system": "You watch the market.",
		}, &out))(t)
		if out.Context == nil {
			t.Fatalf("no context: %s", out.Problem)
		}
		testkit.Check(t, dialecttest.ValidateOpenAIChat(out.Context.Request))
		if tokens := out.Context.Tokens; tokens.Total > tokens.Window-tokens.Reserve {
			t.Fatalf("a context of %d tokens, %d of %d are reserved", tokens.Total, tokens.Reserve, tokens.Window)
		}
		return out
	}
	answer := func(message map[string]any) {
		t.Helper()
		testkit.Must(d.do("POST", path+"/messages", map[string]any{"messages": []any{message}, "dialect": "openai.chat"},
			nil))(t)
	}

	say(map[string]any{"role": "user", "content": "Compare the prices of our three competitors."})
	answer(map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
		"id": "call_1", "type": "function", "function": map[string]any{
			"name":      "web_search",
			"arguments": `{"query":"competitor prices"}`,
		},
	}}})
	say(map[string]any{
		"role": "tool", "tool_call_id": "call_1",
		"content": "Price list: CompanyA charges $99 a month. CompanyB charges $129 a month. CompanyC charges $89 a month.",
	})
	answer(map[string]any{"role": "assistant", "content": "I have compared them; the three are close together."})

	compactions := map[string]bool{}
	for step := range 70 {
		got := say(map[string]any{
			"role": "user",
			"content": fmt.Sprintf("Now the garden, step %d: which plants go into bed %d, "+
				"and how far apart do they stand in the rows?", step, step%7),
		})
		if c := got.Context.Compaction; c != nil {
			compactions[c.ID] = true
		}
		answer(map[string]any{
			"role": "assistant",
			"content": strings.Repeat(fmt.Sprintf("For step %d take lettuce, "+
				"leave %d centimetres between the rows and water them in the evening. ", step, 20+step%9), 6),
		})
	}
	if len(compactions) < 2 {
		t.Errorf("of themselves came the compactions %v", compactions)
	}

	asked := say(map[string]any{"role": "user", "content": "What was CompanyB's price again?"})
	if !strings.Contains(string(asked.Context.Request), "$129") {
		t.Fatalf("the price is not in the context: %s", asked.Context.Request)
	}
	recalled := false
	for _, p := range asked.Context.Provenance {
		for _, source := range p.Sources {
			recalled = recalled || p.Kind == "recall" && source == string(made.ID)+".3"
		}
	}
	if !recalled {
		t.Errorf("nothing says that the price comes from %s.3: %+v", made.ID, asked.Context.Provenance)
	}

	// Nothing was lost on the way.
	var all struct {
		Data []struct{ Seq int64 } `json:"data"`
	}
	if _, err := d.do("GET", path+"/messages?after=140", nil, &all); err != nil || len(all.Data) != 5 {
		t.Errorf("%d messages after the 140th, %v", len(all.Data), err)
	}
	d.stop()
}
