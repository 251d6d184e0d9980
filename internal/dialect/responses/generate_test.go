package responses_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// The generators write JSON by hand, so that it holds what no encoder would: halves of
// surrogate pairs, numbers in odd spellings, fields that nobody documented.

// anyInput generates an item, or a response object of some, that must decode.
func anyInput(r *rapid.T) json.RawMessage {
	if rapid.IntRange(0, 9).Draw(r, "response") > 0 {
		return json.RawMessage(anyItem(r))
	}
	items := rapid.SliceOfN(rapid.Custom(anyItem), 0, 4).Draw(r, "output")
	fields := []string{`"object":"response"`, `"output":[` + strings.Join(items, ",") + `]`}
	for _, f := range []string{"status", "model", "instructions", "incomplete_details", "usage"} {
		if rapid.Bool().Draw(r, "has "+f) {
			fields = append(fields, `"`+f+`":`+anyValue(2).Draw(r, f))
		}
	}
	return json.RawMessage("{" + strings.Join(fields, ",") + "}")
}

// anyItem generates one item.
func anyItem(r *rapid.T) string {
	kind := rapid.SampledFrom([]string{
		"message", "message", "reasoning", "function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call",
		"tool_search_call", "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "mcp_list_tools",
		"mcp_approval_request", "mcp_approval_response", "compaction", "item_reference", "function_call_output", "custom_tool_call_output",
		"computer_call_output", "local_shell_call_output", "shell_call_output", "apply_patch_call_output", "tool_search_output", "hologram", "hologram_call", "hologram_call_output",
	}).Draw(r, "kind")
	var fields []string
	add := func(name, value string) { fields = append(fields, `"`+name+`":`+value) }
	maybe := func(name string, value *rapid.Generator[string]) {
		if rapid.Bool().Draw(r, "has "+name) {
			add(name, value.Draw(r, name))
		}
	}
	if kind != "message" || rapid.Bool().Draw(r, "typed") {
		add("type", `"`+kind+`"`)
	}
	maybe("id", anyValue(0))
	maybe("status", rapid.SampledFrom([]string{`"completed"`, `"failed"`, "null", "7"}))
	maybe("x", anyValue(3))
	textOrNull := rapid.OneOf(text(), rapid.Just("null"))
	switch kind {
	case "message":
		add("role", rapid.SampledFrom([]string{`"user"`, `"assistant"`, `"system"`, `"developer"`}).Draw(r, "role"))
		maybe("content", rapid.OneOf(textOrNull, array(rapid.Custom(anyElement))))
		maybe("name", anyValue(1))
		maybe("phase", anyValue(0))
	case "reasoning":
		maybe("summary", rapid.OneOf(array(rapid.Custom(anyElement)), text(), rapid.Just("null")))
		maybe("content", rapid.OneOf(array(rapid.Custom(anyElement)), rapid.Just("null")))
		maybe("encrypted_content", anyValue(0))
	case "function_call", "custom_tool_call", "mcp_call":
		add("call_id", text().Draw(r, "call_id"))
		add("name", text().Draw(r, "name"))
		arguments := rapid.OneOf(textOrNull, array(anyValue(1)))
		maybe(map[string]string{"custom_tool_call": "input"}[kind]+strings.Repeat("arguments", 1-strings.Count(kind, "custom")), arguments)
		maybe("output", anyValue(1))
		maybe("error", anyValue(1))
	case "computer_call", "shell_call", "apply_patch_call", "tool_search_call", "local_shell_call":
		add("call_id", text().Draw(r, "call_id"))
		maybe("action", anyValue(3))
		maybe("operation", anyValue(3))
		maybe("arguments", anyValue(3))
	case "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call":
		maybe("action", anyValue(3))
		maybe("queries", anyValue(2))
		maybe("results", anyValue(3))
		maybe("outputs", anyValue(3))
		maybe("code", textOrNull)
		maybe("revised_prompt", textOrNull)
		maybe("result", rapid.OneOf(anyValue(1), rapid.Map(base64(), func(s string) string { return `"` + s + `"` })))
		maybe("output_format", anyValue(0))
	case "function_call_output", "custom_tool_call_output", "apply_patch_call_output":
		add("call_id", rapid.OneOf(text(), rapid.Just(`"a"`)).Draw(r, "call_id"))
		maybe("output", rapid.OneOf(textOrNull, array(rapid.Custom(anyElement)), rapid.Just(`{"content":"x"}`), rapid.Just("7")))
		maybe("name", anyValue(0))
	case "local_shell_call_output":
		maybe("call_id", anyValue(1))
		maybe("output", textOrNull)
	case "shell_call_output", "tool_search_output":
		maybe("call_id", textOrNull)
		maybe("output", rapid.OneOf(anyValue(3), rapid.Just(`[{"stdout":"a","stderr":"","outcome":{}}]`)))
		maybe("tools", anyValue(3))
	case "computer_call_output":
		add("call_id", text().Draw(r, "call_id"))
		maybe("output", rapid.OneOf(rapid.Custom(anyElement), textOrNull))
	}
	return "{" + strings.Join(fields, ",") + "}"
}

func anyElement(r *rapid.T) string {
	extra := ""
	if rapid.Bool().Draw(r, "marked") {
		extra = `,"cache_control":` + anyValue(2).Draw(r, "mark")
	}
	inner := func(format string, args ...any) string { return fmt.Sprintf(format, args...) + extra + "}" }
	switch rapid.IntRange(0, 8).Draw(r, "element") {
	case 0:
		return inner(`{"type":"refusal","refusal":%s`, text().Draw(r, "refusal"))
	case 1:
		return inner(`{"type":"input_image","image_url":"data:image/png;base64,%s","detail":%s`, base64().Draw(r, "bytes"), anyValue(1).Draw(r, "detail"))
	case 2:
		return inner(`{"type":"computer_screenshot","image_url":%s,"file_id":%s`, anyValue(1).Draw(r, "url"), anyValue(0).Draw(r, "file"))
	case 3:
		return inner(`{"type":"input_audio","input_audio":{"data":"%s","format":%s}`, base64().Draw(r, "bytes"), anyValue(1).Draw(r, "format"))
	case 4:
		return inner(`{"type":"input_audio","audio_url":%s`, anyValue(1).Draw(r, "url"))
	case 5:
		data := rapid.SampledFrom([]string{"", "data:a/b;base64,"}).Draw(r, "prefix") + base64().Draw(r, "bytes")
		return inner(`{"type":"input_file","filename":%s,"file_id":%s,"file_url":%s,"file_data":"%s"`, anyValue(1).Draw(r, "filename"), anyValue(1).Draw(r, "id"), anyValue(0).Draw(r, "url"), data)
	case 6:
		return inner(`{"type":"other","other":%s`, anyValue(3).Draw(r, "other"))
	}
	kind := rapid.SampledFrom([]string{"input_text", "output_text", "text", "summary_text", "reasoning_text"}).Draw(r, "type")
	return inner(`{"type":"%s","text":%s,"annotations":%s`, kind, text().Draw(r, "text"), anyValue(1).Draw(r, "annotations"))
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
	object := rapid.Map(anyValue(depth-1), func(v string) string { return `{"k":` + v + `,"\ud800":` + v + `,"type":"exec","url":` + v + `}` })
	return rapid.OneOf(leaf, array(anyValue(depth-1)), object)
}
