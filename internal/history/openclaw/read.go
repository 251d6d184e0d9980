package openclaw

import (
	"path/filepath"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// readFile reads a transcript or an index of keys.
func (s *source) readFile(in *history.Intake) error {
	path := in.Found.Path
	name := parseName(filepath.Base(path))
	if name.kind == fileIndex {
		return s.readIndex(in)
	}
	r := reader{source: s, bytes: in.Bytes, name: name, backup: name.kind == fileBackup || movedAway(path), agent: s.agentFor(in.Context(), path, nil)}
	return r.read(in)
}

// reader adds the entries of one transcript.
type reader struct {
	*survey
	source *source
	rows   []row                                // of a database; nil for a file of lines
	bytes  func(at, size int64) ([]byte, error) // reads a stretch of the transcript
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
func (r *reader) read(in *history.Intake) (err error) {
	if r.survey, err = look(in, r.rows, r.bytes, r.backup || r.name.kind == fileDeleted); err != nil {
		return err
	}
	if err := r.identify(); err != nil {
		return err
	}
	if r.existing == nil && in.Continues() { // nothing of it is here: all of it is new
		in.Restart()
		return r.read(in)
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
		return nil
	}
	return r.run()
}

// identify finds out which session the transcript is of. A copy is of the one that its name
// says: its header may have an id of its own.
func (r *reader) identify() error {
	id := r.Header.String("id")
	if id == "" || r.backup && r.name.id != "" {
		id = r.name.id
	}
	if r.sid = sidOf(id, r.name.topic); r.sid == "" {
		return session.Errorf(session.Invalid, "no transcript: neither its header nor its name says which session it is")
	}
	if r.about = r.agent.sessions[r.sid]; r.about == nil {
		r.about = &about{sid: r.sid}
	}
	if r.about.stored && r.rows == nil {
		r.backup = true
	}
	var err error
	r.existing, err = r.In.Session(r.agent.id + "/" + r.sid)
	return err
}

func (r *reader) run() error {
	if r.backup && r.existing == nil {
		r.backup = r.about.stored // the only trace of its session: all of it is new
	}
	if err := r.describe(); err != nil {
		return err
	}
	var err error
	if r.talk, err = r.In.Conversation(r.session); err != nil {
		return err
	}
	if r.backup {
		r.talk.KnownReason = skipBackup
	}
	if r.Header != nil {
		r.countHeader()
	}
	if r.existing != nil {
		older, err := r.IsOlder(r.talk)
		if err != nil {
			return err
		}
		if older {
			r.In.SkipAt(-1, skipOlder, r.fresh())
			return nil
		}
		if err := r.Adopt(r.existing.ID); err != nil {
			return err
		}
	}
	if err := r.fork(); err != nil {
		return err
	}
	for i := range r.Len() {
		n := &r.Nodes[i]
		err := r.talk.Add(history.Entry{
			Key: n.Key, Parent: r.KeyOf(n.Parent), At: n.Offset, Line: n.Line, Same: true,
			Decode: func() (history.Decoded, error) { return r.decode(i) },
		})
		if err != nil {
			return err
		}
	}
	return r.finish()
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
func (r *reader) fork() error {
	origin, kind := r.session.ParentID, r.session.ParentKind
	if r.existing != nil {
		origin, kind = r.existing.ParentID, r.existing.ParentKind
	}
	if origin == "" || kind != session.ParentFork {
		return nil
	}
	found, err := r.In.Known.SessionByID(r.In.Context(), origin)
	if err != nil || found == nil {
		return err
	}
	return r.talk.ForkedFrom(found)
}

// finish says what the session is now.
func (r *reader) finish() error {
	if r.backup {
		return r.keepHead()
	}
	r.talk.Head = r.KeyOf(r.leaf)
	if r.session.Title != "" && (r.existing == nil || r.session.TitleSource == "source" || r.Named) {
		r.talk.Title = r.session.Title
	}
	r.talk.Fields = r.fields()
	return nil
}

// keepHead leaves the head of the session where it is, which a copy must not move.
func (r *reader) keepHead() error {
	here := r.talk.Here
	if here == nil || here.Head == nil {
		return nil
	}
	head, err := r.In.Known.Load(r.In.Context(), *here.Head)
	if session.CodeOf(err) == session.NotFound {
		return nil
	}
	if err == nil {
		r.talk.Head = head.ExternalID
	}
	return err
}
