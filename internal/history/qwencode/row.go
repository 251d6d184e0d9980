package qwencode

import (
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// row is a line of a session. Source: chatRecordingService.ts, ChatRecord.
type row struct {
	history.Event `json:"-"`

	UUID       string `json:"uuid"`
	Parent     string `json:"parentUuid"` // "": it begins the conversation
	Session    string `json:"sessionId"`
	Timestamp  string `json:"timestamp"`
	Type       string `json:"type"` // user, assistant, tool_result, system
	Subtype    string `json:"subtype"`
	Provenance string `json:"provenance"`
	CWD        string `json:"cwd"`
	Version    string `json:"version"`
	Branch     string `json:"gitBranch"`
	Model      string `json:"model"`
	Agent      string `json:"agentId"` // the sub-agent whose file it is
	Message    struct {
		Parts   jsontext.Value `json:"parts"`
		Content jsontext.Value `json:"content"` // instead, in files of other writers
	} `json:"message"`
	Usage  *usage `json:"usageMetadata"`
	Result struct {
		Status string         `json:"status"`
		Rest   jsontext.Value `json:",embed"`
	} `json:"toolCallResult"`
	Payload jsontext.Value `json:"systemPayload"`
	Origin  struct {
		Session string `json:"sessionId"`
	} `json:"forkedFrom"`
	Rest jsontext.Value `json:",embed"`
}

// Head names the row.
func (w *row) Head() (e *history.Event, id, timestamp string, ok bool) {
	return &w.Event, w.UUID, w.Timestamp, w.UUID != "" && w.Session != ""
}

// usage is that of a reply. The prompt includes what came from the cache, and unlike in Gemini CLI the
// candidates include the thoughts.
type usage struct {
	Prompt     float64 `json:"promptTokenCount"`
	Candidates float64 `json:"candidatesTokenCount"`
	Thoughts   float64 `json:"thoughtsTokenCount"`
	Cached     float64 `json:"cachedContentTokenCount"`
	Input      float64 `json:"inputTokens"` // instead, in files of other writers
	Output     float64 `json:"outputTokens"`
}

// telemetry is the payload of ui_telemetry: of a response of the model, or of a call of a tool.
type telemetry struct {
	Event struct {
		Name     string  `json:"event.name"`
		Model    string  `json:"model"`
		Auth     string  `json:"auth_type"`
		Status   float64 `json:"status_code"`
		Input    float64 `json:"input_token_count"`
		Output   float64 `json:"output_token_count"`
		Cached   float64 `json:"cached_content_token_count"`
		Thoughts float64 `json:"thoughts_token_count"`
		Duration float64 `json:"duration_ms"`
		Agent    string  `json:"subagent_name"` // a helper of the program, as the one that extracts memories
		Call     string  `json:"call_id"`
	} `json:"uiEvent"`
}

// compression is the payload of chat_compression.
type compression struct {
	Info struct {
		Before float64 `json:"originalTokenCount"`
		After  float64 `json:"newTokenCount"`
	} `json:"info"`
	History []struct {
		Role  string         `json:"role"`
		Parts jsontext.Value `json:"parts"`
	} `json:"compressedHistory"` // what the model sees afterwards: a summary, and messages that stayed
}

// message begins the message of a row.
func (w *row) message(kind session.Kind, role session.Role, origin session.Origin) session.Message {
	rest := jsonx.Object{}.WithRest("line", w.Rest).WithRest("toolCallResult", w.Result.Rest).WithRest("systemPayload",
		w.Payload)
	if w.Subtype != "" {
		rest = append(rest, jsonx.MemberOf("subtype", w.Subtype))
	}
	return w.Event.Message(kind, role, origin, session.SourceQwenCode, rest)
}

// call makes a ledger row, named after the row.
func (w *row) call(model string, prompt, cached, output, thoughts float64) history.Call {
	return history.Call{Call: session.Call{
		Purpose: session.PurposeChat, Status: session.CallOK, Source: session.SourceQwenCode,
		ExternalID: "qwen-code:" + w.Key,
		Model:      history.Plain(model), Directory: history.Plain(w.CWD), CreatedAt: w.Time,
		InputTokens: int64(max(0, prompt-cached)), CacheReadTokens: int64(cached),
		OutputTokens: int64(output), ReasoningTokens: int64(min(thoughts, output)),
	}}
}

// call makes the ledger row of a response.
func (t *telemetry) call(w *row) history.Call {
	e := &t.Event
	c := w.call(e.Model, e.Input, e.Cached, e.Output, e.Thoughts)
	if c.Provider = history.Plain(e.Auth); e.Agent != "" {
		c.Purpose = session.PurposeOther
	}
	if e.Status >= 400 {
		c.Status = session.CallFailed
	}
	if e.Duration > 0 {
		c.LatencyMS = new(int64(e.Duration))
	}
	return c
}
