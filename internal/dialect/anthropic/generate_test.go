package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// The generators write JSON by hand, so that it holds what no encoder would: halves of
// surrogate pairs, numbers in odd spellings, fields that nobody documented.

// anyMessage generates an entry that must decode.
func anyMessage(r *rapid.T) json.RawMessage {
	role := rapid.SampledFrom([]string{"system", "user", "user", "assistant", "assistant"}).Draw(r, "role")
	fields := []string{`"role":"` + role + `"`}
	maybe := func(name string, value *rapid.Generator[string]) {
		if rapid.Bool().Draw(r, "has "+name) {
			fields = append(fields, `"`+name+`":`+value.Draw(r, name))
		}
	}
	block := rapid.Custom(anyBlock)
	switch role {
	case "user":
		block = rapid.OneOf(block, rapid.Custom(anyResult))
	case "assistant":
		block = rapid.OneOf(block, rapid.Custom(anyReplyBlock))
	}
	maybe("content", rapid.OneOf(text(), rapid.Just("null"), array(block), array(block), array(block)))
	maybe("model", anyValue(1))
	maybe("stop_reason", rapid.OneOf(anyValue(1), rapid.SampledFrom([]string{`"end_turn"`, `"tool_use"`, `"pause_turn"`})))
	maybe("x", anyValue(3))
	return json.RawMessage("{" + strings.Join(fields, ",") + "}")
}

// withMore writes an object of a block, perhaps with fields that nobody documented.
func withMore(r *rapid.T, format string, args ...any) string {
	more := ""
	if rapid.Bool().Draw(r, "marked") {
		more = `,"cache_control":` + anyValue(2).Draw(r, "mark")
	}
	return fmt.Sprintf(format, args...) + more + "}"
}

func anyBlock(r *rapid.T) string {
	switch rapid.IntRange(0, 7).Draw(r, "block") {
	case 0:
		return withMore(r, `{"type":"image","source":{"type":"base64","media_type":%s,"data":"%s","more":%s}`, anyValue(1).Draw(r, "type"), base64().Draw(r, "bytes"), anyValue(1).Draw(r, "more"))
	case 1:
		return withMore(r, `{"type":"image","source":{"type":"url","url":%s}`, anyValue(1).Draw(r, "url"))
	case 2:
		return withMore(r, `{"type":"document","title":%s,"source":{"type":"text","media_type":"text/plain","data":%s}`, anyValue(1).Draw(r, "title"), text().Draw(r, "data"))
	case 3:
		return withMore(r, `{"type":"document","source":{"type":%s,"file_id":%s,"content":%s,"data":%s}`, rapid.SampledFrom([]string{`"file"`, `"content"`, `"x"`, "1"}).Draw(r, "type"), anyValue(1).Draw(r, "id"), anyValue(2).Draw(r, "content"), anyValue(1).Draw(r, "data"))
	case 4:
		return withMore(r, `{"type":"search_result","source":%s,"title":%s,"content":%s`, anyValue(1).Draw(r, "source"), anyValue(1).Draw(r, "title"), array(rapid.Just(`{"type":"text","text":"found"}`)).Draw(r, "content"))
	case 5:
		return withMore(r, `{"type":"other","other":%s`, anyValue(3).Draw(r, "other"))
	case 6:
		return withMore(r, `{"type":"container_upload","file_id":%s`, anyValue(1).Draw(r, "id"))
	}
	return withMore(r, `{"type":"text","text":%s`, text().Draw(r, "text"))
}

func anyResult(r *rapid.T) string {
	block := rapid.OneOf(rapid.Custom(anyBlock), rapid.Just(`{"type":"tool_reference","tool_name":"f"}`))
	content := rapid.OneOf(text(), rapid.Just("null"), array(block), array(block)).Draw(r, "content")
	failed := rapid.SampledFrom([]string{"", `,"is_error":true`, `,"is_error":false`, `,"is_error":null`}).Draw(r, "failed")
	if rapid.Bool().Draw(r, "bare") {
		return withMore(r, `{"type":"tool_result","tool_use_id":%s%s`, callID().Draw(r, "id"), failed)
	}
	return withMore(r, `{"type":"tool_result","tool_use_id":%s,"content":%s%s`, callID().Draw(r, "id"), content, failed)
}

func anyReplyBlock(r *rapid.T) string {
	switch rapid.IntRange(0, 6).Draw(r, "reply block") {
	case 0:
		return withMore(r, `{"type":"thinking","thinking":%s,"signature":%s`, text().Draw(r, "thinking"), anyValue(1).Draw(r, "signature"))
	case 1:
		return withMore(r, `{"type":"redacted_thinking","data":%s`, anyValue(1).Draw(r, "data"))
	case 2:
		return withMore(r, `{"type":"server_tool_use","id":%s,"name":"web_search","input":%s`, callID().Draw(r, "id"), anyValue(2).Draw(r, "input"))
	case 3:
		return withMore(r, `{"type":"web_search_tool_result","tool_use_id":%s,"content":%s`, callID().Draw(r, "id"), anyValue(3).Draw(r, "content"))
	case 4:
		return withMore(r, `{"type":"text","text":%s,"citations":%s`, text().Draw(r, "text"), anyValue(3).Draw(r, "citations"))
	case 5:
		return withMore(r, `{"type":"tool_use","id":%s,"name":%s`, callID().Draw(r, "id"), text().Draw(r, "name"))
	}
	return withMore(r, `{"type":"tool_use","id":%s,"name":%s,"input":%s`, callID().Draw(r, "id"), text().Draw(r, "name"), anyValue(3).Draw(r, "input"))
}

// callID generates few ids, so that calls and results meet.
func callID() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom([]string{`"a"`, `"b"`, `"srvtoolu_1"`, `"srvtoolu_2"`, `""`}), text())
}

// text generates JSON strings in all spellings.
func text() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{"a", "word ", "é", "你好", "😀", `\n`, `\"`, `\\`, `\/`, `\u0041`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `\u0000`, `\uFFFD`, "�", "<&>", "\u2028", `\b\f`})
	return rapid.Map(rapid.SliceOfN(piece, 0, 4), func(p []string) string { return `"` + strings.Join(p, "") + `"` })
}

func base64() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"", "QQ==", "QR==", "QQ", "QUJD", "@", `QQ=\n=`, `Q\u0051==`, png})
}

func number() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"0", "-0", "1.0", "1e400", "12345678901234567890", "0.1E-7"})
}

func array(element *rapid.Generator[string]) *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(element, 0, 4), func(e []string) string { return "[" + strings.Join(e, ",") + "]" })
}

func anyValue(depth int) *rapid.Generator[string] {
	leaf := rapid.OneOf(text(), number(), rapid.SampledFrom([]string{"true", "false", "null", "{}", "[]"}))
	if depth == 0 {
		return leaf
	}
	object := rapid.Map(anyValue(depth-1), func(v string) string {
		return `{"k":` + v + `,"type":"text","text":` + v + `,"\ud800":` + v + `}`
	})
	return rapid.OneOf(leaf, array(anyValue(depth-1)), object)
}
