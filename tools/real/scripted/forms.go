package scripted

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
)

func decodeChat(fields map[string]any, _ string) request {
	q := request{model: text(fields, "model")}
	q.streamed, _ = fields["stream"].(bool)
	for _, m := range list(fields, "messages") {
		texts := textsOf(m.(map[string]any)["content"])
		switch role := text(m, "role"); role {
		case "system", "developer":
			q.system += strings.Join(texts, "\n") + "\n"
		default:
			t := turn{role: role, texts: texts}
			for _, call := range list(m, "tool_calls") {
				t.calls = append(t.calls, text(object(call, "function"), "name"))
			}
			q.turns = append(q.turns, t)
		}
	}
	for _, t := range list(fields, "tools") {
		f := object(t, "function")
		q.tools = append(q.tools, tool{
			name: text(f, "name"), description: text(f, "description"), schema: object(f, "parameters"),
		})
	}
	format := object(fields, "response_format")
	switch text(format, "type") {
	case "json_schema":
		q.schema = object(object(format, "json_schema"), "schema")
	case "json_object":
		q.schema = map[string]any{"type": "object"}
	}
	return q
}

func encodeChat(w *writer, q *request, x *Exchange) {
	message := map[string]any{"role": "assistant", "content": x.Text}
	finish := "stop"
	var calls []any
	for i, c := range x.Calls {
		finish = "tool_calls"
		calls = append(calls, map[string]any{
			"index": i, "id": c.ID, "type": "function",
			"function": map[string]any{"name": c.Name, "arguments": jsonOf(c.Arguments)},
		})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	u := x.Usage
	input := u.Input + u.CacheRead + u.CacheWrite
	usage := map[string]any{
		"prompt_tokens": input, "completion_tokens": u.Output, "total_tokens": input + u.Output,
		"prompt_tokens_details":     map[string]any{"cached_tokens": u.CacheRead},
		"completion_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning},
	}
	answer := func(kind string, choice map[string]any) map[string]any {
		choice["index"] = 0
		return map[string]any{
			"id": fmt.Sprintf("chatcmpl-scripted-%d", x.Number), "object": kind, "created": 1_780_000_000, "model": q.model,
			"choices": []any{choice},
		}
	}
	if !w.streamed {
		whole := answer("chat.completion", map[string]any{"message": message, "finish_reason": finish})
		whole["usage"] = usage
		w.whole(whole)
		return
	}
	w.event(answer("chat.completion.chunk", map[string]any{"delta": message, "finish_reason": nil}))
	last := answer("chat.completion.chunk", map[string]any{"delta": map[string]any{}, "finish_reason": finish})
	last["usage"] = usage
	w.event(last)
	fmt.Fprint(w.w, "data: [DONE]\n\n")
}

func decodeResponses(fields map[string]any, _ string) request {
	q := request{model: text(fields, "model"), system: text(fields, "instructions")}
	q.streamed, _ = fields["stream"].(bool)
	if input := text(fields, "input"); input != "" {
		q.turns = append(q.turns, turn{role: "user", texts: []string{input}})
	}
	for _, item := range list(fields, "input") {
		switch kind := text(item, "type"); {
		case strings.HasSuffix(kind, "call_output"), kind == "tool_search_output":
			q.turns = append(q.turns, turn{role: "tool", texts: textsOf(item.(map[string]any)["output"])})
		case strings.HasSuffix(kind, "call"):
			q.turns = append(q.turns, turn{role: "assistant", calls: []string{text(item, "name")}})
		case kind == "message" || kind == "":
			t := turn{role: text(item, "role"), texts: textsOf(item.(map[string]any)["content"])}
			if t.role == "developer" || t.role == "system" {
				q.system += strings.Join(t.texts, "\n") + "\n"
				continue
			}
			q.turns = append(q.turns, t)
		}
	}
	q.tools = responsesTools(list(fields, "tools"), "")
	if format := object(object(fields, "text"), "format"); text(format, "type") == "json_schema" {
		q.schema = object(format, "schema")
	}
	return q
}

func responsesTools(listed []any, namespace string) (tools []tool) {
	for _, t := range listed {
		switch kind := text(t, "type"); kind {
		case "namespace":
			tools = append(tools, responsesTools(list(t, "tools"), text(t, "name"))...)
		case "function", "custom", "tool_search":
			one := tool{
				namespace: namespace, name: text(t, "name"), description: text(t, "description"),
				schema: object(t, "parameters"), custom: kind == "custom",
			}
			if one.name == "" {
				one.name = kind
			}
			tools = append(tools, one)
		}
	}
	return tools
}

func encodeResponses(w *writer, q *request, x *Exchange) {
	var items []any
	if x.Text != "" {
		items = append(items, map[string]any{
			"type": "message", "id": fmt.Sprintf("msg_scripted_%d", x.Number), "role": "assistant", "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": x.Text, "annotations": []any{}}},
		})
	}
	for i, c := range x.Calls {
		item := map[string]any{
			"type": "function_call", "id": fmt.Sprintf("fc_scripted_%d_%d", x.Number, i), "call_id": c.ID, "name": c.Name,
			"status": "completed",
		}
		switch {
		case c.Input != "":
			item["type"], item["input"] = "custom_tool_call", c.Input
		case c.Name == "tool_search":
			item["type"], item["execution"], item["arguments"] = "tool_search_call", "client", c.Arguments
			delete(item, "name")
		default:
			item["arguments"] = jsonOf(c.Arguments)
		}
		if c.Namespace != "" {
			item["namespace"] = c.Namespace
		}
		items = append(items, item)
	}
	u := x.Usage
	input := u.Input + u.CacheRead + u.CacheWrite
	whole := map[string]any{
		"id": fmt.Sprintf("resp_scripted_%d", x.Number), "object": "response", "created_at": 1_780_000_000,
		"status": "completed", "model": q.model, "output": items,
		"usage": map[string]any{
			"input_tokens": input, "output_tokens": u.Output, "total_tokens": input + u.Output,
			"input_tokens_details":  map[string]any{"cached_tokens": u.CacheRead},
			"output_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning},
		},
	}
	if !w.streamed {
		w.whole(whole)
		return
	}
	begun := map[string]any{
		"id": whole["id"], "object": "response", "created_at": whole["created_at"], "status": "in_progress",
		"model": q.model, "output": []any{},
	}
	w.event(map[string]any{"type": "response.created", "sequence_number": 0, "response": begun})
	for i, item := range items {
		for _, kind := range []string{"response.output_item.added", "response.output_item.done"} {
			w.event(map[string]any{"type": kind, "sequence_number": i + 1, "output_index": i, "item": item})
		}
	}
	w.event(map[string]any{"type": "response.completed", "sequence_number": len(items) + 2, "response": whole})
}

func decodeMessages(fields map[string]any, _ string) request {
	q := request{
		model: text(fields, "model"), system: strings.Join(textsOf(fields["system"]), "\n"), writes: true,
	}
	q.streamed, _ = fields["stream"].(bool)
	for _, m := range list(fields, "messages") {
		content := m.(map[string]any)["content"]
		blocks, _ := content.([]any)
		if blocks == nil {
			q.turns = append(q.turns, turn{role: text(m, "role"), texts: textsOf(content)})
			continue
		}
		t := turn{role: text(m, "role")}
		for _, b := range blocks {
			switch text(b, "type") {
			case "text":
				t.texts = append(t.texts, text(b, "text"))
			case "tool_use":
				t.calls = append(t.calls, text(b, "name"))
			case "tool_result":
				q.turns = append(q.turns, turn{role: "tool", texts: textsOf(b.(map[string]any)["content"])})
			}
		}
		if len(t.texts)+len(t.calls) > 0 {
			q.turns = append(q.turns, t)
		}
	}
	for _, t := range list(fields, "tools") {
		if _, client := t.(map[string]any)["input_schema"]; client {
			q.tools = append(q.tools, tool{
				name: text(t, "name"), description: text(t, "description"), schema: object(t, "input_schema"),
			})
		}
	}
	for _, format := range []map[string]any{
		object(object(fields, "output_config"), "format"), object(fields, "output_format"),
	} {
		if text(format, "type") == "json_schema" {
			q.schema = object(format, "schema")
		}
	}
	return q
}

func encodeMessages(w *writer, q *request, x *Exchange) {
	stop := "end_turn"
	var blocks []any
	if x.Text != "" {
		blocks = append(blocks, map[string]any{"type": "text", "text": x.Text})
	}
	for _, c := range x.Calls {
		stop = "tool_use"
		blocks = append(blocks, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": c.Arguments})
	}
	u := x.Usage
	usage := map[string]any{
		"input_tokens": u.Input, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
		"cache_creation": map[string]any{"ephemeral_5m_input_tokens": u.CacheWrite, "ephemeral_1h_input_tokens": 0},
		"output_tokens":  u.Output, "service_tier": "standard",
	}
	message := map[string]any{
		"id": fmt.Sprintf("msg_scripted_%d", x.Number), "type": "message", "role": "assistant", "model": q.model,
		"content": blocks, "stop_reason": stop, "stop_sequence": nil, "usage": usage,
	}
	if !w.streamed {
		w.whole(message)
		return
	}
	begun := map[string]any{}
	for name, value := range message {
		begun[name] = value
	}
	begun["content"], begun["stop_reason"] = []any{}, nil
	w.event(map[string]any{"type": "message_start", "message": begun})
	for i, b := range blocks {
		start := map[string]any{"type": "text", "text": ""}
		delta := map[string]any{"type": "text_delta", "text": text(b, "text")}
		if text(b, "type") == "tool_use" {
			start = map[string]any{"type": "tool_use", "id": text(b, "id"), "name": text(b, "name"), "input": map[string]any{}}
			delta = map[string]any{"type": "input_json_delta", "partial_json": jsonOf(object(b, "input"))}
		}
		w.event(map[string]any{"type": "content_block_start", "index": i, "content_block": start})
		w.event(map[string]any{"type": "content_block_delta", "index": i, "delta": delta})
		w.event(map[string]any{"type": "content_block_stop", "index": i})
	}
	w.event(map[string]any{
		"type": "message_delta", "delta": map[string]any{"stop_reason": stop, "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": u.Output},
	})
	w.event(map[string]any{"type": "message_stop"})
}

func decodeGemini(fields map[string]any, path string) request {
	q := request{streamed: strings.HasSuffix(path, ":streamGenerateContent")}
	_, model, _ := strings.Cut(path, "/models/")
	q.model, _, _ = strings.Cut(model, ":")
	for _, part := range list(object(fields, "systemInstruction"), "parts") {
		q.system += text(part, "text") + "\n"
	}
	for _, content := range list(fields, "contents") {
		t := turn{role: text(content, "role")}
		if t.role == "model" {
			t.role = "assistant"
		}
		for _, part := range list(content, "parts") {
			switch {
			case object(part, "functionCall") != nil:
				t.calls = append(t.calls, text(object(part, "functionCall"), "name"))
			case object(part, "functionResponse") != nil:
				q.turns = append(q.turns, turn{role: "tool", texts: []string{jsonOf(object(part, "functionResponse"))}})
			case text(part, "text") != "":
				t.texts = append(t.texts, text(part, "text"))
			}
		}
		if len(t.texts)+len(t.calls) > 0 {
			q.turns = append(q.turns, t)
		}
	}
	for _, group := range list(fields, "tools") {
		for _, f := range list(group, "functionDeclarations") {
			schema := object(f, "parametersJsonSchema")
			if schema == nil {
				schema = object(f, "parameters")
			}
			q.tools = append(q.tools, tool{name: text(f, "name"), description: text(f, "description"), schema: schema})
		}
	}
	config := object(fields, "generationConfig")
	if text(config, "responseMimeType") == "application/json" {
		q.schema = map[string]any{"type": "object"}
		for _, name := range []string{"responseJsonSchema", "responseSchema"} {
			if schema := object(config, name); schema != nil {
				q.schema = schema
			}
		}
	}
	return q
}

func encodeGemini(w *writer, q *request, x *Exchange) {
	var parts []any
	if x.Text != "" {
		parts = append(parts, map[string]any{"text": x.Text})
	}
	for _, c := range x.Calls {
		parts = append(parts, map[string]any{"functionCall": map[string]any{
			"id": c.ID, "name": c.Name, "args": c.Arguments,
		}})
	}
	u := x.Usage
	input := u.Input + u.CacheRead + u.CacheWrite
	answer := map[string]any{
		"candidates": []any{map[string]any{
			"content": map[string]any{"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0,
		}},
		"usageMetadata": map[string]any{
			"promptTokenCount": input, "cachedContentTokenCount": u.CacheRead, "candidatesTokenCount": u.Output - u.Reasoning,
			"thoughtsTokenCount": u.Reasoning, "totalTokenCount": input + u.Output,
		},
		"modelVersion": q.model, "responseId": fmt.Sprintf("scripted-%d", x.Number),
	}
	if w.streamed {
		w.event(answer)
		return
	}
	w.whole(answer)
}

func jsonOf(v any) string {
	text, _ := json.Marshal(v, json.Deterministic(true))
	return string(text)
}
