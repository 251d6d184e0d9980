package claudecode

import (
	"hash/maphash"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// reader replays one transcript.
type reader struct {
	*survey
	in     *history.Intake
	agent  string // the sub-agent whose file this is
	trunk  string // the session of the program
	forked bool   // the file repeats rows of other sessions

	main    *stream
	streams map[string]*stream       // of sub-agents in this file
	side    map[string]string        // rows of sub-agents in this file: the stream of each
	agents  map[string]string        // why progress of a sub-agent is skipped; "": it is not
	lines   map[string]uint64        // by uuid: hash of the line
	lastAt  session.Time             // of the newest row that has a time
	here    int64                    // offset of the row at hand
	queue   []*row                   // rows behind an open reply that do not end it
	extra   map[int64][]history.Call // what rows of costs add, by offset; nil: not computed yet
	grown   string                   // the longer version of a reply, while the rows behind it are handled
	states
}

// stream is one conversation of a file: its own, or a sub-agent's.
type stream struct {
	*history.Conversation
	tip       string            // the newest message
	next      map[string]string // a message: the row that hangs on it, before whatever follows
	messageOf map[string]string // a row: the message that stands for it; "" where none does
	before    map[string]string // a message: its parent
	called    map[string]int64  // open calls: when they were made, Unix milliseconds
	answered  map[string]string // calls: the message of the result
	starters  map[string]string // calls that start sub-agents: the message of each
	prompts   map[uint64]string // what these calls ask: the call
	spoken    bool              // something was said
	open      *reply            // nil: none is gathered
	bill      *openCall         // of the newest response
	cut       *cut              // a compaction whose summary has not come yet

	withdrawn []string         // messages that rows took out of the context since the last compaction
	cleared   []history.Output // results of tools, likewise
	agentType string           // of a sub-agent's file
	began     bool             // New is of its first message
}

// place is where a row hangs.
type place struct {
	key  string // the message; "": none, the row begins a branch
	note string // what is odd about it
}

// read is the replay of a transcript.
func read(in *history.Intake) {
	r := &reader{
		in: in, agent: agentOf(in.Found.Path), streams: map[string]*stream{}, side: map[string]string{},
		agents: map[string]string{}, lines: map[string]uint64{}, states: newStates(),
	}
	if r.survey = newSurvey(in); r.survey == nil {
		return
	}
	r.lastAt = r.first
	if r.lastAt.IsZero() {
		r.lastAt = session.At(in.Found.ModifiedAt)
	}
	r.trunk = r.nameTrunk()
	if in.Session(r.sourceID("")) == nil && r.isUnclear() {
		in.WaitWhole()
		return
	}
	r.begin()
	in.EachLine(r.line)
	r.finish()
}

// line reads one line.
func (r *reader) line(l history.FileLine) {
	r.here = l.At
	w, ok := parseRow(l)
	switch {
	case !ok:
		r.verbatim(l, "not a JSON object")
		return
	case jsonx.DeeperThan(l.Bytes, history.MaxDepth):
		r.verbatim(l, "nested too deep")
		return
	}
	if w.timed {
		r.lastAt = w.at
	} else {
		w.at = r.lastAt
	}
	if w.linked() {
		line := maphash.Bytes(r.seed, l.Bytes)
		before, again := r.lines[w.uuid]
		switch {
		case again && before == line:
			r.in.Skip(history.SkipDuplicate, 1)
			return
		case again:
			r.aside(w, w.Column(), "another row has its name",
				decoded{messages: []session.Message{aside(session.KindUnknown, "")}})
			return
		}
		r.lines[w.uuid] = line
	}
	r.row(w)
}

// row finds the conversation of a row. Rows that may stand between those of one reply wait until
// it is whole.
func (r *reader) row(w *row) {
	st := r.streamOf(w)
	open := r.main.open
	switch {
	case st == nil:
		r.in.At(w.offset, w.end)
		r.in.Skip(skipInherited, 1)
		r.flush()
		return
	case st != r.main:
		r.flush()
		if w.kind != typeAssistant {
			r.close(st)
		}
	case open == nil:
	case w.reply() != "" && w.reply() == open.id && !w.made() && len(open.rows) < maxRows:
	case w.mayInterrupt() && len(r.queue) < maxQueue:
		r.queue = append(r.queue, w)
		return
	default:
		r.flush()
	}
	r.handle(st, w)
}

// mayInterrupt reports whether a row may stand between the rows of one reply.
func (w *row) mayInterrupt() bool {
	if w.kind == typeProgress {
		return w.Inner("data").String("type") == "hook_progress"
	}
	return w.uuid == "" && w.kind != typeCost && (isState(w.kind) || isRecord(w.kind))
}

// flush closes the reply of the file's own conversation and handles the rows that waited for it.
func (r *reader) flush() {
	grown := len(r.queue) > 0 && r.hasGrown(r.main)
	r.close(r.main)
	queue := r.queue
	if r.queue = nil; grown {
		r.grown = r.main.tip
	}
	for _, w := range queue {
		r.handle(r.main, w)
	}
	r.grown = ""
}

// hasGrown reports whether an earlier reading imported the open reply without its last rows. Rows that stood
// behind it then hang on the shorter one; behind the longer one they get other names.
func (r *reader) hasGrown(st *stream) bool {
	return st.open != nil && slices.ContainsFunc(st.open.rows[:len(st.open.rows)-1], func(w *row) bool {
		return st.Has(w.uuid)
	})
}

// streamOf returns the conversation of a row: the file's own, or that of a sub-agent in it; nil for one that
// the session that this one was forked off holds.
func (r *reader) streamOf(w *row) *stream {
	if r.agent != "" || !w.side || !w.linked() {
		return r.main
	}
	id := "side-" + w.uuid
	if agent := plain(w.String("agentId")); agent != "" {
		id = "agent-" + agent
	} else if of, ok := r.side[w.parent]; ok {
		id = of
	}
	r.side[w.uuid] = id
	if r.inherits(id) {
		return nil
	}
	return r.stream(id)
}

// inherits reports whether a session that this one was forked off has the sub-agent of a conversation in
// this file. Copies that came before their originals stay.
func (r *reader) inherits(id string) bool {
	if !r.forked || r.streams[id] != nil || r.in.Session(r.sourceID(id)) != nil {
		return false
	}
	agent, isAgent := strings.CutPrefix(id, "agent-")
	return slices.ContainsFunc(r.main.Origins(), func(s *session.Session) bool {
		path := filepath.Join(filepath.Dir(r.in.Found.Path), s.SourceID+ending)
		return isAgent && hasAgentFile(r.in, path, agent) || // it comes after all trunks
			r.in.Session(s.SourceID+"#"+id) != nil
	})
}

// skips returns why progress of a sub-agent is skipped; "": it is not.
func (r *reader) skips(agent string) string {
	why, known := r.agents[agent]
	switch {
	case known:
	case hasAgentFile(r.in, r.in.Found.Path, agent):
		why = skipSubagent
	case r.inherits("agent-" + agent):
		why = skipInherited
	}
	r.agents[agent] = why
	return why
}

// handle turns a row into what it becomes.
func (r *reader) handle(st *stream, w *row) {
	r.here = w.offset
	r.in.At(w.offset, w.end)
	w.parseContent()
	switch {
	case !w.linked():
		r.state(st, w)
		if w.kind == typeCost {
			r.chargeExtras(st, w)
		}
	case w.kind == typeAssistant:
		r.assistant(st, w)
	case w.kind == typeProgress:
		r.progress(st, w, r.attach(st, w))
	case w.kind == typeUser:
		r.user(st, w, r.attach(st, w))
	case w.kind == typeSystem:
		r.system(st, w, r.attach(st, w))
	case w.kind == typeAttachment:
		r.attachment(st, w, r.attach(st, w))
	default:
		r.put(st, w, r.attach(st, w), decoded{messages: []session.Message{aside(session.KindUnknown, "")}, behind: true})
	}
}

// isTrunk reports whether a conversation is a person's, not a sub-agent's.
func (r *reader) isTrunk(st *stream) bool { return st == r.main && r.agent == "" }

// attach finds the message that a row follows. Rows that hang on its parent, and lie before what
// comes after, lie before this one, too.
func (r *reader) attach(st *stream, w *row) place {
	named, boundary := w.parent, w.parent == "" && w.String("subtype") == "compact_boundary"
	if boundary {
		named = plain(w.String("logicalParentUuid"))
	}
	speaks := w.kind == typeUser || w.kind == typeAssistant
	switch {
	case named == "" && (boundary || !speaks || !st.spoken):
		return place{key: st.tip} // behind states that begin a file, or a hook that begins a session anew
	case named == "":
		return place{}
	case named == w.uuid:
		return place{note: "it named itself as its parent"}
	}
	key, ok := st.resolve(named)
	switch {
	case ok:
		return place{key: st.last(key)}
	case boundary: // it names a row of another file
		return place{key: st.tip}
	case st.Base() != "": // it names a row that repeats the conversation which was handed over
		return place{key: st.last(st.Base())}
	}
	return place{note: "its parent is not in the file before it"}
}

// resolve finds the message that stands for a row, in this file or as it was once.
func (st *stream) resolve(uuid string) (key string, ok bool) {
	if key, ok := st.messageOf[uuid]; ok {
		return key, true
	}
	_, ok = st.Find(uuid)
	return uuid, ok
}

// last follows the rows that hang on a message.
func (st *stream) last(key string) string {
	end := key
	for next, ok := st.next[end]; ok && end != ""; next, ok = st.next[end] {
		end = next
	}
	if end != key {
		st.next[key] = end // the next search is shorter
	}
	return end
}

// reply gathers the rows of one response.
type reply struct {
	id   string
	rows []*row
	at   place
	size int
}

// Bounds of a reply that is gathered: its rows, and rows that came up between them.
const (
	maxRows  = 512
	maxQueue = 64
)

func (o *reply) last() *row { return o.rows[len(o.rows)-1] }

// ended reports whether the response said that nothing more comes.
func (o *reply) ended() bool { return o.last().endsReply() || o.last().made() }

func (o *reply) says() bool {
	return slices.ContainsFunc(o.rows, func(w *row) bool { return strings.TrimSpace(w.text) != "" })
}

func (o *reply) calls() bool {
	return slices.ContainsFunc(o.rows, func(w *row) bool { return len(w.calls()) > 0 })
}

func (w *row) endsReply() bool {
	switch w.message.String("stop_reason") {
	case "end_turn", "stop_sequence", "max_tokens", "refusal", "model_context_window_exceeded":
		return true
	}
	return false
}

// assistant adds a row to its response.
func (r *reader) assistant(st *stream, w *row) {
	if open := st.open; open != nil && (w.reply() != open.id || w.made() || open.supersededBy(w)) {
		r.close(st)
	}
	if st.open == nil {
		st.open = &reply{id: w.reply(), at: r.attach(st, w)}
	}
	open := st.open
	open.rows = append(open.rows, w)
	if open.size += w.size; open.size > history.MaxBatchBytes || len(open.rows) >= maxRows || w.made() {
		r.close(st)
	}
}

// finish leaves what is not finished to the next reading and closes the rest.
func (r *reader) finish() {
	r.here = r.in.Found.Size
	if rows := r.unfinished(r.main); len(rows) > 0 {
		r.in.Wait(rows[0].offset, len(rows)+len(r.queue))
		r.queue = nil
	}
	r.flush()
	for _, id := range slices.Sorted(maps.Keys(r.streams)) {
		r.finishStream(r.streams[id])
	}
	r.finishStream(r.main)
	r.nameOthers()
	r.main.Title = r.title()
	if r.agent != "" || isAgentFile(r.in.Found.Path) {
		return
	}
	s := r.main.Here
	untitled := s != nil && (s.Title == "" || s.TitleSource == "first_message")
	if title := r.firstTitle(); r.in.Rewritten() || untitled && title != s.Title { // the first reading had no prompt yet
		r.main.Change().FirstTitle = title
	}
	if s != nil && s.Kind != r.kindOfTrunk() { // a person went on in it
		r.main.Change().Kind = r.kindOfTrunk()
	}
}

// unfinished removes the rows of a reply that may get more of them.
func (r *reader) unfinished(st *stream) []*row {
	open := st.open
	if open == nil || open.ended() || !r.in.ReplyWaits(open.says(), open.calls()) {
		return nil
	}
	st.open = nil
	return open.rows
}

func (r *reader) finishStream(st *stream) {
	if rows := r.unfinished(st); len(rows) > 0 {
		r.in.WaitAmong(rows[0].offset, len(rows))
	}
	r.close(st)
	switch {
	case st.bill == nil:
	case st.bill.ended || !r.in.ReplyWaits(true, false):
		r.settle(st)
	default:
		r.in.LookAgain()
	}
	if st.Fresh() > 0 || st.Here == nil {
		st.Head = st.tip
	}
}

// progress follows what runs. It is no part of the conversation, but rows name it as their
// parent. Progress of a sub-agent without a file of its own is all there is of that one.
func (r *reader) progress(st *stream, w *row, at place) {
	st.messageOf[w.uuid] = at.key
	agent, said, ok := w.ofAgent()
	why := ""
	if ok {
		why = r.skips(agent)
		call := plain(w.String("parentToolUseID"))
		st.Starts(w.offset, r.sourceID("agent-"+agent), st.starters[call], call)
	}
	switch {
	case why != "":
		r.in.Skip(why, 1)
		return
	case !ok || said.kind != typeUser && said.kind != typeAssistant:
		r.in.Skip(skipProgress, 1)
		return
	}
	of := r.stream("agent-" + agent)
	if of.open != nil && said.reply() == of.open.id {
		said.parent = of.open.last().uuid
	} else {
		r.close(of)
		said.parent = of.tip // the rows are in the order of the conversation
	}
	r.handle(of, said)
}

// verbatim keeps a line that is no row.
func (r *reader) verbatim(l history.FileLine, why string) {
	w := &row{number: l.Number, offset: l.At, end: l.End, at: r.lastAt}
	kept := history.KeepRaw(l.Bytes, why, session.SourceClaudeCode, r.lastAt)
	r.aside(w, l.Bytes, "", decoded{messages: []session.Message{kept.Messages[0].Message}, problem: kept.Problem})
}

// aside puts what is no row of the chain behind the file's newest message.
func (r *reader) aside(w *row, line []byte, note string, d decoded) {
	r.flush()
	r.in.At(w.offset, w.end)
	r.putUnnamed(r.main, w, line, note, d)
}

// putUnnamed puts a row that has no name of its own behind the tip. What follows goes on behind it.
func (r *reader) putUnnamed(st *stream, w *row, line []byte, note string, d decoded) {
	w.uuid, d.own, d.behind = r.nameOf(line), true, true
	r.put(st, w, place{key: st.tip, note: note}, d)
}
