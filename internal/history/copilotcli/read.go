package copilotcli

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"sessiond/internal/history"
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
func read(in *history.Intake) error {
	r := &reader{in: in, agents: map[string]*stream{}, calls: map[string]*call{}, ledger: ledger{before: map[string]tokens{}}}
	created, err := r.begin()
	if err != nil {
		return err
	}
	if err := history.EachEvent(in, created, r.line); err != nil {
		return err
	}
	for _, st := range r.streams {
		if err := r.finish(st); err != nil {
			return err
		}
	}
	return nil
}

// begin finds session.start and begins the main conversation. Codes: Invalid (there is none).
func (r *reader) begin() (created session.Time, err error) {
	var d started
	r.header, err = history.FirstEvent(r.in, func(e *event) bool { return e.Type == "session.start" && e.decode(&d) })
	if err != nil {
		return created, err
	}
	path := r.in.Found.Path
	if r.header == nil {
		return created, session.Errorf(session.Invalid, "no session of Copilot CLI: its first lines hold no session.start")
	}
	if r.id = plain(d.SessionID); r.id == "" {
		r.id = filepath.Base(filepath.Dir(path))
	}
	created, ok := history.ParseTime(d.StartTime)
	if !ok {
		created = r.header.Time
	}
	if !ok && !r.header.Timed {
		created = session.At(r.in.Found.ModifiedAt)
	}
	w := workspaceOf(path, r.id)
	r.directory = plain(cmp.Or(d.Context.CWD, w.CWD))
	data, _ := history.Fields(r.header.Data)
	new := history.NewSession{SourceID: r.id, CreatedAt: &created, GitBranch: plain(cmp.Or(d.Context.Branch, w.Branch)), Model: plain(d.Model)}
	new.Metadata = history.Object{}.WithRest(string(session.SourceCopilotCLI), data.Without("sessionId").JSON()).JSON()
	title := history.FirstLine(plain(w.Name))
	if title != "" {
		new.Title, new.TitleSource = title, "source"
	}
	if r.main, err = r.newStream(new); err != nil {
		return created, err
	}
	r.main.Silent, r.main.Title = skipSilent, title
	if spawner := plain(d.Spawner); spawner != "" && spawner != r.id {
		_, err = r.main.LinkOrAwait(spawner, session.ParentChild)
	}
	return created, err
}

func (r *reader) newStream(new history.NewSession) (*stream, error) {
	new.Source, new.Directory, new.Provider = session.SourceCopilotCLI, r.directory, provider
	c, err := r.in.Conversation(new)
	st := &stream{Conversation: c, calls: map[string]*call{}, prompts: map[string]bool{}, begun: -1}
	r.streams = append(r.streams, st)
	return st, err
}

// streamOf returns the conversation of an event. A sub-agent is named by the event, or in older
// builds by the call that started it.
func (r *reader) streamOf(e *event) (*stream, error) {
	var d struct {
		Parent string `json:"parentToolCallId"`
		Call   string `json:"toolCallId"`
	}
	if e.Wrong != "" || history.Unmarshal(e.Data, &d) != nil {
		return r.main, nil
	}
	id := plain(cmp.Or(e.AgentID, d.Parent))
	if id == "" {
		return r.main, nil
	}
	if st := r.agents[id]; st != nil {
		return st, nil
	}
	of := cmp.Or(d.Parent, e.AgentID)
	if e.Type == "subagent.started" {
		of = cmp.Or(d.Call, of)
	}
	created, by := e.Time, r.calls[of]
	new := history.NewSession{SourceID: r.id + "/" + id, Kind: "subagent", CreatedAt: &created, GitBranch: r.main.New.GitBranch}
	if by != nil {
		if new.Title = session.TitleOf(plain(by.prompt())); new.Title != "" {
			new.TitleSource = "first_message"
		}
	}
	st, err := r.newStream(new)
	if err != nil {
		return nil, err
	}
	if r.agents[id], r.main.Silent = st, ""; by == nil {
		st.StartedBy(r.main.Conversation)
	} else {
		st.StartedByCall(by.by.Conversation, by.key, plain(of))
	}
	return st, nil
}

// line reads one line.
func (r *reader) line(e *event) error {
	st, err := r.streamOf(e)
	if err != nil {
		return err
	}
	if e.Type == "assistant.message" && e.Wrong == "" {
		return r.reply(st, e)
	}
	if err := r.closeReply(st); err != nil || e.Wrong != "" {
		if err != nil {
			return err
		}
		return r.keepRaw(st, e)
	}
	switch e.Type {
	case "session.start":
		if e.Line.At == r.header.Line.At {
			r.in.ImportOnce(st.Conversation, 1)
			return nil
		}
	case "session.resume":
		r.ledger.begin()
	case "session.shutdown":
		return r.shutdown(e)
	case "session.usage_record":
		return r.used(st, e)
	case "session.compaction_start":
		st.begun = len(st.spoken)
	case "session.compaction_complete":
		return r.compaction(st, e)
	case "assistant.turn_start", "assistant.turn_end":
		r.in.Skip(skipTurn, 1)
		return nil
	case "system.message", "user.message", "assistant.reasoning":
		return r.said(st, e)
	case "tool.execution_start":
		return r.callBegan(st, e)
	case "tool.execution_complete":
		return r.callEnded(st, e)
	default:
		if !slices.Contains(beside, e.Type) {
			return r.keepRaw(st, e)
		}
	}
	return r.aside(st, e)
}

// add adds the message of an event at the end of its stream.
func (r *reader) add(st *stream, e *event, decode func() history.Decoded) error {
	entry := e.Entry(st.tip, decode)
	st.tip = e.Key
	return st.Add(entry)
}

// say adds a message of the conversation.
func (r *reader) say(st *stream, e *event, decode func() session.Message) error {
	st.Silent, st.spoken = "", append(st.spoken, e.Key)
	return r.add(st, e, func() history.Decoded { return history.Alone(decode()) })
}

// keepRaw keeps the line of an event that is wrong, or of an unknown type.
func (r *reader) keepRaw(st *stream, e *event) error {
	return r.add(st, e, func() history.Decoded {
		return e.Raw(cmp.Or(e.Wrong, "unknown type of event"), session.SourceCopilotCLI)
	})
}

// beside are the types of events beside the conversation.
var beside = strings.Fields(`abort hook.end hook.start permission.completed permission.requested
	session.context_changed session.error session.info session.mode_changed session.model_change
	session.plan_changed session.task_complete session.truncation session.usage_checkpoint session.warning
	skill.invoked subagent.completed subagent.configured subagent.failed subagent.selected subagent.started
	system.notification tool.user_requested`)

// aside keeps an event beside the conversation. People see it if it says something to them.
func (r *reader) aside(st *stream, e *event, calls ...history.Call) error {
	return r.add(st, e, func() history.Decoded {
		m := e.message(session.KindCustom, "", session.Program)
		data, _ := history.Fields(e.Data)
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
func (r *reader) finish(st *stream) error {
	if o := st.open; o != nil && !r.in.Quiet() {
		r.in.WaitAmong(o.lines[0], len(o.lines))
		st.open = nil
	}
	if err := r.closeReply(st); err != nil {
		return err
	}
	if st.call != nil && !r.in.Quiet() {
		r.in.LookAgain()
	} else if err := r.settle(st); err != nil {
		return err
	}
	if st.Fresh() > 0 || st.Here == nil {
		st.Head = st.tip
	}
	return nil
}
