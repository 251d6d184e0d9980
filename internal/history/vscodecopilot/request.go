package vscodecopilot

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// States of a request.
const (
	statePending   = 0
	stateComplete  = 1
	stateCancelled = 2
	stateFailed    = 3
	stateWaits     = 4
)

// request is one turn: a prompt and what came of it.
type request struct {
	jsonx.Object

	id       string
	at       session.Time
	until    session.Time // of the next request; zero: there is none, or it does not say
	model    string
	state    float64
	removed  bool
	response []jsonx.Object
	metadata jsonx.Object // of the result
	items    []history.Item
}

func unescape(uri string) string {
	if !strings.Contains(uri, "://") {
		return uri
	}
	if plain, err := url.PathUnescape(uri); err == nil {
		return plain
	}
	return uri
}

// request adds the messages of a turn.
func (c *chat) request(i int) {
	o, last := c.requests[i], i == len(c.requests)-1
	r := &request{
		Object: o, id: o.String("requestId"), at: history.TimeOf(o.Get("timestamp")), state: stateComplete,
		response: jsonx.ReadObjects(o.Get("response")), metadata: o.Inner("result").Inner("metadata"),
	}
	if n, ok := history.Number(o.Inner("modelState").Get("value")); ok {
		r.state = n
	} else if string(o.Get("isCanceled")) == "true" {
		r.state = stateCancelled
	}
	r.removed = string(o.Get("isHidden")) == "true" || !jsonx.IsNull(o.Get("shouldBeRemovedOnSend"))
	if !last {
		r.until = history.TimeOf(c.requests[i+1].Get("timestamp"))
	}
	r.model = r.modelName()
	r.prompt()
	if rounds := jsonx.ReadObjects(r.metadata.Get("toolCallRounds")); len(rounds) > 0 {
		c.rounds(r, rounds)
	} else {
		r.seen()
	}
	c.subAgents(r)
	r.end()
	if len(r.items) == 0 {
		c.in.Skip(skipBare, 1)
		return
	}
	pending := last && (r.state == statePending || r.state == stateWaits)
	for i := range r.items {
		item := &r.items[i]
		item.NoRecords, item.Open = i > 0, pending && i > 0
		item.Message.InContext = item.Message.InContext && !r.removed
	}
	at := len(r.items) - 1
	r.items[at].Calls = append(r.items[at].Calls, c.usage(r)...)
	c.whole.Items = append(c.whole.Items, r.items...)
}

// modelName returns the id of the model that answered, else the name that was shown; "" for one that was chosen
// without saying which.
func (r *request) modelName() string {
	shown, _, _ := strings.Cut(r.Inner("result").String("details"), " •")
	chosen := strings.TrimPrefix(r.String("modelId"), "copilot/")
	if chosen == "auto" {
		chosen = ""
	}
	totals := ""
	for _, total := range jsonx.ReadObjects(r.Get("modelTotals")) {
		totals = total.String("model")
		break
	}
	return history.Plain(cmp.Or(r.metadata.String("resolvedModel"), totals, chosen, shown))
}

// prompt adds what the person typed, with the names of what was attached.
func (r *request) prompt() {
	text := cmp.Or(r.Inner("message").String("text"), r.String("message"))
	if command := r.String("slashCommand"); command != "" && !strings.HasPrefix(text, "/") {
		text = "/" + command + " " + text
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	item := history.Item{Key: r.id, Message: history.Say(session.User, r.at, session.TextPart(text))}
	for _, key := range []string{"isSystemInitiated", "hiddenFromTranscript", "requestHiddenFromTranscript"} {
		if string(r.Get(key)) == "true" {
			item.Message = history.Hint(r.at, session.TextPart(text))
		}
	}
	var attached []string
	for _, v := range jsonx.ReadObjects(r.Inner("variableData").Get("variables")) {
		attached = append(attached, history.Plain(cmp.Or(history.PathOfURI(v.Inner("value")), v.String("name"))))
	}
	if len(attached) > 0 {
		item.Extra = append(item.Extra, jsonx.MemberOf("attached", attached))
	}
	if mode := r.Inner("modeInfo").String("modeId"); mode != "" {
		item.Extra = append(item.Extra, jsonx.MemberOf("mode", history.Plain(mode)))
	}
	r.items = append(r.items, item)
}

// tool is a call as the person saw it.
type tool struct{ jsonx.Object }

func (r *request) tools(nested bool) (all []tool) {
	for _, o := range r.response {
		if t := (tool{o}); o.String("kind") == "toolInvocationSerialized" && t.isNested() == nested {
			all = append(all, t)
		}
	}
	return all
}

// isNested reports whether the call is a sub-agent's, or one that the program makes for another call.
func (t tool) isNested() bool {
	return t.String("subAgentInvocationId") != "" || strings.HasSuffix(t.String("toolId"), "_internal")
}

// refused reports whether the person did not allow the call.
func (t tool) refused() bool {
	v := t.Get("isConfirmed")
	o, isObject := jsonx.ReadFields(v)
	n, ok := history.Number(o.Get("type"))
	return string(v) == "false" || isObject && ok && (n == 0 || n == 5)
}

// failed reports whether the call was refused or failed.
func (t tool) failed() bool {
	exit, ok := history.Number(t.Inner("toolSpecificData").Inner("terminalCommandState").Get("exitCode"))
	return t.refused() || !jsonx.IsNull(t.Get("resultError")) || ok && exit != 0 ||
		string(t.Inner("resultDetails").Get("isError")) == "true"
}

// arguments returns what is known of the call's arguments.
func (t tool) arguments() jsontext.Value {
	data := t.Inner("toolSpecificData")
	if raw := data.Get("rawInput"); raw != nil {
		return raw
	}
	line := data.Inner("commandLine")
	if command := cmp.Or(line.String("userEdited"), line.String("original"), data.String("command")); command != "" {
		return jsonx.Encode("command", command)
	}
	if prompt := data.String("prompt"); prompt != "" {
		return jsonx.Encode("prompt", prompt)
	}
	return jsontext.Value("{}")
}

// output returns what is known of the call's result.
func (t tool) output() string {
	data, details := t.Inner("toolSpecificData"), t.Inner("resultDetails")
	var said []string
	for _, o := range jsonx.ReadObjects(details.Get("output")) {
		said = append(said, o.String("value"))
	}
	text := cmp.Or(data.Inner("terminalCommandOutput").String("text"), data.String("result"), strings.Join(said, "\n"),
		markdown(t.Get("pastTenseMessage")), markdown(t.Get("invocationMessage")))
	if t.refused() {
		return strings.TrimSpace("refused by the user\n" + text)
	}
	return text
}

// markdown reads a text, or an object that holds one.
func markdown(raw jsontext.Value) string {
	text, _ := jsonx.Text(raw)
	o, _ := jsonx.ReadFields(raw)
	return cmp.Or(text, o.String("value"))
}

// rounds adds the calls of the model, each with its results.
func (c *chat) rounds(r *request, rounds []jsonx.Object) {
	shown := r.tools(false)
	results := r.metadata.Inner("toolCallResults")
	summaries := map[string]jsonx.Object{}
	all := jsonx.ReadObjects(r.metadata.Get("summaries"))
	if one := r.metadata.Inner("summary"); one != nil {
		all = append(all, one)
	}
	for _, s := range all {
		summaries[s.String("toolCallRoundId")] = s
	}
	for i, round := range rounds {
		key := r.id + "/" + cmp.Or(round.String("id"), fmt.Sprint(i))
		var parts, answers []session.Part
		if thought := thoughtText(round.Get("thinking")); thought != "" {
			parts = append(parts, session.Part{Kind: session.PartReasoning, Text: thought})
		}
		if text := round.String("response"); strings.TrimSpace(text) != "" {
			parts = append(parts, session.TextPart(text))
		}
		for _, call := range jsonx.ReadObjects(round.Get("toolCalls")) {
			full := call.String("id")
			id, _, _ := strings.Cut(full, "__vscode")
			name := call.String("name")
			parts = append(parts, history.CallPart(id, name, call.Get("arguments")))
			var seen tool
			if len(shown) > 0 { // by its id; older versions give the person another one, in the same order
				at := max(0, slices.IndexFunc(shown, func(t tool) bool { return t.String("toolCallId") == id }))
				seen, shown = shown[at], slices.Delete(slices.Clone(shown), at, at+1)
			}
			if content := results.Inner(full); content != nil {
				answers = append(answers, history.ResultPart(id, name, resultText(content.Get("content")), new(seen.failed())))
			} else if seen.Object != nil && seen.refused() {
				answers = append(answers, history.ResultPart(id, name, seen.output(), new(true)))
			}
		}
		if len(parts) == 0 {
			continue
		}
		r.say(key, parts, answers)
		if s := summaries[round.String("id")]; s.String("text") != "" {
			at := len(r.items) - 1
			o := &history.Compaction{Key: key + "#summary", ThroughKey: r.items[at].Key}
			o.Summary, o.Model, o.CreatedAt = s.String("text"), history.Plain(s.String("model")), r.at
			r.items[at].Summary = o
		}
	}
}

// say adds a message of the model, and the results of its calls.
func (r *request) say(key string, parts, answers []session.Part) {
	item := history.Item{Key: key, Message: history.Say(session.Assistant, r.at, parts...)}
	item.Message.Provider, item.Message.Model = "copilot", r.model
	r.items = append(r.items, item)
	if len(answers) > 0 {
		r.items = append(r.items, history.Item{Key: key + "#results", Message: history.Say(session.Tool, r.at, answers...)})
	}
}

func thoughtText(raw jsontext.Value) string {
	o, isObject := jsonx.ReadFields(raw)
	if isObject {
		raw = o.First("text", "value")
	}
	if jsonx.KindOf(raw) == '[' {
		return history.TextOf(raw)
	}
	text, _ := jsonx.Text(raw)
	return text
}

// resultText returns the texts of a result: as they are, or as the leaves of a tree.
func resultText(content jsontext.Value) string {
	var texts []string
	for _, part := range jsonx.ReadObjects(content) {
		value := part.Get("value")
		if text, isText := jsonx.Text(value); isText {
			texts = append(texts, text)
			continue
		}
		o, _ := jsonx.ReadFields(value)
		var b strings.Builder
		leaves(&b, o.Get("node"), 0)
		if b.Len() > 0 {
			texts = append(texts, b.String())
		}
	}
	return strings.Join(texts, "\n")
}

// leaves writes the texts of a tree, depth first.
func leaves(b *strings.Builder, raw jsontext.Value, depth int) {
	o, _ := jsonx.ReadFields(raw)
	if n, _ := history.Number(o.Get("type")); n == 2 {
		if string(o.Get("lineBreakBefore")) == "true" && b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(o.String("text"))
	}
	children, _ := jsonx.ReadArray(o.Get("children"))
	for _, child := range children {
		if depth < history.MaxDepth {
			leaves(b, child, depth+1)
		}
	}
}

// seen adds what the person saw, of a request without rounds: texts joined, then calls with their results.
func (r *request) seen() {
	var parts, answers []session.Part
	n := 0
	flush := func() {
		if len(parts) > 0 {
			r.say(r.id+"#"+fmt.Sprint(n), parts, answers)
			n++
		}
		parts, answers = nil, nil
	}
	text := func(more string) {
		if len(answers) > 0 {
			flush()
		}
		if at := len(parts) - 1; at >= 0 && parts[at].Kind == session.PartText {
			parts[at].Text += more
		} else if strings.TrimSpace(more) != "" {
			parts = append(parts, session.TextPart(more))
		}
	}
	for _, o := range r.response {
		switch kind := o.String("kind"); kind {
		case "", "markdownContent":
			if said := cmp.Or(o.String("value"), markdown(o.Get("content"))); strings.Trim(said, "`\n ") != "" {
				text(said)
			}
		case "markdownVuln":
			text(markdown(o.Get("content")))
		case "inlineReference":
			text(referenceName(o))
		case "thinking":
			if thought := thoughtText(o.Get("value")); thought != "" {
				parts = append(parts, session.Part{Kind: session.PartReasoning, Text: thought})
			}
		case "toolInvocationSerialized":
			if t := (tool{o}); !t.isNested() {
				id, name := t.String("toolCallId"), t.String("toolId")
				parts = append(parts, history.CallPart(id, name, t.arguments()))
				answers = append(answers, history.ResultPart(id, name, t.output(), new(t.failed())))
			}
		}
	}
	flush()
}

// referenceName returns the name of a file or symbol within a sentence.
func referenceName(o jsonx.Object) string {
	reference := o.Inner("inlineReference")
	path := cmp.Or(history.PathOfURI(reference.Inner("uri")), history.PathOfURI(o.Inner("inlineReference")))
	if path != "" {
		return "`" + cmp.Or(reference.String("name"), filepath.Base(path)) + "`"
	}
	return cmp.Or(o.String("name"), reference.String("name"))
}

// end says how the request ended.
func (r *request) end() {
	failed := session.Finish("")
	switch r.state {
	case stateCancelled:
		failed = session.FinishAborted
	case stateFailed:
		failed = session.FinishError
	}
	for i := len(r.items) - 1; i > 0 && failed != ""; i-- {
		if m := &r.items[i].Message; m.Role == session.Assistant && len(m.Calls()) == 0 {
			m.Finish = failed
			break
		}
	}
	if said := r.Inner("result").Inner("errorDetails").String("message"); said != "" && len(r.items) > 0 {
		r.items = append(r.items, history.Item{Key: r.id + "#error", Message: history.Note(r.at, said)})
	}
}

// subAgents makes the sessions of the sub-agents that calls of the request started.
func (c *chat) subAgents(r *request) {
	children := map[string]*history.Whole{}
	for _, t := range r.tools(false) {
		data := t.Inner("toolSpecificData")
		if data.String("kind") != "subagent" {
			continue
		}
		id := t.String("toolCallId")
		w := &history.Whole{ParentCall: id}
		w.New.SourceID, w.New.Kind, w.Title = c.whole.New.SourceID+"/"+id, "subagent", data.String("description")
		w.New.CreatedAt = &r.at
		prompt := history.Say(session.User, r.at, session.TextPart(data.String("prompt")))
		prompt.Origin = session.Program
		w.Items = append(w.Items, history.Item{Key: id, NoRecords: true, Message: prompt})
		children[id] = w
		c.children, c.starts = append(c.children, w), append(c.starts, r.itemOf(id))
	}
	for _, t := range r.tools(true) {
		if w := children[t.String("subAgentInvocationId")]; w != nil {
			id, name := t.String("toolCallId"), t.String("toolId")
			w.Items = append(w.Items,
				history.Item{
					Key: id, NoRecords: true,
					Message: history.Say(session.Assistant, r.at, history.CallPart(id, name, t.arguments())),
				},
				history.Item{
					Key: id + "#result", NoRecords: true,
					Message: history.Say(session.Tool, r.at, history.ResultPart(id, name, t.output(), new(t.failed()))),
				})
		}
	}
	for _, t := range r.tools(false) {
		data := t.Inner("toolSpecificData")
		if w := children[t.String("toolCallId")]; w != nil && data.String("result") != "" {
			said := history.Say(session.Assistant, r.at, session.TextPart(data.String("result")))
			said.Model = history.Plain(data.String("modelName"))
			w.Items = append(w.Items, history.Item{Key: w.ParentCall + "#end", NoRecords: true, Message: said})
		}
	}
}

// itemOf returns the key of the item that makes a call.
func (r *request) itemOf(call string) string {
	for i := range r.items {
		for _, p := range r.items[i].Message.Calls() {
			if p.CallID == call {
				return r.items[i].Key
			}
		}
	}
	return ""
}
