package openclaw

import (
	"path/filepath"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// readFile reads a transcript or an index of keys.
func (s *source) readFile(in *history.Intake) {
	path := in.Found.Path
	name := parseName(filepath.Base(path))
	if name.kind == fileIndex {
		s.readIndex(in)
		return
	}
	r := reader{
		source: s, bytes: in.Bytes, name: name, backup: name.kind == fileBackup || movedAway(path),
		agent: s.agentFor(in.Context(), path, nil),
	}
	r.read(in)
}

// reader adds the entries of one transcript.
type reader struct {
	*survey
	source *source
	rows   []row                       // of a database; nil for a file of lines
	bytes  func(at, size int64) []byte // reads a stretch of the transcript
	name   fileName
	agent  *agent
	about  *about // never nil after the survey
	backup bool   // it moves no head

	sid      string
	talk     *history.Conversation
	existing *session.Session
	session  history.NewSession
	last     session.Time
}

// read surveys the transcript and adds its entries.
func (r *reader) read(in *history.Intake) {
	r.survey = look(in, r.rows, r.bytes, r.backup || r.name.kind == fileDeleted)
	if in.Err() != nil || !r.identify() {
		return
	}
	if r.existing == nil && in.Continues() { // nothing of it is here: all of it is new
		in.Restart()
		r.read(in)
		return
	}
	r.source.mu.Lock()
	asked := r.source.asked[in.Found.Path]
	r.source.mu.Unlock()
	if r.name.kind == fileDeleted && !asked && kindOf(r.key()) != "cron" {
		header := 0
		if r.Header != nil && !in.Continues() {
			header = 1
		}
		in.SkipAll(skipDeleted, r.fresh()+header)
		return
	}
	r.run()
}

// identify finds out which session the transcript is of; false: nothing says it. A copy is of the one
// that its name says: its header may have an id of its own.
func (r *reader) identify() bool {
	id := r.Header.String("id")
	if id == "" || r.backup && r.name.id != "" {
		id = r.name.id
	}
	if r.sid = sidOf(id, r.name.topic); r.sid == "" {
		r.In.Fail(session.Errorf(session.Invalid, "no transcript: neither its header nor its name says which session it is"))
		return false
	}
	if r.about = r.agent.sessions[r.sid]; r.about == nil {
		r.about = &about{sid: r.sid}
	}
	r.backup = r.backup || r.about.stored && r.rows == nil
	r.existing = r.In.Session(r.agent.id + "/" + r.sid)
	return true
}

func (r *reader) run() {
	if r.backup && r.existing == nil {
		r.backup = r.about.stored // the only trace of its session: all of it is new
	}
	r.describe()
	r.talk = r.In.Conversation(r.session)
	if r.backup {
		r.talk.KnownReason = skipBackup
	}
	if r.Header != nil {
		r.countHeader()
	}
	if r.existing != nil && r.talk.Here != nil {
		if r.IsOlder(r.talk) {
			r.In.SkipAt(-1, skipOlder, r.fresh())
			return
		}
		r.Adopt(r.existing.ID)
	}
	r.fork()
	for i := range r.Len() {
		n := &r.Nodes[i]
		r.talk.Add(history.Entry{
			Key: n.Key, Parent: r.KeyOf(n.Parent), At: n.Offset, Line: n.Line, Same: true,
			NoRecords: r.rows != nil && r.rows[n.Line-1].lent,
			Decode:    func() history.Decoded { return r.decode(i) },
		})
	}
	r.finish()
}

// countHeader counts the header's line.
func (r *reader) countHeader() {
	switch {
	case r.In.Continues():
	case r.existing == nil:
		r.In.Import(1)
	default:
		r.In.Skip(r.talk.KnownReason, 1)
	}
}

// fork finds the sessions of which the transcript may hold copies.
func (r *reader) fork() {
	origin, kind := r.session.ParentID, r.session.ParentKind
	if r.existing != nil {
		origin, kind = r.existing.ParentID, r.existing.ParentKind
	}
	if origin == "" || kind != session.ParentFork {
		return
	}
	if found := r.In.SessionByID(origin); found != nil {
		r.talk.ForkedFrom(found)
	}
}

// finish says what the session is now. A copy leaves its head where it is.
func (r *reader) finish() {
	if r.backup {
		if here := r.talk.Here; here != nil && here.Head != nil {
			if head, err := r.In.Known.Message(r.In.Context(), *here.Head); err == nil { // else it is gone
				r.talk.Head = head.ExternalID
			}
		}
		return
	}
	r.talk.Head = r.KeyOf(r.leaf)
	if r.session.Title != "" && (r.existing == nil || r.session.TitleSource == "source" || r.Named) {
		r.talk.Title = r.session.Title
	}
	r.talk.Fields = r.fields()
}
