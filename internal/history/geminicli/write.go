package geminicli

import (
	"encoding/base64"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// EncodeParts writes texts, calls and pictures as parts of @google/genai.
func EncodeParts(parts []session.Part) []jsontext.Value {
	encoded := []jsontext.Value{}
	for i := range parts {
		switch p := &parts[i]; p.Kind {
		case session.PartToolCall:
			encoded = append(encoded, jsonx.Encode("functionCall", jsonx.Encode("id", p.CallID, "name", p.ToolName,
				"args", history.ArgumentsOf(p))))
		case session.PartImage:
			encoded = append(encoded, jsonx.Encode("inlineData", jsonx.Encode("mimeType", p.Blob.MediaType,
				"data", base64.StdEncoding.EncodeToString(p.Blob.Data))))
		default:
			encoded = append(encoded, jsonx.Encode("text", p.Content()))
		}
	}
	return encoded
}

// EncodeResult writes a result of a call, with its pictures behind it.
func EncodeResult(p *session.Part, pictures []session.Part) []jsontext.Value {
	key := "output"
	if p.Failed() {
		key = "error"
	}
	return append([]jsontext.Value{jsonx.Encode("functionResponse", jsonx.Encode("id", p.CallID, "name", p.ToolName,
		"response", jsonx.Encode(key, p.Content())))}, EncodeParts(pictures)...)
}
