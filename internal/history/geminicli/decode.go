package geminicli

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// part is one piece of a content. Source: @google/genai, Part.
type part struct {
	Text    *string `json:"text"`
	Thought bool    `json:"thought"`
	Call    *struct {
		ID   string         `json:"id"`
		Name string         `json:"name"`
		Args jsontext.Value `json:"args"`
	} `json:"functionCall"`
	Response *struct {
		ID       string         `json:"id"`
		Name     string         `json:"name"`
		Response jsontext.Value `json:"response"`
	} `json:"functionResponse"`
	Inline *struct {
		MimeType string `json:"mimeType"`
		Data     []byte `json:"data"`
	} `json:"inlineData"`
	Rest jsontext.Value `json:",embed"`
	raw  jsontext.Value
}

// call is a tool call of a reply with its result. Source: chatRecordingTypes.ts, ToolCallRecord.
type call struct {
	ID     string         `json:"id"`
	Name   string         `json:"name"`
	Args   jsontext.Value `json:"args"`
	Result jsontext.Value `json:"result"`
	Status string         `json:"status"` // success, error, cancelled; others have not ended
	Rest   jsontext.Value `json:",embed"`
}

func (c call) ended() bool {
	return c.Status == "success" || c.Status == "error" || c.Status == "cancelled"
}

// partsOf reads a content: a text or a list of parts. A part of an unknown form has raw alone.
func partsOf(content jsontext.Value) []part {
	values, isList := jsonx.ReadArray(content)
	if !isList && !isEmpty(content) {
		values = append(values, []byte(content))
	}
	var parts []part
	for _, v := range values {
		var p part
		if v[0] == '"' {
			text, _ := jsonx.Text(v)
			p.Text = &text
		} else if jsonx.Unmarshal(v, &p) != nil {
			p = part{}
		}
		p.raw = jsontext.Value(v)
		parts = append(parts, p)
	}
	return parts
}

// textOf joins the texts of a message.
func textOf(m *message) string {
	var texts []string
	for _, p := range partsOf(m.Content) {
		if p.Text != nil && !p.Thought {
			texts = append(texts, *p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// key names an entry. A reply that got calls after it was imported is another version of it.
func (e *entry) key() string {
	if e.raw != nil {
		return "line:" + jsonx.Fingerprint(jsonx.Object{jsonx.MemberOf("line", string(e.raw))})
	}
	key := e.name()
	if len(e.calls) > 0 {
		var ids []string
		for _, c := range e.calls {
			ids = append(ids, c.ID+"="+c.Status)
		}
		key += "+" + jsonx.Fingerprint(jsonx.Object{jsonx.MemberOf("calls", ids)})[:12]
	}
	if e.longer {
		key += "~" + jsonx.Fingerprint(jsonx.Object{jsonx.MemberOf("text", textOf(&e.message))})[:12]
	}
	return key
}

// resultsKey names the message of an entry's results.
func (e *entry) resultsKey() string { return e.key() + "#results" }

// tail names the last message of an entry: what follows hangs on it. "" for none.
func (e *entry) tail() string {
	switch {
	case e == nil:
		return ""
	case e.hasResults():
		return e.resultsKey()
	}
	return e.key()
}

func (e *entry) hasResults() bool { return slices.ContainsFunc(e.calls, call.ended) }

// decode makes the messages of an entry: itself, and the results of its calls.
func (e *entry) decode() history.Decoded {
	if e.raw != nil {
		return history.KeepRaw(e.raw, e.why, session.SourceGeminiCLI, e.at)
	}
	m := session.Message{
		Kind: session.KindMessage, InContext: true, Display: true, CreatedAt: e.at, Dialect: string(session.SourceGeminiCLI),
	}
	m.Extra = jsonx.Object{}.WithRest("line", e.Rest).Column()
	var d history.Decoded
	switch e.Type {
	case "user":
		m.Role, m.Origin = session.User, session.Person
		if isContext(&e.message) {
			m.Origin = session.Program
		}
		m.Parts = e.withoutSaid(DecodeParts(e.Content))
	case "gemini":
		m.Role, m.Origin = session.Assistant, session.Model
		m.Provider, m.Model = "google", history.Plain(e.Model)
		m.Parts = append(thoughtsOf(e.Thoughts), DecodeParts(e.Content)...)
		for _, c := range e.calls {
			m.Parts = append(m.Parts, session.Part{
				Kind: session.PartToolCall, CallID: c.ID, ToolName: c.Name,
				Arguments: string(c.Args), Extra: jsonx.Object{}.WithRest("rest", c.Rest).Column(),
			})
		}
		if m.Finish = session.FinishStop; len(m.Calls()) > 0 {
			m.Finish = session.FinishToolCalls
		}
	case "info", "warning", "error":
		m.Kind, m.Origin, m.InContext = session.KindMarker, session.Program, false
		m.Parts = DecodeParts(e.Content)
		m.Metadata = session.JSONOf(map[string]string{"level": e.Type})
	default:
		m.Kind, m.Origin, m.InContext = session.KindUnknown, session.Program, false
		m.Parts = []session.Part{history.RawPart("content", e.Content)}
		d.Raw = true
	}
	if len(m.Parts) > session.MaxParts {
		m.Parts = m.Parts[:session.MaxParts]
		d.Problem = "a message of more than 1,024 parts; the rest was left out"
	}
	d.Messages = []history.Message{{Message: m}}
	if e.hasResults() {
		d.Messages = append(d.Messages, history.Message{Message: session.Message{
			Kind: session.KindMessage, Role: session.Tool, Origin: session.ByTool, InContext: true, Display: true,
			CreatedAt: e.at, Dialect: m.Dialect, ExternalID: e.resultsKey(), Parts: results(e.calls),
		}})
	}
	for i := range d.Messages {
		for j := range d.Messages[i].Parts {
			p := &d.Messages[i].Parts[j]
			p.Text, p.CallID, p.ToolName = history.Plain(p.Text), history.Plain(p.CallID), history.Plain(p.ToolName)
		}
	}
	return d
}

// withoutSaid leaves out what the writer put before a text that sessiond handed over.
func (e *entry) withoutSaid(parts []session.Part) []session.Part {
	if len(parts) > 1 && parts[0].Text == said && e.isWritten() {
		return parts[1:]
	}
	return parts
}

// isWritten reports whether sessiond wrote the message.
func (e *entry) isWritten() bool {
	rest, _ := jsonx.ReadFields(e.Rest)
	return rest.Has(history.HandoverKey)
}

// results makes the parts of what the calls of a reply answered, files beside the texts.
func results(calls []call) (parts []session.Part) {
	for _, c := range calls {
		if !c.ended() {
			continue
		}
		failed := c.Status != "success"
		answer := session.Part{
			Kind: session.PartToolResult, CallID: c.ID, ToolName: c.Name, IsError: &failed,
			Extra: session.JSONOf(map[string]string{"status": c.Status}),
		}
		var beside []session.Part
		var texts []string
		for _, p := range partsOf(c.Result) {
			switch {
			case p.Response == nil:
				file := decodePart(p)
				file.CallID = c.ID
				beside = append(beside, file)
			case p.Response.ID == c.ID || p.Response.ID == "":
				texts = append(texts, responseText(p.Response.Response))
			}
		}
		answer.Text = strings.Join(texts, "\n")
		parts = append(append(parts, answer), beside...)
	}
	return parts
}

// responseText returns the text of an answer: its output or error, or all of it as JSON.
func responseText(response jsontext.Value) string {
	o, _ := jsonx.ReadFields(response)
	for _, key := range []string{"output", "error"} {
		if text, ok := jsonx.Text(o.Get(key)); ok && len(o) == 1 {
			return text
		}
	}
	return history.Plain(response)
}

// DecodeParts turns a content, a text or a list of parts of @google/genai, into parts of a message.
func DecodeParts(content jsontext.Value) (parts []session.Part) {
	for _, p := range partsOf(content) {
		parts = append(parts, decodePart(p))
	}
	return parts
}

// decodePart turns one piece of a content into a part.
func decodePart(p part) session.Part {
	made := session.Part{Extra: jsonx.Object{}.WithRest("rest", p.Rest).Column()}
	switch {
	case p.Text != nil:
		made.Kind, made.Text = session.PartText, *p.Text
		if p.Thought {
			made.Kind = session.PartReasoning
		}
	case p.Call != nil:
		made.Kind, made.CallID, made.ToolName, made.Arguments = session.PartToolCall, p.Call.ID, p.Call.Name,
			string(p.Call.Args)
	case p.Response != nil:
		made.Kind, made.CallID, made.ToolName, made.Text = session.PartToolResult, p.Response.ID, p.Response.Name,
			responseText(p.Response.Response)
	case p.Inline != nil && len(p.Inline.Data) > 0:
		made.Kind = history.MediaKind(p.Inline.MimeType)
		made.Blob = &session.Blob{
			MediaType: history.Plain(p.Inline.MimeType), Data: p.Inline.Data,
			Size: int64(len(p.Inline.Data)),
		}
	default:
		return history.RawPart("part", p.raw)
	}
	return made
}

// thoughtsOf reads the summaries of what the model thought.
func thoughtsOf(raw jsontext.Value) (parts []session.Part) {
	var thoughts []struct {
		Subject     string `json:"subject"`
		Description string `json:"description"`
	}
	if jsonx.Unmarshal(raw, &thoughts) != nil {
		return nil
	}
	for _, t := range thoughts {
		parts = append(parts, session.Part{
			Kind: session.PartReasoning,
			Text: strings.TrimSpace(t.Subject + "\n" + t.Description),
		})
	}
	return parts
}

// usage makes the ledger's row of a reply; ok is false where nothing was counted. Gemini's input
// includes cached tokens, its output excludes the thoughts; the prompts of its own tools are
// counted apart.
func (e *entry) usage(directory string) (c history.Call, ok bool) {
	tokens, _ := jsonx.ReadFields(e.Tokens)
	count := func(key string) int64 { return history.Count(tokens.Get(key)) }
	input, output, cached, thoughts, tool := count("input"), count("output"), count("cached"), count("thoughts"),
		count("tool")
	c.Call = session.Call{
		Purpose: session.PurposeChat, Status: session.CallOK, Source: session.SourceGeminiCLI,
		ExternalID: "gemini-cli:" + history.Plain(e.ID),
		Provider:   "google", Model: history.Plain(e.Model), Directory: directory, CreatedAt: e.at,
		InputTokens: max(0, input-cached) + tool, CacheReadTokens: cached, OutputTokens: output + thoughts,
		ReasoningTokens: thoughts,
	}
	c.MessageKey = e.key()
	return c, e.Type == "gemini" && input+output+cached+thoughts+tool > 0
}
