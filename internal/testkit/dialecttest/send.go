package dialecttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
)

// failer is a test, or one run of rapid's.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Prefixes returns of how many messages, of n, a sweep sends the beginning: about sixty lengths, or a
// quarter of those without effort.Long, and n itself.
func Prefixes(n int) []int {
	most := 15
	if effort.Long() {
		most = 60
	}
	var lengths []int
	for k := 1; k < n; k += 1 + n/most {
		lengths = append(lengths, k)
	}
	return append(lengths, n)
}

// Numbered numbers messages as a store would.
func Numbered(msgs []session.Message) []session.Message {
	for i := range msgs {
		msgs[i].ID = session.MessageRef{Session: "20260211_001", Seq: int64(i + 1)}
	}
	return msgs
}

// ExpectSent sends a context that the provider must accept, and compares the request and its losses.
func ExpectSent(t *testing.T, form wire.Form, in wire.Request, want string, losses []string) wire.Sent {
	t.Helper()
	sent := testkit.Must(form.Send(in))(t)
	if !EqualJSON([]byte(want), sent.Request) {
		t.Errorf("sent %s\nwant %s", sent.Request, want)
	}
	if diff := cmp.Diff(losses, sent.Losses); diff != "" {
		t.Errorf("losses: %s", diff)
	}
	if err := ValidateFor(form.Name, in.Model, sent.Request); err != nil {
		t.Errorf("the provider would refuse it: %v", err)
	}
	return sent
}

// Accepted sends a context, twice alike, and asks the provider's validator.
func Accepted(t failer, form wire.Form, in wire.Request) wire.Sent {
	t.Helper()
	sent := testkit.Must(form.Send(in))(t)
	if err := ValidateFor(form.Name, in.Model, sent.Request); err != nil {
		t.Fatalf("the provider would refuse it: %v\n%.3000s", err, sent.Request)
	}
	again, err := form.Send(in)
	if err != nil || string(again.Request) != string(sent.Request) {
		t.Fatalf("the same context is sent differently (%v)", err)
	}
	return sent
}

// AcceptsAny sends generated conversations to one of the models: the provider accepts them.
func AcceptsAny(t *testing.T, form wire.Form, conversation func(*rapid.T) []session.Message, models ...string) {
	t.Helper()
	rapid.Check(t, func(r *rapid.T) {
		Accepted(r, form, wire.Request{
			System: pick(r, "system", "", "Be short."), Messages: conversation(r),
			Model: pick(r, "model", models...),
		})
	})
}

// StaysAPrefix tells that a context which grew at its end is sent as it was, with more behind
// it: caches of the provider hold whole prefixes.
func StaysAPrefix(t *testing.T, form wire.Form, conversation func(*rapid.T) []session.Message, models ...string) {
	t.Helper()
	rapid.Check(t, func(r *rapid.T) {
		msgs, model := conversation(r), pick(r, "model", models...)
		send := func(msgs []session.Message) []string {
			sent := testkit.Must(form.Send(wire.Request{Messages: msgs, Model: model}))(r)
			return Flat(r, form.Name, sent.Request)
		}
		whole := send(msgs)
		for n := range msgs {
			if msgs[n].Role != session.User {
				continue // a context is handed out when every call has its result
			}
			if part := send(msgs[:n+1]); len(part) > len(whole) || !slices.Equal(part, whole[:len(part)]) {
				r.Fatalf("after %d messages\n%q\nis no beginning of\n%q", n+1, part, whole)
			}
		}
	})
}

// Forms are the dialects that a provider accepts.
func Forms() []string { return []string{"openai.chat", "openai.responses", "anthropic", "gemini"} }

// Validate reports what the provider of a dialect would refuse in a request.
func Validate(form string, request []byte) error {
	switch form {
	case "openai.chat":
		return ValidateOpenAIChat(request)
	case "openai.responses":
		return ValidateResponses(request)
	case "anthropic":
		return ValidateAnthropic(request)
	case "gemini":
		return ValidateGemini(request)
	}
	return fmt.Errorf("no provider takes the dialect %q", form)
}

// ValidateFor is Validate for a model, where the provider asks more of some.
func ValidateFor(form, model string, request []byte) error {
	signed := slices.Contains([]string{"models/gemini-3-pro-preview", "gemini-flash-latest"}, model)
	openAI := strings.HasPrefix(model, "gpt-") || model == "o3"
	switch {
	case form == "anthropic" && takesSystem(model):
		return ValidateAnthropicSystem(request)
	case form == "openai.chat" && !openAI && !strings.Contains(model, "gemini-"):
		return ValidateReasoningChat(request)
	case form == "gemini" && signed:
		return ValidateGemini3(request)
	case form == "openai.chat" && strings.Contains(model, "gemini-"):
		return ValidateGeminiChat(request, signed)
	}
	return Validate(form, request)
}

// takesSystem lists models of Anthropic's that take a system message in the middle.
func takesSystem(model string) bool {
	return slices.Contains([]string{"claude-opus-4-8", "claude-sonnet-5", "claude-opus-5-5"}, model)
}

// Entries returns the entries of the conversation in a request, without the system text beside it.
func Entries(t failer, form string, request []byte) []jsontext.Value {
	t.Helper()
	field := map[string]string{
		"openai.chat": "messages", "openai.responses": "input", "anthropic": "messages",
		"gemini": "contents",
	}[form]
	var body map[string]jsontext.Value
	testkit.Check(t, json.Unmarshal(request, &body))
	var entries []jsontext.Value
	if err := json.Unmarshal(body[field], &entries); err != nil {
		t.Fatalf("%s of %.200s: %v", field, request, err)
	}
	return entries
}

// Flat returns a request as the blocks of its conversation, each with its role and without cache
// marks: what a provider's cache compares.
func Flat(t failer, form string, request []byte) []string {
	t.Helper()
	var flat []string
	for _, raw := range Entries(t, form, request) {
		raw = bytes.ReplaceAll(raw, []byte(`,"cache_control":{"type":"ephemeral"}`), nil)
		var entry struct {
			Role           string
			Content, Parts []jsontext.Value
		}
		var plain struct{ Role, Content string }
		if form == "anthropic" && json.Unmarshal(raw, &plain) == nil { // the same as a block of text
			text, _ := jsonx.Encode("type", "text", "text", plain.Content).MarshalJSON()
			flat = append(flat, plain.Role+" "+string(text))
			continue
		}
		joins := form == "anthropic" || form == "gemini" // neighbours of one role: an entry may grow
		if !joins || json.Unmarshal(raw, &entry) != nil || len(entry.Content)+len(entry.Parts) == 0 {
			flat = append(flat, string(raw))
			continue
		}
		for _, block := range append(entry.Content, entry.Parts...) {
			flat = append(flat, entry.Role+" "+string(block))
		}
	}
	return flat
}
