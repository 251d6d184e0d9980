package openclaw

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/jsonx"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// key returns the session's key: the index's, else that of the job that its first text names.
func (r *reader) key() string {
	if r.about.key == "" {
		if job := cronPrompt.FindStringSubmatch(r.FirstUser); job != nil {
			return canonicalKey("cron:"+job[1], r.agent.id, "")
		}
	}
	return r.about.key
}

var cronPrompt = pattern.New(`^\[cron:([^\s\]]+)`)

// describe says what the session is: from the header, the entries, the index and the store.
func (r *reader) describe() {
	created := r.created()
	key := r.key()
	kind := kindOf(key)
	if kind == "chat" && r.about.entry.String("spawnedBy") != "" {
		kind = "subagent"
	}
	s := history.NewSession{
		Source: session.SourceOpenClaw, SourceID: r.agent.id + "/" + r.sid, Kind: kind, Key: key,
		Directory: r.Header.String("cwd"), CreatedAt: &created, Metadata: named(r.metadata()),
	}
	if key != "" {
		s.Generation = max(r.about.generation, 1)
	}
	// The title is what the session was called in the conversation, else what the index calls it, else its first
	// words, without what the gateway puts in front of them.
	s.Title, s.TitleSource = history.Titled(cmp.Or(r.Title, r.about.name()), session.TitleOf(bare(r.FirstUser)))
	s.Provider, s.Model = r.model()
	if window, ok := pi.Whole(r.about.entry.Get("contextTokens")); ok && window > 0 {
		s.Window = &window
	}
	if r.existing == nil {
		s.ParentID, s.ParentKind = r.parent()
	}
	r.session = s
}

// name is what the index calls a session.
func (s *about) name() string {
	return cmp.Or(s.entry.String("displayName"), s.entry.String("label"), s.entry.String("subject"),
		s.node.String("display_name"), s.node.String("label"), s.window.String("display_name"))
}

var (
	envelope = pattern.New(`^(?:\[[^\]\n]{1,200}\]\s*)+`)
	metadata = pattern.New("(?s)^[A-Za-z ]{1,60}\\(untrusted[^)]*\\):?\\s*```[a-z]*\\n.*?```\\s*")
)

// bare takes what the gateway puts before a person's words off them: blocks about the sender
// and the conversation, and stamps in brackets. A text that is nothing else stays.
func bare(text string) string {
	rest := text
	for {
		shorter := strings.TrimSpace(envelope.ReplaceAllString(metadata.ReplaceAllString(rest, ""), ""))
		if shorter == rest {
			break
		}
		rest = shorter
	}
	if rest == "" {
		return text
	}
	return rest
}

// created returns the earlier of the header's time and that of the first entry: its day is that
// of the session.
func (r *reader) created() session.Time {
	created, ok := pi.Time(r.Header.Get("timestamp"))
	if !ok {
		created = r.about.begun
	}
	for i := range r.Len() {
		n := &r.Nodes[i]
		if n.Kind == pi.Broken {
			continue
		}
		if first, ok := timeOf(r.Reread(i), n.Made); ok && (created.IsZero() || first.Before(created.Time)) {
			created = first
		}
		break
	}
	if created.IsZero() && r.In != nil && !r.In.Found.ModifiedAt.IsZero() {
		created = session.At(r.In.Found.ModifiedAt)
	}
	r.last = created
	return created
}

// model returns the newest model on the path of the leaf, else the index's, else the header's.
func (r *reader) model() (provider, model string) {
	provider, model = r.Model(r.leaf, func(line, message jsonx.Object) bool { return !unwritten(line, message) })
	if model != "" {
		return provider, model
	}
	if model := cmp.Or(r.about.entry.String("model"), r.about.window.String("model")); model != "" {
		return cmp.Or(r.about.entry.String("modelProvider"), r.about.window.String("model_provider")), model
	}
	return r.Header.String("provider"), r.Header.String("modelId")
}

// fields are what may have changed since the session was imported first.
func (r *reader) fields() *history.Changes {
	f := &history.Changes{
		Provider: r.session.Provider, Model: r.session.Model, Metadata: r.metadata(), Key: r.session.Key,
		Generation: r.session.Generation,
		ParentID:   r.session.ParentID, ParentKind: r.session.ParentKind,
	}
	switch {
	case !r.name.put.IsZero():
		f.EndedAt = &r.name.put
	case !r.about.ended.IsZero():
		f.EndedAt, f.EndReason = &r.about.ended, r.about.reason
	}
	return f
}

// named puts what is kept of a session under the source's name.
func named(facts session.JSON) session.JSON {
	return jsonx.Object{{Key: string(session.SourceOpenClaw), Value: []byte(facts)}}.Column()
}

// metadata is what is kept of the session that no column holds.
func (r *reader) metadata() session.JSON {
	o := jsonx.Object{{Key: "agent", Value: []byte(session.JSONOf(r.agent.id))}}
	if rest := r.Header.Without("type", "id", "cwd"); len(rest) > 0 {
		o = append(o, jsonx.Member{Key: "header", Value: []byte(rest.Column())})
	}
	if r.name.topic != "" {
		o = append(o, jsonx.Member{Key: "topic", Value: []byte(session.JSONOf(r.name.topic))})
	}
	if r.rows == nil && r.name.id != r.Header.String("id") && r.name.id != "" {
		o = append(o, jsonx.Member{Key: "file", Value: []byte(session.JSONOf(filepath.Base(r.In.Found.Path)))})
	}
	return compact(append(o, r.agent.facts(r.about)...).Column())
}

// compact takes the white space out of JSON.
func compact(raw session.JSON) session.JSON {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// facts are what the index, the database and the registry of sub-agents say of a session.
func (a *agent) facts(s *about) jsonx.Object {
	var o jsonx.Object
	for _, part := range []struct {
		name string
		what jsonx.Object
	}{{"entry", public(s.entry)}, {"node", public(s.node)}, {"window", s.window}, {"run", a.runs[s.key]}} {
		if len(part.what) > 0 && (part.name != "run" || s.key != "") {
			o = append(o, jsonx.Member{Key: part.name, Value: []byte(part.what.Column())})
		}
	}
	return o
}

// public leaves out of an entry of the index what is private, or large and not the session's.
func public(entry jsonx.Object) jsonx.Object {
	kept := make(jsonx.Object, 0, len(entry))
	for _, f := range entry {
		switch {
		case strings.HasPrefix(f.Key, "authProfile"), f.Key == "pluginExtensions":
			continue
		case f.Key == "skillsSnapshot":
			if skills, ok := jsonx.ReadFields(f.Value); ok {
				f.Value = []byte(append(skills.Without("resolvedSkills"), jsonx.Member{Key: "cut", Value: []byte("true")}).Column())
			}
		case f.Key == "entry_json":
			if inner, ok := jsonx.ReadFields(f.Value); ok {
				f.Value = []byte(public(inner).Column())
			}
		}
		if len(f.Value) > 0 {
			kept = append(kept, f)
		}
	}
	return kept
}

// parent finds the session that this one was forked from, or that started it: "" when there
// is none, or it was not imported.
func (r *reader) parent() (session.ID, string) {
	for _, link := range r.agent.parents(r.about, r.Header) {
		owner := r.agent
		if link.agent != "" && link.agent != r.agent.id && r.agent.state != "" {
			owner = r.source.agentAt(r.In.Context(), r.agent.state, link.agent, "", nil)
		}
		sid := link.sid
		if sid == "" {
			if held := owner.holder(link.key, r.last); held != nil {
				sid = held.sid
			}
		}
		if sid == "" || sid == r.sid && owner.id == r.agent.id {
			continue
		}
		if found := r.In.Session(owner.id + "/" + sid); found != nil {
			return found.ID, link.kind
		}
	}
	return "", ""
}

// link names a parent: by its session, or by a key that the parent held.
type link struct {
	kind, agent, key, sid string
}

// parents returns the links of a session that the sources give, the surest first.
func (a *agent) parents(s *about, header jsonx.Object) []link {
	var links []link
	add := func(kind, key, id string) {
		if key != "" || id != "" {
			key = canonicalKey(key, a.id, "")
			links = append(links, link{kind: kind, agent: agentOf(key), key: key, sid: id})
		}
	}
	e := s.entry
	fork := e.Inner("forkSource")
	add(session.ParentFork, fork.String("sessionKey"), fork.String("sessionId"))
	add(session.ParentFork, s.node.String("fork_source_session_key"), s.node.String("fork_source_session_id"))
	if file := parseName(baseName(header.String("parentSession"))); file.id != "" {
		add(session.ParentFork, "", sidOf(file.id, file.topic))
	}
	parentKey := cmp.Or(e.String("parentSessionKey"), s.node.String("parent_session_key"),
		s.window.String("parent_session_key"))
	started := session.ParentChild
	if string(e.Get("forkedFromParent")) == "true" || e.String("label") == "Checkpoint branch" {
		started = session.ParentFork
	}
	add(session.ParentChild, cmp.Or(e.String("spawnedBy"), s.node.String("spawned_by"), s.window.String("spawned_by"),
		a.runs[s.key].String("requesterSessionKey")), "")
	add(started, parentKey, "")
	return links
}
