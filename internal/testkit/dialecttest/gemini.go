package dialecttest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ValidateGemini tells what Gemini's generateContent would refuse in {"systemInstruction": …,
// "contents": […]}. Rules: the API's reference (Content, Part and what a part holds: fields,
// types, enums, alphabets), its guide to function calling, and what the API answers with 400
// beyond them: a call's turn comes directly behind a turn of the user or of functions, a turn
// of functions directly behind its calls, with as many responses as there were calls; the
// contents begin with the user; no part is empty; bytes are base64.
func ValidateGemini(raw []byte) error { return validateGemini(raw, false) }

// ValidateGemini3 tells what it would refuse for models since the third generation: the first
// call of each reply also has a thought signature.
func ValidateGemini3(raw []byte) error { return validateGemini(raw, true) }

func validateGemini(raw []byte, signed bool) error {
	request, err := object(raw, "systemInstruction", "contents")
	if err != nil {
		return err
	}
	if system := request["systemInstruction"]; system != nil {
		if err := geminiSystem(system); err != nil {
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

func geminiSystem(raw []byte) error {
	o, err := object(raw, "parts", "role")
	if err != nil {
		return err
	}
	return each("parts", o["parts"], func(_ string, raw []byte) error {
		p, err := object(raw, "text")
		if err != nil {
			return err
		}
		if text, err := geminiText(p["text"]); err != nil || text == "" {
			return fmt.Errorf("text %s", p["text"])
		}
		return nil
	})
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
	o, err := object(raw, "role", "parts")
	if err != nil {
		return t, err
	}
	if t.role, err = geminiText(o["role"]); err != nil || t.role != "user" && t.role != "model" {
		return t, fmt.Errorf("role %s", o["role"])
	}
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
	o, err := object(raw, "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult",
		"toolCall", "toolResponse", "thought", "thoughtSignature", "videoMetadata", "mediaResolution")
	if err != nil {
		return false, err
	}
	field := ""
	for f, v := range o {
		switch f {
		case "thought":
			if string(v) != "true" && string(v) != "false" {
				return false, fmt.Errorf("thought %s", v)
			}
			if t.role != "model" {
				return false, errors.New("a thought of the user")
			}
		case "thoughtSignature":
			if err := geminiBytes(v); err != nil {
				return false, fmt.Errorf("thoughtSignature: %w", err)
			}
			if hasSignature = true; t.role != "model" {
				return false, errors.New("a signature of the user")
			}
		case "videoMetadata", "mediaResolution":
			if o["inlineData"] == nil && o["fileData"] == nil {
				return false, fmt.Errorf("%s without a medium", f)
			}
			if _, err := object(v, "startOffset", "endOffset", "fps", "level", "numTokens"); err != nil {
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
	model := slices.Contains([]string{"functionCall", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"}, field)
	if model && t.role != "model" || field == "functionResponse" && t.role != "user" {
		return fmt.Errorf("stands in a content of role %s", t.role)
	}
	switch field {
	case "text":
		if text, err := geminiText(raw); err != nil || text == "" && !hasSignature {
			return fmt.Errorf("%.60s", raw)
		}
		return nil
	case "inlineData", "fileData":
		return geminiMedium(field, raw)
	case "functionCall":
		c, _, err := geminiFunction(raw, "args", "args")
		t.calls = append(t.calls, c)
		return err
	case "functionResponse":
		c, o, err := geminiFunction(raw, "response", "response", "parts")
		t.responses = append(t.responses, c)
		if err == nil && o["parts"] != nil {
			err = geminiNested(o["parts"])
		}
		return err
	case "executableCode":
		return geminiFields(raw, []string{"id", "code"}, "language", "PYTHON", "LANGUAGE_UNSPECIFIED")
	case "codeExecutionResult":
		return geminiFields(raw, []string{"id", "output"}, "outcome", "OUTCOME_OK", "OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED", "OUTCOME_UNSPECIFIED")
	}
	_, err := object(raw, "id", "toolType", "args", "response")
	return err
}

// geminiFunction checks a call or a response; the field of that name must be an object, a
// call's may be missing.
func geminiFunction(raw []byte, body string, fields ...string) (c geminiCall, o map[string]json.RawMessage, err error) {
	if o, err = object(raw, append(fields, "id", "name")...); err != nil {
		return c, o, err
	}
	if c.name, err = geminiText(o["name"]); err != nil || !geminiName(c.name) {
		return c, o, fmt.Errorf("name %s", o["name"])
	}
	if o["id"] != nil {
		if c.id, err = geminiText(o["id"]); err != nil || c.id == "" {
			return c, o, fmt.Errorf("id %s", o["id"])
		}
	}
	if o[body] == nil && body == "args" {
		return c, o, nil
	}
	return c, o, geminiStruct(o[body])
}

// geminiName checks ^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$.
func geminiName(name string) bool {
	const first = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	return name != "" && len(name) <= 64 && strings.ContainsRune(first, rune(name[0])) && strings.Trim(name, first+"0123456789.:-") == ""
}

// geminiStruct checks an object of any fields. Its text must be Unicode.
func geminiStruct(raw []byte) error {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(raw, &o); err != nil || o == nil {
		return fmt.Errorf("must be an object: %.60s", raw)
	}
	if strings.Contains(string(markHalves(raw)), "⟦half") {
		return errors.New("holds half a surrogate pair")
	}
	return nil
}

func geminiNested(raw []byte) error {
	return each("parts", raw, func(_ string, raw []byte) error {
		p, err := object(raw, "inlineData")
		if err != nil {
			return err
		}
		o, err := strs(p["inlineData"], "mimeType", "data", "displayName")
		if err != nil {
			return fmt.Errorf("inlineData: %w", err)
		}
		if !slices.Contains([]string{"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}, o["mimeType"]) {
			return fmt.Errorf("inlineData: mimeType %q", o["mimeType"])
		}
		if _, err := base64.StdEncoding.DecodeString(o["data"]); err != nil || o["data"] == "" {
			return fmt.Errorf("inlineData: data is no base64: %w", err)
		}
		return nil
	})
}

func geminiMedium(field string, raw []byte) error {
	body := map[string]string{"inlineData": "data", "fileData": "fileUri"}[field]
	o, err := strs(raw, "mimeType", body)
	if err != nil {
		return err
	}
	mediaType := regexp.MustCompile(`^(image/(png|jpeg|webp|heic|heif)|(audio|video|text)/[a-z0-9.+-]+|application/(pdf|json|rtf|x-javascript|x-python-code))(;[ -~]*)?$`)
	if !mediaType.MatchString(strings.ToLower(o["mimeType"])) {
		return fmt.Errorf("mimeType %q", o["mimeType"])
	}
	if body == "data" {
		return geminiBytes([]byte(`"` + o["data"] + `"`))
	}
	if !regexp.MustCompile(`^(https?|gs)://`).MatchString(o["fileUri"]) {
		return fmt.Errorf("fileUri %q", o["fileUri"])
	}
	return nil
}

// geminiBytes checks a field of bytes: base64 of either alphabet, with or without padding.
func geminiBytes(raw []byte) error {
	text, err := geminiText(raw)
	if err != nil {
		return err
	}
	text = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(text), "=")
	if _, err := base64.RawStdEncoding.DecodeString(text); err != nil || text == "" {
		return fmt.Errorf("is no base64: %.60q %w", text, err)
	}
	return nil
}

// geminiFields checks an object of strings, one of which is of an enum.
func geminiFields(raw []byte, fields []string, enum string, values ...string) error {
	o, err := strs(raw, append(fields, enum)...)
	if err != nil {
		return err
	}
	if v, given := o[enum]; !given || !slices.Contains(values, v) {
		return fmt.Errorf("%s %q", enum, v)
	}
	return nil
}

// geminiText decodes a string, and nothing else.
func geminiText(raw []byte) (string, error) {
	var s string
	if len(raw) == 0 || raw[0] != '"' {
		return "", fmt.Errorf("must be a string: %.60s", raw)
	}
	return s, json.Unmarshal(raw, &s)
}

// ValidateGeminiChat tells what Google's API in OpenAI's form would refuse: what OpenAI's would,
// but that calls may hold extra_content.google.thought_signature. With signed the first call of
// each reply must, as Gemini 3 asks.
func ValidateGeminiChat(raw []byte, signed bool) error {
	var request struct {
		Messages []map[string]json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(raw, &request); err != nil {
		return err
	}
	for i, m := range request.Messages {
		if m["tool_calls"] == nil {
			continue
		}
		var calls []map[string]json.RawMessage
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
	extra, err := object(raw, "google")
	if err != nil {
		return false, fmt.Errorf("extra_content: %w", err)
	}
	google, err := object(extra["google"], "thought_signature")
	if err != nil {
		return false, fmt.Errorf("extra_content.google: %w", err)
	}
	if err := geminiBytes(google["thought_signature"]); err != nil {
		return false, fmt.Errorf("extra_content.google.thought_signature: %w", err)
	}
	return true, nil
}
