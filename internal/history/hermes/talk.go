package hermes

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Reasons to skip that only Hermes's sessions have.
const (
	skipMeta  = "settings of the session"
	skipCopy  = "copy that a compaction made"
	skipEmpty = "message without words"
	skipBoth  = "file of a session that the database has"
)

// talk is a session on its way into the store.
type talk struct {
	in      *history.Intake
	whole   history.Whole
	link    link
	profile string
	keys    history.Repeats
	entries []entry
	places  map[string]int    // of entries, by all that a row says
	results map[string]string // of calls, as they are stored; nil: not looked up
}

// entry is a message with its state: in the context, summarised away, or undone.
type entry struct {
	item              history.Item
	active, compacted bool
	isSummary         bool
}

// row adds a message. One that says all that another one does is a copy of it, which a compaction carried over.
func (t *talk) row(r history.Row) {
	said := fmt.Sprintf("%q", []string{
		r.Get("role"), r.Get("content"), r.Get("timestamp"), r.Get("tool_call_id"), r.Get("tool_calls"), r.Get("tool_name"),
	})
	active, compacted := r.Get("active") != "0", r.Get("compacted") == "1"
	if at, again := t.places[said]; again {
		if e := &t.entries[at]; active {
			e.active, e.compacted = true, false
		}
		t.in.Skip(skipCopy, 1)
		return
	}
	e, ok := t.entryOf(r)
	if !ok {
		return
	}
	e.active, e.compacted = active, compacted
	if t.places == nil {
		t.places = map[string]int{}
	}
	t.places[said] = len(t.entries)
	t.entries = append(t.entries, e)
}

// Beginnings of texts that the program wrote.
const (
	startSummary = "[CONTEXT COMPACTION"
	startSkill   = "[SYSTEM: The user has invoked"
	startReview  = "Review the conversation above and "
	cleared      = "[Old tool output cleared to save context space]"
	jsonMark     = "\ufffdjson:" // stands for a NUL and json:
)

// entryOf reads a message, whose name is made of what it says: a repaired database numbers its rows anew.
func (t *talk) entryOf(r history.Row) (e entry, ok bool) {
	at, role := timeOf(r.Get("timestamp")), r.Get("role")
	parts := contentOf(r.Get("content"))
	text := strings.TrimSpace((&session.Message{Parts: parts}).Text())
	item := &e.item
	switch role {
	case "session_meta":
		t.in.Skip(skipMeta, 1)
		return e, false
	case "assistant":
		parts = replyOf(r, parts)
	case "tool":
		parts = []session.Part{t.resultOf(r)}
	}
	if len(parts) == 0 {
		t.in.Skip(skipEmpty, 1)
		return e, false
	}
	e.isSummary = r.Get("_compressed_summary") == "1" || strings.HasPrefix(text, startSummary) && role != "tool"
	switch {
	case e.isSummary:
		item.Message = history.Note(at, text)
	case role == "assistant":
		item.Message = history.Say(session.Assistant, at, parts...)
		item.Message.Model, item.Message.Provider = t.whole.New.Model, t.whole.New.Provider
		if end, ok := finishes[r.Get("finish_reason")]; ok {
			item.Message.Finish = end
		}
	case role == "tool":
		item.Message = history.Say(session.Tool, at, parts...)
	case role == "system":
		item.Message = history.Say(session.System, at, parts...)
	case r.Get("display_kind") == "hidden", strings.HasPrefix(text, startReview):
		item.Message = history.Hint(at, parts...)
	default:
		item.Message = history.Say(session.User, at, parts...)
		if r.Get("observed") == "1" || strings.HasPrefix(text, startSkill) || // nobody asked the agent
			t.whole.New.Kind == "subagent" && len(t.entries) == 0 { // its task
			item.Message.Origin = session.Program
		}
	}
	if given := r.Get("api_content"); given != "" && given != r.Get("content") && given != r.Get("reasoning") {
		item.Extra = append(item.Extra, jsonx.MemberOf("api_content", given)) // what the model really got
	}
	sum := sha256.Sum256([]byte(fmt.Sprintf("%q", []string{role, r.Get("content"), r.Get("tool_calls")})))
	key := role + "/" + hex.EncodeToString(sum[:8])
	if call := r.Get("tool_call_id"); role == "tool" && call != "" {
		key = "result/" + call // whose text may be cleared later
	}
	item.Key = t.keys.Key(key)
	return e, true
}

var finishes = map[string]session.Finish{
	"length": session.FinishLength, "content_filter": session.FinishRefusal,
}

// contentOf reads a text, or a list of parts behind a NUL and json:, which the reading of rows made a mark.
func contentOf(text string) []session.Part {
	if list, isMarked := strings.CutPrefix(text, jsonMark); isMarked && jsonx.KindOf([]byte(list)) == '[' &&
		jsonx.Valid([]byte(list)) && !jsonx.DeeperThan([]byte(list), history.MaxDepth) {
		return history.Blocks(jsontext.Value(list))
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []session.Part{session.TextPart(text)}
}

// replyOf returns the parts of a reply. What it thought stands in up to four columns, its text sometimes in the items
// of Codex alone.
func replyOf(r history.Row, parts []session.Part) []session.Part {
	thought := cmp.Or(r.Get("reasoning"), r.Get("reasoning_content"))
	if thought == "" {
		var texts []string
		for _, o := range jsonx.ReadObjects([]byte(r.Get("reasoning_details"))) {
			texts = append(texts, cmp.Or(o.String("text"), o.String("summary")))
		}
		thought = strings.TrimSpace(strings.Join(texts, "\n"))
	}
	if len(parts) == 0 {
		for _, o := range jsonx.ReadObjects([]byte(r.Get("codex_message_items"))) {
			if o.String("type") == "message" {
				parts = append(parts, history.Blocks(o.Get("content"))...)
			}
		}
	}
	if thought != "" {
		parts = append([]session.Part{{Kind: session.PartReasoning, Text: thought}}, parts...)
	}
	return append(parts, callsOf(jsontext.Value(r.Get("tool_calls")))...)
}

// callsOf reads calls: a list, one alone, or a text that holds either.
func callsOf(raw jsontext.Value) (parts []session.Part) {
	if text, isText := jsonx.Text(raw); isText {
		raw = jsontext.Value(text)
	}
	list := jsonx.ReadObjects(raw)
	if o, ok := jsonx.ReadFields(raw); ok {
		list = []jsonx.Object{o}
	}
	for _, o := range list {
		function := o.Inner("function")
		if function == nil {
			function = o
		}
		parts = append(parts, history.CallPart(cmp.Or(o.String("id"), o.String("call_id")), function.String("name"),
			function.Get("arguments")))
	}
	return parts
}

// resultOf reads a result. That it failed is known where it is JSON alone. The text of an old one may be cleared:
// what is stored stays.
func (t *talk) resultOf(r history.Row) session.Part {
	call, text := r.Get("tool_call_id"), r.Get("content")
	if text == cleared {
		text = cmp.Or(t.stored()[call], text)
	}
	p := history.ResultPart(call, r.Get("tool_name"), text, nil)
	if parts := contentOf(text); len(parts) == 1 && parts[0].Kind != session.PartText {
		p.Extra = jsonx.NewObject("content", "not a text").Column()
	}
	if o, ok := jsonx.ReadFields([]byte(text)); ok {
		exit, isExit := history.Number(o.Get("exit_code"))
		p.IsError = new(isExit && exit != 0 || o.String("error") != "")
	}
	return p
}

// stored returns what the results of the session said when they were imported.
func (t *talk) stored() map[string]string {
	if t.results == nil {
		t.results = map[string]string{}
		if here := t.in.Session(t.whole.New.SourceID); here != nil {
			t.in.Entries(here.ID, func(m *session.Message) bool {
				for _, p := range m.Results() {
					if p.Text != cleared {
						t.results[p.CallID] = p.Text
					}
				}
				return true
			})
		}
	}
	return t.results
}

// end makes items of the entries: those that were undone are branches, and a summary hides what it stands for.
func (t *talk) end() {
	w := &t.whole
	var path []int // places of the items in the conversation
	undone := ""   // key of the last one, if the item before was undone
	for i := range t.entries {
		e := &t.entries[i]
		item := &e.item
		if item.Aside = !e.active && !e.compacted; item.Aside {
			if item.Message.Role != session.User {
				item.Parent = undone
			}
			undone = item.Key
		} else {
			undone = ""
			if e.isSummary {
				t.summarise(e, path)
			}
			path = append(path, i)
		}
		w.Items = append(w.Items, *item)
	}
}

// summarise makes an overlay of a summary: it hides the messages up to the last one that was summarised away. Alone at
// the beginning of a session it stands for the one that this one goes on with.
func (t *talk) summarise(e *entry, path []int) {
	item := &e.item
	made := &history.Compaction{Key: item.Key, Record: history.Place{Key: item.Key}}
	made.Summary, made.CreatedAt = item.Message.Text(), item.Message.CreatedAt
	if len(path) == 0 {
		if made.ThroughKey = t.headOfParent(); made.ThroughKey == "" { // that is not here
			item.Message = history.Hint(item.Message.CreatedAt, item.Message.Parts...)
			return
		}
		t.whole.After = made.ThroughKey
		item.Summary = made
		return
	}
	last := len(path) - 1
	for i := last; i >= 0; i-- {
		if t.entries[path[i]].compacted {
			last = i
			break
		}
	}
	made.ThroughKey = t.entries[path[last]].item.Key
	if last+1 < len(path) {
		made.FirstKeptKey = t.entries[path[last+1]].item.Key
	}
	item.Summary = made
}

// headOfParent returns the key of the last message of the session that this one goes on with.
func (t *talk) headOfParent() string {
	if t.link != isContinuation || len(t.whole.Origins) == 0 || t.whole.Origins[0].Head == nil {
		return ""
	}
	if m := t.in.Load(*t.whole.Origins[0].Head); m != nil {
		return m.ExternalID
	}
	return ""
}
