package gemini_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sessiond/internal/dialect/dialecttest"
	"sessiond/internal/dialect/gemini"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// anyConversation generates repaired conversations as any form may have given them: several
// results in one message or one each, ids too long or missing or the same anew, tools that
// the provider ran, parts that Gemini does not know.
func anyConversation(r *rapid.T) []session.Message {
	var msgs []session.Message
	if rapid.Bool().Draw(r, "cut") {
		msgs = append(msgs, anyOf(r, session.Assistant, session.PartText))
	}
	for turn := range rapid.IntRange(1, 4).Draw(r, "turns") {
		role := rapid.SampledFrom([]session.Role{session.User, session.User, session.System}).Draw(r, "role")
		msgs = append(msgs, anyOf(r, role, session.PartText, session.PartImage, session.PartAudio, session.PartFile, session.PartData))
		reply := anyOf(r, session.Assistant, session.PartReasoning, session.PartText, session.PartRefusal, session.PartImage, session.PartAudio, session.PartData)
		if rapid.IntRange(0, 4).Draw(r, "inline") == 0 {
			reply.Parts = append(reply.Parts, session.Part{Kind: session.PartToolCall, CallID: "srv", ToolName: "web_search", Arguments: "{}"}, session.Part{Kind: session.PartToolResult, CallID: "srv", Text: "found"})
		}
		var results []session.Part
		for n := range rapid.IntRange(0, 3).Draw(r, "calls") {
			id := fmt.Sprintf(rapid.SampledFrom([]string{"call_%d_%d", "a|%d:%d", "call_%d_%d_that_is_longer_than_what_the_provider_takes|fc_0123456789"}).Draw(r, "id"), turn, n)
			switch rapid.IntRange(0, 5).Draw(r, "without id") {
			case 0:
				id = ""
			case 1:
				id = fmt.Sprintf("made_f_%d", n+1)
			}
			name := rapid.SampledFrom([]string{"f", "mcp.files/read", "名前", "", "1st"}).Draw(r, "tool")
			call := session.Part{Kind: session.PartToolCall, CallID: id, ToolName: name, Arguments: rapid.SampledFrom([]string{"", "{}", "{", "7", `{"a":"\ud800"}`, `[1]`, " {\"x\":1} "}).Draw(r, "arguments")}
			if rapid.Bool().Draw(r, "signed") {
				call.Extra = session.JSON(rapid.SampledFrom([]string{`{"thoughtSignature":"QUJD"}`, `{"thoughtSignature":"msg_1!"}`, `{"fields":{"thoughtSignature":"QUJD"}}`, `{"fields":{"extra_content":{"google":{"thought_signature":"QUJD"}}}}`, `{"made":true}`}).Draw(r, "signature"))
			}
			failed := rapid.Bool().Draw(r, "failed")
			reply.Parts = append(reply.Parts, call)
			results = append(results, session.Part{Kind: session.PartToolResult, CallID: id, ToolName: name, Text: rapid.SampledFrom([]string{"7", "", `{"a":1}`, "{"}).Draw(r, "result"), IsError: &failed})
		}
		msgs = append(msgs, reply)
		together := rapid.Bool().Draw(r, "together")
		for i, result := range results {
			m := anyOf(r, session.Tool, session.PartText, session.PartImage, session.PartFile, session.PartData)
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
	m := session.Message{
		Kind: session.KindMessage, Role: role, Author: rapid.SampledFrom([]string{"", "", "ann"}).Draw(r, "author"),
		Dialect: rapid.SampledFrom([]string{"anthropic", gemini.Name}).Draw(r, "dialect"),
	}
	for range rapid.IntRange(0, 3).Draw(r, "parts") {
		p := session.Part{Kind: rapid.SampledFrom(kinds).Draw(r, "kind"), Text: rapid.SampledFrom([]string{"", "text"}).Draw(r, "text")}
		if p.Kind.HasBytes() && rapid.Bool().Draw(r, "bytes") {
			wire.Attach(&p, wire.Blob(rapid.SampledFrom([]string{"image/png", "image/gif", "audio/wav", "application/pdf", "application/zip"}).Draw(r, "type"), []byte("ABC")))
		} else if p.Kind.HasBytes() {
			p.Extra = session.JSON(rapid.SampledFrom([]string{"", `{"url":"https://x/y"}`, `{"url":"gs://x"}`, `{"file_id":"f"}`, `{"url":7}`, `{"nested":true,"fields":{"videoMetadata":{"fps":1},"thought":true}}`}).Draw(r, "extra"))
		} else if rapid.Bool().Draw(r, "signed") {
			p.Extra = session.JSON(`{"fields":{"thoughtSignature":"QUJD","cache_control":{}}}`)
		}
		m.Parts = append(m.Parts, p)
	}
	return m
}

func anyModel(r *rapid.T) string {
	return rapid.SampledFrom([]string{"", "gemini-2.5-pro", "models/gemini-3-pro-preview", "gemini-flash-latest", "gpt-5"}).Draw(r, "model")
}

func validate(model string, request session.JSON) error {
	if model == "models/gemini-3-pro-preview" || model == "gemini-flash-latest" {
		return dialecttest.ValidateGemini3(request)
	}
	return dialecttest.ValidateGemini(request)
}

func TestTheProviderAcceptsAnyConversation(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		in := wire.Request{System: rapid.SampledFrom([]string{"", "Be short."}).Draw(r, "system"), Messages: anyConversation(r), Model: anyModel(r)}
		sent, err := gemini.Send(in)
		if err != nil {
			r.Fatal(err)
		}
		if err := validate(in.Model, sent.Request); err != nil {
			r.Fatalf("%v\n%s", err, sent.Request)
		}
		again, err := gemini.Send(in)
		if err != nil || string(again.Request) != string(sent.Request) {
			r.Fatalf("the same context is sent differently (%v)", err)
		}
	})
}

// flat gives a request as (role, part), one after the other: what the provider reads, whatever
// the borders of its contents.
func flat(r *rapid.T, request session.JSON) []string {
	var read struct {
		System   json.RawMessage `json:"systemInstruction"`
		Contents []struct {
			Role  string
			Parts []json.RawMessage
		}
	}
	if err := json.Unmarshal(request, &read); err != nil {
		r.Fatal(err)
	}
	out := []string{string(read.System)}
	for _, c := range read.Contents {
		for _, p := range c.Parts {
			out = append(out, c.Role+" "+string(p))
		}
	}
	return out
}

// A context that grew at its end is sent as it was, with more behind it: caches of the provider
// hold whole prefixes.
func TestWhatWasSentStaysAPrefix(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		msgs, model := anyConversation(r), anyModel(r)
		whole, err := gemini.Send(wire.Request{Messages: msgs, Model: model})
		if err != nil {
			r.Fatal(err)
		}
		all := flat(r, whole.Request)
		for n := range msgs {
			if msgs[n].Role != session.User {
				continue // a context is handed out when every call has its result
			}
			part, err := gemini.Send(wire.Request{Messages: msgs[:n+1], Model: model})
			if err != nil {
				r.Fatal(err)
			}
			if first := flat(r, part.Request); len(first) > len(all) || !slices.Equal(first, all[:len(first)]) {
				r.Fatalf("after %d messages\n%s\nis no beginning of\n%s", n+1, part.Request, whole.Request)
			}
		}
	})
}

// What was exported for keeping is read again as a conversation that can be sent.
func TestExportOfAnyConversationIsReadAgain(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		msgs := anyConversation(r)
		for i := range msgs {
			msgs[i].Dialect = "anthropic"
		}
		exported, err := gemini.Export(msgs)
		if err != nil {
			r.Fatal(err)
		}
		back, err := gemini.Decode(exported)
		if err != nil {
			r.Fatalf("%v\n%s", err, dialecttest.Array(exported))
		}
		model := anyModel(r)
		sent, err := gemini.Send(wire.Request{Messages: back.Messages, Model: model})
		if err != nil {
			r.Fatal(err)
		}
		if err := validate(model, sent.Request); err != nil && len(exported) > 0 {
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
		sent, err := gemini.Send(wire.Request{Messages: msgs, Model: model})
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(model, sent.Request); err != nil {
			t.Errorf("the provider would refuse it: %v\n%s", err, sent.Request)
		}
	})
}

func TestSendOfAnyCaseIsAccepted(t *testing.T) {
	for _, c := range wireCases() {
		decoded, err := gemini.Decode(list(t, c.messages))
		if err != nil {
			t.Fatal(err)
		}
		for _, model := range []string{"", "gemini-2.5-pro", "gemini-flash-latest"} {
			msgs := answered(dialecttest.Stored(t, decoded.Messages))
			if len(msgs) == 0 {
				continue
			}
			sent, err := gemini.Send(wire.Request{Messages: msgs, Model: model})
			if err != nil {
				t.Fatal(err)
			}
			if err := validate(model, sent.Request); err != nil {
				t.Errorf("%s, for %q: %v\n%.1000s", c.name, model, err, sent.Request)
			}
		}
	}
}
