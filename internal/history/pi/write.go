package pi

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Session is what a file of pi is written from.
type Session struct {
	session.Session
	// Each yields all of the session's messages, by seq, and before them those of the path that
	// it shares with the sessions it was forked from. A parent comes before its children. It is
	// called twice, first only for what their columns say.
	Each        func(first bool, yield func(*session.Message) error) error
	OnPath      func(session.MessageRef) bool // to the head
	Compactions []session.Compaction          // in force or once in force, oldest first
	Spent       func(row int64) *session.Call // of the reply; nil: nothing is known
	Masked      bool                          // texts are not as they came
}

// Write writes a session as pi's version 3: a line for each message, several for one that
// answers several calls. What pi's importer took apart is put together again; what came from
// elsewhere gets the fields that pi asks for. leftOut counts what pi has no place for.
func Write(out io.Writer, s *Session) (leftOut map[string]int, err error) {
	w := writer{
		Session: s, out: bufio.NewWriter(out), renamed: map[string]string{}, names: map[string]string{}, leftOut: map[string]int{},
		places: make([]place, len(s.Compactions)),
	}
	if err := w.identify(); err != nil {
		return nil, err
	}
	w.header()
	if err := s.Each(false, func(m *session.Message) error {
		w.message(m)
		w.overlays(m)
		return w.err
	}); err != nil {
		return w.leftOut, err
	}
	w.leaf()
	if w.err == nil {
		w.err = w.out.Flush()
	}
	return w.leftOut, w.err
}

type writer struct {
	*Session
	out     *bufio.Writer
	taken   ids
	ids     idsOf             // of the last line of each message
	renamed map[string]string // ids that do not stay, and what stands for them
	written ids               // of lines
	names   map[string]string // of tools, by the ids of calls
	places  []place           // of the compactions
	made    int
	last    string // id of the last line
	head    string // id of the last line on the path
	leftOut map[string]int
	err     error
}

// place is where a compaction stands.
type place struct {
	behind int64 // row of the newest message of the path that was there when it took effect, not before the last one that it represents
	kept   int64 // row of the first message that it keeps; 0: none
}

// notePlaces notes what a message is to the compactions.
func (w *writer) notePlaces(m *session.Message) {
	if !w.OnPath(m.ID) {
		return
	}
	for i := range w.Compactions {
		c, at := &w.Compactions[i], &w.places[i]
		if c.ThroughID == nil {
			continue
		}
		if m.RowID == *c.ThroughID || m.RowID > *c.ThroughID && c.ActivatedAt != nil && !m.CreatedAt.After(c.ActivatedAt.Time) {
			at.behind = m.RowID
		}
		if m.ParentID != nil && *m.ParentID == *c.ThroughID {
			at.kept = m.RowID
		}
	}
}

func (w *writer) line(o history.Object) {
	if w.err != nil {
		return
	}
	if _, w.err = w.out.Write(o.JSON()); w.err == nil {
		w.err = w.out.WriteByte('\n')
	}
}

func field(key string, v any) history.Field {
	if raw, ok := v.(rawJSON); ok {
		return history.Field{Key: key, Raw: raw}
	}
	return history.Field{Key: key, Raw: rawJSON(session.JSONOf(v))}
}

const isoTime = "2006-01-02T15:04:05.000Z"

func (w *writer) header() {
	id := string(w.ID)
	if w.Source == session.SourcePi && w.SourceID != "" {
		id = w.SourceID
	}
	o := history.Object{field("type", lineSession), field("version", 3), field("id", id), field("timestamp", w.CreatedAt.UTC().Format(isoTime)), field("cwd", w.Directory)}
	w.line(o)
}

// entry writes one line with what every line has. id "" makes one.
func (w *writer) entry(id string, m *session.Message, parent *string, kind string, rest ...history.Field) {
	if id == "" {
		id = w.newID()
	}
	o := history.Object{field("type", kind), field("id", id), field("parentId", parent), field("timestamp", m.CreatedAt.UTC().Format(isoTime))}
	w.line(append(o, rest...))
	w.last = id
	w.written.add(id)
	if m.RowID != 0 {
		w.ids.set(m.RowID, id)
		if w.OnPath(m.ID) {
			w.head = id
		}
	}
}

func (w *writer) parentOf(m *session.Message) *string {
	if m.ParentID == nil {
		return nil
	}
	id := w.ids.of(*m.ParentID)
	if id == "" {
		return nil
	}
	return &id
}

// mostNames is how many calls are remembered.
const mostNames = 1 << 14

func (w *writer) message(m *session.Message) {
	for _, c := range m.Calls() {
		if len(w.names) >= mostNames {
			clear(w.names) // results stand near their calls, and most name their tools
		}
		w.names[c.CallID] = c.ToolName
	}
	if m.Dialect == string(session.SourcePi) && w.again(m) {
		return
	}
	id, parent := w.ids.of(m.RowID), w.parentOf(m)
	one := func(kind string, rest ...history.Field) { w.entry(id, m, parent, kind, rest...) }
	switch m.Kind {
	case session.KindMessage:
		w.talk(m, id, parent)
	case session.KindBash, session.KindCustomMessage:
		one(lineCustomMessage, field("customType", "sessiond."+string(m.Kind)), field("content", w.blocks(m.Parts, false)), field("display", m.Display))
	case session.KindBranchSummary:
		from := "root"
		if parent != nil {
			from = *parent
		}
		one(lineBranchSummary, field("fromId", from), field("summary", m.Text()))
	case session.KindMarker:
		if m.Model != "" {
			one(lineModel, field("provider", orUnknown(m.Provider)), field("modelId", m.Model))
			return
		}
		fallthrough
	default:
		data := m.Extra
		if text := m.Text(); text != "" || data == nil {
			data = session.JSONOf(map[string]any{"text": text, "extra": m.Extra})
		}
		one(lineCustom, field("customType", "sessiond."+string(m.Kind)), field("data", rawJSON(data)))
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// talk writes a turn of another program as pi would have written it.
func (w *writer) talk(m *session.Message, id string, parent *string) {
	at := field("timestamp", m.CreatedAt.UnixMilli())
	one := func(o history.Object) {
		w.entry(id, m, parent, lineMessage, field("message", rawJSON(append(o, at).JSON())))
	}
	switch m.Role {
	case session.System:
		one(history.Object{field("role", "system"), field("content", m.Text())})
	case session.Assistant:
		one(history.Object{
			field("role", "assistant"), field("content", w.blocks(m.Parts, true)), field("api", apiOf(m)), field("provider", orUnknown(m.Provider)),
			field("model", orUnknown(m.Model)), field("usage", w.usage(m)), field("stopReason", stopReason(m)),
		})
		if results := m.Results(); len(results) > 0 { // of tools that the provider ran
			w.results(m, "", w.ids.of(m.RowID))
		}
	case session.Tool:
		before := ""
		if parent != nil {
			before = *parent
		}
		w.results(m, id, before)
	default:
		one(history.Object{field("role", "user"), field("content", w.blocks(m.Parts, false))})
	}
}

// results writes a line for each result, with the pictures behind it.
func (w *writer) results(m *session.Message, id, parent string) {
	wrote := false
	for i := 0; i < len(m.Parts); i++ {
		p := &m.Parts[i]
		if p.Kind != session.PartToolResult {
			continue
		}
		end := i + 1
		for end < len(m.Parts) && m.Parts[end].Kind != session.PartToolResult && m.Role == session.Tool {
			end++
		}
		content := append([]session.Part{session.TextPart(p.Content())}, m.Parts[i+1:end]...)
		name := p.ToolName
		if name == "" {
			name = orUnknown(w.names[p.CallID])
		}
		at := &parent
		if parent == "" {
			at = nil
		}
		w.entry(id, m, at, lineMessage, field("message", rawJSON(history.Object{
			field("role", "toolResult"), field("toolCallId", p.CallID), field("toolName", name), field("content", w.blocks(content, false)),
			field("isError", p.IsError != nil && *p.IsError), field("timestamp", m.CreatedAt.UnixMilli()),
		}.JSON())))
		id, parent, wrote = "", w.last, true
	}
	if !wrote && m.Role == session.Tool {
		at := &parent
		if parent == "" {
			at = nil
		}
		w.entry(id, m, at, lineCustomMessage, field("customType", "sessiond.tool"), field("content", w.blocks(m.Parts, false)), field("display", m.Display))
	}
}

// blocks writes parts as pi's blocks. A reply's are text, thinking and calls; other messages
// hold text and images.
func (w *writer) blocks(parts []session.Part, reply bool) rawJSON {
	list := []byte{'['}
	add := func(fields ...history.Field) {
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, history.Object(fields).JSON()...)
	}
	for i := range parts {
		p := &parts[i]
		switch {
		case p.Kind == session.PartText || p.Kind == session.PartRefusal:
			add(field("type", "text"), field("text", p.Content()))
		case p.Kind == session.PartToolResult && !reply:
			add(field("type", "text"), field("text", p.Content()))
		case p.Kind == session.PartToolResult: // a line of its own
		case p.Kind == session.PartReasoning && reply:
			add(field("type", "thinking"), field("thinking", p.Content()))
		case p.Kind == session.PartToolCall && reply:
			add(field("type", "toolCall"), field("id", p.CallID), field("name", p.ToolName), field("arguments", argumentsOf(p)))
		case p.Kind == session.PartImage && !reply && p.Blob != nil:
			add(field("type", "image"), field("data", base64.StdEncoding.EncodeToString(p.Blob.Data)), field("mimeType", p.Blob.MediaType))
		default:
			w.leftOut["parts of kind "+string(p.Kind)]++
		}
	}
	return append(list, ']')
}

// argumentsOf returns a call's arguments as the object that pi keeps them as.
func argumentsOf(p *session.Part) rawJSON {
	if _, ok := history.ParseObject([]byte(p.Arguments)); ok {
		return rawJSON(p.Arguments)
	}
	if p.Arguments == "" {
		return rawJSON("{}")
	}
	return rawJSON(session.JSONOf(map[string]string{"arguments": p.Arguments}))
}

func apiOf(m *session.Message) string {
	switch {
	case m.Dialect == "anthropic" || strings.Contains(m.Provider, "anthropic"):
		return "anthropic-messages"
	case m.Dialect == "gemini" || strings.Contains(m.Provider, "google"):
		return "google-generative-ai"
	case m.Dialect == "openai.responses":
		return "openai-responses"
	}
	return "openai-completions"
}

func stopReason(m *session.Message) string {
	switch m.Finish {
	case session.FinishLength:
		return "length"
	case session.FinishError:
		return "error"
	case session.FinishAborted:
		return "aborted"
	case session.FinishToolCalls:
		return "toolUse"
	case session.FinishStop:
		return "stop"
	}
	if len(m.Calls()) > 0 {
		return "toolUse"
	}
	return "stop"
}

// usage returns what the reply's call reported; zeros when there is none.
func (w *writer) usage(m *session.Message) rawJSON {
	var c session.Call
	if have := w.Spent(m.RowID); have != nil {
		c = *have
	}
	cost := 0.0
	if c.CostNanoUSD != nil {
		cost = float64(*c.CostNanoUSD) / 1e9
	}
	none := field("input", 0)
	return rawJSON(history.Object{
		field("input", c.InputTokens), field("output", c.OutputTokens), field("cacheRead", c.CacheReadTokens), field("cacheWrite", c.CacheWriteTokens),
		field("reasoning", c.ReasoningTokens), field("totalTokens", c.ContextTokens()),
		field("cost", rawJSON(history.Object{none, field("output", 0), field("cacheRead", 0), field("cacheWrite", 0), field("total", cost)}.JSON())),
	}.JSON())
}

// overlays writes the compactions that took effect behind a message: pi has them as entries of
// the path. Those that its own program made are among the lines already.
func (w *writer) overlays(m *session.Message) {
	for i := range w.Compactions {
		c := &w.Compactions[i]
		own := c.Trigger == session.TriggerImport && (w.Source == session.SourcePi || w.Source == session.SourceOpenClaw)
		if c.Status != session.StatusDone || c.Undone || own || c.ThroughID == nil || w.places[i].behind != m.RowID {
			continue
		}
		if c.Strategy == session.StrategyPrune {
			w.leftOut["messages in which a compaction hid outputs of tools"]++
			continue
		}
		id := w.newID()
		kept := w.ids.of(w.places[i].kept)
		if kept == "" || m.RowID == *c.ThroughID {
			kept = id
		}
		parent := w.ids.of(m.RowID)
		details := session.CompactionDetails{ReadFiles: []string{}, ModifiedFiles: []string{}}
		if c.Details != nil {
			_ = json.Unmarshal(c.Details, &details) // without, nothing is known of files
		}
		w.entry(id, &session.Message{RowID: m.RowID, ID: m.ID, CreatedAt: *c.ActivatedAt}, &parent, lineCompaction,
			field("summary", c.Summary), field("firstKeptEntryId", kept), field("tokensBefore", c.TokensBefore),
			field("details", map[string]any{"readFiles": orEmpty(details.ReadFiles), "modifiedFiles": orEmpty(details.ModifiedFiles)}))
	}
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// idOf returns the id of a message's first line, which is fixed with it if it has not come yet.
func (w *writer) idOf(m *session.Message) string {
	id := w.ids.of(m.RowID)
	if id == "" {
		id = w.newID()
		w.ids.set(m.RowID, id)
	}
	return id
}

// leaf ends the file with a line on the path to the head: the last line is the leaf. The title
// of a session of another program stands in it.
func (w *writer) leaf() {
	if w.head == "" {
		return
	}
	end := &session.Message{CreatedAt: w.UpdatedAt}
	switch {
	case w.Source != session.SourcePi && w.Title != "":
		w.entry("", end, &w.head, lineInfo, field("name", w.Title))
	case w.last != w.head:
		w.entry("", end, &w.head, lineCustom, field("customType", "sessiond.head"))
	}
}
