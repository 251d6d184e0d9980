package anthropic_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/dialect/dialecttest"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// anyConversation generates repaired conversations as any form may have given them: several
// results in one message or one each, ids too long or missing, parts that this form has not.
func anyConversation(r *rapid.T) []session.Message {
	var msgs []session.Message
	for turn := range rapid.IntRange(1, 4).Draw(r, "turns") {
		msgs = append(msgs, anyOf(r, session.User, session.PartText, session.PartImage, session.PartAudio, session.PartFile, session.PartData))
		reply := anyOf(r, session.Assistant, session.PartReasoning, session.PartText, session.PartRefusal, session.PartImage, session.PartAudio, session.PartData)
		reply.Model = rapid.SampledFrom([]string{"", "claude-opus-4-8", "gpt-5"}).Draw(r, "model")
		var results []session.Part
		for n := range rapid.IntRange(0, 3).Draw(r, "calls") {
			id := fmt.Sprintf(rapid.SampledFrom([]string{"call_%d_%d", "call_%[2]d", "call_%d_%d_that_is_longer_than_what_the_provider_takes|fc_0123456789"}).Draw(r, "id"), turn, n)
			if rapid.Bool().Draw(r, "without id") {
				id = ""
			}
			name := rapid.SampledFrom([]string{"f", "mcp.files/read", "名前", ""}).Draw(r, "tool")
			reply.Parts = append(reply.Parts, session.Part{Kind: session.PartToolCall, CallID: id, ToolName: name, Arguments: rapid.SampledFrom([]string{"", "{}", "{", "7", `{"x":"\ud800"}`}).Draw(r, "arguments")})
			p := session.Part{Kind: session.PartToolResult, CallID: id, ToolName: name, Text: rapid.SampledFrom([]string{"", " ", "7"}).Draw(r, "result")}
			if rapid.Bool().Draw(r, "failed") {
				failed := true
				p.IsError = &failed
			}
			if id != "" && rapid.IntRange(0, 3).Draw(r, "inline") == 0 {
				reply.Parts = append(reply.Parts, p)
				continue
			}
			results = append(results, p)
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
		p := session.Part{Kind: rapid.SampledFrom(kinds).Draw(r, "kind"), Text: rapid.SampledFrom([]string{"", "text", " \n", "text \n"}).Draw(r, "text")}
		if p.Kind.HasBytes() && rapid.Bool().Draw(r, "bytes") {
			wire.Attach(&p, wire.Blob(rapid.SampledFrom([]string{"image/png", "image/heic", "audio/wav", "application/pdf", "text/plain"}).Draw(r, "type"), []byte("ABC")))
		} else if p.Kind.HasBytes() {
			p.Extra = session.JSON(rapid.SampledFrom([]string{"", `{"url":"https://x/y"}`, `{"url":"https://x/y.pdf"}`, `{"url":"gs://x"}`, `{"file_id":"f"}`, `{"url":7}`, `[]`}).Draw(r, "extra"))
		}
		m.Parts = append(m.Parts, p)
	}
	return m
}

// anyContext generates conversations of this form and of others, mixed.
func anyContext(t *testing.T, r *rapid.T) []session.Message {
	if rapid.Bool().Draw(r, "foreign") {
		return anyConversation(r)
	}
	raw := rapid.SliceOfN(rapid.Custom(anyMessage), 1, 6).Draw(r, "messages")
	decoded, err := anthropic.Decode(raw)
	if err != nil {
		r.Fatalf("%s: %v", dialecttest.Array(raw), err)
	}
	return append(dialecttest.Stored(t, decoded.Messages), anyConversation(r)...)
}

func TestTheProviderAcceptsAnyConversation(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		in := wire.Request{
			System: rapid.SampledFrom([]string{"", "Be short."}).Draw(r, "system"), Messages: anyContext(t, r),
			Model: rapid.SampledFrom([]string{"", "claude-opus-4-8", "kimi-k2"}).Draw(r, "model"),
		}
		sent, err := anthropic.Send(in)
		if err != nil {
			r.Fatal(err)
		}
		if err := dialecttest.ValidateAnthropic(sent.Request); err != nil {
			r.Fatalf("%v\n%s", err, sent.Request)
		}
		again, err := anthropic.Send(in)
		if err != nil || string(again.Request) != string(sent.Request) {
			r.Fatalf("the same context is sent differently (%v)", err)
		}
	})
}

// block is one block of a request, with its role.
type block struct{ role, raw string }

func flatten(r interface{ Fatalf(string, ...any) }, request []byte) []block {
	var parsed struct {
		Messages []struct {
			Role    string
			Content []json.RawMessage
		}
	}
	if err := json.Unmarshal(request, &parsed); err != nil {
		r.Fatalf("%v: %s", err, request)
	}
	var blocks []block
	for _, m := range parsed.Messages {
		for _, b := range m.Content {
			blocks = append(blocks, block{m.Role, string(b)})
		}
	}
	return blocks
}

// A context that grew at its end is sent as it was, with more behind it: caches of the provider
// hold whole prefixes.
func TestWhatWasSentStaysAPrefix(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		msgs := anyConversation(r)
		whole, err := anthropic.Send(wire.Request{Messages: msgs})
		if err != nil {
			r.Fatal(err)
		}
		all := flatten(r, whole.Request)
		for n := range msgs {
			if msgs[n].Role != session.User {
				continue // a context is handed out when every call has its result
			}
			part, err := anthropic.Send(wire.Request{Messages: msgs[:n+1]})
			if err != nil {
				r.Fatal(err)
			}
			for i, b := range flatten(r, part.Request) {
				if i >= len(all) || all[i] != b {
					r.Fatalf("after %d messages\n%s\nis no beginning of\n%s", n+1, part.Request, whole.Request)
				}
			}
		}
	})
}

// Whatever decodes can be sent, repaired or not.
func FuzzSend(f *testing.F) {
	f.Add([]byte(`[{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_","name":"0"}]}]`))
	f.Add([]byte(`[{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"0"}]},{"role":"user"},{"role":"assistant","content":[{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"code_execution_result"}}]}]`))
	f.Add([]byte(`[{"role":"assistant","content":[{"type":"text","text":"0","citations":[{"type":"page_location"}]}]}]`))
	dialecttest.FuzzSend(f, anthropic.Form(), cases, func(msgs []session.Message) []session.Message { return msgs })
}
