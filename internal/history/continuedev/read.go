package continuedev

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Reasons to skip that only these sessions have.
const (
	skipResult = "result stored with its call"
	skipEmpty  = "message without words"
	skipOlder  = "older state of a stored session"
)

// notTitles are the titles of a session that has none.
var notTitles = []string{"New Session", "Untitled Session"}

// talk is a session on its way into the store.
type talk struct {
	in      *history.Intake
	reader  *reader
	whole   history.Whole
	about   jsonx.Object // the members of the session, without its history
	here    *session.Session
	names   history.Repeats
	entries int    // of its history
	chain   string // key of the message before
	thought []session.Part
	waiting int             // records of thought
	results map[string]bool // calls that have a result
	named   bool            // its messages have ids: the extension wrote it
	calls   []history.Call
}

// read reads a session.
func (r *reader) read(in *history.Intake) {
	t := &talk{in: in, reader: r, names: history.Repeats{}, results: map[string]bool{}}
	hasHistory := false
	err := in.Document("history", func(name string, isEntry bool, value jsontext.Value) error {
		switch {
		case isEntry && name != "":
			t.entry(value)
			t.entries++
		case name == "history":
			hasHistory = true
		case name != "":
			t.about = append(t.about, jsonx.Member{Key: name, Value: value})
		}
		return nil
	})
	switch {
	case err != nil && !in.Quiet():
		in.LookAgain() // it is being written
	case err != nil:
		in.Fail(session.Errorf(session.Invalid, "no session of Continue, or cut off: %w", err))
	case !hasHistory:
		in.Fail(session.Errorf(session.Invalid, "no session of Continue: it has no list `history`"))
	default:
		t.store()
	}
}

// store stores the session.
func (t *talk) store() {
	t.endThought()
	w := &t.whole
	w.Records = 1
	id := strings.TrimSuffix(filepath.Base(t.in.Found.Path), ".json")
	w.New.SourceID = history.Plain(cmp.Or(t.about.String("sessionId"), id))
	w.New.CreatedAt = t.reader.createdAt(filepath.Dir(t.in.Found.Path), w.New.SourceID)
	w.New.Directory = history.FolderOfURI(t.about.String("workspaceDirectory"))
	if w.Title = t.about.String("title"); slices.Contains(notTitles, w.Title) {
		w.Title = ""
	}
	t.here = t.in.Session(w.New.SourceID)
	total, isKnown := t.total()
	const noted = "promptTokens" // all that the session ever used: it only grows
	if history.Count(history.Notes(t.here, string(session.SourceContinue)).Get(noted)) > total.prompt {
		t.in.Skip(skipOlder, 1+t.entries)
		return
	}
	if isKnown {
		w.Notes = append(w.Notes, jsonx.MemberOf(noted, total.prompt))
	}
	t.origin()
	t.follow()
	t.ledger(total, isKnown)
	for _, name := range []string{"mode", "chatModelTitle"} {
		if text := t.about.String(name); text != "" {
			w.Notes = append(w.Notes, jsonx.MemberOf(name, history.Plain(text)))
		}
	}
	if n := len(w.Items); n > 0 && w.Items[n-1].Message.Role == session.Assistant {
		w.Items[n-1].Open = true // the CLI writes a reply before its calls are done
	}
	t.in.AddWhole(w)
}

// follow finds what the first message follows, and when messages were said that are stored. Of a conversation that
// the CLI compacted nothing but the summary is left: that follows what was stored of it before.
func (t *talk) follow() {
	items := t.whole.Items
	if len(items) == 0 {
		return
	}
	if last := &items[len(items)-1]; last.Message.CreatedAt.IsZero() { // no other has a time that is known
		last.Message.CreatedAt = session.At(t.in.Found.ModifiedAt)
		last.Extra = append(last.Extra, jsonx.MemberOf("time", "of the file"))
	}
	if t.here == nil {
		t.begin()
		return
	}
	times, keys, parents := map[string]session.Time{}, map[session.MessageRef]string{}, map[string]string{}
	t.in.Entries(t.here.ID, func(m *session.Message) bool {
		keys[m.ID], times[m.ExternalID] = m.ExternalID, m.CreatedAt
		if m.Parent != nil {
			parents[m.ExternalID] = keys[*m.Parent]
		}
		return true
	})
	for i := range items {
		if at, ok := times[items[i].Key]; ok {
			items[i].Message.CreatedAt = at
		}
	}
	first := items[0].Key
	if _, isStored := times[first]; isStored {
		t.whole.After = parents[first]
	} else if items[0].Summary != nil && t.here.Head != nil && t.original(first) == nil {
		t.whole.After = keys[*t.here.Head]
	}
	t.begin()
}

// original returns the message of a session that this one was forked from; nil: none of them has it.
func (t *talk) original(key string) *session.Message {
	for _, origin := range t.whole.Origins {
		for s := range t.in.Line(origin) {
			if ref := t.in.Message(s.ID, key); ref != nil {
				return t.in.Load(*ref)
			}
		}
	}
	return nil
}

// begin makes a summary at the beginning an overlay of what it follows; where that was never imported, the
// conversation begins with it.
func (t *talk) begin() {
	first := &t.whole.Items[0]
	original := t.original(first.Key)
	switch {
	case first.Summary == nil || first.Summary.ThroughKey == first.Key:
	case original != nil && original.Kind == session.KindMarker: // the origin has the overlay
		first.Summary = nil
	case t.whole.After == "":
		first.Message, first.Summary = history.Say(session.Assistant, first.Message.CreatedAt, first.Message.Parts...), nil
	default:
		first.Summary.ThroughKey = t.whole.After
	}
}

// entry adds the items of an entry of the history.
func (t *talk) entry(value jsontext.Value) {
	o, ok := jsonx.ReadFields(value)
	m := o.Inner("message")
	role := m.String("role")
	switch {
	case !ok || m == nil || jsonx.DeeperThan(value, history.MaxDepth):
		t.raw(value, "no message of a known form, or nested too deep")
	case role == "thinking":
		t.think(m)
	case role == "user":
		t.prompt(o, m)
	case role == "assistant":
		t.reply(o, m)
	case role == "tool":
		t.result(m)
	case role == "system":
		t.add(m, role, history.Say(session.System, session.Time{}, history.Blocks(m.Get("content"))...))
	default:
		t.raw(value, "a message whose role is not known")
	}
}

func (t *talk) raw(value jsontext.Value, why string) {
	t.endThought()
	key := t.names.Key(history.LineKey(value))
	t.whole.Items = append(t.whole.Items, history.RawItem(key, value, why, session.Time{}))
}

// add adds a message. One without an id is named after what it and all before it say, so that a fork's copies have
// the names of the originals.
func (t *talk) add(m jsonx.Object, role string, message session.Message) *history.Item {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n", t.chain, role)
	for i := range message.Parts {
		p := &message.Parts[i]
		fmt.Fprintf(sum, "%s %s %d %s\n", p.Kind, p.CallID, len(p.Text), p.Text)
	}
	t.chain = hex.EncodeToString(sum.Sum(nil)[:12])
	if id := m.String("id"); id != "" {
		t.chain, t.named = t.names.Key(id), true
	}
	t.whole.Items = append(t.whole.Items, history.Item{Key: t.chain, Message: message})
	return &t.whole.Items[len(t.whole.Items)-1]
}

// think keeps what a model thought for its reply, which is the next message.
func (t *talk) think(m jsonx.Object) {
	t.waiting++
	p := session.Part{Kind: session.PartReasoning, Text: history.TextOf(m.Get("content"))}
	p.Extra = m.Only("signature", "redactedThinking").Column()
	t.thought = append(t.thought, p)
}

// endThought adds what a model thought before it was stopped.
func (t *talk) endThought() {
	if len(t.thought) > 0 {
		said := history.Say(session.Assistant, session.Time{})
		said.Finish = session.FinishAborted
		t.say(nil, said)
	}
}

// say adds a reply with what was thought before it.
func (t *talk) say(m jsonx.Object, said session.Message) *history.Item {
	said.Parts = append(t.thought, said.Parts...)
	item := t.add(m, "assistant", said)
	item.Records = 1 + t.waiting
	if m == nil {
		item.Records = t.waiting
	}
	t.thought, t.waiting = nil, 0
	return item
}

// prompt adds what a person typed, with the files and texts that the program attached.
func (t *talk) prompt(o, m jsonx.Object) {
	t.endThought()
	parts := history.Blocks(m.Get("content"))
	for _, c := range jsonx.ReadObjects(o.Get("contextItems")) {
		p := session.Part{Kind: session.PartData, Text: c.String("content")}
		file := history.FolderOfURI(c.Inner("uri").String("value"))
		p.Extra = jsonx.NewObject("path", history.Plain(cmp.Or(file, c.String("name")))).Column()
		parts = append(parts, p)
	}
	if len(parts) == 0 {
		t.in.Skip(skipEmpty, 1)
		return
	}
	item := t.add(m, "user", history.Say(session.User, session.Time{}, parts...))
	t.summary(o, item)
}

// reply adds a reply of the model, and the results of its calls.
func (t *talk) reply(o, m jsonx.Object) {
	var parts []session.Part
	thought := o.Inner("reasoning") // taken out of the text
	if text := thought.String("text"); text != "" {
		parts = append(parts, session.Part{Kind: session.PartReasoning, Text: text})
	}
	parts = append(parts, history.Blocks(m.Get("content"))...)
	for _, call := range jsonx.ReadObjects(m.Get("toolCalls")) {
		f := call.Inner("function")
		parts = append(parts, history.CallPart(call.String("id"), f.String("name"), f.Get("arguments")))
	}
	text := history.TextOf(m.Get("content"))
	if summary := o.String("conversationSummary"); summary != "" && summary == text {
		t.replaced(m, summary)
		return
	}
	if len(parts) == 0 && len(t.thought) == 0 {
		t.in.Skip(skipEmpty, 1)
		return
	}
	used := m.Inner("usage")
	said := history.Say(session.Assistant, history.TimeOf(thought.Get("startAt")), parts...)
	said.Model = used.String("model")
	item := t.say(m, said)
	key := item.Key
	t.summary(o, item)
	if c, ok := t.call(used); ok {
		c.MessageKey, c.ExternalID = key, key
		t.calls = append(t.calls, c)
	}
	for _, state := range jsonx.ReadObjects(o.Get("toolCallStates")) {
		t.answer(key, state)
	}
}

// replaced adds the summary that the CLI leaves of a conversation.
func (t *talk) replaced(m jsonx.Object, text string) {
	t.endThought()
	through := t.chain
	item := t.add(m, "summary", history.Note(session.Time{}, text))
	item.Summary = &history.Compaction{ThroughKey: through, Record: history.Place{Key: item.Key}}
	item.Summary.Key, item.Summary.Summary = item.Key, text
}

// summary makes the summary that the extension keeps at a message an overlay of all up to it.
func (t *talk) summary(o jsonx.Object, item *history.Item) {
	text := o.String("conversationSummary")
	if text == "" {
		return
	}
	item.Summary = &history.Compaction{ThroughKey: item.Key, Record: history.Place{Key: item.Key}}
	item.Summary.Key, item.Summary.Summary = item.Key, text
}

// answer adds the result of a call. A call that nobody ran has none.
func (t *talk) answer(reply string, state jsonx.Object) {
	id, status := state.String("toolCallId"), state.String("status")
	isDone := status == "done"
	if t.results[id] || !isDone && status != "errored" && status != "canceled" {
		return
	}
	var texts []string
	for _, output := range jsonx.ReadObjects(state.Get("output")) {
		texts = append(texts, output.String("content"))
	}
	if len(texts) == 0 && !isDone {
		texts = append(texts, status)
	}
	name := state.Inner("toolCall").Inner("function").String("name")
	t.addResult(reply+"/"+id, history.ResultPart(id, name, strings.Join(texts, "\n"), new(!isDone)), true)
}

// result adds the result of a call that is a message, unless it stands beside the call, too.
func (t *talk) result(m jsonx.Object) {
	t.endThought()
	id := m.String("toolCallId")
	if t.results[id] {
		t.in.Skip(skipResult, 1)
		return
	}
	key := cmp.Or(m.String("id"), t.chain+"/"+id)
	t.addResult(key, history.ResultPart(id, "", history.TextOf(m.Get("content")), nil), false)
}

func (t *talk) addResult(key string, p session.Part, isBeside bool) {
	t.results[p.CallID] = true
	t.whole.Items = append(t.whole.Items, history.Item{
		Key: t.names.Key(key), Message: history.Say(session.Tool, session.Time{}, p), NoRecords: isBeside,
	})
}
