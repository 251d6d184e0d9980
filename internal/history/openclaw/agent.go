package openclaw

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// agent is what a gateway knows of one agent's sessions beside their transcripts.
type agent struct {
	id    string
	state string // the folder of the gateway
	stamp string // of the files it was read from

	sessions map[string]*about // by their ids with topics
	keys     map[string][]*about
	indexed  []indexed
	runs     map[string]jsonx.Object // of sub-agents, by the child's key
	problems []history.Problem
}

// about is what is known of one session.
type about struct {
	sid        string
	key        string // canonical; "" where nothing tells
	generation int64  // of its key, from 1
	begun      session.Time
	ended      session.Time // when the next generation of its key began
	reason     string       // of its end, in sessiond's words
	entry      jsonx.Object // of the index, if that names this session as its key's present one
	window     jsonx.Object // what a database says of the session, by column
	node       jsonx.Object // and of its key
	stored     bool         // a database holds its transcript
	file       string       // its transcript in a file; "": there is none
}

// indexed is one entry of an index of keys.
type indexed struct {
	key     string // canonical
	written string // as the index has it
	entry   jsonx.Object
}

// agentFor returns what is known of the agent that a file belongs to, read anew when something
// about it changed. opened is the agent's database if that is open anyway.
func (s *source) agentFor(ctx context.Context, path string, opened *database) *agent {
	state, id := owner(path)
	dir := ""
	if state == "" { // a file on its own
		dir = filepath.Dir(path)
	}
	return s.agentAt(ctx, state, id, dir, opened)
}

func (s *source) agentAt(ctx context.Context, state, id, dir string, opened *database) *agent {
	a := &agent{id: id, state: state}
	where := a.folders(dir)
	a.stamp = stampOf(where)
	s.mu.Lock()
	defer s.mu.Unlock()
	name := state + "\x00" + id + "\x00" + dir
	if known := s.agents[name]; known != nil && known.stamp == a.stamp {
		return known
	}
	a.load(ctx, s, where, opened)
	s.agents[name] = a
	return a
}

// owner tells from a path which gateway's folder it lies in and which agent's it is.
func owner(path string) (state, id string) {
	parts := strings.Split(filepath.ToSlash(path), "/")
	for i := len(parts) - 2; i > 0; i-- {
		if parts[i-1] == "agents" {
			return filepath.FromSlash(strings.Join(parts[:i-1], "/")), parts[i]
		}
	}
	for i := len(parts) - 2; i > 0; i-- {
		if parts[i] == "sessions" || parts[i] == "agent" || strings.HasPrefix(parts[i], "session-sqlite-") {
			return filepath.FromSlash(strings.Join(parts[:i], "/")), "main"
		}
	}
	return "", "main"
}

// places are the files and folders that an agent is known from.
type places struct {
	sessions  []string // folders
	databases []string
	runs      string
}

func (a *agent) folders(dir string) places {
	if dir != "" {
		return places{sessions: []string{dir}}
	}
	p := places{runs: filepath.Join(a.state, "subagents", "runs.json")}
	own := filepath.Join(a.state, "agents", a.id)
	p.sessions = []string{filepath.Join(own, "sessions"), filepath.Join(own, "sessions", "session-sqlite-import-archive")}
	p.databases, _ = filepath.Glob(filepath.Join(own, "agent", "openclaw-agent*.sqlite"))
	if a.id == "main" {
		p.sessions = append(p.sessions, filepath.Join(a.state, "sessions"))
		more, _ := filepath.Glob(filepath.Join(a.state, "agent", "openclaw-agent*.sqlite"))
		p.databases = append(p.databases, more...)
	}
	return p
}

// stampOf changes when a file is added or an index is written.
func stampOf(p places) string {
	var b strings.Builder
	for _, path := range slices.Concat(p.sessions, p.databases, []string{p.runs}) {
		for _, at := range []string{path, filepath.Join(path, "sessions.json"), path + "-wal"} {
			if info, err := os.Stat(at); err == nil {
				fmt.Fprintf(&b, "%s %d %d\n", at, info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return b.String()
}

// load reads the indexes and the heads of all transcripts.
func (a *agent) load(ctx context.Context, s *source, p places, opened *database) {
	a.sessions, a.keys, a.runs = map[string]*about{}, map[string][]*about{}, map[string]jsonx.Object{}
	for _, dir := range p.sessions {
		a.heads(s, dir)
	}
	for _, path := range p.databases {
		if err := a.fromDatabase(ctx, path, opened); err != nil {
			a.problems = append(a.problems, history.Problem{Path: path, Error: history.Reason(err)})
		}
	}
	for _, dir := range p.sessions {
		a.index(filepath.Join(dir, "sessions.json"))
	}
	a.readRuns(p.runs)
	a.settle()
}

// heads takes the sessions of which a folder holds transcripts.
func (a *agent) heads(source *source, dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // Find told it
	}
	for _, e := range entries {
		name := parseName(e.Name())
		path := filepath.Join(dir, e.Name())
		switch name.kind {
		case fileTranscript:
			h := source.head(path)
			if of := a.session(h.sid, h.begun); of.file == "" && name.put.IsZero() {
				of.file = path
			}
		case fileTrace:
			id, _, _ := strings.Cut(e.Name(), ".trajectory")
			if line := firstObject(path); line != nil {
				if s := a.session(id, session.Time{}); s.key == "" {
					s.key = canonicalKey(line.String("sessionKey"), a.id, "")
				}
			}
		}
	}
}

// session returns what is known of a session, which begins no later than begun.
func (a *agent) session(sid string, begun session.Time) *about {
	s := a.sessions[sid]
	if s == nil {
		s = &about{sid: sid, begun: begun}
		a.sessions[sid] = s
	}
	if !begun.IsZero() && (s.begun.IsZero() || begun.Before(s.begun.Time)) {
		s.begun = begun
	}
	return s
}

// index reads a sessions.json. It may be replaced while it is read: one more try.
func (a *agent) index(path string) {
	o, err := readIndex(path)
	if err != nil {
		if !os.IsNotExist(err) {
			a.problems = append(a.problems, history.Problem{Path: path, Error: history.Reason(err)})
		}
		return
	}
	for _, f := range o {
		if entry, ok := jsonx.ReadFields(f.Value); ok {
			a.entry(f.Key, entry)
		}
	}
}

func readIndex(path string) (jsonx.Object, error) {
	for again := false; ; again = true {
		raw, err := history.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if o, _, ok := history.ParseLine(raw); ok {
			return o, nil
		}
		if again {
			return nil, session.Errorf(session.Invalid,
				"the index of sessions is no JSON object; the sessions are imported without their keys")
		}
	}
}

// entry takes what an index says of a key and the session that it names now.
func (a *agent) entry(written string, entry jsonx.Object) {
	channel := cmp.Or(entry.String("channel"), entry.String("provider"))
	key := canonicalKey(written, a.id, channel)
	a.indexed = append(a.indexed, indexed{key: key, written: written, entry: entry})
}

// settle finds the session of every entry, the keys of sessions that no entry names any
// more, and numbers the generations of each key by the time they began.
func (a *agent) settle() {
	for _, in := range a.indexed {
		if id := in.entry.String("sessionId"); id != "" {
			s := a.session(a.sidFor(id, in), session.Time{})
			s.key, s.entry = in.key, in.entry
			for _, field := range []string{"sessionStartedAt", "startedAt", "updatedAt"} {
				if at, ok := pi.Time(in.entry.Get(field)); ok && s.begun.IsZero() {
					s.begun = at
				}
			}
		}
	}
	for _, in := range a.indexed {
		report := in.entry.Inner("systemPromptReport")
		file := parseName(baseName(in.entry.String("sessionFile")))
		for _, sid := range append(pi.Texts(in.entry.Get("usageFamilySessionIds")), sidOf(file.id, file.topic),
			report.String("sessionId")) {
			if s := a.sessions[sid]; s != nil && s.key == "" {
				s.key = in.key
			}
		}
	}
	for _, s := range a.sessions {
		if s.key != "" {
			a.keys[s.key] = append(a.keys[s.key], s)
		}
	}
	for _, held := range a.keys {
		slices.SortFunc(held, func(x, y *about) int {
			return cmp.Or(x.begun.Compare(y.begun.Time), strings.Compare(x.sid, y.sid))
		})
		for i, s := range held {
			s.generation = int64(i) + 1
			if i+1 < len(held) {
				s.ended, s.reason = held[i+1].begun, held[i+1].opened()
			}
		}
	}
}

// opened says why a generation was begun, if the source does: the end of the one before it.
func (s *about) opened() string {
	if s.window.String("reason") == "reset" {
		return "command"
	}
	return ""
}

// sidFor finds the transcript that an entry means: one of a topic has that in its name.
func (a *agent) sidFor(id string, in indexed) string {
	if file := parseName(baseName(in.entry.String("sessionFile"))); file.id == id &&
		a.sessions[sidOf(id, file.topic)] != nil {
		return sidOf(id, file.topic)
	}
	for _, mark := range []string{":topic:", ":thread:"} {
		if at := strings.LastIndex(in.written, mark); at >= 0 {
			if sid := sidOf(id, in.written[at+len(mark):]); a.sessions[sid] != nil {
				return sid
			}
		}
	}
	return id
}

// holder returns the session that a key named at a time; nil if the key is not known.
func (a *agent) holder(key string, at session.Time) *about {
	held := a.keys[key]
	if len(held) == 0 {
		return nil
	}
	found := held[0]
	for _, s := range held {
		if !s.begun.After(at.Time) {
			found = s
		}
	}
	return found
}

// readRuns reads the registry of sub-agents.
func (a *agent) readRuns(path string) {
	if path == "" {
		return
	}
	raw, err := history.ReadFile(path)
	if err != nil {
		return // most gateways have none
	}
	o, _, _ := history.ParseLine(raw)
	runs, ok := jsonx.ReadFields(o.Get("runs"))
	if !ok {
		a.problems = append(a.problems, history.Problem{Path: path, Error: "the registry of sub-agents is not understood"})
	}
	for _, f := range runs {
		if run, ok := jsonx.ReadFields(f.Value); ok {
			a.runs[canonicalKey(run.String("childSessionKey"), a.id, "")] = run
		}
	}
}

// firstObject reads the first line of a file.
func firstObject(path string) jsonx.Object {
	head, _ := history.Head(path, 1<<20) // what could be read
	o, _ := history.FirstRecord(head)
	return o
}
