package cline

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// taskKey begins the keys of messages of a task.
const taskKey = "task/"

// task is a task of the classic store on its way into the store.
type task struct {
	in     *history.Intake
	id     string
	item   jsonx.Object // of the index
	events []jsonx.Object
	models []jsonx.Object // when which model was used
	whole  history.Whole
	isRoo  bool

	open    []string       // calls that have no result yet
	replies []string       // keys of replies, in order
	first   map[int]string // key of the first item of a message of the talk
	last    map[int]string // and of its last one
	folder  string         // that the messages name
}

// readTask reads the folder of a task.
func readTask(in *history.Intake, id string) {
	t := &task{
		in: in, id: id, isRoo: in.Source() == session.SourceRoo, first: map[int]string{}, last: map[int]string{},
	}
	name := talkName
	if !isThere(in, talkName) {
		name = oldTalkName
	}
	talk, ok := load(in, name)
	if !ok && isThere(in, name) {
		return // reported, or it is read again
	}
	if ok && jsonx.KindOf(talk) != '[' {
		in.Fail(session.Errorf(session.Invalid, "no task of %s: %s holds no list of messages", in.Source(), name))
		return
	}
	events, _ := load(in, eventsName)
	t.events = jsonx.ReadObjects(events)
	facts, _ := load(in, factsName)
	t.models = jsonx.ReadObjects(object(facts).Get("model_usage"))
	t.item = t.indexEntry()
	t.messages(jsonx.ReadObjects(talk))
	if !ok {
		t.fromEvents()
	}
	t.about()
	t.ledger()
	t.hiddenRange()
	in.AddWhole(&t.whole)
}

// indexEntry finds what the indexes say of the task.
func (t *task) indexEntry() jsonx.Object {
	if value, ok := load(t.in, itemName); ok {
		return object(value)
	}
	for _, name := range []string{"../_index.json", "../../state/taskHistory.json"} {
		text, err := history.ReadFile(filepath.Join(t.in.Found.Path, name))
		if err != nil {
			continue
		}
		for _, o := range append(jsonx.ReadObjects(text), jsonx.ReadObjects(object(text).Get("entries"))...) {
			if o.String("id") == t.id {
				return o
			}
		}
	}
	return nil
}

// about says what the task is.
func (t *task) about() {
	w := &t.whole
	w.Records = 1
	w.New.SourceID = t.id
	here := t.in.Session(history.Plain(t.id)) // a session of the new store may go on with the task
	w.Older = history.Notes(here, string(t.in.Source())).Get("source") != nil
	w.New.Directory = cmp.Or(t.item.String("cwdOnTaskInitialization"), t.item.String("workspace"), t.folder)
	extension := filepath.Base(filepath.Dir(filepath.Dir(t.in.Found.Path)))
	w.Notes = jsonx.Object{jsonx.MemberOf("task", history.Plain(extension))}
	if mode := t.item.String("mode"); mode != "" {
		w.Notes = append(w.Notes, jsonx.MemberOf("mode", history.Plain(mode)))
	}
	if len(t.events) > 0 {
		w.New.CreatedAt = history.KnownTime(t.events[0].Get("ts"))
	}
	if parent := t.item.String("parentTaskId"); parent != "" {
		said := t.item.String("task")
		w.ParentID, w.New.Kind = parent, "subagent"
		w.StartedIn = func(m *session.Message) string {
			for _, p := range m.Calls() {
				o, _ := jsonx.ReadObject([]byte(p.Arguments))
				if p.ToolName == "new_task" && strings.TrimSpace(o.String("message")) == strings.TrimSpace(said) {
					return p.CallID
				}
			}
			return ""
		}
	}
}

// messages adds the messages of the talk.
func (t *task) messages(talk []jsonx.Object) {
	for i, m := range talk {
		key := taskKey + cmp.Or(m.String("id"), string(m.Get("ts")), fmt.Sprint(i))
		at := t.timeOf(i, m)
		before := len(t.whole.Items)
		switch {
		case m.String("role") == "assistant":
			t.reply(key, at, m)
		case string(m.Get("isSummary")) == "true":
			t.summary(key, at, m)
		default:
			t.prompt(key, at, m)
		}
		if n := len(t.whole.Items); n > before {
			t.whole.Items[before].NoRecords = false
			for j := before + 1; j < n; j++ {
				t.whole.Items[j].NoRecords = true
			}
			t.first[i], t.last[i] = t.whole.Items[before].Key, t.whole.Items[n-1].Key
		} else {
			t.in.Skip(skipNotice, 1)
		}
	}
}

// timeOf returns when a message of the talk was: as it says itself, else by the events that name its index.
func (t *task) timeOf(i int, m jsonx.Object) session.Time {
	if at := history.TimeOf(m.Get("ts")); !at.IsZero() {
		return at
	}
	isReply := m.String("role") == "assistant"
	for _, e := range t.events {
		n, ok := history.Number(e.Get("conversationHistoryIndex"))
		request := e.String("say") == "api_req_started"
		switch {
		case ok && isReply && int(n) == i-1 && !request && i > 0,
			ok && !isReply && int(n) == i && request,
			ok && !isReply && i == 0 && n == -1:
			return history.TimeOf(e.Get("ts"))
		}
	}
	return session.Time{}
}

// blocksOf returns the blocks of a message, of a text as well.
func blocksOf(content jsontext.Value) []jsonx.Object {
	if text, isText := jsonx.Text(content); isText {
		return []jsonx.Object{jsonx.NewObject("type", "text", "text", text)}
	}
	return jsonx.ReadObjects(content)
}

// reply adds a reply of the model. Older versions wrote calls as XML into its text.
func (t *task) reply(key string, at session.Time, m jsonx.Object) {
	var parts []session.Part
	for _, b := range blocksOf(m.Get("content")) {
		if b.String("type") != "text" {
			parts = append(parts, part(b)...)
			continue
		}
		place := fmt.Sprintf("%s#%d", strings.TrimPrefix(key, taskKey), len(parts))
		parts = append(parts, replyParts(b.String("text"), place)...)
	}
	if encrypted := m.Get("encrypted_content"); encrypted != nil {
		parts = append(parts, session.Part{Kind: session.PartReasoning, Extra: m.Only("encrypted_content").Column()})
	}
	parts = answered(parts)
	if len(parts) == 0 {
		return
	}
	item := history.Item{Key: key, Message: history.Say(session.Assistant, at, parts...)}
	if model := m.Inner("modelInfo"); model != nil {
		item.Message.Model, item.Message.Provider = model.String("modelId"), model.String("providerId")
	} else {
		item.Message.Model, item.Message.Provider = t.modelAt(at)
	}
	if strings.Contains(item.Message.Text(), "[Response interrupted") {
		item.Message.Finish = session.FinishAborted
	}
	t.open = nil
	for _, p := range item.Message.Calls() {
		t.open = append(t.open, p.CallID)
	}
	t.replies = append(t.replies, key)
	t.whole.Items = append(t.whole.Items, item)
}

// answered puts what a completion says before it as a text: that is the answer that the person saw.
func answered(parts []session.Part) (all []session.Part) {
	for _, p := range parts {
		if p.Kind == session.PartToolCall && p.ToolName == "attempt_completion" {
			o, _ := jsonx.ReadObject([]byte(p.Arguments))
			if said := strings.TrimSpace(o.String("result")); said != "" {
				all = append(all, session.TextPart(said))
			}
		}
		all = append(all, p)
	}
	return all
}

// modelAt returns the model that was used at a time.
func (t *task) modelAt(at session.Time) (model, provider string) {
	model = t.item.String("modelId")
	for _, m := range t.models {
		if used := history.TimeOf(m.Get("ts")); at.IsZero() || !used.After(at.Time) || model == "" {
			model, provider = m.String("model_id"), m.String("model_provider_id")
		}
	}
	return model, provider
}

// summary adds a summary of Roo Code, which hides what names it.
func (t *task) summary(key string, at session.Time, m jsonx.Object) {
	text := history.TextOf(m.Get("content"))
	item := history.Item{Key: key, Message: history.Note(at, text)}
	if n := len(t.whole.Items); n > 0 {
		item.Summary = &history.Compaction{Key: key, ThroughKey: t.whole.Items[n-1].Key, Record: history.Place{Key: key}}
		item.Summary.Summary, item.Summary.CreatedAt = text, at
	}
	t.whole.Items = append(t.whole.Items, item)
}

// typedTags are around what a person typed.
var typedTags = []string{"task", "feedback", "user_message", "answer"}

// prompt adds a message in the user's role: results of calls, what a person typed, and what the program tells the
// model beside.
func (t *task) prompt(key string, at session.Time, m jsonx.Object) {
	var results, typed []session.Part
	var beside []string
	blocks := blocksOf(m.Get("content"))
	for i := 0; i < len(blocks); i++ {
		b := blocks[i]
		switch b.String("type") {
		case "tool_result":
			text, failed := resultText(b.Get("content"))
			failed = failed || string(b.Get("is_error")) == "true"
			typed = append(typed, typedIn(text)...)
			results = append(results, t.result(b.String("tool_use_id"), text, &failed))
			continue
		case "text":
		default:
			typed = append(typed, part(b)...)
			continue
		}
		text := b.String("text")
		tool, said, isResult := textResult(text)
		if isResult && len(t.open) > 0 {
			if said == "" && i+1 < len(blocks) && blocks[i+1].String("type") == "text" {
				i++
				said = blocks[i].String("text")
			}
			typed = append(typed, typedIn(said)...)
			p := t.result(t.open[0], said, nil)
			p.ToolName = tool
			results = append(results, p)
			continue
		}
		if words := typedIn(text); len(words) > 0 {
			typed = append(typed, words...)
		} else {
			beside = append(beside, text)
		}
		t.findFolder(text)
	}
	if len(results) > 0 {
		said := history.Say(session.Tool, at, results...)
		t.whole.Items = append(t.whole.Items, history.Item{Key: key + "#results", Message: said})
	}
	var extra jsonx.Object
	if len(beside) > 0 {
		extra = append(extra, jsonx.MemberOf("context", history.Plain(strings.Join(beside, "\n"))))
	}
	switch {
	case len(typed) > 0:
		prompt := history.Item{Key: key, Message: history.Say(session.User, at, typed...), Extra: extra}
		if t.item.String("parentTaskId") != "" && len(t.replies) == 0 {
			prompt.Message.Origin = session.Program // the task that another one gave it
		}
		t.whole.Items = append(t.whole.Items, prompt)
	case len(results) == 0 && len(beside) > 0:
		hint := history.Hint(at, session.TextPart(strings.Join(beside, "\n")))
		t.whole.Items = append(t.whole.Items, history.Item{Key: key, Message: hint})
	case len(results) > 0:
		t.whole.Items[len(t.whole.Items)-1].Extra = extra
	}
}

// result makes the result of a call, which is not open any more.
func (t *task) result(call, text string, failed *bool) session.Part {
	t.open = slices.DeleteFunc(t.open, func(id string) bool { return id == call })
	return history.ResultPart(call, "", text, failed)
}

// textResult reads the result of a call that is a text: [read_file for 'notes.txt'] Result:
func textResult(text string) (tool, said string, ok bool) {
	head, said, ok := strings.Cut(text, "] Result:")
	if !ok || !strings.HasPrefix(head, "[") || strings.Contains(head, "\n") {
		return "", "", false
	}
	tool, _, _ = strings.Cut(head[1:], " for ")
	return tool, strings.TrimSpace(said), true
}

// typedIn returns what a person typed in a text.
func typedIn(text string) (parts []session.Part) {
	for _, tag := range typedTags {
		_, inner, found := strings.Cut(text, "<"+tag+">")
		inner, _, closed := strings.Cut(inner, "</"+tag+">")
		if inner = strings.TrimSpace(inner); found && closed && inner != "" {
			parts = append(parts, session.TextPart(inner))
		}
	}
	return parts
}

// findFolder reads the folder that the program tells the model.
func (t *task) findFolder(text string) {
	_, rest, found := strings.Cut(text, "Current Working Directory (")
	folder, _, closed := strings.Cut(rest, ")")
	if found && closed && t.folder == "" && !strings.Contains(folder, "\n") {
		t.folder = folder
	}
}

// fromEvents reads the talk from the events of a task of which nothing else is left.
func (t *task) fromEvents() {
	for i, e := range t.events {
		at, text, kind := history.TimeOf(e.Get("ts")), e.String("text"), e.String("say")
		item := history.Item{Key: taskKey + "event/" + string(e.Get("ts"))}
		switch {
		case text == "":
			t.in.Skip(skipEvent, 1)
			continue
		case kind == "task", kind == "user_feedback", kind == "text" && i == 0:
			item.Message = history.Say(session.User, at, session.TextPart(text))
		case kind == "text", kind == "completion_result":
			item.Message = history.Say(session.Assistant, at, session.TextPart(text))
		default:
			t.in.Skip(skipEvent, 1)
			continue
		}
		t.whole.Items = append(t.whole.Items, item)
	}
}

// hiddenRange makes the messages that Cline does not send any more an overlay.
func (t *task) hiddenRange() {
	hidden, at := t.item.Get("conversationHistoryDeletedRange"), session.Time{}
	for _, e := range t.events {
		if v := e.Get("conversationHistoryDeletedRange"); v != nil {
			hidden, at = v, history.TimeOf(e.Get("ts"))
		}
	}
	ends, _ := jsonx.ReadArray(hidden)
	if len(ends) != 2 {
		return
	}
	from, until := t.first[int(history.Count(ends[0]))], t.last[int(history.Count(ends[1]))]
	begin := slices.IndexFunc(t.whole.Items, func(i history.Item) bool { return i.Key == from })
	end := slices.IndexFunc(t.whole.Items, func(i history.Item) bool { return i.Key == until })
	if begin < 0 || end < begin {
		return
	}
	var piece history.Replaced
	for _, item := range t.whole.Items[begin : end+1] {
		piece.Messages = append(piece.Messages, history.Place{Key: item.Key})
	}
	o := &history.Compaction{Key: "range", ThroughKey: until, Replaced: []history.Replaced{piece}}
	o.Strategy, o.CreatedAt = session.StrategyPrune, at
	t.whole.Items[len(t.whole.Items)-1].Summary = o
}
