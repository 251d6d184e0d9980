package pi

import (
	"encoding/base64"
	"encoding/json"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// again writes the line that a message was read from. It is false for one that was no entry of
// a session file of versions 1 to 3, or that could not be taken apart.
func (w *writer) again(m *session.Message) bool {
	extra, _ := jsonx.ReadObject(m.Extra)
	rest, ok := jsonx.ReadFields(extra.Get("line"))
	if !ok || extra.Get("bytes") != nil {
		return false
	}
	if kind := rest.String("kind"); kind != "" { // of a harness
		if kind != "entry" {
			return false
		}
		rest = rest.Without("kind", "seq", "lane")
	}
	kind := rest.String("type")
	shape := extra.String("shape")
	at := rest.Get("timestamp")
	rest = rest.Without("type", "id", "parentId", "timestamp")
	if kind != "" && at != nil && at[0] == '"' {
		text, _ := jsonx.Text(at)
		if _, ok := history.ParseTime(text); !ok {
			at = nil
		}
	}
	rest = w.renaming(rest)
	switch kind {
	case "":
		return false
	case lineMessage:
		inner, ok := jsonx.ReadFields(rest.Get("message"))
		if !ok {
			return false
		}
		rest = rest.With("message", w.messageAgain(w.renaming(inner), m, shape).Value())
	case lineLabel, lineContextEdit:
		if !w.written[rest.String("targetId")] { // pi takes it for a file's that is damaged
			w.leftOut["labels and edits of entries that are not in the file"]++
			kind, rest = lineCustom, jsonx.Object{field("customType", "sessiond."+kind), field("data", rawJSON(rest.Column()))}
		}
	case lineCustomMessage:
		rest = withContent(withField(rest, "display", m.Display), m.Parts, shape)
	case lineBranchSummary:
		rest = withText(rest, "summary", m.Text())
	case lineCompaction:
		rest = w.compactionAgain(rest, m)
	}
	w.entry(w.ids[m.RowID], m, w.parentOf(m), kind, rest...)
	return true
}

// compactionAgain names what a compaction of version 1 kept, which counted lines, by its id.
func (w *writer) compactionAgain(rest jsonx.Object, m *session.Message) jsonx.Object {
	if rest.Get("firstKeptEntryIndex") == nil || rest.Get("firstKeptEntryId") != nil {
		return rest
	}
	rest = rest.Without("firstKeptEntryIndex")
	kept := ""
	for i := range w.Compactions {
		if c := &w.Compactions[i]; c.FirstKeptID != nil && c.CreatedAt.Equal(m.CreatedAt.Time) {
			kept = w.ids[*c.FirstKeptID]
		}
	}
	if kept == "" {
		kept = w.idOf(m) // itself: it keeps nothing
	}
	return append(rest, field("firstKeptEntryId", kept))
}

// withField puts a field in unless it is there: then that one says it exactly.
func withField(o jsonx.Object, key string, value any) jsonx.Object {
	if o.Get(key) != nil {
		return o
	}
	return append(o, field(key, value))
}

// withText puts a text back that a column held.
func withText(o jsonx.Object, key, text string) jsonx.Object {
	if text == "" {
		return o
	}
	return withField(o, key, text)
}

// messageAgain puts the fields of a message back that columns and parts held.
func (w *writer) messageAgain(o jsonx.Object, m *session.Message, shape string) jsonx.Object {
	role := o.String("role")
	switch {
	case m.Kind == session.KindBash:
		for i := range m.Parts {
			p := &m.Parts[i]
			var at struct{ Output [2]int }
			if json.Unmarshal(p.Extra, &at) != nil || at.Output[0] >= at.Output[1] {
				continue
			}
			output := p.Content() // with the text around it, if its bounds are not known
			if !w.Masked && at.Output[1] <= len(output) {
				output = output[at.Output[0]:at.Output[1]]
			}
			o = withText(o, "output", output)
		}
		return withField(o, "output", "")
	case m.Kind == session.KindCustomMessage:
		if role == "hookMessage" {
			o = o.With("role", session.JSONOf("custom"))
		}
		return withContent(withField(o, "display", m.Display), m.Parts, shape)
	case m.Kind == session.KindBranchSummary:
		return withText(o, "summary", m.Text())
	case m.Role == session.System:
		return systemAgain(o, m, shape)
	case m.Role == session.User:
		return withContent(withText(o, "role", "user"), m.Parts, shape)
	case m.Role == session.Assistant:
		o = withText(withText(o, "role", "assistant"), "provider", m.Provider)
		o = withContent(withText(o, "model", m.Model), m.Parts, shape)
		return withField(o, "stopReason", stopReason(m))
	case m.Role == session.Tool:
		return w.resultAgain(o, m, shape)
	}
	return o
}

func systemAgain(o jsonx.Object, m *session.Message, shape string) jsonx.Object {
	var content []session.Part
	var sections jsonx.Object
	for i := range m.Parts {
		extra, _ := jsonx.ReadObject(m.Parts[i].Extra)
		if name := extra.Get("section"); name != nil {
			sections = append(sections, field(extra.String("section"), m.Parts[i].Content()))
			continue
		}
		content = append(content, m.Parts[i])
	}
	if sections != nil {
		o = withField(o, "sections", rawJSON(sections.Column()))
	}
	return withContent(o, content, shape)
}

// resultAgain puts a tool's answer together: its text was joined, as blocks tells.
func (w *writer) resultAgain(o jsonx.Object, m *session.Message, shape string) jsonx.Object {
	o = withText(o, "role", "toolResult")
	if len(m.Parts) == 0 {
		return o
	}
	answer := &m.Parts[0]
	o = withText(withText(o, "toolCallId", answer.CallID), "toolName", answer.ToolName)
	if answer.IsError != nil {
		o = withField(o, "isError", *answer.IsError)
	}
	if o.Get("content") != nil {
		return o
	}
	extra, _ := jsonx.ReadObject(answer.Extra)
	layout, divided := jsonx.ReadArray(extra.Get("blocks"))
	text := answer.Content()
	if divided {
		if parts, ok := w.divide(text, layout, m.Parts); ok {
			return withContent(o, parts, shape)
		}
	}
	var parts []session.Part
	if text != "" {
		parts = append(parts, session.TextPart(text))
	}
	return withContent(o, append(parts, m.Parts[1:]...), shape)
}

// divide cuts the text of an answer into its blocks. It is false where they are not those of
// the text any more.
func (w *writer) divide(text string, layout []rawJSON, all []session.Part) (parts []session.Part, ok bool) {
	at, size := 0, len(text)
	if w.Masked && size != 0 {
		return nil, false
	}
	for _, raw := range layout {
		block, _ := jsonx.ReadFields(raw)
		var n, part int
		if json.Unmarshal(block.Get("part"), &part) == nil && part > 0 && part < len(all) {
			p := all[part]
			p.CallID = ""
			parts = append(parts, p)
			continue
		}
		if json.Unmarshal(block.Get("bytes"), &n) != nil {
			continue
		}
		if n < 0 || n > size-at {
			return nil, false
		}
		p := session.TextPart(text[at : at+n])
		p.Extra = session.JSON(block.Get("rest"))
		parts = append(parts, p)
		if at += n; at < size && text[at] == '\n' {
			at++
		}
	}
	return parts, true
}

// withContent is the reverse of contentOf.
func withContent(o jsonx.Object, parts []session.Part, shape string) jsonx.Object {
	if o.Get("content") != nil {
		return o
	}
	switch shape {
	case shapeAbsent, shapeNull: // pi itself writes a list
		return append(o, field("content", rawJSON("[]")))
	case shapeString:
		if len(parts) == 0 {
			return append(o, field("content", ""))
		}
		extra, _ := jsonx.ReadObject(parts[0].Extra)
		if exact := extra.Get("text"); exact != nil {
			return append(o, field("content", rawJSON(exact)))
		}
		return append(o, field("content", parts[0].Content()))
	}
	var list []rawJSON
	for i := range parts {
		if raw := blockOf(&parts[i]); raw != nil {
			list = append(list, raw)
		}
	}
	return append(o, field("content", rawJSON(jsonx.Array(list))))
}

// blockOf is the reverse of partOf; several blocks come with commas between them.
func blockOf(p *session.Part) []byte {
	rest, _ := jsonx.ReadObject(p.Extra)
	var o jsonx.Object
	switch p.Kind {
	case session.PartText:
		o = append(jsonx.Object{field("type", "text")}, withField(rest, "text", p.Content())...)
	case session.PartReasoning:
		o = append(jsonx.Object{field("type", "thinking")}, withField(rest, "thinking", p.Content())...)
	case session.PartToolCall:
		o = append(jsonx.Object{field("type", "toolCall")}, withField(withField(rest, "id", p.CallID), "name", p.ToolName)...)
		if p.Arguments != "" {
			o = withField(o, "arguments", rawJSON(p.Arguments))
		}
	case session.PartImage:
		if p.Blob == nil {
			return nil
		}
		o = jsonx.Object{field("type", "image"), field("data", base64.StdEncoding.EncodeToString(p.Blob.Data))}
		o = append(o, withField(rest, "mimeType", p.Blob.MediaType)...)
	default:
		if raw := rest.Get("block"); raw != nil {
			return raw
		}
		if blocks := rest.Get("blocks"); len(blocks) > 2 {
			return blocks[1 : len(blocks)-1]
		}
		return nil
	}
	return o.Column()
}
