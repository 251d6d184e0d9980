package responses_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect/dialecttest"
	"sessiond/internal/dialect/responses"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// anyConversation generates repaired conversations as any form may have given them: several
// results in one message or one each, ids too long, missing or used before, tools that the
// provider ran, parts that the API does not know.
func anyConversation(r *rapid.T) []session.Message {
	var msgs []session.Message
	for turn := range rapid.IntRange(1, 4).Draw(r, "turns") {
		msgs = append(msgs, anyOf(r, session.User, session.PartText, session.PartImage, session.PartAudio, session.PartFile, session.PartData))
		reply := anyOf(r, session.Assistant, session.PartReasoning, session.PartText, session.PartRefusal, session.PartImage, session.PartAudio, session.PartData)
		var results []session.Part
		for n := range rapid.IntRange(0, 3).Draw(r, "calls") {
			id := rapid.SampledFrom([]string{fmt.Sprintf("call_%d_%d", turn, n), fmt.Sprintf("call_%d_%d_that_is_longer_than_what_the_provider_takes|fc_0123456789012345678901234567890", turn, n), fmt.Sprintf("again_%d", n), ""}).Draw(r, "id")
			name := rapid.SampledFrom([]string{"f", "mcp.files/read", "名前", ""}).Draw(r, "tool")
			extra := session.JSON(rapid.SampledFrom([]string{"", `{"type":"custom"}`, `[]`}).Draw(r, "extra"))
			reply.Parts = append(reply.Parts, session.Part{Kind: session.PartToolCall, CallID: id, ToolName: name, Extra: extra, Arguments: rapid.SampledFrom([]string{"", "{}", "{", "7"}).Draw(r, "arguments")})
			result := session.Part{Kind: session.PartToolResult, CallID: id, ToolName: name, Text: "7"}
			if id != "" && rapid.IntRange(0, 3).Draw(r, "inline") == 0 {
				reply.Parts = append(reply.Parts, result)
				continue
			}
			results = append(results, result)
		}
		msgs = append(msgs, reply)
		together := rapid.Bool().Draw(r, "together")
		for i, result := range results {
			m := anyOf(r, session.Tool, session.PartText, session.PartImage, session.PartData)
			m.Parts = append([]session.Part{result}, m.Parts...)
			if last := len(msgs) - 1; together && i > 0 {
				msgs[last].Parts = append(msgs[last].Parts, m.Parts...)
				continue
			}
			msgs = append(msgs, m)
		}
	}
	return msgs
}

func anyOf(r *rapid.T, role session.Role, kinds ...session.PartKind) session.Message {
	m := session.Message{Kind: session.KindMessage, Role: role, Author: rapid.SampledFrom([]string{"", "", "ann", "Ann <Lee>"}).Draw(r, "author")}
	for range rapid.IntRange(0, 3).Draw(r, "parts") {
		p := session.Part{Kind: rapid.SampledFrom(kinds).Draw(r, "kind"), Text: rapid.SampledFrom([]string{"", "text"}).Draw(r, "text")}
		if p.Kind.HasBytes() && rapid.Bool().Draw(r, "bytes") {
			wire.Attach(&p, wire.Blob(rapid.SampledFrom([]string{"image/png", "image/heic", "audio/wav", "application/pdf"}).Draw(r, "type"), []byte("ABC")))
		} else if p.Kind.HasBytes() {
			p.Extra = session.JSON(rapid.SampledFrom([]string{"", `{"url":"https://x/y"}`, `{"url":"gs://x"}`, `{"file_id":"f"}`, `{"url":7}`, `[]`}).Draw(r, "extra"))
		}
		m.Parts = append(m.Parts, p)
	}
	return m
}

func TestTheProviderAcceptsAnyConversation(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		in := wire.Request{System: rapid.SampledFrom([]string{"", "Be short."}).Draw(r, "system"), Messages: anyConversation(r)}
		accepted(r, in)
	})
}

type failer interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// accepted sends a context, twice alike, and asks the validator.
func accepted(t failer, in wire.Request) wire.Sent {
	sent, err := responses.Send(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := dialecttest.ValidateResponses(sent.Request); err != nil {
		t.Fatalf("%v\n%.3000s", err, sent.Request)
	}
	again, err := responses.Send(in)
	if err != nil || string(again.Request) != string(sent.Request) {
		t.Fatalf("the same context is sent differently (%v)", err)
	}
	return sent
}

// anyRepaired generates items of the wire, of every kind and in every shape that decodes, as a
// repaired context has them.
func anyRepaired(t testing.TB, r *rapid.T) []session.Message {
	raw := []json.RawMessage{json.RawMessage(`{"role":"user","content":"hi"}`)}
	raw = append(raw, rapid.SliceOfN(rapid.Custom(anyInput), 1, 8).Draw(r, "items")...)
	decoded, err := responses.Decode(raw)
	if err != nil {
		r.Fatalf("%s: %v", dialecttest.Array(raw), err)
	}
	return repaired(dialecttest.Stored(t, decoded.Messages))
}

// repaired gives messages as a context holds them, with calls that nothing answered closed.
func repaired(msgs []session.Message) []session.Message {
	var out []session.Message
	for _, item := range contextmgr.Repair(msgs, nil, true).Items {
		out = append(out, item.Message)
	}
	return out
}

func TestTheProviderAcceptsAnyItemsRepaired(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { accepted(r, wire.Request{Messages: anyRepaired(t, r)}) })
}

// A context that grew at its end is sent as it was, with more behind it: caches of the provider
// hold whole prefixes.
func TestWhatWasSentStaysAPrefix(t *testing.T) {
	t.Run("of other forms", rapid.MakeCheck(func(r *rapid.T) { staysAPrefix(r, anyConversation(r)) }))
	t.Run("of this form", rapid.MakeCheck(func(r *rapid.T) { staysAPrefix(r, anyRepaired(t, r)) }))
}

func staysAPrefix(r *rapid.T, msgs []session.Message) {
	whole, err := responses.Send(wire.Request{Messages: msgs})
	if err != nil {
		r.Fatal(err)
	}
	if bytes.Contains(whole.Request, []byte("mcp_approval_request")) {
		return // a request is sent from when it is answered on
	}
	for n := range msgs {
		if msgs[n].Role != session.User {
			continue // a context is handed out when every call has its result
		}
		part, err := responses.Send(wire.Request{Messages: msgs[:n+1]})
		if err != nil {
			r.Fatal(err)
		}
		prefix := string(part.Request[:len(part.Request)-len("]}")])
		if got := string(whole.Request); len(got) < len(prefix) || got[:len(prefix)] != prefix {
			r.Fatalf("after %d messages\n%s\nis no beginning of\n%s", n+1, part.Request, got)
		}
	}
}

// FuzzSend: whatever decodes, once repaired, is accepted.
func FuzzSend(f *testing.F) {
	dialecttest.FuzzSend(f, responses.Form(), cases, func(msgs []session.Message) []session.Message {
		hi := session.Message{Kind: session.KindMessage, Role: session.User, Parts: []session.Part{session.TextPart("hi")}}
		return repaired(append([]session.Message{hi}, msgs...))
	})
}

func TestSendOfEveryCaseIsAccepted(t *testing.T) {
	for _, c := range wireCases() {
		t.Run(c.name, func(t *testing.T) {
			decoded, err := responses.Decode(append(list(t, `[{"role":"user","content":"hi"}]`), list(t, c.items)...))
			if err != nil {
				t.Fatal(err)
			}
			accepted(t, wire.Request{Messages: repaired(dialecttest.Stored(t, decoded.Messages))})
		})
	}
}
