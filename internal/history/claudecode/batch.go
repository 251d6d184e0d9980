package claudecode

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// pending is what was read of a stream and not given away.
type pending struct {
	batch history.Batch
	keys  map[string]bool
}

func (r *reader) pending(_ string, st *stream) *pending {
	if st.batch == nil {
		st.batch = &pending{batch: history.Batch{Cuts: r.cuts}, keys: map[string]bool{}}
		st.batch.batch.Messages, r.used = r.used, nil
	}
	return st.batch
}

// put adds one message behind another and counts its rows.
func (r *reader) put(id string, st *stream, w *row, m history.Message, at place, note string, raw bool) {
	p := r.pending(id, st)
	if m.ExternalID == "" {
		m.ExternalID = w.uuid
	}
	m.CreatedAt, m.ParentKey, m.ParentSession = w.at, at.Key, at.Session
	if m.Dialect == "" {
		m.Dialect = string(session.SourceClaudeCode)
	}
	m.Extra = r.rest(w, m.Extra, at, note)
	p.batch.Messages = append(p.batch.Messages, m)
	p.keys[m.ExternalID] = true
	r.waiting++
	r.bytes += history.Size(&m)
	st.Tip = place{Key: m.ExternalID}
	put(&st.Before, m.ExternalID, at)
	if raw {
		p.batch.Records.KeepRaw(max(m.Records, 1))
	} else {
		p.batch.Records.Import(max(m.Records, 1))
	}
}

// rest keeps, beside what the dialect keeps, the row's own fields that no column and no session
// says already. What a result holds again for display is left out where it is large.
func (r *reader) rest(w *row, extra session.JSON, at place, note string) session.JSON {
	drop := []string{"message", "uuid", "timestamp", "isSidechain", "userType"}
	if w.kind == typeUser || w.kind == typeAssistant {
		drop = append(drop, "type") // the role says it
	}
	same := func(key, value string) {
		if w.String(key) == value {
			drop = append(drop, key)
		}
	}
	same("sessionId", r.trunk)
	same("session_id", r.trunk)
	same("cwd", r.cwd)
	same("gitBranch", r.branch)
	same("version", r.version)
	if at.Key == w.parent && w.parent != "" || w.parent == "" && string(w.Get("parentUuid")) == "null" {
		drop = append(drop, "parentUuid")
	}
	line := w.Without(drop...)
	if told := line.Get("toolUseResult"); len(told) > session.BlobThreshold {
		line = line.With("toolUseResult", []byte(session.JSONOf(map[string]int{"omitted_bytes": r.cuts.Size(told)})))
	}
	o, _ := history.Fields(extra)
	add := func(key string, raw []byte) { o = append(o, history.Field{Key: key, Raw: raw}) }
	if len(line) > 0 {
		add("line", []byte(line.JSON()))
	}
	if note != "" {
		add("note", []byte(session.JSONOf(note)))
	}
	if w.bytes != nil {
		add("bytes", []byte(session.JSONOf(base64.StdEncoding.EncodeToString(w.bytes))))
	}
	return o.JSON()
}

// giveLarge gives away what all streams have when that is large enough, the file's own first.
func (r *reader) giveLarge() error {
	if !history.Full(r.waiting, r.bytes) {
		return nil
	}
	for _, id := range r.state.ids() {
		if st := r.state.Streams[id]; st.batch != nil {
			if err := r.give(id, st); err != nil {
				return err
			}
		}
	}
	r.waiting, r.bytes = 0, 0
	return nil
}

// give emits what a stream has. A sub-agent's session comes after the one that started it.
func (r *reader) give(id string, st *stream) error {
	main := r.state.stream("")
	if id != "" && !main.started {
		if err := r.give("", main); err != nil {
			return err
		}
	}
	p := r.pending(id, st)
	b := p.batch
	if err := r.session(id, st, &b); err != nil {
		return err
	}
	if id == "" {
		b.Records.Add(r.records)
		r.records = history.Records{}
		r.told = r.told || len(b.Messages)+len(b.Calls) > 0
	}
	if tip := st.Tip; id != "" && tip.Key != "" && (len(b.Messages) > 0 || !st.started) { // the file's own has its head with the last
		b.Head, b.HeadSession = &tip.Key, tip.Session
	}
	st.batch = nil
	if err := r.emit(b); err != nil {
		return err
	}
	clear(b.Messages)
	r.used = b.Messages[:0]
	st.started = true
	return r.ctx.Err()
}

// giveLast gives what is left: the sub-agents, then the file's own stream with the cursor.
func (r *reader) giveLast() error {
	main := r.state.stream("")
	for _, id := range r.state.ids() {
		st := r.state.Streams[id]
		if id != "" && st.batch != nil {
			if err := r.give(id, st); err != nil {
				return err
			}
		}
	}
	b := r.pending("", main).batch
	if !main.Spoken && r.existing == nil && len(r.state.Streams) == 1 {
		return r.silent(b)
	}
	if err := r.session("", main, &b); err != nil {
		return err
	}
	b.Records.Add(r.records)
	if tip := main.Tip; tip.Key != "" && (r.told || len(b.Messages) > 0 || r.existing == nil) {
		b.Head, b.HeadSession = &tip.Key, tip.Session
	}
	if title := r.title(); title != "" {
		b.Title = &title
	}
	if r.state.States == nil {
		r.state.States = map[string]string{}
	}
	r.state.States["trunk"] = r.trunk
	r.cursor.State = r.state.saved()
	b.Cursor = &r.cursor
	return r.emit(b)
}

// silent counts the rows of a file in which nobody speaks: there is no session to show. It is
// read from its beginning when it grows.
func (r *reader) silent(b history.Batch) error {
	r.records.Skip(skipSilent, b.Records.Imported+b.Records.Raw)
	last := history.Batch{Records: r.records}
	r.cursor.Offset, r.cursor.Hash, r.cursor.State = 0, "", nil
	last.Cursor = &r.cursor
	return r.emit(last)
}

// title is the name that the person gave the session, else the model's.
func (r *reader) title() string {
	for _, title := range []string{r.state.Custom, r.state.Given, r.state.Summary} {
		if title != "" {
			return title
		}
	}
	if s := r.existing; s != nil && r.typed != "" && s.TitleSource == "first_message" && strings.HasPrefix(s.Title, "/") {
		return history.FirstLine(plain(r.typed)) // better than the command that came before it
	}
	return ""
}

// sessionOf gives the session of a stream, "" while it is not here.
func (r *reader) sessionOf(id string) (session.ID, error) {
	if id == "" && r.existing != nil {
		return r.existing.ID, nil
	}
	st := r.state.stream(id)
	if !st.started && !r.continues {
		return "", nil
	}
	found, err := r.known.Session(r.ctx, session.SourceClaudeCode, r.source(id))
	if err != nil || found == nil {
		return "", err
	}
	if id == "" {
		r.existing = found
	}
	return found.ID, nil
}

// session says of which session a batch is.
func (r *reader) session(id string, st *stream, b *history.Batch) error {
	created := r.state.LastAt
	switch {
	case len(b.Messages) > 0:
		created = b.Messages[0].CreatedAt
	case !r.first.IsZero():
		created = r.first
	}
	s := history.NewSession{
		Source: session.SourceClaudeCode, SourceID: r.source(id), CreatedAt: &created,
		Directory: r.cwd, GitBranch: r.branch, Provider: "anthropic",
	}
	of, err := r.sessionOf(id)
	if err != nil {
		return err
	}
	b.ID = of
	about := map[string]string{}
	if r.version != "" {
		about["version"] = r.version
	}
	if id != "" || r.agent != "" || isAgentFile(r.path) {
		s.Kind = "subagent"
		if err := r.child(id, &s, about, b); err != nil {
			return err
		}
	} else {
		s.Title, s.TitleSource = history.FirstLine(plain(r.typed)), "first_message"
		if s.Title == "" {
			s.Title = history.FirstLine(plain(r.command))
		}
		if s.Title == "" {
			s.TitleSource = ""
		}
		if n := len(r.state.Owners); n > 0 {
			s.ParentID, s.ParentKind = r.state.Owners[n-1], session.ParentFork
		}
	}
	if len(about) > 0 {
		s.Metadata = session.JSONOf(map[string]any{"claude-code": about})
	}
	b.Session = s
	return nil
}

// child says who started a sub-agent, and what it was asked.
func (r *reader) child(id string, s *history.NewSession, about map[string]string, b *history.Batch) error {
	parent := r.trunk
	if id != "" {
		parent = r.source("")
	}
	kind := ""
	if text, err := history.ReadFile(strings.TrimSuffix(r.path, ending) + ".meta.json"); err == nil && id == "" && r.agent != "" && len(text) < 1<<16 {
		meta, _ := history.ParseObject(text)
		kind = plain(meta.String("agentType"))
		about["agent_type"], about["tool_use_id"] = kind, plain(meta.String("toolUseId"))
		if other := plain(meta.String("parentAgentId")); other != "" {
			parent = r.trunk + "#agent-" + other
		}
	}
	if err := r.starter(id, parent, s, about["tool_use_id"], b); err != nil {
		return err
	}
	for i := range b.Messages {
		if m := &b.Messages[i]; m.Role == session.User && m.InContext {
			s.Title = history.FirstLine(m.Text())
			break
		}
	}
	if kind != "" && s.Title != "" {
		s.Title = history.FirstLine(kind + ": " + s.Title)
	}
	if s.Title != "" {
		s.TitleSource = "first_message"
	}
	return nil
}

// starter finds the session that started a sub-agent. One that comes later is linked when it does;
// until then the trunk stands for an agent that started another.
func (r *reader) starter(id, parent string, s *history.NewSession, call string, b *history.Batch) error {
	found, err := r.known.Session(r.ctx, session.SourceClaudeCode, parent)
	if err != nil {
		return err
	}
	trunk := found
	if parent != r.trunk {
		if trunk, err = r.known.Session(r.ctx, session.SourceClaudeCode, r.trunk); err != nil {
			return err
		}
	}
	if id == "" {
		switch {
		case found != nil:
			r.state.Awaits = ""
		case trunk != nil:
			r.state.Awaits = parent
		default:
			r.state.Awaits = r.trunk
		}
	}
	if found == nil {
		found = trunk
	}
	if found == nil {
		return nil
	}
	s.ParentID, s.ParentKind = found.ID, session.ParentChild
	here := r.existing
	late := id == "" && here != nil && here.ID != found.ID && (here.ParentID == "" || trunk != nil && here.ParentID == trunk.ID && found.ID != trunk.ID)
	if late {
		circle, err := history.ComesFrom(r.ctx, r.known, found, here)
		if err != nil {
			return err
		}
		late = !circle // agents that name one another
	}
	if call != "" && (b.ID == "" || late) {
		if err := r.startedBy(found.ID, s, call); err != nil {
			return err
		}
	}
	if late {
		b.Fields = &history.Changes{ParentID: found.ID, ParentKind: session.ParentChild, Instead: here.ParentID, Started: s.Started, StartedCall: s.StartedCall}
	}
	return nil
}

func rawOf(v any) json.RawMessage { return json.RawMessage(session.JSONOf(v)) }

// startedBy finds the call that started a sub-agent.
func (r *reader) startedBy(parent session.ID, s *history.NewSession, call string) error {
	return r.known.Entries(r.ctx, parent, func(m *session.Message) bool {
		for _, p := range m.Calls() {
			if p.CallID == call {
				s.Started, s.StartedCall = &m.ID, call
				return false
			}
		}
		return true
	})
}
