package copilotcli

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// reader replays one session.
type reader struct {
	in        *history.Intake
	id        string // of the session
	directory string
	header    *event // session.start
	main      *stream
	streams   []*stream          // in the order of their first events
	agents    map[string]*stream // of sub-agents, by their ids
	calls     map[string]*call   // of all streams, by id: the newest
	ledger    ledger
}

// stream is one conversation of a file: the main agent's, or a sub-agent's.
type stream struct {
	*history.Conversation
	tip      string           // the newest message
	calls    map[string]*call // by id: the newest
	call     *history.Call    // of a usage record whose reply has not come
	api      string           // the id of that call
	open     *reply           // a reply of which chunks are missing
	reasoned string           // reasoning of the newest reply
	prompts  map[string]bool  // system prompts
	spoken   []string         // messages in the context, since the last compaction
	begun    int              // how many of them there were when a compaction began; -1: none did
}

// read is the replay of a session.
func read(in *history.Intake) {
	r := &reader{
		in: in, agents: map[string]*stream{}, calls: map[string]*call{},
		ledger: ledger{before: map[string]tokens{}},
	}
	created, ok := r.begin()
	if !ok {
		return
	}
	history.EachEvent(in, created, r.line)
	for _, st := range r.streams {
		r.finish(st)
	}
}

// begin finds session.start and begins the main conversation; false: there is none.
func (r *reader) begin() (created session.Time, ok bool) {
	var d started
	r.header = history.FirstEvent(r.in, func(e *event) bool { return e.Type == "session.start" && e.decode(&d) })
	path := r.in.Found.Path
	if r.header == nil {
		r.in.Fail(session.Errorf(session.Invalid, "no session of Copilot CLI: its first lines hold no session.start"))
		return created, false
	}
	if r.id = plain(d.SessionID); r.id == "" {
		r.id = filepath.Base(filepath.Dir(path))
	}
	created, ok = history.ParseTime(d.StartTime)
	if !ok {
		created = r.header.Time
	}
	if !ok && !r.header.Timed {
		created = session.At(r.in.Found.ModifiedAt)
	}
	w := workspaceOf(path, r.id)
	r.directory = plain(cmp.Or(d.Context.CWD, w.CWD))
	data, _ := jsonx.ReadFields(r.header.Data)
	new := history.NewSession{
		SourceID: r.id, CreatedAt: &created, GitBranch: plain(cmp.Or(d.Context.Branch, w.Branch)),
		Model: plain(d.Model),
	}
	new.Metadata = jsonx.Object{}.WithRest(string(session.SourceCopilotCLI), data.Without("sessionId").Column()).Column()
	new.Title, new.TitleSource = history.Titled(history.FirstLine(plain(w.Name)), "")
	r.main = r.newStream(new)
	r.main.Silent, r.main.Title, r.main.tip = skipSilent, new.Title, r.main.Base()
	if spawner := plain(d.Spawner); spawner != "" && spawner != r.id {
		r.main.LinkOrAwait(spawner, session.ParentChild)
	}
	return created, true
}

func (r *reader) newStream(new history.NewSession) *stream {
	new.Source, new.Directory, new.Provider = session.SourceCopilotCLI, r.directory, provider
	st := &stream{Conversation: r.in.Conversation(new), calls: map[string]*call{}, prompts: map[string]bool{}, begun: -1}
	r.streams = append(r.streams, st)
	return st
}

// streamOf returns the conversation of an event. A sub-agent is named by the event, or in older
// builds by the call that started it.
func (r *reader) streamOf(e *event) *stream {
	var d struct {
		Parent string `json:"parentToolCallId"`
		Call   string `json:"toolCallId"`
	}
	if e.Wrong != "" || jsonx.Unmarshal(e.Data, &d) != nil {
		return r.main
	}
	id := plain(cmp.Or(e.AgentID, d.Parent))
	if id == "" {
		return r.main
	}
	if st := r.agents[id]; st != nil {
		return st
	}
	of := cmp.Or(d.Parent, e.AgentID)
	if e.Type == "subagent.started" {
		of = cmp.Or(d.Call, of)
	}
	created, by := e.Time, r.calls[of]
	new := history.NewSession{
		SourceID: r.id + "/" + id, Kind: "subagent", CreatedAt: &created,
		GitBranch: r.main.New.GitBranch,
	}
	if by != nil {
		new.Title, new.TitleSource = history.Titled("", session.TitleOf(plain(by.prompt())))
	}
	st := r.newStream(new)
	if r.agents[id], r.main.Silent = st, ""; by == nil {
		st.StartedBy(r.main.Conversation)
	} else {
		st.StartedByCall(by.by.Conversation, by.key, plain(of))
	}
	return st
}

// line reads one line.
func (r *reader) line(e *event) {
	st := r.streamOf(e)
	if e.Type == "assistant.message" && e.Wrong == "" {
		r.reply(st, e)
		return
	}
	r.closeReply(st)
	switch {
	case e.Wrong != "":
		r.keepRaw(st, e)
	case e.Type == "session.start" && e.Line.At == r.header.Line.At:
		r.in.ImportOnce(st.Conversation, 1)
	default:
		r.event(st, e)
	}
}

// event reads an event by its type.
func (r *reader) event(st *stream, e *event) {
	switch e.Type {
	case "session.shutdown":
		r.shutdown(e)
	case "session.usage_record":
		r.used(st, e)
	case "session.compaction_complete":
		r.compaction(st, e)
	case "assistant.turn_start", "assistant.turn_end":
		r.in.Skip(skipTurn, 1)
	case "system.message", "user.message", "assistant.reasoning":
		r.said(st, e)
	case "tool.execution_start":
		r.callBegan(st, e)
	case "tool.execution_complete":
		r.callEnded(st, e)
	case "session.resume":
		r.ledger.begin()
		r.aside(st, e)
	case "session.compaction_start":
		st.begun = len(st.spoken)
		r.aside(st, e)
	default:
		if e.Type == "session.start" || slices.Contains(beside, e.Type) || strings.HasPrefix(e.Type, "model.") {
			r.aside(st, e)
		} else {
			r.keepRaw(st, e)
		}
	}
}

// add adds the message of an event at the end of its stream.
func (r *reader) add(st *stream, e *event, decode func() history.Decoded) {
	entry := e.Entry(st.tip, decode)
	st.tip = e.Key
	st.Add(entry)
}

// say adds a message of the conversation.
func (r *reader) say(st *stream, e *event, decode func() session.Message) {
	st.Silent, st.spoken = "", append(st.spoken, e.Key)
	r.add(st, e, func() history.Decoded { return history.Alone(decode()) })
}

// keepRaw keeps the line of an event that is wrong, or of an unknown type.
func (r *reader) keepRaw(st *stream, e *event) {
	r.add(st, e, func() history.Decoded {
		return e.Raw(cmp.Or(e.Wrong, "unknown type of event"), session.SourceCopilotCLI)
	})
}

// beside are the types of events beside the conversation. So are those of "model.", which record the request of a
// compaction: session.compaction_complete has its text and its usage.
var beside = strings.Fields(`abort hook.end hook.start permission.completed permission.requested
	session.context_changed session.error session.info session.mode_changed session.model_change
	session.plan_changed session.task_complete session.truncation session.usage_checkpoint session.warning
	skill.invoked subagent.completed subagent.configured subagent.failed subagent.selected subagent.started
	system.notification tool.user_requested`)

// aside keeps an event beside the conversation. People see it if it says something to them.
func (r *reader) aside(st *stream, e *event, calls ...history.Call) {
	r.add(st, e, func() history.Decoded {
		m := e.message(session.KindCustom, "", session.Program)
		data, _ := jsonx.ReadFields(e.Data)
		for _, key := range []string{"message", "content", "summary", "reason", "newModel", "newMode", "agentDisplayName"} {
			if text := plain(data.String(key)); text != "" {
				m.Kind, m.Display, m.Parts = session.KindMarker, true, []session.Part{session.TextPart(text)}
				break
			}
		}
		d := history.Alone(m)
		d.Calls = calls
		return d
	})
}

// finish leaves what is not finished in a stream to the next reading.
func (r *reader) finish(st *stream) {
	if o := st.open; o != nil && r.in.ReplyWaits(strings.TrimSpace(o.Content) != "", len(o.Calls) > 0) {
		r.in.WaitAmong(o.lines[0], len(o.lines))
		st.open = nil
	}
	r.closeReply(st)
	if st.call != nil && r.in.ReplyWaits(true, false) {
		r.in.LookAgain()
	} else {
		r.settle(st)
	}
	if st.Fresh() > 0 || st.Here == nil {
		st.Head = st.tip
	}
}
