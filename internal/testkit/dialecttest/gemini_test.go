package dialecttest_test

import (
	"strings"
	"testing"

	"sessiond/internal/testkit/dialecttest"
)

const (
	geminiUser  = `{"role":"user","parts":[{"text":"x"}]}`
	geminiModel = `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"QQ=="}]}`
	geminiReply = `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"x"}}}]}`
)

func TestValidateGeminiAccepts(t *testing.T) {
	call := geminiUser + "," + geminiModel
	for name, contents := range map[string]string{
		"plain":              geminiUser + `,{"role":"model","parts":[{"text":"y"}]}`,
		"users in a row":     geminiUser + "," + geminiUser,
		"a call answered":    call + "," + geminiReply + "," + geminiUser,
		"calls in a row":     call + "," + geminiReply + "," + geminiModel + "," + geminiReply,
		"ids":                geminiUser + `,{"role":"model","parts":[{"functionCall":{"id":"b","name":"f"},"thoughtSignature":"Q-_="},{"functionCall":{"id":"a","name":"f","args":{"x":1}}}]},{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{}}},{"functionResponse":{"id":"b","name":"f","response":{}}}]}`,
		"thoughts and code":  geminiUser + `,{"role":"model","parts":[{"text":"hm","thought":true},{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}},{"text":"","thoughtSignature":"QQ"}]}`,
		"media":              `{"role":"user","parts":[{"inlineData":{"mimeType":"video/mp4","data":"QQ=="},"videoMetadata":{"fps":1}},{"fileData":{"mimeType":"application/pdf","fileUri":"gs://b/a"}}]}`,
		"media of responses": call + `,{"role":"user","parts":[{"functionResponse":{"name":"f","response":{},"parts":[{"inlineData":{"mimeType":"image/png","data":"QQ=="}}]}}]}`,
	} {
		if err := dialecttest.ValidateGemini3([]byte(`{"systemInstruction":{"parts":[{"text":"x"}]},"contents":[` + contents +
			`]}`)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := dialecttest.ValidateGemini([]byte(`{"contents":[` +
		strings.ReplaceAll(call, `,"thoughtSignature":"QQ=="`, "") + "," + geminiReply + `]}`)); err != nil {
		t.Errorf("a call without a signature, of an older model: %v", err)
	}
}

func TestValidateGeminiRefuses(t *testing.T) {
	call := geminiUser + "," + geminiModel
	model := func(parts string) string {
		return geminiUser + `,{"role":"model","parts":[` + parts + `]},` + geminiReply
	}
	user := func(parts string) string { return `{"role":"user","parts":[` + parts + `]}` }
	for name, contents := range map[string]string{
		"nothing":                         ``,
		"an unknown role":                 `{"role":"assistant","parts":[{"text":"x"}]}`,
		"no role":                         `{"parts":[{"text":"x"}]}`,
		"no parts":                        `{"role":"user","parts":[]}`,
		"an unknown field":                `{"role":"user","parts":[{"text":"x"}],"x":1}`,
		"an unknown field of a part":      user(`{"text":"x","cache_control":{}}`),
		"the model first":                 `{"role":"model","parts":[{"text":"x"}]}`,
		"the model twice":                 geminiUser + `,{"role":"model","parts":[{"text":"x"}]},{"role":"model","parts":[{"text":"x"}]}`,
		"an empty text":                   user(`{"text":""}`),
		"an empty part":                   user(`{}`),
		"two things in one":               user(`{"text":"x","inlineData":{"mimeType":"image/png","data":"QQ=="}}`),
		"python's spelling":               user(`{"inline_data":{"mime_type":"image/png","data":"QQ=="}}`),
		"a user's thought":                user(`{"text":"x","thought":true}`),
		"a user's signature":              user(`{"text":"x","thoughtSignature":"QQ=="}`),
		"a user's call":                   user(`{"functionCall":{"name":"f","args":{}}}`),
		"a user's code":                   user(`{"executableCode":{"language":"PYTHON","code":"x"}}`),
		"a signature of no base64":        geminiUser + `,{"role":"model","parts":[{"text":"x","thoughtSignature":"msg_1!"}]}`,
		"code of no language":             geminiUser + `,{"role":"model","parts":[{"executableCode":{"code":"x"}}]}`,
		"an outcome that is none":         geminiUser + `,{"role":"model","parts":[{"codeExecutionResult":{"outcome":"ok"}}]}`,
		"a call unanswered":               call,
		"a call answered too late":        call + "," + geminiUser + "," + geminiReply,
		"a call answered twice":           call + "," + geminiReply + "," + geminiReply,
		"a call answered by another name": call + "," + strings.Replace(geminiReply, `"f"`, `"g"`, 1),
		"a call answered by another id":   call + "," + strings.Replace(geminiReply, `"name"`, `"id":"x","name"`, 1),
		"an answer to nothing":            geminiUser + "," + geminiReply,
		"too few answers":                 model(`{"functionCall":{"name":"f"},"thoughtSignature":"QQ=="},{"functionCall":{"name":"f"}}`),
		"an answer beside text":           call + `,` + user(`{"functionResponse":{"name":"f","response":{}}},{"text":"x"}`),
		"an answer of the model":          call + `,{"role":"model","parts":[{"functionResponse":{"name":"f","response":{}}}]}`,
		"an answer that is a text":        call + `,` + user(`{"functionResponse":{"name":"f","response":"x"}}`),
		"an answer without content":       call + `,` + user(`{"functionResponse":{"name":"f"}}`),
		"arguments that are a text":       model(`{"functionCall":{"name":"f","args":"{}"},"thoughtSignature":"QQ=="}`),
		"arguments with half a pair":      model(`{"functionCall":{"name":"f","args":{"a":"\ud800"}},"thoughtSignature":"QQ=="}`),
		"a name with a slash":             model(`{"functionCall":{"name":"f/g","args":{}},"thoughtSignature":"QQ=="}`),
		"a name that begins with a digit": model(`{"functionCall":{"name":"1f","args":{}},"thoughtSignature":"QQ=="}`),
		"a name too long": model(`{"functionCall":{"name":"` + strings.Repeat("f", 65) +
			`","args":{}},"thoughtSignature":"QQ=="}`),
		"an empty id":                   model(`{"functionCall":{"id":"","name":"f","args":{}},"thoughtSignature":"QQ=="}`),
		"a call without a signature":    model(`{"functionCall":{"name":"f","args":{}}}`),
		"a picture of another type":     user(`{"inlineData":{"mimeType":"image/gif","data":"QQ=="}}`),
		"a picture that is none":        user(`{"inlineData":{"mimeType":"image/png","data":"@"}}`),
		"a picture of nothing":          user(`{"inlineData":{"mimeType":"image/png","data":""}}`),
		"a file of no type":             user(`{"fileData":{"fileUri":"gs://x"}}`),
		"a file that cannot be reached": user(`{"fileData":{"mimeType":"image/png","fileUri":"file-abc"}}`),
		"a film's data on a text":       user(`{"text":"x","videoMetadata":{}}`),
		"a sound within an answer":      call + `,` + user(`{"functionResponse":{"name":"f","response":{},"parts":[{"inlineData":{"mimeType":"audio/wav","data":"QQ=="}}]}}`),
	} {
		if err := dialecttest.ValidateGemini3([]byte(`{"contents":[` + contents + `]}`)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, request := range []string{
		`{}`, `[]`, `null`, `{"contents":null}`, `{"contents":[` + geminiUser + `],"stream":true}`,
		`{"contents":[` + geminiUser + `],"systemInstruction":"x"}`,
		`{"contents":[` + geminiUser + `],"systemInstruction":{"parts":[]}}`,
		`{"contents":[` + geminiUser + `],"systemInstruction":{"parts":[{"text":""}]}}`,
	} {
		if dialecttest.ValidateGemini([]byte(request)) == nil {
			t.Errorf("%s: accepted", request)
		}
	}
}
