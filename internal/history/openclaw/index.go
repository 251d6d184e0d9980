package openclaw

import (
	"os"
	"path/filepath"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// readIndex takes what an index of keys says of the sessions: for those that are here what is
// new about them; of a key whose session has no transcript it makes an empty one. The files
// beside it that hold no conversation are counted with it.
func (s *source) readIndex(in *history.Intake) {
	o, err := readIndex(in.Found.Path)
	if err != nil {
		in.Fail(err)
		return
	}
	x := indexReader{in: in, source: s, agent: s.agentFor(in.Context(), in.Found.Path, nil)}
	for _, f := range o {
		x.entry(f.Key, f.Value)
	}
	x.beside(filepath.Dir(in.Found.Path))
	for _, p := range x.agent.problems {
		in.ProblemIn(p.Path, p.Error)
	}
}

type indexReader struct {
	in     *history.Intake
	source *source
	agent  *agent
}

// entry takes one key's entry.
func (x *indexReader) entry(written string, raw []byte) {
	entry, ok := jsonx.ReadFields(raw)
	id := entry.String("sessionId")
	if !ok || id == "" {
		x.in.Skip("entry without a session", 1)
		return
	}
	says := jsonx.Fingerprint(entry)[:12]
	if x.in.Repeats(written, says) {
		x.in.Skip(skipUnchanged, 1)
		return
	}
	key := canonicalKey(written, x.agent.id, entry.String("channel"))
	about := x.agent.sessions[x.agent.sidFor(id, indexed{key: key, written: written, entry: entry})]
	if about == nil { // the index changed since the agent was looked at
		about = newAbout(id, key, entry)
	}
	x.close(key, about)
	rows := []row{}
	r := reader{
		survey: newSurvey(x.in, rows, x.in.Bytes), source: x.source, agent: x.agent, about: about, sid: about.sid,
		rows: rows,
	}
	if at, ok := pi.Time(entry.Get("updatedAt")); ok && about.begun.IsZero() {
		about.begun = at
	}
	r.existing = x.in.Session(x.agent.id + "/" + about.sid)
	r.describe()
	b := history.Batch{}
	b.Session = r.session
	b.Records.Import(1)
	if r.existing != nil {
		changes := x.changes(&r)
		if changes == nil {
			x.in.Import(1)
			return
		}
		b.ID, b.Fields = r.existing.ID, changes
		if r.session.TitleSource == "source" && r.existing.TitleSource != "source" {
			b.Title = &r.session.Title
		}
	}
	x.in.Emit(b)
}

// close tells the generation before a key's present one that it has ended, and one that the
// store closed when the next one came, with its last message, when that really was.
func (x *indexReader) close(key string, now *about) {
	for _, s := range x.agent.keys[key] {
		if s.generation != now.generation-1 || s.ended.IsZero() {
			continue
		}
		here := x.in.Session(x.agent.id + "/" + s.sid)
		if here == nil || here.EndedAt != nil &&
			(!here.EndedAt.Equal(here.ActiveAt.Time) || here.EndedAt.Equal(s.ended.Time)) {
			return
		}
		b := history.Batch{}
		b.ID, b.Session.Source = here.ID, session.SourceOpenClaw
		b.Fields = &history.Changes{Key: key, Generation: s.generation, EndedAt: &s.ended, EndReason: s.reason}
		x.in.Emit(b)
		return
	}
}

func newAbout(sid, key string, entry jsonx.Object) *about {
	return &about{sid: sid, key: key, generation: 1, entry: entry}
}

// changes says what the index tells of a session that is here and was not known; nil for
// nothing. What its transcript told stays.
func (x *indexReader) changes(r *reader) *history.Changes {
	before := history.Notes(r.existing, string(session.SourceOpenClaw))
	after := before.Without("entry", "node", "window", "run")
	if len(before) == 0 {
		after = jsonx.Object{{Key: "agent", Value: []byte(session.JSONOf(r.agent.id))}}
	}
	after = append(after, r.agent.facts(r.about)...)
	parent, kind := r.parent()
	if r.existing.ParentID != "" {
		parent, kind = "", ""
	}
	if kind == session.ParentFork && r.existing.MessageCount > 0 {
		parent, kind = "", "" // it was imported whole
	}
	named := r.session.TitleSource == "source" && r.existing.TitleSource != "source" && r.existing.TitleSource != "given"
	if jsonx.Fingerprint(after) == jsonx.Fingerprint(before) && r.existing.Key == r.session.Key &&
		r.existing.Generation == r.session.Generation && parent == "" && !named {
		return nil
	}
	return &history.Changes{
		Metadata: after.Column(), Key: r.session.Key, Generation: r.session.Generation, ParentID: parent, ParentKind: kind,
	}
}

// beside counts the files in a sessions folder that hold no conversation.
func (x *indexReader) beside(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // Find told it
	}
	for _, e := range entries {
		switch parseName(e.Name()).kind {
		case fileBookkeeping:
			x.in.Skip(skipBookkeeping, 1)
		case fileTrace:
			x.in.Skip(skipTrace, 1)
		}
	}
}
