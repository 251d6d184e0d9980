package openaichat_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect/dialecttest"
	"sessiond/internal/dialect/openaichat"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// anyConversation generates repaired conversations as any form may have given them: several
// results in one message or one each, ids too long or missing, parts that chat does not know.
func anyConversation(r *rapid.T) []session.Message {
	var msgs []session.Message
	for turn := range rapid.IntRange(1, 4).Draw(r, "turns") {
		msgs = append(msgs, anyOf(r, session.User, session.PartText, session.PartImage, session.PartAudio, session.PartFile, session.PartData))
		reply := anyOf(r, session.Assistant, session.PartReasoning, session.PartText, session.PartRefusal, session.PartImage, session.PartAudio, session.PartData)
		var results []session.Part
		for n := range rapid.IntRange(0, 3).Draw(r, "calls") {
			id := fmt.Sprintf(rapid.SampledFrom([]string{"call_%d_%d", "call_%d_%d_that_is_longer_than_what_the_provider_takes|fc_0123456789"}).Draw(r, "id"), turn, n)
			if rapid.Bool().Draw(r, "without id") {
				id = ""
			}
			name := rapid.SampledFrom([]string{"f", "mcp.files/read", "名前", ""}).Draw(r, "tool")
			reply.Parts = append(reply.Parts, session.Part{Kind: session.PartToolCall, CallID: id, ToolName: name, Arguments: rapid.SampledFrom([]string{"", "{}", "{", "7"}).Draw(r, "arguments")})
			results = append(results, session.Part{Kind: session.PartToolResult, CallID: id, ToolName: name, Text: "7"})
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
		sent, err := openaichat.Send(in)
		if err != nil {
			r.Fatal(err)
		}
		if err := dialecttest.ValidateOpenAIChat(sent.Request); err != nil {
			r.Fatalf("%v\n%s", err, sent.Request)
		}
		again, err := openaichat.Send(in)
		if err != nil || string(again.Request) != string(sent.Request) {
			r.Fatalf("the same context is sent differently (%v)", err)
		}
	})
}

// A context that grew at its end is sent as it was, with more behind it: caches of the provider
// hold whole prefixes.
func TestWhatWasSentStaysAPrefix(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		msgs := anyConversation(r)
		whole, err := openaichat.Send(wire.Request{Messages: msgs})
		if err != nil {
			r.Fatal(err)
		}
		for n := range msgs {
			if msgs[n].Role != session.User {
				continue // a context is handed out when every call has its result
			}
			part, err := openaichat.Send(wire.Request{Messages: msgs[:n+1]})
			if err != nil {
				r.Fatal(err)
			}
			prefix := string(part.Request[:len(part.Request)-len("]}")])
			if got := string(whole.Request); len(got) < len(prefix) || got[:len(prefix)] != prefix {
				r.Fatalf("after %d messages\n%s\nis no beginning of\n%s", n+1, part.Request, got)
			}
		}
	})
}

// FuzzSend: whatever decodes, once repaired, is accepted.
func FuzzSend(f *testing.F) {
	dialecttest.FuzzSend(f, openaichat.Form(), cases, func(msgs []session.Message) []session.Message {
		out := []session.Message{{Kind: session.KindMessage, Role: session.User, Parts: []session.Part{session.TextPart("hi")}}}
		for _, item := range contextmgr.Repair(msgs, nil, true).Items {
			out = append(out, item.Message)
		}
		return out
	})
}
