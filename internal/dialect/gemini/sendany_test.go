package gemini_test

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sessiond/internal/dialect/gemini"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

func models() []string {
	return []string{"", "gemini-2.5-pro", "models/gemini-3-pro-preview", "gemini-flash-latest", "gpt-5"}
}

// anyOwn generates conversations that say they are of this form.
func anyOwn(r *rapid.T) []session.Message {
	msgs := dialecttest.AnyConversation(r)
	for i := range msgs {
		msgs[i].Dialect = gemini.Name
		for j := range msgs[i].Parts {
			if p := &msgs[i].Parts[j]; string(p.Extra) == "[]" {
				p.Extra = nil // an extra of this form is an object
			}
		}
	}
	return msgs
}

func TestTheProviderAcceptsAnyConversation(t *testing.T) {
	t.Run("of other forms", func(t *testing.T) {
		dialecttest.AcceptsAny(t, gemini.Form(), dialecttest.AnyConversation, models()...)
	})
	t.Run("of this form", func(t *testing.T) { dialecttest.AcceptsAny(t, gemini.Form(), anyOwn, models()...) })
}

func TestWhatWasSentStaysAPrefix(t *testing.T) {
	t.Run("of other forms", func(t *testing.T) {
		dialecttest.StaysAPrefix(t, gemini.Form(), dialecttest.AnyConversation, models()...)
	})
	t.Run("of this form", func(t *testing.T) { dialecttest.StaysAPrefix(t, gemini.Form(), anyOwn, models()...) })
}

// What was exported for keeping is read again as a conversation that can be sent.
func TestExportOfAnyConversationIsReadAgain(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		msgs := dialecttest.AnyConversation(r)
		for i := range msgs {
			msgs[i].Dialect = "anthropic"
		}
		exported := testkit.Must(gemini.Export(msgs))(r)
		back, err := gemini.Decode(exported)
		if err != nil {
			r.Fatalf("%v\n%s", err, dialecttest.Array(exported))
		}
		model := rapid.SampledFrom(models()).Draw(r, "model")
		sent := testkit.Must(gemini.Send(wire.Request{Messages: back.Messages, Model: model}))(r)
		if err := dialecttest.ValidateFor(gemini.Name, model, sent.Request); err != nil && len(exported) > 0 {
			r.Fatalf("%v\n%s", err, sent.Request)
		}
	})
}

// answered leaves out calls that the messages right behind do not answer, and results that
// answer none, as repair does before a context is sent.
func answered(msgs []session.Message) []session.Message {
	var out []session.Message
	for i := 0; i < len(msgs); i++ {
		m := msgs[i]
		if m.Role == session.Tool {
			continue // those that answer were taken with their calls
		}
		out = append(out, m)
		var calls, results []string
		for _, p := range m.Calls() {
			if !slices.ContainsFunc(m.Results(), func(r *session.Part) bool { return r.CallID == p.CallID }) {
				calls = append(calls, p.CallID)
			}
		}
		behind := i + 1
		for ; behind < len(msgs) && msgs[behind].Role == session.Tool; behind++ {
			for _, r := range msgs[behind].Results() {
				results = append(results, r.CallID)
			}
		}
		slices.Sort(results)
		sorted := slices.Sorted(slices.Values(calls))
		if len(calls) > 0 && slices.Equal(sorted, results) && len(slices.Compact(sorted)) == len(calls) {
			out = append(out, msgs[i+1:behind]...)
			continue
		}
		last := &out[len(out)-1]
		last.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p session.Part) bool { return p.Kind == session.PartToolCall && slices.Contains(calls, p.CallID) })
	}
	return out
}

func FuzzDecodeSend(f *testing.F) {
	for _, c := range wireCases() {
		if len(c.messages) < 4096 {
			f.Add([]byte(c.messages), true)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, newest bool) {
		var raw []json.RawMessage
		if json.Unmarshal(body, &raw) != nil {
			t.Skip("no JSON array")
		}
		decoded, err := gemini.Decode(raw)
		if err != nil {
			return
		}
		msgs := answered(dialecttest.Stored(t, decoded.Messages))
		if len(msgs) == 0 {
			return
		}
		model := ""
		if newest {
			model = "gemini-flash-latest"
		}
		sent := testkit.Must(gemini.Send(wire.Request{Messages: msgs, Model: model}))(t)
		if err := dialecttest.ValidateFor(gemini.Name, model, sent.Request); err != nil {
			t.Errorf("the provider would refuse it: %v\n%s", err, sent.Request)
		}
	})
}

func TestSendOfAnyCaseIsAccepted(t *testing.T) {
	for _, c := range wireCases() {
		decoded := testkit.Must(gemini.Decode(list(t, c.messages)))(t)
		for _, model := range []string{"", "gemini-2.5-pro", "gemini-flash-latest"} {
			msgs := answered(dialecttest.Stored(t, decoded.Messages))
			if len(msgs) == 0 {
				continue
			}
			sent := testkit.Must(gemini.Send(wire.Request{Messages: msgs, Model: model}))(t)
			if err := dialecttest.ValidateFor(gemini.Name, model, sent.Request); err != nil {
				t.Errorf("%s, for %q: %v\n%.1000s", c.name, model, err, sent.Request)
			}
		}
	}
}
