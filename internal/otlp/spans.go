package otlp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/jsonx"
	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// schemaURL names the version of the conventions, which are in development. Source: the manifest of
// open-telemetry/semantic-conventions-genai.
const schemaURL = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"

// Kinds of spans and codes of their status, as the proto3 JSON mapping of OTLP has them.
const (
	kindInternal = 1
	kindClient   = 3
	statusError  = 2
)

// The types of opentelemetry/proto/trace/v1, in JSON: ids in hex, 64-bit integers as strings.
type (
	attribute struct {
		Key   string         `json:"key"`
		Value jsontext.Value `json:"value"`
	}
	event struct {
		Time       string      `json:"timeUnixNano"`
		Name       string      `json:"name"`
		Attributes []attribute `json:"attributes"`
	}
	status struct {
		Code int `json:"code"`
	}
	span struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      string      `json:"startTimeUnixNano"`
		End        string      `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes"`
		Events     []event     `json:"events,omitempty"`
		Status     *status     `json:"status,omitempty"`
	}
)

// request returns the body of an ExportTraceServiceRequest.
func request(spans []span, version string) []byte {
	encoded, err := json.Marshal(spans)
	resource, errOf := json.Marshal([]attribute{text("service.name", "sessiond"), text("service.version", version)})
	if err != nil || errOf != nil {
		panic("otlp: a span cannot be written") // its texts were made valid
	}
	scope := jsonx.Encode("scope", jsonx.Encode("name", "sessiond", "version", version),
		"spans", jsontext.Value(encoded), "schemaUrl", schemaURL)
	of := jsonx.Encode("resource", jsonx.Encode("attributes", jsontext.Value(resource)),
		"scopeSpans", []jsontext.Value{scope})
	return jsonx.Encode("resourceSpans", []jsontext.Value{of})
}

func text(key, value string) attribute {
	return attribute{key, jsonx.Encode("stringValue", strings.ToValidUTF8(value, "\uFFFD"))}
}

func number(key string, value int64) attribute {
	return attribute{key, jsonx.Encode("intValue", strconv.FormatInt(value, 10))}
}

func amount(key string, value float64) attribute {
	return attribute{key, jsonx.Encode("doubleValue", jsontext.Value(strconv.FormatFloat(value, 'g', -1, 64)))}
}

func texts(key string, value string) attribute {
	of := []jsontext.Value{jsonx.Encode("stringValue", value)}
	return attribute{key, jsonx.Encode("arrayValue", jsonx.Encode("values", of))}
}

func nano(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// id returns so many bytes that stand for some words, always the same ones: a span that is sent twice is one.
func id(bytes int, words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return hex.EncodeToString(sum[:bytes])
}

// trace is that of a turn: of the message of a person that began it, else of the session.
func trace(epoch string, of session.ID, prompt *int64) string {
	turn := ""
	if prompt != nil {
		turn = strconv.FormatInt(*prompt, 10)
	}
	return id(16, epoch, "turn", string(of), turn)
}

// collect returns the spans of what was written behind the place that was sent, and how far they go.
func (e *Exporter) collect(ctx context.Context, end store.LedgerEnd) (spans []span, next store.LedgerEnd, err error) {
	limit := batch
	if e.Content {
		limit = contentful
	}
	next = end
	calls, err := e.Ledger.LedgerCalls(ctx, e.at.Call, end.Call, limit)
	if err != nil {
		return nil, next, err
	}
	tools, err := e.Ledger.LedgerTools(ctx, e.at.Part, end.Part, limit)
	if err != nil {
		return nil, next, err
	}
	if len(calls) == limit {
		next.Call = calls[limit-1].RowID
	}
	if len(tools) == limit {
		next.Part = tools[limit-1].PartID
	}
	events, err := e.Ledger.LoggedEvents(ctx, e.at.Event, end.Event)
	if err != nil {
		return nil, next, err
	}
	said, err := e.contents(ctx, calls, tools)
	if err != nil {
		return nil, next, err
	}
	since := e.Now().Add(-oldest)
	add := func(at session.Time, make func() span) {
		if at.Before(since) {
			e.skipped.Add(1)
			return
		}
		spans = append(spans, make())
	}
	for i := range calls {
		add(calls[i].CreatedAt, func() span { return e.call(&calls[i], end.Epoch, said) })
	}
	for i := range tools {
		add(tools[i].CreatedAt, func() span { return e.tool(&tools[i], end.Epoch, said) })
	}
	for i := range events {
		if events[i].Type == "compaction.done" {
			add(events[i].CreatedAt, func() span { return compaction(&events[i], end.Epoch) })
		}
	}
	return spans, next, nil
}

// call returns the span of a model call: gen_ai.client.inference.
func (e *Exporter) call(c *store.LedgerCall, epoch string, said contents) span {
	ended := c.CreatedAt.Time
	s := span{
		TraceID: trace(epoch, c.SessionID, c.PromptID), SpanID: id(8, epoch, "call", strconv.FormatInt(c.RowID, 10)),
		Name: strings.TrimSpace("chat " + c.Model), Kind: kindClient, Start: nano(ended), End: nano(ended),
	}
	if c.LatencyMS != nil {
		s.Start = nano(ended.Add(-time.Duration(*c.LatencyMS) * time.Millisecond))
	}
	s.Attributes = []attribute{
		text("gen_ai.operation.name", "chat"), text("gen_ai.provider.name", providerName(c.Provider)),
		text("sessiond.purpose", string(c.Purpose)), text("sessiond.program", string(c.Source)),
		number("gen_ai.usage.input_tokens", c.PromptTokens()), number("gen_ai.usage.output_tokens", c.OutputTokens),
	}
	add := func(a attribute) { s.Attributes = append(s.Attributes, a) }
	if c.Model != "" {
		add(text("gen_ai.request.model", c.Model))
		add(text("gen_ai.response.model", c.Model))
	}
	if c.SessionID != "" {
		add(text("gen_ai.conversation.id", string(c.SessionID)))
	}
	for _, of := range []struct {
		key    string
		tokens int64
	}{
		{"gen_ai.usage.cache_read.input_tokens", c.CacheReadTokens},
		{"gen_ai.usage.cache_write.input_tokens", c.CacheWriteTokens},
		{"gen_ai.usage.reasoning.output_tokens", c.ReasoningTokens},
	} {
		if of.tokens > 0 {
			add(number(of.key, of.tokens))
		}
	}
	if c.CostUSD != nil {
		add(amount("sessiond.cost_usd", *c.CostUSD))
	}
	if c.Status == session.CallFailed {
		add(text("error.type", "_OTHER")) // the provider's words may quote the conversation
		s.Status = &status{statusError}
	}
	if c.MessageID != nil && said.has(*c.MessageID) {
		if c.PromptID != nil && said.has(*c.PromptID) {
			add(text("gen_ai.input.messages", said.message(*c.PromptID)))
		}
		add(text("gen_ai.output.messages", said.message(*c.MessageID)))
	}
	if reply := said[cmp.Or(value(c.MessageID), -1)]; reply != nil && reply.Finish != "" {
		add(texts("gen_ai.response.finish_reasons", string(reply.Finish)))
	}
	return s
}

func value(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

// providerName returns the name that the conventions have for a provider.
func providerName(name string) string {
	known := map[string]string{
		"": "unknown", "google": "gcp.gemini", "gemini": "gcp.gemini",
		"google-vertex": "gcp.vertex_ai", "vertex": "gcp.vertex_ai",
		"vertexai": "gcp.vertex_ai", "bedrock": "aws.bedrock", "amazon-bedrock": "aws.bedrock", "azure": "azure.ai.openai",
		"azure-openai": "azure.ai.openai", "mistral": "mistral_ai", "xai": "x_ai", "moonshot": "moonshot_ai",
	}
	if of, ok := known[strings.ToLower(name)]; ok {
		return of
	}
	return name
}

// tool returns the span of a tool's run: gen_ai.execute_tool.
func (e *Exporter) tool(t *store.LedgerTool, epoch string, said contents) span {
	ended := t.CreatedAt.Time
	began := ended
	switch {
	case t.DurationMS != nil:
		began = ended.Add(-time.Duration(*t.DurationMS) * time.Millisecond)
	case t.CalledAt != nil && t.CalledAt.Before(ended):
		began = t.CalledAt.Time
	}
	name := cmp.Or(t.ToolName, "unknown")
	s := span{
		TraceID: trace(epoch, t.SessionID, t.PromptID), SpanID: id(8, epoch, "tool", strconv.FormatInt(t.PartID, 10)),
		Name: "execute_tool " + name, Kind: kindInternal, Start: nano(began), End: nano(ended),
		Attributes: []attribute{
			text("gen_ai.operation.name", "execute_tool"), text("gen_ai.tool.name", name),
			text("gen_ai.conversation.id", string(t.SessionID)), text("sessiond.program", string(t.Source)),
		},
	}
	if t.CallID != "" {
		s.Attributes = append(s.Attributes, text("gen_ai.tool.call.id", t.CallID))
	}
	if t.IsError != nil && *t.IsError {
		s.Attributes = append(s.Attributes, text("error.type", "_OTHER"))
		s.Status = &status{statusError}
	}
	if p := said.part(t.PartID); p != nil {
		s.Attributes = append(s.Attributes, text("gen_ai.tool.call.result", p.Content()))
	}
	if p := said.part(value(t.CallPartID)); p != nil {
		s.Attributes = append(s.Attributes, text("gen_ai.tool.call.arguments", p.Arguments))
	}
	return s
}

// compaction returns the span of a compaction. The conventions have none: it is sessiond's own.
func compaction(of *session.Event, epoch string) span {
	var data struct {
		Compaction   string `json:"compaction"`
		Strategy     string `json:"strategy"`
		Trigger      string `json:"trigger"`
		Model        string `json:"model"`
		TokensBefore int64  `json:"tokens_before"`
		TokensAfter  int64  `json:"tokens_after"`
		DurationMS   int64  `json:"duration_ms"`
	}
	if len(of.Data) > 0 && json.Unmarshal([]byte(of.Data), &data) != nil {
		data.Strategy = "unknown"
	}
	ended := of.CreatedAt.Time
	attributes := []attribute{
		text("gen_ai.conversation.id", string(of.SessionID)), text("sessiond.compaction.id", data.Compaction),
		text("sessiond.compaction.strategy", data.Strategy), text("sessiond.compaction.trigger", data.Trigger),
		number("sessiond.compaction.tokens_before", data.TokensBefore),
		number("sessiond.compaction.tokens_after", data.TokensAfter),
	}
	if data.Model != "" {
		attributes = append(attributes, text("gen_ai.request.model", data.Model))
	}
	return span{
		TraceID: id(16, epoch, "compaction", strconv.FormatInt(of.RowID, 10)),
		SpanID:  id(8, epoch, "compaction", strconv.FormatInt(of.RowID, 10)),
		Name:    "sessiond.compaction", Kind: kindInternal,
		Start: nano(ended.Add(-time.Duration(data.DurationMS) * time.Millisecond)), End: nano(ended),
		Attributes: attributes,
		Events:     []event{{Time: nano(ended), Name: "sessiond.compaction.done", Attributes: attributes}},
	}
}

// contents are messages whose content is sent, by their rows.
type contents map[int64]*session.Message

func (c contents) has(message int64) bool { return c[message] != nil }

// part returns a part by its row, nil if its message's content is not sent.
func (c contents) part(row int64) *session.Part {
	m := c[row>>10]
	if at := int(row & (1<<10 - 1)); m != nil && at < len(m.Parts) {
		return &m.Parts[at]
	}
	return nil
}

// message returns a message in the form of the conventions: [{role, parts}].
func (c contents) message(row int64) string {
	m := c[row]
	var parts []jsontext.Value
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case session.PartText, session.PartRefusal:
			parts = append(parts, jsonx.Encode("type", "text", "content", p.Content()))
		case session.PartReasoning:
			parts = append(parts, jsonx.Encode("type", "reasoning", "content", p.Content()))
		case session.PartToolCall:
			arguments := jsontext.Value(p.Arguments)
			if !arguments.IsValid() {
				arguments = jsonx.Quote(p.Arguments)
			}
			parts = append(parts, jsonx.Encode("type", "tool_call", "id", jsonx.Maybe(p.CallID), "name", p.ToolName,
				"arguments", arguments))
		}
	}
	if parts == nil {
		parts = []jsontext.Value{}
	}
	of := jsonx.NewObject("role", string(m.Role), "parts", parts)
	if m.Role == session.Assistant {
		of.SetText("finish_reason", string(cmp.Or(m.Finish, session.FinishStop)))
	}
	return string(jsonx.Array([]jsontext.Value{of.Value()}))
}

// head bounds the texts that are sent of a part.
var head = session.Head{Text: 16 << 10}

// contents reads the messages whose content is sent: none unless the configuration says so, and none of a project
// that is excluded. Secrets of known forms are masked.
func (e *Exporter) contents(ctx context.Context, calls []store.LedgerCall, tools []store.LedgerTool,
) (contents, error) {
	if !e.Content {
		return nil, nil
	}
	var ids []int64
	for i := range calls {
		if c := &calls[i]; c.MessageID != nil && !e.Excludes("", c.Directory) {
			ids = append(ids, *c.MessageID)
			if c.PromptID != nil {
				ids = append(ids, *c.PromptID)
			}
		}
	}
	for i := range tools {
		if t := &tools[i]; !e.Excludes(t.Project, t.Directory) {
			ids = append(ids, t.MessageID)
			if t.CallPartID != nil {
				ids = append(ids, *t.CallPartID>>10)
			}
		}
	}
	said := contents{}
	err := e.Ledger.EachHead(ctx, ids, head, func(m *session.Message) error {
		mask := redact.Masker{}
		mask.Message(m)
		said[m.RowID] = m
		return nil
	})
	return said, err
}
