package openaichat_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// The generators write JSON by hand, so that it holds what no encoder would: halves of
// surrogate pairs, numbers in odd spellings, fields that nobody documented.

// anyMessage generates a message that must decode.
func anyMessage(r *rapid.T) json.RawMessage {
	role := rapid.SampledFrom([]string{"system", "developer", "user", "assistant", "tool", "function"}).Draw(r, "role")
	fields := []string{`"role":"` + role + `"`}
	maybe := func(name string, value *rapid.Generator[string]) {
		if rapid.Bool().Draw(r, "has "+name) {
			fields = append(fields, `"`+name+`":`+value.Draw(r, name))
		}
	}
	maybe("content", rapid.OneOf(text(), rapid.Just("null"), array(rapid.Custom(anyElement))))
	maybe("name", rapid.OneOf(text(), rapid.Just("null")))
	switch role {
	case "tool":
		fields = append(fields, `"tool_call_id":`+text().Draw(r, "tool_call_id"))
	case "assistant":
		maybe("refusal", rapid.OneOf(text(), rapid.Just("null")))
		maybe("reasoning", anyValue(2))
		maybe("reasoning_content", text())
		maybe("tool_calls", rapid.OneOf(array(rapid.Custom(anyCall)), rapid.Just("null")))
		maybe("function_call", rapid.OneOf(rapid.Custom(anyFunction("arguments")), rapid.Just("null")))
		maybe("audio", rapid.OneOf(rapid.Custom(anyAudio), rapid.Just("null")))
	}
	maybe("annotations", anyValue(3))
	maybe("x", anyValue(3))
	return json.RawMessage("{" + strings.Join(fields, ",") + "}")
}

func anyElement(r *rapid.T) string {
	extra := ""
	if rapid.Bool().Draw(r, "marked") {
		extra = `,"cache_control":` + anyValue(2).Draw(r, "mark")
	}
	inner := func(format string, args ...any) string { return fmt.Sprintf(format, args...) + extra + "}" }
	switch rapid.IntRange(0, 6).Draw(r, "element") {
	case 0:
		return inner(`{"type":"refusal","refusal":%s`, text().Draw(r, "refusal"))
	case 1:
		return inner(`{"type":"image_url","image_url":{"url":"data:image/png;base64,%s","more":%s}`, base64().Draw(r, "bytes"), anyValue(1).Draw(r, "more"))
	case 2:
		return inner(`{"type":"image_url","image_url":{"detail":%s,"url":%s}`, anyValue(1).Draw(r, "detail"), text().Draw(r, "url"))
	case 3:
		return inner(`{"type":"input_audio","input_audio":{"data":"%s","format":%s}`, base64().Draw(r, "bytes"), anyValue(1).Draw(r, "format"))
	case 4:
		return inner(`{"type":"file","file":{"filename":%s,"file_id":%s,"file_data":"data:a/b;base64,%s"}`, anyValue(1).Draw(r, "filename"), anyValue(1).Draw(r, "id"), base64().Draw(r, "bytes"))
	case 5:
		return inner(`{"type":"other","other":%s`, anyValue(3).Draw(r, "other"))
	}
	return inner(`{"type":"text","text":%s`, text().Draw(r, "text"))
}

func anyCall(r *rapid.T) string {
	switch rapid.IntRange(0, 3).Draw(r, "call") {
	case 0:
		return fmt.Sprintf(`{"id":%s,"type":"custom","custom":%s}`, text().Draw(r, "id"), anyFunction("input")(r))
	case 1:
		return fmt.Sprintf(`{"id":%s,"function":%s,"index":%s}`, text().Draw(r, "id"), anyFunction("arguments")(r), number().Draw(r, "index"))
	case 2:
		return fmt.Sprintf(`{"type":"mcp","x":%s}`, anyValue(2).Draw(r, "x"))
	}
	return fmt.Sprintf(`{"id":%s,"type":"function","function":%s}`, text().Draw(r, "id"), anyFunction("arguments")(r))
}

func anyFunction(arguments string) func(*rapid.T) string {
	return func(r *rapid.T) string {
		name := text().Draw(r, "function")
		switch rapid.IntRange(0, 3).Draw(r, "arguments") {
		case 0:
			return fmt.Sprintf(`{"name":%s}`, name)
		case 1:
			return fmt.Sprintf(`{"name":%s,"%s":null,"y":%s}`, name, arguments, anyValue(2).Draw(r, "y"))
		case 2:
			return fmt.Sprintf(`{"name":%s,"%s":%s}`, name, arguments, array(anyValue(1)).Draw(r, "array"))
		}
		return fmt.Sprintf(`{"name":%s,"%s":%s}`, name, arguments, text().Draw(r, "text"))
	}
}

func anyAudio(r *rapid.T) string {
	return fmt.Sprintf(`{"id":%s,"data":"%s","transcript":%s}`, text().Draw(r, "id"), base64().Draw(r, "data"), anyValue(1).Draw(r, "transcript"))
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
	object := rapid.Map(anyValue(depth-1), func(v string) string { return `{"k":` + v + `,"\ud800":` + v + `}` })
	return rapid.OneOf(leaf, array(anyValue(depth-1)), object)
}
