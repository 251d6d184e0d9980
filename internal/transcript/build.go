package transcript

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"sessiond/internal/session"
)

func (s *Stream) add(item Item) { s.items = append(s.items, &item) }

func (s *Stream) compaction(c session.Compaction) {
	if c.ID == "" {
		c.ID = session.CompactionName(c.RowID)
	}
	if c.Strategy == session.StrategyPrune {
		c.Summary = "" // it repeats that of the compaction before
	}
	item := Item{Kind: ItemCompaction, At: c.CreatedAt, Compaction: &c}
	if c.Through != nil {
		item.Ref = *c.Through
	}
	s.add(item)
}

// branch adds a line where a message does not continue the one before, or is the first one of a fork.
func (s *Stream) branch(m *session.Message) {
	forked := m.SessionID != s.previous.SessionID
	continues := m.ParentID != nil && *m.ParentID == s.previous.RowID
	if !s.begun {
		forked, continues = m.SessionID == s.shown && m.Parent != nil && m.Parent.Session != m.SessionID, true
	}
	if continues && !forked {
		return
	}
	branch := &Branch{}
	if m.Parent != nil {
		branch.From = *m.Parent
	}
	if forked {
		branch.Fork = m.SessionID
	}
	s.add(Item{Kind: ItemBranch, Ref: m.ID, At: m.CreatedAt, Branch: branch})
}

func (s *Stream) message(m *session.Message) {
	item := Item{
		Kind: ItemMessage, Ref: m.ID, Label: SpeakerLabel(m), Role: m.Role, Origin: m.Origin, Author: m.Author,
		Model:  m.Model,
		Finish: m.Finish, At: m.CreatedAt, Tokens: m.Tokens, Hidden: !m.Display, Talk: m.Talk,
	}
	switch m.Kind {
	case session.KindMarker, session.KindCustom, session.KindUnknown:
		item.Kind = ItemMarker
		item.Hidden = item.Hidden || m.Kind == session.KindCustom
	}
	folded := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind == session.PartToolResult && s.foldResult(m, p) {
			folded++
			continue
		}
		if item.Kind == ItemMarker && p.Kind == session.PartData && p.BlobSHA != nil {
			continue // a copy of a request, say: the line is enough
		}
		block := s.block(m, p)
		if m.Kind == session.KindBranchSummary {
			block.Text = session.UnframeBranch(block.Text)
		}
		item.Blocks = append(item.Blocks, block)
	}
	if folded > 0 && len(item.Blocks) == 0 {
		return
	}
	if item.Kind == ItemMarker && len(item.Blocks) == 0 {
		item.Blocks = []Block{{Kind: BlockText, Text: markerText(m)}}
	}
	s.add(item)
}

// foldResult folds a result into its call, if the call is here.
func (s *Stream) foldResult(m *session.Message, p *session.Part) bool {
	var use *ToolUse
	if p.CallPartID != nil {
		use = s.calls[*p.CallPartID]
	}
	if use == nil && p.CallID != "" {
		if waiting := s.byID[p.CallID]; len(waiting) > 0 {
			use = waiting[0]
		}
	}
	if use == nil || use.Answered() {
		return false
	}
	use.fill(m, p)
	s.stopWaiting(use)
	return true
}

// stopWaiting stops waiting for a call's result.
func (s *Stream) stopWaiting(use *ToolUse) {
	if s.calls[use.row] == use {
		delete(s.calls, use.row)
	}
	if waiting := slices.DeleteFunc(s.byID[use.id], func(u *ToolUse) bool { return u == use }); len(waiting) > 0 {
		s.byID[use.id] = waiting
	} else {
		delete(s.byID, use.id)
	}
}

func (t *ToolUse) fill(m *session.Message, p *session.Part) {
	t.ResultRef, t.DurationMS = m.ID, p.DurationMS
	t.Result = session.ReadableResult(p.Content())
	if rest := restOf(m, p); rest != nil {
		t.Rests = append(t.Rests, rest)
	}
	t.IsError = p.Failed()
}

func (s *Stream) block(m *session.Message, p *session.Part) Block {
	switch p.Kind {
	case session.PartToolCall:
		use := &ToolUse{Name: p.ToolName, Arguments: p.Arguments, row: p.RowID, id: p.CallID}
		if rest := restOf(m, p); rest != nil {
			use.Rests = append(use.Rests, rest)
		}
		if p.Failed() { // the call could not be parsed
			use.ResultRef, use.IsError = m.ID, true
			use.Result = p.Content()
			return Block{Kind: BlockTool, Tool: use}
		}
		if p.RowID != 0 {
			s.calls[p.RowID] = use
		}
		if p.CallID != "" {
			s.byID[p.CallID] = append(s.byID[p.CallID], use)
		}
		return Block{Kind: BlockTool, Tool: use}
	case session.PartToolResult:
		use := &ToolUse{Name: p.ToolName, Orphan: true}
		use.fill(m, p)
		return Block{Kind: BlockTool, Tool: use}
	case session.PartReasoning:
		return said(BlockReasoning, m, p)
	case session.PartRefusal:
		return said(BlockRefusal, m, p)
	case session.PartImage, session.PartAudio, session.PartFile:
		return Block{Kind: BlockAttachment, Attachment: attachment(p), Rest: restOf(m, p)}
	case session.PartData:
		text := p.Content()
		if text == "" {
			text = string(p.Extra)
		}
		return Block{Kind: BlockData, Text: text, Rest: restOf(m, p)}
	default:
		return said(BlockText, m, p)
	}
}

func said(kind BlockKind, m *session.Message, p *session.Part) Block {
	text := p.Content()
	if m.Role == session.User && kind == BlockText {
		text = session.ReadableText(text)
	}
	return Block{Kind: kind, Text: text, Rest: restOf(m, p)}
}

// SpeakerLabel names the speaker.
func SpeakerLabel(m *session.Message) string {
	switch m.Kind {
	case session.KindBash:
		return "shell"
	case session.KindBranchSummary:
		return "branch summary"
	case session.KindCustomMessage:
		return "extension"
	case session.KindMarker, session.KindCustom, session.KindUnknown:
		return string(m.Kind)
	}
	if m.Role == session.User && m.Origin == session.Program {
		return "program"
	}
	if m.Role == "" {
		return string(m.Kind)
	}
	return string(m.Role)
}

// markerText describes a marker without a text: the model that it sets, and the small fields of its
// source's line.
func markerText(m *session.Message) string {
	var words []string
	if m.Model != "" {
		words = append(words, "model "+m.Model)
	}
	fields, _ := topFields(string(m.Extra))
	for i := 0; i < len(fields); i++ {
		f := fields[i]
		if inner, ok := topFields(f.value); ok {
			fields = append(fields, inner[:min(len(inner), 20)]...)
			continue
		}
		switch {
		case len(fields) > 100:
			return strings.Join(words, " · ")
		case f.name == "type":
			words = append([]string{f.value}, words...)
		// of no interest
		case slices.Contains([]string{"id", "parentId", "timestamp", "hash", "shape", "bytes", "blob"}, f.name):
		case f.value == m.Provider, f.value == m.Model, len(f.value) > 200:
		default:
			words = append(words, f.name+" "+f.value)
		}
	}
	return strings.Join(words, " · ")
}

// PromptLine returns what a person asked on one line of a width in columns: the text, or what is attached without one.
func PromptLine(m *session.Message, width int) string {
	if line := OneLine(session.ReadableText(m.Text()), width); line != "" {
		return line
	}
	var attached []string
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind != session.PartText {
			attached = append(attached, attachment(p).String())
		}
	}
	return OneLine(cmp.Or(strings.Join(attached, " "), "(no text)"), width)
}

func attachment(p *session.Part) *Attachment {
	a := &Attachment{Kind: p.Kind, Size: int64(len(p.Text))}
	if p.Blob != nil {
		a.MediaType, a.Size, a.Data = p.Blob.MediaType, p.Blob.Size, p.Blob.Data
	}
	var extra any
	if len(p.Extra) > 0 && json.Unmarshal(p.Extra, &extra) == nil {
		a.readDescription(extra, 0)
	}
	return a
}

// readDescription finds an attachment's description in the fields of any wire form.
func (a *Attachment) readDescription(v any, depth int) {
	fields, ok := v.(map[string]any)
	if !ok || depth > 3 {
		return
	}
	text := func(names ...string) string {
		for _, name := range names {
			if s, ok := fields[name].(string); ok && s != "" && len(s) < 300 && !strings.HasPrefix(s, "data:") {
				return s
			}
		}
		return ""
	}
	if a.MediaType == "" {
		a.MediaType = text("media_type", "mime_type", "mimeType")
	}
	if a.Name == "" {
		a.Name = text("filename", "file_name", "url")
	}
	for _, inner := range fields {
		a.readDescription(inner, depth+1)
	}
}
