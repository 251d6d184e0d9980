package pi

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
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
		Session: s, out: bufio.NewWriter(out), taken: map[string]bool{}, ids: map[int64]string{},
		renamed: map[string]string{},
		written: map[string]bool{}, names: map[string]string{}, leftOut: map[string]int{},
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
	taken   map[string]bool   // ids
	ids     map[int64]string  // of the last line of each message, by its row
	renamed map[string]string // ids that change, and their new ones
	written map[string]bool   // ids of lines
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
	// row of the newest message of the path that was there when it took effect, not before the last one that it represents
	behind int64
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
		if m.RowID == *c.ThroughID || m.RowID > *c.ThroughID && c.ActivatedAt != nil &&
			!m.CreatedAt.After(c.ActivatedAt.Time) {
			at.behind = m.RowID
		}
		if m.ParentID != nil && *m.ParentID == *c.ThroughID {
			at.kept = m.RowID
		}
	}
}

func (w *writer) line(o jsonx.Object) {
	if w.err == nil {
		_, w.err = w.out.Write(append(o.Column(), '\n'))
	}
}

func field(key string, v any) jsonx.Member {
	if raw, ok := v.(rawJSON); ok {
		return jsonx.Member{Key: key, Value: raw}
	}
	return jsonx.Member{Key: key, Value: rawJSON(session.JSONOf(v))}
}

const isoTime = "2006-01-02T15:04:05.000Z"

func (w *writer) header() {
	id := string(w.ID)
	if w.Source == session.SourcePi && w.SourceID != "" {
		id = w.SourceID
	}
	o := jsonx.Object{
		field("type", lineSession), field("version", 3), field("id", id),
		field("timestamp", w.CreatedAt.UTC().Format(isoTime)), field("cwd", w.Directory),
	}
	w.line(o)
}

// entry writes one line with what every line has. An empty id makes one; an empty parent is none.
func (w *writer) entry(id string, m *session.Message, parent, kind string, rest ...jsonx.Member) {
	if id == "" {
		id = w.newID()
	}
	o := jsonx.Object{
		field("type", kind), field("id", id), field("parentId", parent),
		field("timestamp", m.CreatedAt.UTC().Format(isoTime)),
	}
	if parent == "" {
		o[2].Value = rawJSON("null")
	}
	w.line(append(o, rest...))
	w.last = id
	w.written[id] = true
	if m.RowID != 0 {
		w.ids[m.RowID] = id
		if w.OnPath(m.ID) {
			w.head = id
		}
	}
}

func (w *writer) parentOf(m *session.Message) string {
	if m.ParentID == nil {
		return ""
	}
	return w.ids[*m.ParentID]
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
	id, parent := w.ids[m.RowID], w.parentOf(m)
	one := func(kind string, rest ...jsonx.Member) { w.entry(id, m, parent, kind, rest...) }
	switch m.Kind {
	case session.KindMessage:
		w.talk(m, id, parent)
	case session.KindBash, session.KindCustomMessage:
		one(lineCustomMessage, field("customType", "sessiond."+string(m.Kind)), field("content", w.blocks(m.Parts, false)),
			field("display", m.Display))
	case session.KindBranchSummary:
		one(lineBranchSummary, field("fromId", cmp.Or(parent, "root")), field("summary", m.Text()))
	case session.KindMarker:
		if m.Model != "" {
			one(lineModel, field("provider", cmp.Or(m.Provider, unknown)), field("modelId", m.Model))
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

// unknown stands for a name that pi asks for and nothing tells.
const unknown = "unknown"

// talk writes a turn of another program as pi would have written it.
func (w *writer) talk(m *session.Message, id, parent string) {
	at := field("timestamp", m.CreatedAt.UnixMilli())
	one := func(o jsonx.Object) {
		w.entry(id, m, parent, lineMessage, field("message", rawJSON(append(o, at).Column())))
	}
	switch m.Role {
	case session.System:
		one(jsonx.Object{field("role", "system"), field("content", m.Text())})
	case session.Assistant:
		one(jsonx.Object{
			field("role", "assistant"), field("content", w.blocks(m.Parts, true)), field("api", apiOf(m)),
			field("provider", cmp.Or(m.Provider, unknown)),
			field("model", cmp.Or(m.Model, unknown)), field("usage", w.usage(m)), field("stopReason", stopReason(m)),
		})
		if len(m.Results()) > 0 { // of tools that the provider ran
			w.results(m, "", w.ids[m.RowID])
		}
	case session.Tool:
		w.results(m, id, parent)
	default:
		one(jsonx.Object{field("role", "user"), field("content", w.blocks(m.Parts, false))})
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
		name := cmp.Or(p.ToolName, w.names[p.CallID], unknown)
		w.entry(id, m, parent, lineMessage, field("message", rawJSON(jsonx.Object{
			field("role", "toolResult"), field("toolCallId", p.CallID), field("toolName", name),
			field("content", w.blocks(content, false)),
			field("isError", p.IsError != nil && *p.IsError), field("timestamp", m.CreatedAt.UnixMilli()),
		}.Column())))
		id, parent, wrote = "", w.last, true
	}
	if !wrote && m.Role == session.Tool {
		w.entry(id, m, parent, lineCustomMessage, field("customType", "sessiond.tool"),
			field("content", w.blocks(m.Parts, false)), field("display", m.Display))
	}
}

// blocks writes parts as pi's blocks. A reply's are text, thinking and calls; other messages
// hold text and images.
func (w *writer) blocks(parts []session.Part, reply bool) rawJSON {
	var list []rawJSON
	add := func(fields ...jsonx.Member) { list = append(list, rawJSON(jsonx.Object(fields).Column())) }
	for i := range parts {
		p := &parts[i]
		switch {
		case p.Kind == session.PartText, p.Kind == session.PartRefusal, p.Kind == session.PartToolResult && !reply:
			add(field("type", "text"), field("text", p.Content()))
		case p.Kind == session.PartToolResult: // a line of its own
		case p.Kind == session.PartReasoning && reply:
			add(field("type", "thinking"), field("thinking", p.Content()))
		case p.Kind == session.PartToolCall && reply:
			add(field("type", "toolCall"), field("id", p.CallID), field("name", p.ToolName),
				field("arguments", rawJSON(history.ArgumentsOf(p))))
		case p.Kind == session.PartImage && !reply && p.Blob != nil:
			add(field("type", "image"), field("data", base64.StdEncoding.EncodeToString(p.Blob.Data)),
				field("mimeType", p.Blob.MediaType))
		default:
			w.leftOut["parts of kind "+string(p.Kind)]++
		}
	}
	return jsonx.Array(list)
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

// stopReason is the reverse of finishOf. "deferred" asks pi to fetch a reply, which only its own are.
func stopReason(m *session.Message) string {
	for _, word := range []string{"stop", "length", "toolUse", "error", "aborted", "deferred"} {
		if finishOf(word) == m.Finish && (word != "deferred" || m.Dialect == string(session.SourcePi)) {
			return word
		}
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
	return rawJSON(jsonx.Object{
		field("input", c.InputTokens), field("output", c.OutputTokens), field("cacheRead", c.CacheReadTokens),
		field("cacheWrite", c.CacheWriteTokens),
		field("reasoning", c.ReasoningTokens), field("totalTokens", c.ContextTokens()),
		field("cost", rawJSON(jsonx.Object{
			field("input", 0), field("output", 0), field("cacheRead", 0),
			field("cacheWrite", 0), field("total", cost),
		}.Column())),
	}.Column())
}

// overlays writes the compactions of the session's program that took effect behind a message: pi has them as
// entries of the path. Those of pi and OpenClaw are among the lines already. sessiond's own are left out: pi
// would go on without the hidden messages.
func (w *writer) overlays(m *session.Message) {
	for i := range w.Compactions {
		c := &w.Compactions[i]
		own := c.Trigger == session.TriggerImport && (w.Source == session.SourcePi || w.Source == session.SourceOpenClaw)
		if c.Status != session.StatusDone || c.Undone || own || c.ThroughID == nil || w.places[i].behind != m.RowID {
			continue
		}
		if c.Trigger != session.TriggerImport {
			w.leftOut["compactions by sessiond"]++
			continue
		}
		if c.Strategy == session.StrategyPrune {
			w.leftOut["messages in which a compaction hid outputs of tools"]++
			continue
		}
		id := w.newID()
		kept := w.ids[w.places[i].kept]
		if kept == "" || m.RowID == *c.ThroughID {
			kept = id
		}
		var details session.CompactionDetails
		_ = json.Unmarshal(c.Details, &details) // without, nothing is known of files
		w.entry(id, &session.Message{RowID: m.RowID, ID: m.ID, CreatedAt: *c.ActivatedAt}, w.ids[m.RowID], lineCompaction,
			field("summary", c.Summary), field("firstKeptEntryId", kept), field("tokensBefore", c.TokensBefore),
			field("details", map[string]any{
				"readFiles":     append([]string{}, details.ReadFiles...),
				"modifiedFiles": append([]string{}, details.ModifiedFiles...),
			}))
	}
}

// idOf returns the id of a message's first line, which is fixed with it if it has not come yet.
func (w *writer) idOf(m *session.Message) string {
	if w.ids[m.RowID] == "" {
		w.ids[m.RowID] = w.newID()
	}
	return w.ids[m.RowID]
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
		w.entry("", end, w.head, lineInfo, field("name", w.Title))
	case w.last != w.head:
		w.entry("", end, w.head, lineCustom, field("customType", "sessiond.head"))
	}
}

// identify sets the ids of the messages that were pi's entries: those that pi could have made
// stay, the others are made of them, so that a session and its forks name an entry alike.
func (w *writer) identify() error {
	type other struct {
		row int64
		id  string
	}
	var others []other
	err := w.Each(true, func(m *session.Message) error {
		w.notePlaces(m)
		switch {
		case m.Dialect != string(session.SourcePi) || !isEntryID(m.ExternalID) || w.taken[m.ExternalID]:
		case isPlainID(m.ExternalID):
			w.ids[m.RowID] = m.ExternalID
			w.taken[m.ExternalID] = true
		default:
			others = append(others, other{m.RowID, m.ExternalID})
		}
		return nil
	})
	for _, o := range others {
		if w.renamed[o.id] != "" {
			continue
		}
		sum := sha256.Sum256([]byte(o.id))
		id := hex.EncodeToString(sum[:4])
		if w.taken[id] {
			id = w.newID()
		}
		w.ids[o.row] = id
		w.renamed[o.id] = id
		w.taken[id] = true
	}
	return err
}

// isEntryID reports whether an external id is an entry's own, and not one that the reader made.
func isEntryID(id string) bool { return id != "" && !strings.ContainsAny(id, ":#") }

// isPlainID reports whether an id is one that pi makes: eight hexadecimal digits, or a UUID.
func isPlainID(id string) bool {
	if len(id) != 8 && len(id) != 36 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case len(id) == 36 && (i == 8 || i == 13 || i == 18 || i == 23):
			if c != '-' {
				return false
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return false
		}
	}
	return true
}

func (w *writer) newID() string {
	for {
		w.made++
		if id := fmt.Sprintf("%08x", w.made); !w.taken[id] {
			w.taken[id] = true
			return id
		}
	}
}

// renaming returns the fields of a line with the entries that they name under their new ids.
func (w *writer) renaming(o jsonx.Object) jsonx.Object {
	if len(w.renamed) == 0 {
		return o
	}
	for _, key := range []string{"targetId", "fromId", "firstKeptEntryId"} {
		if id, ok := w.renamed[o.String(key)]; ok {
			o = o.With(key, session.JSONOf(id))
		}
	}
	return o
}
