package dialecttest

import (
	"fmt"

	"pgregory.net/rapid"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// AnyConversation generates a repaired conversation as the forms may have given it: several
// results in one message or one each; ids that are too long, missing, used before or made;
// tools that a provider ran; parts and extras of all forms.
func AnyConversation(r *rapid.T) []session.Message {
	var msgs []session.Message
	if rapid.IntRange(0, 3).Draw(r, "cut") == 0 {
		msgs = append(msgs, anyMessage(r, session.Assistant, session.PartText))
	}
	turns := rapid.IntRange(1, 4).Draw(r, "turns")
	for turn := range turns {
		role := session.User // a context holds the last word of a person
		if turn < turns-1 {
			role = pick(r, "role", session.User, session.User, session.System)
		}
		msgs = append(msgs, anyMessage(r, role, session.PartText, session.PartImage, session.PartAudio, session.PartFile,
			session.PartData))
		reply, results := anyReply(r, turn)
		msgs = append(msgs, reply)
		together := rapid.Bool().Draw(r, "together")
		for i, result := range results {
			m := anyMessage(r, session.Tool, session.PartText, session.PartImage, session.PartFile, session.PartData)
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

// anyReply generates a reply and the results that follow it.
func anyReply(r *rapid.T, turn int) (session.Message, []session.Part) {
	reply := anyMessage(r, session.Assistant, session.PartReasoning, session.PartText, session.PartRefusal,
		session.PartImage, session.PartAudio, session.PartData)
	reply.Model = pick(r, "model", "", "claude-opus-4-8", "gpt-5", "gemini-3-pro-preview")
	var results []session.Part
	for n := range rapid.IntRange(0, 3).Draw(r, "calls") {
		id := pick(
			r, "id", "", fmt.Sprintf("call_%d_%d", turn, n), fmt.Sprintf("again_%d", n), fmt.Sprintf("a|%d:%d", turn, n),
			fmt.Sprintf("made_f_%d", n+1),
			fmt.Sprintf("call_%d_%d_that_is_longer_than_what_the_provider_takes|fc_0123456789012345678901234567890", turn, n),
		)
		call := session.Part{
			Kind: session.PartToolCall, CallID: id,
			ToolName: pick(r, "tool", "f", "mcp.files/read", "名前", "", "1st"),
		}
		call.Arguments = pick(r, "arguments", "", "{}", "{", "7", `{"a":"\ud800"}`, "[1]", " {\"x\":1} ")
		call.Extra = session.JSON(pick(
			r, "extra of a call", "", `{"type":"custom"}`, `{"made":true}`, `{"thoughtSignature":"QUJD"}`,
			`{"thoughtSignature":"msg_1!"}`,
			`{"thoughtSignature":"QUJD"}`, `{"rest":{"extra_content":{"google":{"thought_signature":"QUJD"}}}}`,
		))
		reply.Parts = append(reply.Parts, call)
		result := session.Part{
			Kind: session.PartToolResult, CallID: id, ToolName: call.ToolName,
			Text: pick(r, "result", "7", "", " ", `{"a":1}`, "{"),
		}
		if rapid.Bool().Draw(r, "says whether it failed") {
			result.IsError = new(rapid.Bool().Draw(r, "failed"))
		}
		if id != "" && rapid.IntRange(0, 3).Draw(r, "inline") == 0 {
			reply.Parts = append(reply.Parts, result)
			continue
		}
		results = append(results, result)
	}
	return reply, results
}

func anyMessage(r *rapid.T, role session.Role, kinds ...session.PartKind) session.Message {
	m := session.Message{Kind: session.KindMessage, Role: role, Author: pick(r, "author", "", "", "ann", "Ann <Lee>")}
	for range rapid.IntRange(0, 3).Draw(r, "parts") {
		p := session.Part{Kind: pick(r, "kind", kinds...), Text: pick(r, "text", "", "text", " \n", "text \n")}
		switch {
		case p.Kind.HasBytes() && rapid.Bool().Draw(r, "bytes"):
			types := []string{
				"image/png", "image/gif", "image/heic", "audio/wav", "application/pdf", "application/zip",
				"text/plain",
			}
			wire.Attach(&p, wire.Blob(pick(r, "type", types...), []byte("ABC")))
		case p.Kind.HasBytes():
			p.Extra = session.JSON(pick(
				r, "extra", "", "[]", `{"url":"https://x/y"}`, `{"url":"https://x/y.pdf"}`, `{"url":"gs://x"}`, `{"file_id":"f"}`,
				`{"url":"ftp://x"}`,
				`{"nested":true,"rest":{"videoMetadata":{"fps":1},"thought":true}}`,
			))
		case rapid.IntRange(0, 3).Draw(r, "signed") == 0:
			p.Extra = session.JSON(`{"thoughtSignature":"QUJD","rest":{"cache_control":{}}}`)
		}
		m.Parts = append(m.Parts, p)
	}
	return m
}

func pick[T any](r *rapid.T, what string, among ...T) T {
	return rapid.SampledFrom(among).Draw(r, what)
}
