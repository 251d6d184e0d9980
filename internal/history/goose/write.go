package goose

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Session is what a file of Goose is written from.
type Session struct {
	session.Session
	Overlay *session.Compaction // the one in force; nil: none

	// Along yields the path to the head, oldest message first.
	Along func(yield func(*session.Message) error) error
}

// Written says what became of a session's messages.
type Written struct {
	Messages int
	LeftOut  map[string]int // what Goose has no place for
}

// Write writes a session as `goose session export --format json` does: one object with the
// conversation, which is the path to the head. Goose keeps a system prompt elsewhere, and has no
// branches. An overlay is what a compaction of Goose's own leaves: hidden messages, a summary and
// a line to go on.
func Write(out io.Writer, s *Session) (Written, error) {
	w := writer{Session: s, Written: Written{LeftOut: map[string]int{}}, out: bufio.NewWriter(out)}
	input, output, read, write := s.InputTokens, s.OutputTokens, s.CacheReadTokens, s.CacheWriteTokens
	all := input + read + write // Goose's input includes the cache's share
	usage := map[string]any{
		"input_tokens": all, "output_tokens": output, "total_tokens": all + output, "cache_read_input_tokens": read,
		"cache_write_input_tokens": write,
	}
	w.replaced()
	o := jsonx.Object{
		jsonx.MemberOf("id", w.id()), jsonx.MemberOf("name", s.Title),
		jsonx.MemberOf("user_set_name", s.TitleSource == "given"), jsonx.MemberOf("session_type", sessionType(s.Kind)),
		jsonx.MemberOf("working_dir", s.Directory), jsonx.MemberOf("created_at", s.CreatedAt.UTC().Format(time.RFC3339)),
		jsonx.MemberOf("updated_at", s.UpdatedAt.UTC().Format(time.RFC3339)),
		jsonx.MemberOf("extension_data", map[string]any{}), jsonx.MemberOf("usage", usage),
		jsonx.MemberOf("accumulated_usage", usage), jsonx.MemberOf("accumulated_cost", s.CostUSD),
		jsonx.MemberOf("provider_name", optionalText(s.Provider)),
		jsonx.MemberOf("model_config", map[string]any{"model_name": s.Model}),
	}
	if s.Model == "" {
		o = o.Without("model_config")
	}
	_, _ = w.out.Write(bytes.TrimSuffix(o.Column(), []byte("}"))) // the writer keeps its first error
	_, _ = w.out.WriteString(`,"conversation":[`)
	if err := s.Along(w.next); err != nil {
		return w.Written, err
	}
	if err := w.summary(); err != nil {
		return w.Written, err
	}
	_, _ = w.out.WriteString(`],"message_count":` + strconv.Itoa(w.entries) + "}\n")
	return w.Written, w.out.Flush()
}

// next writes what a message of the path is in a conversation.
func (w *writer) next(m *session.Message) error {
	name := m.ID.String()
	hidden := w.hidden(m)
	if !hidden {
		if err := w.summary(); err != nil {
			return err
		}
	}
	if m.Kind == session.KindCustomMessage && !m.InContext && w.texts[m.Text()] {
		return nil // it follows what it replaces
	}
	if hidden {
		w.last = &session.Message{CreatedAt: m.CreatedAt}
	}
	if entry := w.message(m, hidden || w.pieces[name]); entry != nil {
		if err := w.entry(entry); err != nil {
			return err
		}
	}
	if text, ok := w.stands[name]; ok && !hidden {
		return w.entry(w.forModel(m, m.Seq, "user", text))
	}
	return nil
}

func (w *writer) entry(raw jsontext.Value) error {
	if w.entries++; w.entries > 1 {
		_ = w.out.WriteByte(',') // as above
	}
	_, err := w.out.Write(raw)
	return err
}

type writer struct {
	*Session
	Written
	pieces map[string]bool   // messages that a text of the overlay replaces
	stands map[string]string // the text, by the last of them
	texts  map[string]bool

	out     *bufio.Writer
	entries int              // written
	last    *session.Message // the time of the newest hidden one, until the summary is written
}

// replaced finds the messages that texts of the overlay replace.
func (w *writer) replaced() {
	w.pieces, w.stands, w.texts = map[string]bool{}, map[string]string{}, map[string]bool{}
	var details session.CompactionDetails
	if w.Overlay == nil || json.Unmarshal(w.Overlay.Details, &details) != nil {
		return
	}
	for _, piece := range details.Replaced {
		if len(piece.Messages) == 0 {
			continue
		}
		for _, name := range piece.Messages {
			w.pieces[name] = true
		}
		if piece.Text != "" {
			w.stands[piece.Messages[len(piece.Messages)-1]], w.texts[piece.Text] = piece.Text, true
		}
	}
}

func optionalText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (w *writer) id() string {
	if w.Source == session.SourceGoose && w.SourceID != "" {
		return w.SourceID
	}
	return string(w.ID)
}

func sessionType(kind string) string {
	switch kind {
	case "subagent":
		return "sub_agent"
	case "cron":
		return "scheduled"
	}
	return "user"
}

// hidden reports whether the overlay replaces a message of the path.
func (w *writer) hidden(m *session.Message) bool {
	switch {
	case w.Overlay == nil || w.Overlay.ThroughID == nil:
		return false
	// it hides no more than the one before it
	case w.Overlay.Strategy == session.StrategyPrune && w.Overlay.FirstKeptID != nil:
		return m.RowID < *w.Overlay.FirstKeptID
	}
	return m.RowID <= *w.Overlay.ThroughID // rows rise along a path
}

// message writes one message; nil for what Goose has no message for.
func (w *writer) message(m *session.Message, hidden bool) jsontext.Value {
	role := "user"
	switch m.Kind {
	case session.KindMarker, session.KindCustom, session.KindUnknown:
		w.LeftOut["messages of kind "+string(m.Kind)]++
		return nil
	}
	switch m.Role {
	case session.System:
		w.LeftOut["system messages"]++
		return nil
	case session.Assistant:
		role = "assistant"
	}
	metadata := jsonx.Object{
		jsonx.MemberOf("userVisible", m.Display),
		jsonx.MemberOf("agentVisible", m.InContext && !hidden),
	}
	if role == "assistant" && m.Model != "" {
		metadata = append(metadata, jsonx.MemberOf("inference",
			map[string]string{"provider": m.Provider, "requestedModel": m.Model}))
	}
	id, _, _ := strings.Cut(m.ExternalID, "#")
	if m.Dialect != string(session.SourceGoose) || id == "" {
		id = "msg_" + string(m.SessionID) + "_" + strconv.FormatInt(m.Seq, 10)
	}
	w.Written.Messages++
	return jsonx.Object{
		jsonx.MemberOf("id", id), jsonx.MemberOf("role", role), jsonx.MemberOf("created", m.CreatedAt.Unix()),
		jsonx.MemberOf("content", w.blocks(m)), jsonx.MemberOf("metadata", metadata.Value()),
	}.Value()
}

// summary writes the summary of the hidden messages, behind them. It has the time of the last
// of them, so that it keeps its place where Goose orders by time.
func (w *writer) summary() error {
	last := w.last
	if w.last = nil; last == nil || w.Overlay.Summary == "" {
		return nil
	}
	return errors.Join(
		w.entry(w.forModel(last, 1, "user", w.Overlay.Summary)),
		w.entry(w.forModel(last, 2, "assistant",
			"The previous message is a summary of the conversation until here. I go on from it.")),
	)
}

// forModel writes a text of the overlay that only the model sees, at the time of a message.
func (w *writer) forModel(at *session.Message, n int64, role, text string) jsontext.Value {
	return jsonx.Object{
		jsonx.MemberOf("id",
			"msg_"+string(w.Overlay.SessionID)+"_"+session.CompactionName(w.Overlay.RowID)+"_"+role+strconv.FormatInt(n, 10)),
		jsonx.MemberOf("role", role), jsonx.MemberOf("created", at.CreatedAt.Unix()),
		jsonx.MemberOf("content", []map[string]string{{"type": "text", "text": text}}),
		jsonx.MemberOf("metadata", map[string]bool{"userVisible": false, "agentVisible": true}),
	}.Value()
}

func (w *writer) blocks(m *session.Message) []jsontext.Value {
	blocks := []jsontext.Value{}
	add := func(fields ...jsonx.Member) { blocks = append(blocks, jsonx.Object(fields).Value()) }
	reply := m.Role == session.Assistant
	for i := 0; i < len(m.Parts); i++ {
		p := &m.Parts[i]
		extra, _ := jsonx.ReadObject(p.Extra)
		switch {
		case p.Kind == session.PartText, p.Kind == session.PartRefusal:
			add(jsonx.MemberOf("type", "text"), jsonx.MemberOf("text", p.Content()))
		case p.Kind == session.PartReasoning && p.Content() == "":
			w.LeftOut["thoughts that cannot be read"]++
		case p.Kind == session.PartReasoning:
			add(jsonx.MemberOf("type", "thinking"), jsonx.MemberOf("thinking", p.Content()),
				jsonx.MemberOf("signature", extra.String("signature")))
		case p.Kind == session.PartToolCall && reply:
			add(jsonx.MemberOf("type", "toolRequest"), jsonx.MemberOf("id", p.CallID), jsonx.MemberOf("toolCall", toolCall(p)))
		case p.Kind == session.PartToolResult && !reply:
			content := []jsontext.Value{textBlock(p.Content())}
			for i+1 < len(m.Parts) && m.Parts[i+1].Kind == session.PartImage && m.Role == session.Tool &&
				m.Parts[i+1].Blob != nil {
				i++
				content = append(content, imageBlock(&m.Parts[i]))
			}
			add(jsonx.MemberOf("type", "toolResponse"), jsonx.MemberOf("id", p.CallID),
				jsonx.MemberOf("toolResult", map[string]any{
					"status": "success", "value": jsonx.Object{
						jsonx.MemberOf("content", content),
						jsonx.MemberOf("isError", p.IsError != nil && *p.IsError),
					}.Value(),
				}))
		case p.Kind == session.PartImage && p.Blob != nil:
			blocks = append(blocks, imageBlock(p))
		case p.Kind == session.PartFile && p.Blob != nil:
			add(jsonx.MemberOf("type", "document"), jsonx.MemberOf("data", base64.StdEncoding.EncodeToString(p.Blob.Data)),
				jsonx.MemberOf("mimeType", p.Blob.MediaType))
		case p.Kind == session.PartData && m.Dialect == string(session.SourceGoose) && extra.Get("block") != nil:
			blocks = append(blocks, extra.Get("block"))
		default:
			w.LeftOut["parts of kind "+string(p.Kind)]++
		}
	}
	return blocks
}

// toolCall is the envelope of a call. One that the model wrote wrongly has no tool, and says why.
func toolCall(p *session.Part) map[string]any {
	if p.ToolName == "" {
		return map[string]any{"status": "error", "error": cmp.Or(p.Content(), "the call names no tool")}
	}
	return map[string]any{
		"status": "success", "value": jsonx.Object{
			jsonx.MemberOf("name", p.ToolName),
			jsonx.MemberOf("arguments", history.ArgumentsOf(p)),
		}.Value(),
	}
}

func textBlock(text string) jsontext.Value {
	return jsonx.Object{jsonx.MemberOf("type", "text"), jsonx.MemberOf("text", text)}.Value()
}

func imageBlock(p *session.Part) jsontext.Value {
	return jsonx.Object{
		jsonx.MemberOf("type", "image"), jsonx.MemberOf("data", base64.StdEncoding.EncodeToString(p.Blob.Data)),
		jsonx.MemberOf("mimeType", p.Blob.MediaType),
	}.Value()
}
