package anthropic_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

// A border's mark goes on the last block before it that can carry one, once, and the caller's
// own marks are gone.
func TestCacheMarks(t *testing.T) {
	const mark = `,"cache_control":{"type":"ephemeral"}`
	marked := func(block string) string { return strings.TrimSuffix(block, "}") + mark + "}" }
	x, y := `{"type":"text","text":"x"}`, `{"type":"text","text":"y"}`
	use := `{"type":"tool_use","id":"a","name":"f","input":{}}`
	result := `{"type":"tool_result","tool_use_id":"a","content":"1"}`
	entry := func(role string, blocks ...string) string {
		return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
	}
	in := []string{
		entry("user", marked(x)), entry("assistant", use), entry("user", marked(result), y),
		entry("assistant", marked(y), `{"type":"thinking","thinking":"t","signature":"s"}`, `{"type":"hologram"}`),
	}
	for _, c := range []struct {
		name    string
		system  string
		borders []int
		n       int // of the entries
		want    string
	}{
		{"none", "Be short.", nil, 1, `{"system":"Be short.","messages":[` + entry("user", x) + `]}`},
		{
			"the system text and the end", "Be short.",
			[]int{-1, 0},
			1,
			`{"system":[{"type":"text","text":"Be short."` + mark + `}],"messages":[` + entry("user", marked(x)) + `]}`,
		},
		{"no system text", "", []int{-1}, 1, `{"messages":[` + entry("user", x) + `]}`},
		{
			"a call, and a result in front of what a person said", "",
			[]int{1, 2},
			3,
			`{"messages":[` + entry("user", x) + `,` + entry("assistant", marked(use)) + `,` + entry("user", marked(result), y) +
				`]}`,
		},
		{"all of an entry", "", []int{3}, 3, `{"messages":[` + entry("user", x) + `,` + entry("assistant", use) + `,` +
			entry("user", result, marked(y)) + `]}`},
		{"behind what is not sent", "", []int{3, 4}, 4, `{"messages":[` + entry("user", x) + `,` + entry("assistant", use) +
			`,` + entry("user", result, marked(y)) + `,` + entry("assistant", marked(y)) + `]}`},
		{"two on one block", "", []int{3, 9}, 3, `{"messages":[` + entry("user", x) + `,` + entry("assistant", use) + `,` +
			entry("user", result, marked(y)) + `]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var raw []jsontext.Value
			for _, e := range in[:c.n] {
				raw = append(raw, jsontext.Value(e))
			}
			decoded := testkit.Must(anthropic.Decode(raw))(t)
			sent := testkit.Must(anthropic.Send(wire.Request{
				System: c.system, Messages: decoded.Messages,
				Borders: c.borders,
			}))(t)
			if string(sent.Request) != c.want {
				t.Errorf("sent %s\nwant %s", sent.Request, c.want)
			}
			if err := dialecttest.ValidateAnthropic(sent.Request); err != nil {
				t.Error(err)
			}
		})
	}
	thinks := session.Message{
		Kind: session.KindMessage, Role: session.Assistant, Dialect: anthropic.Name,
		Parts: []session.Part{
			{Kind: session.PartReasoning, Text: "t", Extra: session.JSON(`{"signature":"s"}`)},
			session.TextPart("y"),
		},
	}
	hi := session.Message{Kind: session.KindMessage, Role: session.User, Parts: []session.Part{session.TextPart("x")}}
	sent, err := anthropic.Send(wire.Request{Messages: []session.Message{hi, thinks, hi}, Borders: []int{1, 2}})
	if err != nil || strings.Count(string(sent.Request), mark) != 2 ||
		!strings.Contains(string(sent.Request), `"signature":"s"}`) {
		t.Errorf("%s: %v", sent.Request, err)
	}
}
