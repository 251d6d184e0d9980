package droid

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Reasons to skip that only these sessions have.
const (
	skipSide   = "state of the program" // lists of tasks, ends of turns, runs of hooks
	skipEmpty  = "message without words"
	skipSwitch = "conversation as text for another provider"
)

// talk is a session on its way into the store.
type talk struct {
	in       *history.Intake
	whole    history.Whole
	header   jsonx.Object
	settings jsonx.Object
	items    map[string][]int  // by the id of a message
	last     map[string]string // key of the last item of a message
}

// readSession reads a file of lines.
func readSession(in *history.Intake) {
	t := &talk{in: in, items: map[string][]int{}, last: map[string]string{}}
	in.EachLine(t.line)
	if in.Err() != nil {
		return
	}
	if t.header == nil {
		in.Fail(session.Errorf(session.Invalid, "no session of Droid: its first line is no session_start"))
		return
	}
	if n := len(t.whole.Items); n > 0 && t.whole.Items[n-1].Message.Role == session.Assistant {
		t.whole.Items[n-1].Open = len(t.whole.Items[n-1].Message.Calls()) > 0 // its results come in the next line
	}
	in.AddWhole(&t.whole)
}

// line reads a line.
func (t *talk) line(l history.FileLine) {
	o, _, ok := history.ParseLine(l.Bytes)
	ok = ok && !jsonx.DeeperThan(l.Bytes, history.MaxDepth)
	kind := o.String("type")
	if t.header == nil {
		if ok && kind == "session_start" {
			t.begin(o)
		} else {
			t.in.Fail(session.Errorf(session.Invalid, "no session of Droid: its first line is no session_start"))
		}
		return
	}
	switch at := history.TimeOf(o.Get("timestamp")); {
	case !ok:
		t.add(l, history.RawItem(history.LineKey(l.Bytes), l.Bytes, "no JSON object, or nested too deep", at))
	case kind == "message":
		t.message(l, o, at)
	case kind == "compaction_state":
		t.compaction(l, o, at)
	case kind == "todo_state" || kind == "agent_turn_outcome":
		t.in.SkipAt(l.At, skipSide, 1)
	default:
		item := history.RawItem(history.LineKey(l.Bytes), l.Bytes, "a line of unknown kind", at)
		item.Problem = "" // builds differ
		t.add(l, item)
	}
}

// begin reads the first line, which says what the session is.
func (t *talk) begin(o jsonx.Object) {
	t.header = o
	w, id, folder := &t.whole, nameOf(t.in.Found.Path), filepath.Dir(t.in.Found.Path)
	t.settings = settingsOf(folder, id)
	w.Records, w.New.SourceID = 1, id
	w.New.Directory = o.String("cwd")
	w.New.Model, w.New.Provider = t.settings.String("model"), t.settings.String("providerLock")
	for _, title := range []string{o.String("title"), o.String("sessionTitle")} {
		if title = strings.TrimSpace(title); title != "" && title != "New Session" {
			w.Title = title
		}
	}
	w.Archived = history.KnownTime(t.settings.Get("archivedAt"))
	if caller := history.Plain(o.String("callingSessionId")); caller != "" {
		w.New.Kind, w.ParentID, w.ParentCall, w.Title = "subagent", caller, o.String("callingToolUseId"), ""
		return
	}
	parent := history.Plain(o.String("parent"))
	if parent == "" || parent == id {
		return
	}
	if from := t.in.Session(parent); from != nil {
		w.Origins = []*session.Session{from}
	} else {
		t.in.Await(parent)
	}
}

// add adds an item of a line.
func (t *talk) add(l history.FileLine, item history.Item) {
	item.At, item.Line = l.At, l.Number
	t.whole.Items = append(t.whole.Items, item)
}

// message adds the items of a message: the results of calls, each for itself, and what else it says. One whose id was
// written before replaces that.
func (t *talk) message(l history.FileLine, o jsonx.Object, at session.Time) {
	m, id := o.Inner("message"), cmp.Or(o.String("id"), history.LineKey(l.Bytes))
	if m.String("hookEventName") != "" {
		t.in.SkipAt(l.At, skipSide, 1)
		return
	}
	items := t.itemsOf(id, m, at)
	if len(items) == 0 {
		t.in.SkipAt(l.At, skipEmpty, 1)
		return
	}
	before, again := t.items[id]
	if again && len(before) == len(items) {
		for i, at := range before {
			items[i].At, items[i].Line = t.whole.Items[at].At, l.Number
			t.whole.Items[at] = items[i]
		}
		t.in.SkipAt(l.At, history.SkipDuplicate, 1)
		return
	}
	for i := range items {
		items[i].NoRecords = i > 0
		t.items[id] = append(t.items[id], len(t.whole.Items))
		t.add(l, items[i])
		t.last[id] = items[i].Key
	}
}

func (t *talk) itemsOf(id string, m jsonx.Object, at session.Time) (items []history.Item) {
	content := m.Get("content")
	var said []session.Part
	for i, p := range history.Blocks(content) {
		switch {
		case p.Kind != session.PartToolResult:
			if i > 0 && strings.HasPrefix(p.Text, "Contents of ") && p.Kind == session.PartText {
				name, _, _ := strings.Cut(strings.TrimPrefix(p.Text, "Contents of "), " (lines ")
				p.Extra = jsonx.Object{jsonx.MemberOf("attachment", history.Plain(name))}.Column()
			}
			said = append(said, p)
		case p.Text != "__TOOL_RESULT_PENDING__":
			if p.IsError == nil && strings.HasPrefix(p.Text, "Error:") {
				p.IsError = new(true) // older builds say it in the text alone
			}
			items = append(items, history.Item{Key: "result/" + p.CallID, Message: history.Say(session.Tool, at, p)})
		}
	}
	item := history.Item{Key: id}
	role, visible := m.String("role"), m.String("visibility")
	if role == "assistant" && len(said) > 0 && said[0].Kind != session.PartReasoning {
		thought := cmp.Or(m.String("openaiReasoningSummary"), m.String("chatCompletionReasoningContent"))
		if thought != "" {
			said = append([]session.Part{{Kind: session.PartReasoning, Text: thought}}, said...)
		}
	}
	switch {
	case len(said) == 0:
		return items
	case role == "assistant":
		item.Message = history.Say(session.Assistant, at, said...)
		item.Message.Model = cmp.Or(m.String("modelId"), t.settings.String("model"))
		item.Message.Provider = cmp.Or(m.String("apiProvider"), t.settings.String("providerLock"))
	case visible == "user_only" || role == "system" && visible != "llm_only":
		item.Message = history.Note(at, (&session.Message{Parts: said}).Text())
	case role != "user" || visible == "llm_only" || isReminder(said):
		item.Message = history.Hint(at, said...)
	default:
		item.Message = history.Say(session.User, at, said...)
		if t.whole.New.Kind == "subagent" && len(t.whole.Items) == 0 {
			item.Message.Origin = session.Program // its task
		}
	}
	return append(items, item)
}

// isReminder reports whether a message holds nothing but reminders of the program.
func isReminder(parts []session.Part) bool {
	for _, p := range parts {
		text := p.Text
		for p.Kind == session.PartText && strings.Contains(text, "<system-reminder>") {
			before, rest, _ := strings.Cut(text, "<system-reminder>")
			_, after, closed := strings.Cut(rest, "</system-reminder>")
			if text = before + after; !closed {
				break
			}
		}
		if p.Kind != session.PartText || strings.TrimSpace(text) != "" {
			return false
		}
	}
	return true
}

// compaction adds a summary of the messages up to its anchor. At the beginning of a session it stands for the
// conversation that this one goes on with.
func (t *talk) compaction(l history.FileLine, o jsonx.Object, at session.Time) {
	text := o.String("summaryText")
	if text == "" || o.String("summaryKind") == "provider_switch_serialization" {
		t.in.SkipAt(l.At, skipSwitch, 1)
		return
	}
	w, id := &t.whole, cmp.Or(o.String("id"), history.LineKey(l.Bytes))
	item := history.Item{Key: id, Message: history.Note(at, text)}
	made := &history.Compaction{Key: id, Record: history.Place{Key: id}}
	made.Summary, made.CreatedAt = text, at
	anchor := t.last[o.Inner("anchorMessage").String("id")]
	switch {
	case len(w.Items) == 0:
		if made.ThroughKey = t.headOfParent(); made.ThroughKey == "" { // that is not here
			item.Message, made = history.Hint(at, session.TextPart(text)), nil
		}
		w.After = cmp.Or(w.After, t.headOfParent())
	case anchor == "":
		made.ThroughKey = w.Items[len(w.Items)-1].Key
	default:
		made.ThroughKey, made.FirstKeptKey = anchor, t.behind(anchor)
	}
	item.Summary = made
	t.add(l, item)
}

// behind returns the key of the item behind another one, "" for the last one.
func (t *talk) behind(key string) string {
	for i := range t.whole.Items[:len(t.whole.Items)-1] {
		if t.whole.Items[i].Key == key {
			return t.whole.Items[i+1].Key
		}
	}
	return ""
}

// headOfParent returns the key of the last message of the session that this one goes on with.
func (t *talk) headOfParent() string {
	if len(t.whole.Origins) == 0 || t.whole.Origins[0].Head == nil || t.header.String("forkedAtMessageId") != "" {
		return ""
	}
	if m := t.in.Load(*t.whole.Origins[0].Head); m != nil {
		return m.ExternalID
	}
	return ""
}

// readSettings counts what a session used. The file has sums, which only grow; those of a session that `/compact` made
// begin with the sums of its parent.
func readSettings(in *history.Intake) {
	text := in.Bytes(0, in.Found.Size)
	o, ok := jsonx.ReadObject(history.Unmarked(text))
	id := history.Plain(nameOf(in.Found.Path))
	switch {
	case in.Err() != nil:
		return
	case !ok && !in.Quiet():
		in.LookAgain() // it is being written
		return
	case !ok:
		in.Fail(session.Errorf(session.Invalid, "no settings of a session of Droid, or cut off"))
		return
	}
	here := in.Session(id)
	if here == nil {
		in.Await(id)
		in.Skip("settings of a session that is not here", 1)
		return
	}
	talk := in.Conversation(history.NewSession{Source: session.SourceDroid, SourceID: id})
	talk.Change().ArchivedAt = history.KnownTime(o.Get("archivedAt"))
	call, isKnown := usageOf(filepath.Dir(in.Found.Path), id, o)
	if !isKnown || call.ContextTokens()+call.OutputTokens == 0 {
		in.Skip("settings without usage of its own", 1)
		return
	}
	models := map[string]bool{}
	call.CreatedAt = here.CreatedAt
	in.Entries(here.ID, func(m *session.Message) bool {
		call.CreatedAt = m.CreatedAt
		if m.Model != "" {
			models[m.Model] = true
		}
		return true
	})
	note := map[string]string{"sum": "of the session"}
	if len(models) > 1 {
		note["models"] = fmt.Sprintf("%d; the last one is named", len(models))
	}
	call.Metadata, call.Directory = session.JSONOf(note), here.Directory
	if in.CallOwner(call.ExternalID) == nil {
		in.Import(1)
	} else {
		in.Skip(history.SkipKnown, 1)
	}
	talk.Call(call)
}

// usageOf returns what a session used itself. It is not known where what the session inherited is not.
func usageOf(folder, id string, settings jsonx.Object) (c history.Call, isKnown bool) {
	c.ExternalID = "droid:" + id
	c.Model, c.Provider = history.Plain(settings.String("model")), history.Plain(settings.String("providerLock"))
	add := func(settings jsonx.Object, sign int64) {
		used := settings.Inner("tokenUsage")
		for key, to := range map[string]*int64{
			"inputTokens": &c.InputTokens, "outputTokens": &c.OutputTokens,
			"cacheReadTokens": &c.CacheReadTokens, "cacheCreationTokens": &c.CacheWriteTokens,
		} {
			*to = max(0, *to+sign*history.Count(used.Get(key)))
		}
	}
	add(settings, 1)
	parent, inherits := inheritsFrom(filepath.Join(folder, id+linesEnd))
	if !inherits {
		return c, true
	}
	before := settingsOf(folder, parent)
	add(before, -1)
	return c, before != nil
}

// inheritsFrom returns the session whose sums a session began with: its second line is a compaction without an anchor.
func inheritsFrom(path string) (parent string, inherits bool) {
	const size = 256 << 10
	head, _ := history.Head(path, size) // what could be read
	first, rest, _ := strings.Cut(string(head), "\n")
	second, _, _ := strings.Cut(rest, "\n")
	o, _, _ := history.ParseLine([]byte(first))
	next, _, _ := history.ParseLine([]byte(second))
	isCompact := next.String("type") == "compaction_state" && next.Inner("anchorMessage") == nil ||
		strings.HasPrefix(second, `{"type":"compaction_state"`) && next == nil // a summary that is too long for the head
	parent = o.String("parent")
	return parent, isCompact && parent != "" && o.String("forkedAtMessageId") == ""
}
