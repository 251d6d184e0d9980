package antigravity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// skipNote is the reason to skip a step of the program that says nothing.
const skipNote = "step without words"

// talk is a conversation on its way into the store.
type talk struct {
	in      *history.Intake
	whole   history.Whole
	isShort bool   // each argument is JSON in a text
	model   string // that was chosen last
	keys    history.Repeats
	open    []call // without a result yet
	agents  []agent
	known   bool // a line was a step
}

// call is a call of a tool that waits for its result.
type call struct{ id, name, key string }

// agent is a conversation that a call started.
type agent struct{ id, key, call string }

// read reads a transcript, or counts a conversation that cannot be read.
func (r *reader) read(in *history.Intake) {
	if isSealed(in.Found.Path) {
		sealed(in)
		return
	}
	t := &talk{in: in, keys: history.Repeats{}, isShort: !strings.HasSuffix(in.Found.Path, fullName)}
	in.EachLine(t.line)
	w := &t.whole
	if in.Err() == nil && !t.known {
		in.Fail(session.Errorf(session.Invalid, "no transcript of Antigravity: no line is a step of its agent"))
		return
	}
	w.New.SourceID = history.Plain(idOf(in.Found.Path))
	w.New.Directory = r.directory(in.Found.Path, w.New.SourceID)
	w.New.Model, w.New.Provider = t.model, "google"
	if stored := in.AddWhole(w); stored != nil {
		t.link(stored)
	}
}

// link links the conversations that this one started. One that is not here yet is awaited.
func (t *talk) link(stored *history.Conversation) {
	for _, a := range t.agents {
		switch child := t.in.Session(a.id); {
		case child == nil:
			t.in.Await(a.id)
		case child.ParentID == "":
			stored.Starts(t.in.Found.Size, a.id, t.whole.KeyOf(a.key), a.call)
		}
	}
}

// line reads a step.
func (t *talk) line(l history.FileLine) {
	o, _, ok := history.ParseLine(l.Bytes)
	kind, at := o.String("type"), history.TimeOf(o.Get("created_at"))
	index, isStep := history.Number(o.Get("step_index"))
	if !ok || !isStep || kind == "" || jsonx.DeeperThan(l.Bytes, history.MaxDepth) {
		why := "no JSON object, or nested too deep"
		if ok {
			why = "a line that is no step"
		}
		t.add(l, history.RawItem(t.keys.Key(history.LineKey(l.Bytes)), l.Bytes, why, at))
		return
	}
	t.known = true
	key, text := t.keys.Key(fmt.Sprintf("step %.0f", index)), o.String("content")
	switch source := o.String("source"); {
	case kind == "USER_INPUT":
		t.prompt(l, key, text, at)
	case kind == "PLANNER_RESPONSE":
		t.reply(l, key, o, at)
	case kind == "CHECKPOINT":
		t.checkpoint(l, key, text, at)
	case source != "SYSTEM" && kind != "ERROR_MESSAGE":
		t.result(l, key, o, at)
	case strings.TrimSpace(text) == "":
		t.in.SkipAt(l.At, skipNote, 1)
	case kind == "ERROR_MESSAGE":
		t.add(l, history.Item{Key: key, Message: history.Note(at, text)})
	default:
		t.add(l, history.Item{Key: key, Message: history.Hint(at, session.TextPart(text))})
	}
}

func (t *talk) add(l history.FileLine, item history.Item) {
	item.At, item.Line = l.At, l.Number
	t.whole.Items = append(t.whole.Items, item)
}

// chosenModel is how a prompt says which model was chosen.
var chosenModel = pattern.New("`Model Selection` from .*? to (.+?)\\.?(?:\n|$)")

// prompt adds what a person asked. What the program adds to it is kept beside.
func (t *talk) prompt(l history.FileLine, key, text string, at session.Time) {
	t.open = nil
	if m := chosenModel.FindStringSubmatch(text); m != nil {
		t.model = history.Plain(m[1])
	}
	item := history.Item{Key: key}
	before, rest, isMarked := strings.Cut(text, "<USER_REQUEST>")
	asked, after, isClosed := strings.Cut(rest, "</USER_REQUEST>")
	if isMarked && isClosed {
		text = strings.TrimSpace(asked)
		if context := strings.TrimSpace(before + after); context != "" {
			item.Extra = jsonx.Object{jsonx.MemberOf("context", history.Plain(context))}
		}
	}
	if strings.TrimSpace(text) == "" {
		t.in.SkipAt(l.At, skipNote, 1)
		return
	}
	item.Message = history.Say(session.User, at, session.TextPart(text))
	t.add(l, item)
}

// reply adds what the model said. Its calls have no names: they get some.
func (t *talk) reply(l history.FileLine, key string, o jsonx.Object, at session.Time) {
	t.open = nil
	var parts []session.Part
	if thought := o.String("thinking"); thought != "" {
		parts = append(parts, session.Part{Kind: session.PartReasoning, Text: thought})
	}
	if text := o.String("content"); strings.TrimSpace(text) != "" {
		parts = append(parts, session.TextPart(text))
	}
	for i, c := range jsonx.ReadObjects(o.Get("tool_calls")) {
		made := call{fmt.Sprint(strings.TrimPrefix(key, "step "), ":", i), c.String("name"), key}
		t.open = append(t.open, made)
		parts = append(parts, history.CallPart(made.id, made.name, t.arguments(c.First("args", "arguments"))))
	}
	if len(parts) == 0 {
		t.in.SkipAt(l.At, skipNote, 1)
		return
	}
	item := history.Item{Key: key, Message: history.Say(session.Assistant, at, parts...)}
	item.Message.Model, item.Message.Provider = t.model, "google"
	if cut := o.Get("truncated_fields"); jsonx.HasElements(cut) {
		item.Extra = jsonx.Object{{Key: "cut", Value: cut}} // the whole text is not in the file
	}
	t.add(l, item)
}

// arguments returns the arguments of a call. In a short transcript each of them is JSON in a text.
func (t *talk) arguments(raw jsontext.Value) jsontext.Value {
	o, ok := jsonx.ReadFields(raw)
	if !ok || !t.isShort {
		return raw
	}
	decoded := slices.Clone(o)
	for i, m := range o {
		text, isText := jsonx.Text(m.Value)
		if !isText || !jsonx.Valid([]byte(text)) {
			return raw
		}
		decoded[i].Value = jsontext.Value(text)
	}
	return decoded.Value()
}

var (
	failedWith = pattern.New(`The command failed with exit code: (-?\d+)`)
	startedAs  = pattern.New(`"?conversationId"?\s*:\s*"?([0-9A-Za-z-]+)`)
)

// result adds the result of the next call that has none. A command that failed says so in its text alone.
func (t *talk) result(l history.FileLine, key string, o jsonx.Object, at session.Time) {
	text, kind := o.String("content"), o.String("type")
	made := call{id: strings.TrimPrefix(key, "step "), name: strings.ToLower(kind)} // of a call that the file lacks
	if len(t.open) > 0 {
		made, t.open = t.open[0], t.open[1:]
	}
	failed := o.String("status") == "ERROR" || failedWith.MatchString(text)
	said := history.Say(session.Tool, at, history.ResultPart(made.id, made.name, text, &failed))
	item := history.Item{Key: key, Message: said}
	if cut := o.Get("truncated_fields"); jsonx.HasElements(cut) {
		item.Extra = jsonx.Object{{Key: "cut", Value: cut}}
	}
	t.add(l, item)
	if kind == "INVOKE_SUBAGENT" && made.key != "" {
		for _, m := range startedAs.FindAllStringSubmatch(text, -1) {
			t.agents = append(t.agents, agent{m[1], made.key, made.id})
		}
	}
}

// checkpoint adds a summary, which hides what stands before it.
func (t *talk) checkpoint(l history.FileLine, key, text string, at session.Time) {
	item := history.Item{Key: key, Message: history.Note(at, cmp.Or(text, "checkpoint"))}
	if n := len(t.whole.Items); n > 0 && text != "" {
		made := &history.Compaction{Key: key, ThroughKey: t.whole.Items[n-1].Key, Record: history.Place{Key: key}}
		made.Summary, made.CreatedAt = text, at
		item.Summary = made
	}
	t.add(l, item)
}
