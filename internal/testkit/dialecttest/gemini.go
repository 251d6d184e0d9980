package dialecttest

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ValidateGemini reports what Gemini's generateContent would refuse in {"systemInstruction": …,
// "contents": […]}. Rules: the API's reference (Content, Part and what a part holds: fields,
// types, enums, alphabets), its guide to function calling, and what the API answers with 400
// beyond them: a call's turn comes directly behind a turn of the user or of functions, a turn
// of functions directly behind its calls, with as many responses as there were calls; the
// contents begin with the user; no part is empty; bytes are base64.
func ValidateGemini(raw []byte) error { return validateGemini(raw, false) }

// ValidateGemini3 reports what it would refuse for models since the third generation: the first
// call of each reply also has a thought signature.
func ValidateGemini3(raw []byte) error { return validateGemini(raw, true) }

func validateGemini(raw []byte, signed bool) error {
	request, err := only(raw, "systemInstruction? contents:list")
	if err != nil {
		return err
	}
	if system := request["systemInstruction"]; system != nil {
		o, err := only(system, "parts:list role?")
		if err == nil {
			err = each("parts", o["parts"], func(_ string, raw []byte) error {
				_, err := only(raw, "text:name")
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("systemInstruction: %w", err)
		}
	}
	var before geminiTurn
	err = each("contents", request["contents"], func(_ string, raw []byte) error {
		turn, err := geminiContent(raw, signed)
		if err == nil {
			err = before.then(turn)
		}
		before = turn
		return err
	})
	if err != nil {
		return err
	}
	if len(before.calls) > 0 {
		return fmt.Errorf("contents: calls %v have no response", before.calls)
	}
	return nil
}

// geminiTurn is what the next content has to do with.
type geminiTurn struct {
	role             string
	calls, responses []geminiCall
}

type geminiCall struct{ id, name string }

// then checks that a turn may follow.
func (t geminiTurn) then(next geminiTurn) error {
	switch {
	case t.role == "" && next.role != "user":
		return errors.New("the contents begin with the model")
	case t.role == "model" && next.role == "model":
		return errors.New("two turns of the model in a row")
	case len(next.responses) == 0 && len(t.calls) == 0:
		return nil
	case len(next.responses) != len(t.calls):
		return fmt.Errorf("%d responses to %d calls", len(next.responses), len(t.calls))
	}
	open := slices.Clone(t.calls)
	for _, r := range next.responses {
		at := slices.Index(open, r)
		if at < 0 {
			return fmt.Errorf("the response %+v answers none of the calls %+v", r, open)
		}
		open = slices.Delete(open, at, at+1)
	}
	return nil
}

func geminiContent(raw []byte, signed bool) (geminiTurn, error) {
	var t geminiTurn
	o, err := only(raw, "role:user|model parts:list")
	if err != nil {
		return t, err
	}
	t.role = o.Text("role")
	parts := 0
	err = each("parts", o["parts"], func(_ string, raw []byte) error {
		parts++
		first := len(t.calls) == 0
		hasSignature, err := t.part(raw)
		if err == nil && signed && first && len(t.calls) == 1 && !hasSignature {
			err = errors.New("the first call of a reply has no thoughtSignature")
		}
		return err
	})
	if err == nil && len(t.responses) > 0 && len(t.responses) != parts {
		err = errors.New("responses stand beside other parts")
	}
	return t, err
}

// part checks one part: one field says what it is, and only those that belong to it stand
// beside that.
func (t *geminiTurn) part(raw []byte) (hasSignature bool, err error) {
	o, err := only(raw,
		"text?:text inlineData? fileData? functionCall? functionResponse? executableCode? codeExecutionResult? "+
			"toolCall? toolResponse? thought?:flag thoughtSignature?:text videoMetadata? mediaResolution?")
	if err != nil {
		return false, err
	}
	field := ""
	for f, v := range o {
		switch f {
		case "thought":
			if t.role != "model" {
				return false, errors.New("a thought of the user")
			}
		case "thoughtSignature":
			if err := geminiBytes(o.Text(f)); err != nil {
				return false, fmt.Errorf("thoughtSignature: %w", err)
			}
			if hasSignature = true; t.role != "model" {
				return false, errors.New("a signature of the user")
			}
		case "videoMetadata", "mediaResolution":
			if o["inlineData"] == nil && o["fileData"] == nil {
				return false, fmt.Errorf("%s without a medium", f)
			}
			if _, err := only(v, "startOffset? endOffset? fps? level? numTokens?"); err != nil {
				return false, fmt.Errorf("%s: %w", f, err)
			}
		default:
			if field != "" {
				return false, fmt.Errorf("both %s and %s", field, f)
			}
			field = f
		}
	}
	if field == "" {
		return false, errors.New("no field says what it is")
	}
	if err := t.data(field, o[field], hasSignature); err != nil {
		return false, fmt.Errorf("%s: %w", field, err)
	}
	return hasSignature, nil
}

func (t *geminiTurn) data(field string, raw []byte, hasSignature bool) error {
	model := slices.Contains([]string{"functionCall", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"},
		field)
	if model && t.role != "model" || field == "functionResponse" && t.role != "user" {
		return fmt.Errorf("stands in a content of role %s", t.role)
	}
	fields := map[string]string{
		"inlineData": "mimeType:name data:name", "fileData": "mimeType:name fileUri:name",
		"functionCall": "id?:name name:name args?:object", "functionResponse": "id?:name name:name response:object parts?",
		"executableCode": "id?:text code?:text language:PYTHON|LANGUAGE_UNSPECIFIED",
		"codeExecutionResult": "id?:text output?:text " +
			"outcome:OUTCOME_OK|OUTCOME_FAILED|OUTCOME_DEADLINE_EXCEEDED|OUTCOME_UNSPECIFIED",
	}[field]
	if field == "text" {
		if string(raw) == `""` && !hasSignature {
			return errors.New("it is empty")
		}
		return nil
	}
	o, err := only(raw, cmp.Or(fields, "id? toolType? args? response?"))
	if err != nil {
		return err
	}
	switch field {
	case "inlineData", "fileData":
		return geminiMedium(o)
	case "functionCall", "functionResponse":
		return t.function(field, o)
	}
	return nil
}

var geminiName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$`)

// function checks a call or a response. Their text must be Unicode.
func (t *geminiTurn) function(field string, o Object) error {
	if !geminiName.MatchString(o.Text("name")) {
		return fmt.Errorf("name %s", o["name"])
	}
	if body := slices.Concat(o["args"], o["response"]); !bytes.Equal(markHalves(body), body) {
		return errors.New("holds half a surrogate pair")
	}
	c := geminiCall{o.Text("id"), o.Text("name")}
	if field == "functionCall" {
		t.calls = append(t.calls, c)
		return nil
	}
	t.responses = append(t.responses, c)
	if o["parts"] == nil {
		return nil
	}
	return each("parts", o["parts"], func(_ string, raw []byte) error {
		p, err := only(raw, "inlineData:object")
		if err == nil {
			_, err = only(p["inlineData"],
				"mimeType:image/png|image/jpeg|image/webp|application/pdf|text/plain data:data displayName?:text")
		}
		return err
	})
}

var (
	geminiMediaType = regexp.MustCompile(`(?i)^(image/(png|jpeg|webp|heic|heif)|(audio|video|text)/[a-z0-9.+-]+|application/(pdf|json|rtf|x-javascript|x-python-code))(;[ -~]*)?$`)
	geminiAddress   = regexp.MustCompile(`^(https?|gs)://`)
)

func geminiMedium(o Object) error {
	switch {
	case !geminiMediaType.MatchString(o.Text("mimeType")):
		return fmt.Errorf("mimeType %s", o["mimeType"])
	case o["data"] != nil:
		return geminiBytes(o.Text("data"))
	case !geminiAddress.MatchString(o.Text("fileUri")):
		return fmt.Errorf("fileUri %s", o["fileUri"])
	}
	return nil
}

// geminiBytes checks a field of bytes: base64 of either alphabet, with or without padding.
func geminiBytes(text string) error {
	text = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(text), "=")
	if _, err := base64.RawStdEncoding.DecodeString(text); err != nil || text == "" {
		return fmt.Errorf("is no base64: %.60q %w", text, err)
	}
	return nil
}

// ValidateGeminiChat reports what Google's API in OpenAI's form would refuse: what OpenAI's would,
// but that calls may hold extra_content.google.thought_signature. With signed the first call of
// each reply must, as Gemini 3 asks.
func ValidateGeminiChat(raw []byte, signed bool) error {
	var request struct {
		Messages []map[string]jsontext.Value `json:"messages"`
	}
	if err := json.Unmarshal(raw, &request); err != nil {
		return err
	}
	for i, m := range request.Messages {
		if m["tool_calls"] == nil {
			continue
		}
		var calls []map[string]jsontext.Value
		if err := json.Unmarshal(m["tool_calls"], &calls); err != nil {
			return fmt.Errorf("messages[%d].tool_calls: %w", i, err)
		}
		for j, call := range calls {
			has, err := geminiExtra(call["extra_content"])
			if err == nil && signed && j == 0 && !has {
				err = errors.New("the first call of a reply has no thought_signature")
			}
			if err != nil {
				return fmt.Errorf("messages[%d].tool_calls[%d]: %w", i, j, err)
			}
			delete(call, "extra_content")
		}
		m["tool_calls"], _ = json.Marshal(calls)
	}
	plain, err := json.Marshal(request)
	if err != nil {
		return err
	}
	return ValidateOpenAIChat(plain)
}

// geminiExtra reads {google: {thought_signature}}, which need not be there.
func geminiExtra(raw []byte) (has bool, err error) {
	if raw == nil {
		return false, nil
	}
	extra, err := only(raw, "google:object")
	if err == nil {
		extra, err = only(extra["google"], "thought_signature:name")
	}
	if err == nil {
		err = geminiBytes(extra.Text("thought_signature"))
	}
	if err != nil {
		return false, fmt.Errorf("extra_content: %w", err)
	}
	return true, nil
}
