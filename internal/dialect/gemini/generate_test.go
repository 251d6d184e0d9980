package gemini_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// The generators write JSON by hand, so that it holds what no encoder would: halves of
// surrogate pairs, numbers in odd spellings, fields that nobody documented.

// anyContent generates a content, a candidate or a response that must decode.
func anyContent(r *rapid.T) json.RawMessage {
	role := rapid.SampledFrom([]string{"user", "user", "model", "model", "function", "tool", "system"}).Draw(r, "role")
	reply := rapid.IntRange(0, 4).Draw(r, "around")
	if reply < 2 {
		role = "model"
	}
	fields := []string{`"role":"` + role + `"`}
	switch rapid.IntRange(0, 8).Draw(r, "parts") {
	case 0:
	case 1:
		fields = append(fields, `"parts":null`)
	default:
		fields = append(fields, `"parts":`+array(rapid.Custom(anyPart(role))).Draw(r, "parts"))
	}
	if rapid.Bool().Draw(r, "more") {
		fields = append(fields, `"x":`+anyValue(3).Draw(r, "x"))
	}
	content := "{" + strings.Join(fields, ",") + "}"
	if reply > 1 {
		return json.RawMessage(content)
	}
	reason := rapid.SampledFrom([]string{"STOP", "MAX_TOKENS", "SAFETY", "OTHER", "NOVEL"}).Draw(r, "reason")
	candidate := fmt.Sprintf(`{"content":%s,"finishReason":"%s","groundingMetadata":%s}`, content, reason, anyValue(2).Draw(r, "grounding"))
	if reply > 0 {
		return json.RawMessage(candidate)
	}
	return json.RawMessage(fmt.Sprintf(`{"candidates":[%s],"usageMetadata":%s,"modelVersion":%s}`, candidate, anyValue(2).Draw(r, "usage"), anyValue(0).Draw(r, "version")))
}

func anyPart(role string) func(*rapid.T) string {
	return func(r *rapid.T) string {
		beside := ""
		for _, f := range []string{"thought", "thoughtSignature", "thought_signature", "videoMetadata", "y"} {
			if rapid.IntRange(0, 5).Draw(r, "has "+f) == 0 {
				beside += `,"` + f + `":` + anyValue(1).Draw(r, f)
			}
		}
		snake := rapid.Bool().Draw(r, "snake")
		pick := func(camel, other string) string {
			if snake {
				return other
			}
			return camel
		}
		name := func(format string, args ...any) string { return fmt.Sprintf(format, args...) + beside + "}" }
		most := 9
		if role != "model" {
			most = 8
		}
		switch rapid.IntRange(0, most).Draw(r, "part") {
		case 0:
			return name(`{"%s":%s`, pick("inlineData", "inline_data"), anyInline(r, snake))
		case 1:
			return name(`{"%s":{"%s":%s,"%s":%s,"z":%s}`, pick("fileData", "file_data"), pick("mimeType", "mime_type"), anyValue(0).Draw(r, "type"), pick("fileUri", "file_uri"), anyValue(0).Draw(r, "uri"), anyValue(1).Draw(r, "z"))
		case 2:
			return name(`{"%s":%s`, pick("executableCode", "executable_code"), anyValue(2).Draw(r, "code"))
		case 3:
			return name(`{"executableCode":{"language":"PYTHON","code":%s,"id":%s}`, anyText().Draw(r, "code"), anyID().Draw(r, "id"))
		case 4:
			return name(`{"codeExecutionResult":{"outcome":%s,"output":%s,"id":%s}`, anyValue(0).Draw(r, "outcome"), anyValue(0).Draw(r, "output"), anyID().Draw(r, "id"))
		case 5:
			return name(`{"%s":{"name":%s,"id":%s,"response":%s,"parts":[{"inlineData":%s}]}`, pick("functionResponse", "function_response"), anyText().Draw(r, "name"), anyID().Draw(r, "id"), anyValue(2).Draw(r, "response"), anyInline(r, snake))
		case 6:
			return name(`{"functionResponse":{"name":"f","response":{"%s":%s}}`, rapid.SampledFrom([]string{"output", "error", "", "k"}).Draw(r, "key"), anyValue(1).Draw(r, "value"))
		case 7:
			return name(`{"other":%s`, anyValue(3).Draw(r, "other"))
		case 8:
			return name(`{"text":%s`, anyText().Draw(r, "text"))
		}
		return name(`{"%s":{"name":%s,"id":%s,"args":%s}`, pick("functionCall", "function_call"), anyText().Draw(r, "name"), anyID().Draw(r, "id"), anyValue(2).Draw(r, "args"))
	}
}

func anyInline(r *rapid.T, snake bool) string {
	field := "mimeType"
	if snake {
		field = "mime_type"
	}
	return fmt.Sprintf(`{"%s":%s,"data":"%s"}`, field, rapid.SampledFrom([]string{`"image/png"`, `"audio/wav"`, `"video/mp4"`, `""`, "null", `"\ud800"`}).Draw(r, "type"), anyBase64().Draw(r, "data"))
}

func anyID() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"null", `""`, `"a"`, `"b"`, `"\u0000"`, `"made_f_1"`})
}

// anyText generates JSON strings in all spellings.
func anyText() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{"a", "word ", "é", "你好", "😀", `\n`, `\"`, `\\`, `\/`, `\u0041`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `\u0000`, `\uFFFD`, "�", "<&>", "\u2028", `\b\f`})
	return rapid.Map(rapid.SliceOfN(piece, 0, 4), func(p []string) string { return `"` + strings.Join(p, "") + `"` })
}

func anyBase64() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"", "QQ==", "QR==", "QQ", "QUJD", "@", `QQ=\n=`, `Q\u0051==`, "_-8=", png})
}

func anyNumber() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"0", "-0", "1.0", "1e400", "12345678901234567890", "0.1E-7"})
}

func array(element *rapid.Generator[string]) *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(element, 0, 5), func(e []string) string { return "[" + strings.Join(e, ",") + "]" })
}

func anyValue(depth int) *rapid.Generator[string] {
	leaf := rapid.OneOf(anyText(), anyNumber(), rapid.SampledFrom([]string{"true", "false", "null", "{}", "[]"}))
	if depth == 0 {
		return leaf
	}
	object := rapid.Map(anyValue(depth-1), func(v string) string { return `{"k":` + v + `,"\ud800":` + v + `}` })
	return rapid.OneOf(leaf, array(anyValue(depth-1)), object)
}
