package geminicli

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// header is what a file says of its session. Source: chatRecordingTypes.ts, ConversationRecord.
type header struct {
	SessionID   string `json:"sessionId"`
	ProjectHash string `json:"projectHash"`
	StartTime   string `json:"startTime"`
	Kind        string `json:"kind"` // main or subagent
	Summary     string `json:"summary"`
}

// message is a message as Gemini CLI keeps it. Source: chatRecordingTypes.ts, MessageRecord.
type message struct {
	ID        string         `json:"id"`
	Timestamp string         `json:"timestamp"`
	Type      string         `json:"type"` // user, gemini, info, warning, error
	Content   jsontext.Value `json:"content"`
	Model     string         `json:"model"`
	Thoughts  jsontext.Value `json:"thoughts"`
	Tokens    jsontext.Value `json:"tokens"`
	ToolCalls jsontext.Value `json:"toolCalls"`
	Rest      jsontext.Value `json:",embed"` // the other fields, as displayContent
}

// line is a line of a file of generation 2: a message, or what the other fields say.
type line struct {
	message
	Rewind *string `json:"$rewindTo"`
	Set    *struct {
		Summary  string           `json:"summary"`
		Messages []jsontext.Value `json:"messages"`
	} `json:"$set"`
	Session string `json:"sessionId"` // of a header

	at     history.FileLine
	broken bool // it is no JSON, or of another form
}

// document is a file of generation 1.
type document struct {
	header
	Messages []jsontext.Value `json:"messages"`
}

// entry is a message, in its newest state, and where it stands.
type entry struct {
	message
	raw    []byte  // of a line that is no message: what it is
	why    string  // and what is wrong with it
	parent *entry  // nil: it is the first
	lines  []place // those that hold it; none: it came in a list
	list   place   // the line of that list
	calls  []call  // of a reply
	at     session.Time
	aside  bool // it is a part of a compaction, and no message
	grown  bool // an earlier reading may have imported it with the beginning of its text
	longer bool // an earlier reading did

	repeats bool // it repeats a conversation that was handed over, and is not stored
}

type place struct {
	offset int64
	number int
}

// compaction says that Gemini CLI put a summary in the place of the beginning of its list.
type compaction struct {
	summary *entry
	through *entry // the last one that it stands for
	kept    *entry // the first one that stayed; nil: none
}

// folded is a file, read to its end.
type folded struct {
	header
	all         []*entry // in the order in which they came
	list        []*entry // the conversation as it is now
	byKey       map[string]*entry
	byCall      map[string]*entry // replies by the ids of their calls
	compactions []compaction
	last        session.Time
	base        string // key of the last message of the conversation that was handed over; "": none was
}

func newFolded(h header) *folded {
	f := &folded{header: h, byKey: map[string]*entry{}, byCall: map[string]*entry{}}
	f.last, _ = history.ParseTime(h.StartTime)
	return f
}

func (m *message) name() string { return m.Type + "/" + history.Plain(m.ID) }

func (f *folded) end() *entry {
	if len(f.list) == 0 {
		return nil
	}
	return f.list[len(f.list)-1]
}

// add puts a new entry at the end of the conversation.
func (f *folded) add(e *entry) {
	if at, ok := history.ParseTime(e.Timestamp); ok {
		f.last = at
	}
	e.at, e.parent = f.last, f.end()
	f.all, f.list = append(f.all, e), append(f.list, e)
	if e.raw == nil {
		f.byKey[e.name()] = e
		f.learnCalls(e)
	}
}

func (f *folded) learnCalls(e *entry) {
	if e.calls = nil; jsonx.Unmarshal(e.ToolCalls, &e.calls) != nil {
		e.calls = nil
	}
	for _, c := range e.calls {
		f.byCall[c.ID] = e
	}
}

// keep adds what is no message, as it stands.
func (f *folded) keep(raw []byte, why string, at place) {
	f.add(&entry{raw: raw, why: why, lines: []place{at}})
}

// repeat takes a message that repeats a conversation which was handed over: what follows it, and the lists in which
// Gemini CLI writes it again, need it.
func (f *folded) repeat(l *history.FileLine) {
	var m message
	if jsonx.Unmarshal(l.Bytes, &m) == nil && m.ID != "" {
		f.add(&entry{message: m, repeats: true})
	}
}

// message takes a message of a line. carrier says that it only repeats results of calls.
func (f *folded) message(m message, at place) (carrier bool) {
	if before := f.byKey[m.name()]; before != nil {
		before.update(&m)
		before.lines = append(before.lines, at)
		f.learnCalls(before)
		return false
	}
	if f.carries(&m) {
		return true
	}
	f.add(&entry{message: m, lines: []place{at}})
	return false
}

// update takes the newer state of a message. What it lacks the older one keeps: a resumed
// session writes its replies again without their calls, thoughts and tokens.
func (e *entry) update(m *message) {
	before := e.message
	e.message = *m
	if now, then := textOf(m), textOf(&before); now != then && strings.HasPrefix(now, then) {
		e.grown = true
	}
	for _, f := range []struct{ now, before *jsontext.Value }{
		{&e.ToolCalls, &before.ToolCalls}, {&e.Thoughts, &before.Thoughts}, {&e.Tokens, &before.Tokens},
	} {
		if isEmpty(*f.now) {
			*f.now = *f.before
		}
	}
	if totalOf(before.Tokens) > totalOf(e.Tokens) { // a reply used what it used, whatever is said later
		e.Tokens = before.Tokens
	}
	if e.Model == "" {
		e.Model = before.Model
	}
	if !isEmpty(before.ToolCalls) || isEmpty(e.Content) { // the calls would stand among its parts, too
		e.Content = before.Content
	}
}

// totalOf returns the tokens of a prompt and its reply.
func totalOf(tokens jsontext.Value) int64 {
	fields, _ := jsonx.ReadFields(tokens)
	return history.Count(fields.Get("input")) + history.Count(fields.Get("output")) + history.Count(fields.Get("thoughts"))
}

func isEmpty(v jsontext.Value) bool {
	switch string(v) {
	case "", "null", "[]", "{}", `""`:
		return true
	}
	return false
}

// carries reports whether a user's message holds nothing but results of calls that are known: they
// go with the calls.
func (f *folded) carries(m *message) bool {
	if m.Type != "user" {
		return false
	}
	parts := partsOf(m.Content)
	for _, p := range parts {
		if p.Response == nil {
			return false
		}
		e := f.byCall[p.Response.ID]
		if e == nil {
			return false
		}
		for i := range e.calls {
			if c := &e.calls[i]; c.ID == p.Response.ID && isEmpty(c.Result) {
				c.Result = m.Content
			}
		}
	}
	return len(parts) > 0
}

// rewind takes a message and all behind it out of the conversation; one that is not known: all.
func (f *folded) rewind(id string) {
	f.list = f.list[:max(0, slices.IndexFunc(f.list, func(e *entry) bool { return e.ID == id }))]
}

// replace puts a list in the place of the conversation. Messages that are in it again, under
// their ids or under new ones, stay what they are.
func (f *folded) replace(values []jsontext.Value, at place) {
	before, used := f.list, map[*entry]bool{}
	var fresh []*entry
	f.list = nil
	for _, v := range values {
		var m message
		if jsonx.Unmarshal(v, &m) != nil || jsonx.DeeperThan(v, history.MaxDepth) || f.carries(&m) {
			continue
		}
		e := f.byKey[m.name()]
		if e == nil {
			if e = alike(before, used, &m); e != nil {
				f.byKey[m.name()] = e // the copy has a name of its own
			}
		}
		if e != nil {
			used[e] = true
			if !e.aside {
				f.list = append(f.list, e)
			}
			continue
		}
		e = &entry{message: m, list: at}
		f.add(e)
		fresh = append(fresh, e)
	}
	f.compact(before, used, fresh)
}

// alike finds the newest message of a list that says the same as m.
func alike(list []*entry, used map[*entry]bool, m *message) *entry {
	text := textOf(m)
	for _, e := range slices.Backward(list) {
		if !used[e] && text != "" && e.raw == nil && e.Type == m.Type && textOf(&e.message) == text {
			return e
		}
	}
	return nil
}

// compact recognises a compaction: messages are missing from the beginning of the new list, and
// a new one of the user stands there, which is the summary, mostly with an answer to it.
func (f *folded) compact(before []*entry, kept map[*entry]bool, fresh []*entry) {
	var c compaction
	for _, e := range before {
		switch {
		case kept[e] && c.through == nil: // the context message
		case kept[e]:
			if c.kept == nil {
				c.kept = e
			}
		case c.kept == nil:
			c.through = e
		}
	}
	if i := slices.IndexFunc(fresh, func(e *entry) bool { return e.Type == "user" && !isContext(&e.message) }); i >= 0 {
		c.summary = fresh[i]
	}
	if c.through == nil || c.summary == nil {
		return
	}
	f.compactions = append(f.compactions, c)
	// The summary and its answer are the overlay, not messages: what follows hangs on what stayed.
	for _, e := range fresh {
		e.aside = true
	}
	f.all = slices.DeleteFunc(f.all, func(e *entry) bool { return e.aside })
	f.list = nil
	for _, e := range f.all {
		if kept[e] {
			f.list = append(f.list, e)
		}
	}
	if c.kept == nil {
		f.list = append(f.list, c.through)
	}
}

// isContext reports whether a message is the one with which Gemini CLI begins a session.
func isContext(m *message) bool { return strings.HasPrefix(textOf(m), "<session_context>") }
