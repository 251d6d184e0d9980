package dialecttest

import (
	"encoding/json"
	"errors"
	"fmt"
)

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
