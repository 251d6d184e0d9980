package transcript

import (
	"encoding/json"
	"slices"
	"strings"

	"sessiond/internal/session"
)

func newBuilder(sess session.Session, compactions []session.Compaction) *builder {
	b := &builder{shown: sess.ID, calls: map[int64]*ToolUse{}, byID: map[string][]*ToolUse{}, cuts: map[int64][]session.Compaction{}}
	for _, c := range compactions {
		switch {
		case c.Status != session.StatusDone:
		case c.ThroughID != nil:
			b.cuts[*c.ThroughID] = append(b.cuts[*c.ThroughID], c)
		default:
			b.clears = append(b.clears, c)
		}
	}
	return b
}

// builder makes the items of a Stream. It owns nothing that its arguments point to.
type builder struct {
	items    []*Item
	shown    session.ID
	begun    bool
	previous session.Message                // without its content
	calls    map[int64]*ToolUse             // without a result, by row id of the call's part
	byID     map[string][]*ToolUse          // the same by the wire's id
	cuts     map[int64][]session.Compaction // by row id of the last message represented
	clears   []session.Compaction           // that name no message, oldest first
}

func (b *builder) next(m *session.Message) {
	for len(b.clears) > 0 && b.clears[0].CreatedAt.Before(m.CreatedAt.Time) {
		b.compaction(b.clears[0])
		b.clears = b.clears[1:]
	}
	if b.begun {
		b.branch(&b.previous, m)
	} else {
		b.addForkBranch(m, b.shown)
	}
	b.begun = true
	b.message(m)
	for _, c := range b.cuts[m.RowID] {
		b.compaction(c)
	}
	b.previous = session.Message{RowID: m.RowID, SessionID: m.SessionID}
}

func (b *builder) end() {
	for _, c := range b.clears {
		b.compaction(c)
	}
	b.clears = nil
}

func (b *builder) add(item Item) { b.items = append(b.items, &item) }

func (b *builder) compaction(c session.Compaction) {
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
	b.add(item)
}

// addForkBranch adds a branch to the first message of a fork.
func (b *builder) addForkBranch(m *session.Message, shown session.ID) {
	if m.SessionID == shown && m.Parent != nil && m.Parent.Session != m.SessionID {
		b.add(Item{Kind: ItemBranch, Ref: m.ID, At: m.CreatedAt, Branch: &Branch{From: *m.Parent, Fork: m.SessionID}})
	}
}

func (b *builder) branch(previous, m *session.Message) {
	continues := m.ParentID != nil && *m.ParentID == previous.RowID
	forked := m.SessionID != previous.SessionID
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
	b.add(Item{Kind: ItemBranch, Ref: m.ID, At: m.CreatedAt, Branch: branch})
}

func (b *builder) message(m *session.Message) {
	item := Item{
		Kind: ItemMessage, Ref: m.ID, Label: SpeakerLabel(m), Role: m.Role, Origin: m.Origin, Author: m.Author, Model: m.Model,
		Finish: m.Finish, At: m.CreatedAt, Tokens: m.Tokens, Hidden: !m.Display,
	}
	switch m.Kind {
	case session.KindMarker, session.KindCustom, session.KindUnknown:
		item.Kind = ItemMarker
		item.Hidden = item.Hidden || m.Kind == session.KindCustom
	}
	folded := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind == session.PartToolResult && b.foldResult(m, p) {
			folded++
			continue
		}
		block := b.block(m, p)
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
	b.add(item)
}

// foldResult folds a result into its call, if the call is here.
func (b *builder) foldResult(m *session.Message, p *session.Part) bool {
	var use *ToolUse
	if p.CallPartID != nil {
		use = b.calls[*p.CallPartID]
	}
	if use == nil && p.CallID != "" {
		if waiting := b.byID[p.CallID]; len(waiting) > 0 {
			use = waiting[0]
		}
	}
	if use == nil || use.Answered() {
		return false
	}
	use.fill(m, p)
	b.stopWaiting(use)
	return true
}

// stopWaiting stops waiting for a call's result.
func (b *builder) stopWaiting(use *ToolUse) {
	if b.calls[use.row] == use {
		delete(b.calls, use.row)
	}
	if waiting := slices.DeleteFunc(b.byID[use.id], func(u *ToolUse) bool { return u == use }); len(waiting) > 0 {
		b.byID[use.id] = waiting
	} else {
		delete(b.byID, use.id)
	}
}

func (t *ToolUse) fill(m *session.Message, p *session.Part) {
	t.ResultRef, t.DurationMS = m.ID, p.DurationMS
	t.Result = p.Content()
	t.IsError = p.IsError != nil && *p.IsError
}

func (b *builder) block(m *session.Message, p *session.Part) Block {
	switch p.Kind {
	case session.PartToolCall:
		use := &ToolUse{Name: p.ToolName, Arguments: p.Arguments, row: p.RowID, id: p.CallID}
		if p.IsError != nil && *p.IsError { // the call could not be parsed
			use.ResultRef, use.IsError = m.ID, true
			use.Result = p.Content()
			return Block{Kind: BlockTool, Tool: use}
		}
		if p.RowID != 0 {
			b.calls[p.RowID] = use
		}
		if p.CallID != "" {
			b.byID[p.CallID] = append(b.byID[p.CallID], use)
		}
		return Block{Kind: BlockTool, Tool: use}
	case session.PartToolResult:
		use := &ToolUse{Name: p.ToolName, Orphan: true}
		use.fill(m, p)
		return Block{Kind: BlockTool, Tool: use}
	case session.PartReasoning:
		return said(BlockReasoning, p)
	case session.PartRefusal:
		return said(BlockRefusal, p)
	case session.PartImage, session.PartAudio, session.PartFile:
		return Block{Kind: BlockAttachment, Attachment: attachment(p)}
	case session.PartData:
		text := p.Content()
		if text == "" {
			text = string(p.Extra)
		}
		return Block{Kind: BlockData, Text: text}
	default:
		return said(BlockText, p)
	}
}

func said(kind BlockKind, p *session.Part) Block {
	return Block{Kind: kind, Text: p.Content()}
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
		case slices.Contains([]string{"id", "parentId", "timestamp", "hash", "shape", "bytes"}, f.name): // of no interest
		case f.value == m.Provider, f.value == m.Model, len(f.value) > 200:
		default:
			words = append(words, f.name+" "+f.value)
		}
	}
	return strings.Join(words, " · ")
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
