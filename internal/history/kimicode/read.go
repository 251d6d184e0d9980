package kimicode

import (
	"cmp"
	"crypto/md5" //nolint:gosec // the program names folders so
	"encoding/hex"
	"path/filepath"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// reader replays one log.
type reader struct {
	in    *history.Intake
	place place
	state jsonx.Object
	whole history.Whole
	here  *session.Session // as it is stored

	now     *entry   // the end of the context
	ends    []*entry // of the context, after each line from 1
	step    *step    // that the model is in
	begun   string   // key of the item of the last begun step, whether it is complete or not
	model   string   // of the last request, with its provider
	by      string   // its provider
	kind    string   // what the last request was for
	undone  int      // line of an undo that a switch of branches did already
	starts  []start  // agents that calls started
	counted int      // records of usage of the step
	// that the log of kimi-cli names
	compactions int
	at          session.Time // of the line
	known       bool         // a line was one of these programs'
	moved       bool         // lines without a time come from a stored session of kimi-cli
	forked      int64        // offset of the last record that says that the lines before it are copies
}

// entry is a message of the context, linked to the one before it.
type entry struct {
	key    string
	typed  bool // by a person
	aside  bool // put in by the program
	cut    bool // a compaction: an undo does not go beyond it
	number int  // in the context, from 1
	before *entry
}

type start struct {
	at               int64
	agent, key, call string
}

// step is a reply of the model: all of its pieces.
type step struct {
	key    string
	at     session.Time
	parts  []session.Part
	lines  int
	offset int64 // of its last line
	number int
	added  bool
}

// read reads a log of either program, or a context of kimi-cli without a log.
func read(in *history.Intake) {
	r := &reader{in: in, place: placeOf(in.Found.Path)}
	r.state = readState(r.place.folder)
	r.about()
	if filepath.Base(in.Found.Path) == contextName {
		r.readContexts()
	} else {
		r.look()
		in.EachLine(r.line)
	}
	r.endStep(session.FinishAborted)
	if !r.known {
		in.Fail(session.Errorf(session.Invalid, "no log of Kimi Code: no line is a record of it or of kimi-cli"))
		return
	}
	if r.now != nil {
		r.whole.Head = r.now.key
	}
	n := len(r.whole.Items)
	if r.place.agent != "" && len(r.whole.Origins) > 0 && n > 0 && r.whole.Items[n-1].At < r.forked {
		in.SkipAll(history.SkipCopied, n) // of an agent that never went on
		return
	}
	talk := in.AddWhole(&r.whole)
	for _, s := range r.starts {
		if talk != nil {
			talk.Starts(s.at, r.whole.New.SourceID+"/"+s.agent, r.whole.KeyOf(s.key), s.call)
		}
	}
}

// about says what the session is.
func (r *reader) about() {
	w, id := &r.whole, r.state.String("id")
	id = cmp.Or(id, filepath.Base(r.place.folder))
	w.New.SourceID = id
	w.Title = cmp.Or(r.state.String("title"), r.state.String("custom_title"))
	w.New.Directory = cmp.Or(r.state.String("cwd"), r.state.String("workDir"), r.folderOfCLI())
	w.New.CreatedAt = history.KnownTime(r.state.Get("createdAt"))
	if string(r.state.Get("archived")) == "true" {
		w.Archived = new(session.At(r.in.Found.ModifiedAt))
	}
	custom := r.state.Inner("custom")
	if of := custom.String("kimi_cli_session_id"); of != "" {
		w.Notes = append(w.Notes, jsonx.MemberOf("kimi_cli_session", history.Plain(of)))
		r.moved = r.in.Session(history.Plain(of)) != nil
	}
	origin := r.state.String("forkedFrom")
	if r.place.agent != "" {
		w.New.SourceID, w.New.Kind, w.Title, w.ParentID = id+"/"+r.place.agent, "subagent", "", id
		w.StartedIn = r.callOf
		if origin != "" {
			origin += "/" + r.place.agent
		}
	}
	r.here = r.in.Session(history.Plain(w.New.SourceID))
	if s := r.in.Session(history.Plain(origin)); origin != "" && s != nil {
		w.Origins = []*session.Session{s}
	} else if origin != "" {
		r.in.Await(history.Plain(origin))
	}
	if r.place.agent != "" && len(w.Origins) > 0 {
		w.ParentID = "" // a copy of an agent is a fork of it
	}
}

// callOf returns the call whose result names the agent.
func (r *reader) callOf(m *session.Message) string {
	for _, p := range m.Results() {
		line, _, _ := strings.Cut(p.Content(), "\n")
		if strings.TrimSpace(strings.TrimPrefix(line, "agent_id:")) == r.place.agent {
			return p.CallID
		}
	}
	return ""
}

// folderOfCLI finds the folder of a session of kimi-cli, whose own folder has the hash of its path as its name.
func (r *reader) folderOfCLI() string {
	hash := filepath.Base(filepath.Dir(r.place.folder))
	text, err := history.ReadFile(filepath.Join(r.place.folder, "..", "..", "..", "kimi.json"))
	if err != nil {
		return ""
	}
	o, _ := jsonx.ReadObject(text)
	folders, _ := jsonx.ReadArray(o.Get("work_dirs"))
	for _, raw := range folders {
		folder, _ := jsonx.ReadFields(raw)
		sum := md5.Sum([]byte(folder.String("path"))) //nolint:gosec // as above
		if hex.EncodeToString(sum[:]) == hash {
			return folder.String("path")
		}
	}
	return ""
}

// look finds the step at the end that has not ended: it waits, with what follows it. It also finds the last record
// that says that this is a fork.
func (r *reader) look() {
	from, says, open := int64(-1), false, false
	for l := range r.in.Survey {
		o, _, ok := history.ParseLine(l.Bytes)
		if !ok {
			continue
		}
		event := o.Inner("event")
		kind := cmp.Or(event.String("type"), o.String("type"), o.Inner("message").String("type"))
		switch kind {
		case "step.begin", "StepBegin":
			from, says, open = l.At, false, false
		case "content.part", "ContentPart":
			says = true
		case "tool.call", "ToolCall":
			open = true
		case "tool.result", "ToolResult":
			open = false
		case "step.end", "TurnEnd", "turn.ended", "TurnBegin", "StepInterrupted":
			from = -1
		case "forked":
			r.forked = l.At
		}
	}
	if from >= 0 && r.in.ReplyWaits(says, open) {
		r.in.WaitFrom(from)
	}
}

// line reads a line.
func (r *reader) line(l history.FileLine) {
	defer func() { r.ends = append(r.ends, r.now) }()
	o, _, ok := history.ParseLine(l.Bytes)
	if ok && jsonx.DeeperThan(l.Bytes, history.MaxDepth) {
		ok = false
	}
	kind := o.String("type")
	if at := history.TimeOf(o.First("time", "timestamp")); !at.IsZero() {
		r.at = at
	}
	switch {
	case !ok:
		r.raw(l, "not a JSON line of Kimi Code")
		return
	case kind == "metadata":
		r.known = true
		r.whole.New.CreatedAt = cmp.Or(r.whole.New.CreatedAt, history.KnownTime(o.Get("created_at")))
		r.in.ImportInto(r.here, 1)
	case kind == "" && o.Has("message") && o.Has("timestamp"):
		r.known = true
		r.cliLine(l, o.Inner("message"))
	case kind == "":
		r.raw(l, "a line without a type")
	default:
		r.known = r.known || strings.Contains(kind, ".")
		r.record(l, kind, o)
	}
}

func (r *reader) raw(l history.FileLine, why string) {
	item := history.RawItem(history.LineKey(l.Bytes), l.Bytes, why, r.at)
	item.At, item.Line, item.Aside = l.At, l.Number, true
	if r.now != nil {
		item.Parent = r.now.key
	}
	r.whole.Items = append(r.whole.Items, item)
}

// push adds an item at the end of the context.
func (r *reader) push(l history.FileLine, item history.Item, e entry) {
	if item.At == 0 {
		item.At = l.At
	}
	item.Line = l.Number
	e.key, e.before, e.number = item.Key, r.now, 1
	if r.now != nil {
		item.Parent, e.number = r.now.key, r.now.number+1
	} else {
		item.Root = true
	}
	r.whole.Items = append(r.whole.Items, item)
	r.now = &e
}

// record reads a record of Kimi Code.
func (r *reader) record(l history.FileLine, kind string, o jsonx.Object) {
	switch kind {
	case "context.append_message":
		r.message(l, o)
	case "context.append_loop_event":
		r.event(l, o.Inner("event"))
	case "usage.record":
		r.usage(l, o)
	case "llm.request":
		r.kind, r.by, r.model = o.String("kind"), history.Plain(o.String("provider")), history.Plain(o.String("model"))
		r.in.Skip(skipNotes, 1)
	case "context.apply_compaction":
		r.compaction(l, o)
	case "context.undo":
		if l.Number != r.undone {
			r.undo(int(history.Count(o.Get("count"))))
		}
		r.in.ImportInto(r.here, 1)
	case "agent.switched":
		base := int(history.Count(o.Inner("base").Get("line")))
		if base > 0 && base <= len(r.ends) {
			r.endStep("")
			r.now, r.undone = r.ends[base-1], int(history.Count(o.Get("legacyUndoLine")))
		}
		r.in.ImportInto(r.here, 1)
	case "context.clear":
		r.clear(l)
	case "subagent.spawned":
		r.starts = append(r.starts, start{
			l.At, history.Plain(o.String("subagentId")), r.begun, history.Plain(o.String("parentToolCallId")),
		})
		r.in.ImportInto(r.here, 1)
	case "agent.message.appended", "human.message.appended":
		r.in.Skip(skipTwice, 1)
	case "turn.prompt", "turn.steer":
		r.in.Skip(skipSpoken, 1)
	default:
		r.in.Skip(skipNotes, 1)
	}
}

// message reads a message of the context: a prompt, or any one of a session that was moved from kimi-cli.
func (r *reader) message(l history.FileLine, o jsonx.Object) {
	m := o.Inner("message")
	if r.moved && o.Get("time") == nil {
		r.in.Skip(skipMoved, 1)
		return
	}
	r.endStep("")
	at := history.TimeOf(o.Get("time"))
	item := history.Item{Key: cmp.Or(m.String("id"), history.LineKey(l.Bytes))}
	parts := history.Blocks(m.Get("content"))
	e := entry{}
	origin := m.Inner("origin")
	switch role := m.String("role"); role {
	case "assistant":
		item.Message = history.Say(session.Assistant, at, append(parts, callsOf(m)...)...)
	case "tool":
		item.Message = history.Say(session.Tool, at, history.ResultPart(m.String("toolCallId"), "",
			history.ResultText(m.Get("content")), new(string(m.Get("isError")) == "true")))
	case "system":
		item.Message, e.aside = history.Say(session.System, at, parts...), true
	default:
		if e.typed = isTyped(origin) && !isOfProgram(parts); e.typed {
			item.Message = history.Say(session.User, at, parts...)
			break
		}
		item.Message, e.aside = history.Hint(at, parts...), true
		item.Message.Display = origin.String("name") == "subagent"
	}
	if kind := origin.String("kind"); kind != "" && kind != "user" {
		item.Extra = append(item.Extra, jsonx.MemberOf("origin", history.Plain(kind)))
	}
	r.push(l, item, e)
}

// isTyped reports whether a person typed a message. One of the first version does not say who did.
func isTyped(origin jsonx.Object) bool {
	switch origin.String("kind") {
	case "", "user", "shell_command":
		return true
	case "skill_activation", "plugin_command":
		return origin.String("trigger") == "user-slash"
	}
	return false
}

// isOfProgram reports whether a prompt says only what kimi-cli puts there.
func isOfProgram(parts []session.Part) bool {
	return len(parts) > 0 && strings.HasPrefix(parts[0].Text, "<system>")
}

func callsOf(m jsonx.Object) (parts []session.Part) {
	list, _ := jsonx.ReadArray(m.First("toolCalls", "tool_calls"))
	for _, raw := range list {
		call, _ := jsonx.ReadFields(raw)
		function := call.Inner("function")
		arguments := call.Get("arguments")
		if arguments == nil {
			arguments = function.Get("arguments")
		}
		name := cmp.Or(call.String("name"), function.String("name"))
		parts = append(parts, history.CallPart(call.String("id"), name, arguments))
	}
	return parts
}

// event reads a piece of a reply.
func (r *reader) event(l history.FileLine, e jsonx.Object) {
	switch e.String("type") {
	case "step.begin":
		r.beginStep(l, e.String("uuid"))
	case "content.part":
		r.add(l, history.Blocks(e.Get("part"))...)
	case "tool.call":
		r.add(l, history.CallPart(e.String("toolCallId"), e.String("name"), e.Get("args")))
	case "tool.result":
		result := e.Inner("result")
		r.result(l, e.String("toolCallId"), history.ResultText(result.Get("output")),
			string(result.Get("isError")) == "true", result.Get("durationMs"))
	case "step.end":
		if r.step != nil {
			r.step.lines++
			r.step.offset = l.At
			r.endStep(finishOf(e.String("finishReason")))
			return
		}
		r.in.Skip(skipEmpty, 1)
	default:
		r.in.Skip(skipNotes, 1)
	}
}

func finishOf(reason string) session.Finish {
	switch reason {
	case "end_turn", "stop":
		return session.FinishStop
	case "tool_use":
		return session.FinishToolCalls
	case "max_tokens", "length":
		return session.FinishLength
	}
	return ""
}

func (r *reader) beginStep(l history.FileLine, key string) {
	r.endStep(session.FinishAborted)
	key = cmp.Or(key, history.LineKey(l.Bytes))
	r.step = &step{key: key, at: r.at, lines: 1, offset: l.At, number: l.Number}
	r.begun, r.counted = key, 0
}

// add adds pieces to the reply.
func (r *reader) add(l history.FileLine, parts ...session.Part) {
	if r.step == nil {
		r.beginStep(l, history.LineKey(l.Bytes))
		r.step.lines = 0
	}
	if r.step.added {
		r.step = &step{key: r.step.key + "+", at: r.at}
	}
	r.step.lines++
	r.step.offset, r.step.number = l.At, l.Number
	r.step.parts = append(r.step.parts, parts...)
}

// endStep adds the reply as far as it has come. A step without words is no message.
func (r *reader) endStep(finish session.Finish) {
	s := r.step
	if s == nil {
		return
	}
	if r.step = nil; len(s.parts) == 0 {
		if s.lines > 0 {
			r.in.SkipAt(s.offset, skipEmpty, s.lines)
		}
		return
	}
	m := history.Say(session.Assistant, s.at, s.parts...)
	m.Model, m.Provider, m.Finish = r.model, r.by, cmp.Or(finish, m.Finish)
	line := history.FileLine{At: s.offset, Number: s.number}
	r.push(line, history.Item{Key: s.key, Message: m, Records: s.lines}, entry{})
}

// result adds the result of a call. The reply that made it stands before it, though its end comes later.
func (r *reader) result(l history.FileLine, call, text string, failed bool, ms []byte) {
	if s := r.step; s != nil && len(s.parts) > 0 {
		r.endStep(session.FinishToolCalls)
		r.step = &step{key: s.key + "+", at: s.at, added: false}
	}
	p := history.ResultPart(call, "", text, &failed)
	if n, ok := history.Number(ms); ok {
		p.DurationMS = new(int64(n))
	}
	said := history.Say(session.Tool, r.at, p)
	r.push(l, history.Item{Key: cmp.Or(r.begun, "result") + "/" + call, Message: said}, entry{})
}

// usage counts a call: that of a step, or one beside the talk. It is one call, not a running total.
func (r *reader) usage(l history.FileLine, o jsonx.Object) {
	r.in.ImportInto(r.here, 1)
	u := o.Inner("usage")
	c := history.Call{Call: session.Call{
		Provider: r.by, Model: cmp.Or(r.model, history.Plain(o.String("model"))), CreatedAt: r.at,
		InputTokens: history.Count(u.Get("inputOther")), OutputTokens: history.Count(u.Get("output")),
		CacheReadTokens: history.Count(u.Get("inputCacheRead")), CacheWriteTokens: history.Count(u.Get("inputCacheCreation")),
	}}
	r.count(l, c, o.String("usageScope") == "session")
}

// count adds a row of the ledger. In a fork it has the same name as in its origin, and counts there.
func (r *reader) count(l history.FileLine, c history.Call, beside bool) {
	if c.ContextTokens() == 0 || r.in.Old(l.At) {
		return
	}
	if c.ExternalID = "kimi-code:" + history.LineKey(l.Bytes); beside {
		if c.Purpose = session.PurposeOther; r.kind == "compaction" {
			c.Purpose = session.PurposeSummary
		}
	} else if r.begun != "" {
		c.ExternalID = "kimi-code:" + r.begun
		if r.counted++; r.counted > 1 {
			c.ExternalID += "#" + strconv.Itoa(r.counted)
		}
		c.MessageKey = r.begun
	}
	r.whole.Calls = append(r.whole.Calls, c)
}

// compaction reads a summary. The context after it is what the person typed, and the summary.
func (r *reader) compaction(l history.FileLine, o jsonx.Object) {
	r.endStep("")
	summary := cmp.Or(o.String("summary"), history.TextOf(o.Inner("summary").Get("content")), o.String("contextSummary"))
	item := history.Item{Key: history.LineKey(l.Bytes), Message: history.Note(r.at, summary)}
	if r.now != nil {
		c := &history.Compaction{Key: item.Key, ThroughKey: r.now.key, Record: history.Place{Key: item.Key}}
		c.Summary, c.CreatedAt, c.Model = summary, r.at, r.model
		c.TokensBefore, c.TokensAfter = history.Count(o.Get("tokensBefore")), history.Count(o.Get("tokensAfter"))
		count := int(history.Count(o.First("compactedCount", "count")))
		if !o.Has("keptUserMessageCount") || string(o.Get("legacyTail")) == "true" {
			r.keepTail(c, count)
		}
		item.Summary = c
	}
	r.push(l, item, entry{cut: true})
	r.now.number = 1
}

// keepTail has an older summary keep the messages of the context from an index on.
func (r *reader) keepTail(c *history.Compaction, count int) {
	for e := r.now; e != nil && e.before != nil && e.number > count; e = e.before {
		if e.number == count+1 {
			c.ThroughKey, c.FirstKeptKey = e.before.key, e.key
		}
	}
}

// undo goes back over the prompts that the person typed, but not beyond a summary.
func (r *reader) undo(count int) {
	r.endStep("")
	for e := r.now; e != nil && !e.cut && count > 0; e = e.before {
		if e.typed {
			if count--; count == 0 {
				r.now = e.before
			}
		}
	}
}

// clear empties the context; the messages stay.
func (r *reader) clear(l history.FileLine) {
	r.endStep("")
	item := history.Item{Key: history.LineKey(l.Bytes), Message: history.Note(r.at, "The context was cleared.")}
	if r.now != nil {
		c := &history.Compaction{Key: item.Key, ThroughKey: r.now.key, Record: history.Place{Key: item.Key}}
		c.Strategy, c.CreatedAt = session.StrategyClear, r.at
		item.Summary = c
	}
	r.push(l, item, entry{cut: true})
}
