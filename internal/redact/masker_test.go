package redact_test

import (
	"encoding/json"
	"testing"

	"sessiond/internal/redact"
	"sessiond/internal/session"
)

// What is masked in JSON is strings: names, order, numbers and structure stay.
func TestMaskingJSONKeepsItsStructure(t *testing.T) {
	for name, c := range map[string]struct {
		in, want string
		n        int
	}{
		"nothing":             {`{ "a" : [1, "x", {"b":null}] }`, `{ "a" : [1, "x", {"b":null}] }`, 0},
		"a value by its name": {`{"password": "hunter22!x", "user":"ann"}`, `{"password": "[secret: password]", "user":"ann"}`, 1},
		"a value by its form": {`["AKIAIOSFODNN7EXAMPLE"]`, `["[secret: aws key id]"]`, 1},
		"inside a text":       {`{"text":"key AKIAIOSFODNN7EXAMPLE \"quoted\""}`, `{"text":"key [secret: aws key id] \"quoted\""}`, 1},
		"a key that is cut":   {`{"out":"-----BEGIN RSA PRIVATE KEY-----\nMIIEow\\"}`, `{"out":"[secret: private key]"}`, 1},
		"a name that is one":  {`{"AKIAIOSFODNN7EXAMPLE":1}`, `{"AKIAIOSFODNN7EXAMPLE":1}`, 0},
		"no JSON":             {`{"a":`, `{"a":`, 0},
		"half a pair":         {`{"a":"\ud800","b":"AKIAIOSFODNN7EXAMPLE"}`, `{"a":"\ud800","b":"[secret: aws key id]"}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var m redact.Masker
			got := string(m.JSON(session.JSON(c.in)))
			if got != c.want || m.Masked != c.n {
				t.Errorf("%s with %d masked, want %s with %d", got, m.Masked, c.want, c.n)
			}
			if json.Valid([]byte(c.in)) != json.Valid([]byte(got)) {
				t.Error("it is JSON no more")
			}
		})
	}
	if got := (*redact.Masker)(nil).Text("AKIAIOSFODNN7EXAMPLE"); got != "AKIAIOSFODNN7EXAMPLE" {
		t.Error("a nil Masker masked it")
	}
}

func TestMaskingAMessageKeepsItsParts(t *testing.T) {
	var m redact.Masker
	secret := "token AKIAIOSFODNN7EXAMPLE"
	blob := &session.Blob{MediaType: session.TextBlob, Data: []byte(secret)}
	picture := &session.Blob{MediaType: "image/png", Data: []byte(secret)}
	msg := session.Message{Extra: session.JSON(`{"a":"AKIAIOSFODNN7EXAMPLE"}`), Parts: []session.Part{
		session.TextPart(secret),
		{Kind: session.PartToolCall, CallID: "AKIAIOSFODNN7EXAMPLE", Arguments: `{"k":"AKIAIOSFODNN7EXAMPLE"}`},
		{Kind: session.PartToolResult, Blob: blob},
		{Kind: session.PartImage, Blob: picture},
		{Kind: session.PartData, Blob: blob},
		{Kind: session.PartData, Blob: &session.Blob{MediaType: "application/json", Data: []byte(`{"password":"hunter2x9"}`)}},
	}}
	m.Message(&msg)
	if m.Masked != 6 || len(msg.Parts) != 6 || string(msg.Parts[5].Blob.Data) != `{"password":"[secret: password]"}` || msg.Parts[1].CallID != "AKIAIOSFODNN7EXAMPLE" || string(blob.Data) != secret || msg.Parts[3].Blob != picture {
		t.Errorf("%d masked: %+v", m.Masked, msg)
	}
	if msg.Parts[1].Arguments != `{"k":"[secret: aws key id]"}` || msg.Parts[2].Content() != "token [secret: aws key id]" || string(msg.Parts[4].Blob.Data) != "token [secret: aws key id]" {
		t.Errorf("%+v", msg.Parts)
	}
}
