package claudecode

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// nameTrunk finds the session of the program that the file is of. The first reading decides.
func (r *reader) nameTrunk() string {
	path := r.in.Found.Path
	if own := r.in.Own(); own != nil {
		return strings.TrimSuffix(own.SourceID, r.sourceID(""))
	}
	switch id := stem(path); {
	case isAgentFile(path):
		return cmp.Or(trunkOf(path), r.id, filepath.Base(filepath.Dir(path)))
	case isUUID(id):
		return strings.ToLower(id)
	default:
		return cmp.Or(r.id, id)
	}
}

// sourceID is the id of a conversation's session in the program; "" is the file's own.
func (r *reader) sourceID(stream string) string {
	id := plain(r.trunk)
	switch {
	case stream != "": // as in a file of its own
		return id + "#" + stream
	case r.agent != "":
		id += "#agent-" + plain(r.agent)
	case isAgentFile(r.in.Found.Path):
		id += "#workflow-" + plain(filepath.Base(filepath.Dir(r.in.Found.Path)))
	}
	return id
}

// begin begins the file's own conversation.
func (r *reader) begin() {
	r.main = r.newStream("")
	r.main.Silent, r.main.CopyReason = skipSilent, skipInherited
	r.main.tip = r.main.Base()
	about := map[string]string{}
	if r.version != "" {
		about["version"] = r.version
	}
	if isAgentFile(r.in.Found.Path) {
		r.linkAgent(about)
	} else {
		r.main.New.Kind = r.kindOfTrunk()
		r.main.New.Title, r.main.New.TitleSource = history.Titled("", r.firstTitle())
		r.findOrigins()
	}
	if len(about) > 0 {
		r.main.New.Metadata = session.JSONOf(map[string]any{"claude-code": about})
	}
}

// firstTitle makes a title of the first thing that a person typed, else of the first command with words.
func (r *reader) firstTitle() string {
	return cmp.Or(session.TitleOf(plain(r.typed)), session.TitleOfCommand(plain(r.command)))
}

// stream returns the conversation of a sub-agent in this file.
func (r *reader) stream(id string) *stream {
	if st := r.streams[id]; st != nil {
		return st
	}
	st := r.newStream(id)
	st.New.Kind = kindAgent
	if r.version != "" {
		st.New.Metadata = session.JSONOf(map[string]any{"claude-code": map[string]string{"version": r.version}})
	}
	st.StartedBy(r.main.Conversation)
	r.main.Silent = ""
	r.streams[id] = st
	return st
}

// kindAgent is the kind of a sub-agent's session.
const kindAgent = "subagent"

func (r *reader) newStream(id string) *stream {
	created := r.lastAt
	c := r.in.Conversation(history.NewSession{
		Source: session.SourceClaudeCode, SourceID: r.sourceID(id), CreatedAt: &created, Directory: r.cwd, Project: r.project,
		GitBranch: r.branch, Provider: "anthropic",
	})
	return &stream{
		Conversation: c, next: map[string]string{}, messageOf: map[string]string{}, before: map[string]string{},
		called:   map[string]int64{},
		answered: map[string]string{}, starters: map[string]string{}, prompts: map[uint64]string{},
	}
}

// describe has the session begin with its first message. What a sub-agent was asked is its title.
func (st *stream) describe(m *session.Message, of *row) {
	if !st.began {
		created := of.at
		st.New.CreatedAt, st.began = &created, true
	}
	if st.New.Kind != kindAgent || st.New.TitleSource != "" || m.Role != session.User || !m.InContext {
		return
	}
	title := session.TitleOf(m.Text())
	if title != "" && st.agentType != "" {
		title = history.FirstLine(st.agentType + ": " + title)
	}
	st.New.Title, st.New.TitleSource = history.Titled("", title)
}

// linkAgent links the session of a sub-agent's file to the one that started it, as the file
// beside it says. One that comes later is linked then; until then the trunk stands in for a
// sub-agent that started another.
func (r *reader) linkAgent(about map[string]string) {
	c, starter := r.main, r.trunk
	c.New.Kind = kindAgent
	meta := r.agentMeta
	text, err := r.in.ReadFileBeside(strings.TrimSuffix(r.in.Found.Path, ending) + ".meta.json")
	if err == nil && len(text) < 1<<16 {
		meta, _ = jsonx.ReadObject(text)
	}
	if r.agent != "" && len(meta) > 0 {
		c.agentType = plain(meta.String("agentType"))
		about["agent_type"], about["tool_use_id"] = c.agentType, plain(meta.String("toolUseId"))
		if other := plain(meta.String("parentAgentId")); other != "" {
			starter = r.trunk + "#agent-" + other
		}
	}
	trunk, parent := r.in.Session(r.trunk), r.in.Session(starter)
	switch {
	case parent == nil && trunk == nil:
		r.in.Await(r.trunk)
		return
	case parent == nil:
		r.in.Await(starter)
		parent = trunk
	}
	if c.LinkTo(parent, session.ParentChild, trunk) {
		c.StartedIn(parent.ID, r.startOf(about["tool_use_id"]))
	}
}

// startOf returns which call a message of the starter says started the file's sub-agent: the one that the file
// beside it names, else the one whose result names the agent, or the run of a workflow that it belongs to.
func (r *reader) startOf(call string) func(*session.Message) string {
	return func(m *session.Message) string {
		if call != "" {
			return call
		}
		results := m.Results()
		if len(results) != 1 {
			return ""
		}
		extra, _ := jsonx.ReadObject(m.Extra)
		agent, run := startedBy(extra.Inner("line").Inner("toolUseResult"), results[0].Content())
		if agent != "" && agent == r.agent || run != "" && run == runOf(r.in.Found.Path) {
			return results[0].CallID
		}
		return ""
	}
}

// noteStarter remembers a call that starts sub-agents, which the newest message makes.
func (r *reader) noteStarter(st *stream, call jsonx.Object) {
	switch call.String("name") {
	case "Task", "Agent", "Workflow":
		id := plain(call.String("id"))
		st.starters[id] = st.tip
		if prompt := call.Inner("input").String("prompt"); prompt != "" {
			st.prompts[r.digest(prompt)] = id
		}
	}
}

// noteStarted notes what the result of a call says of the sub-agents that the call started.
func (r *reader) noteStarted(st *stream, w *row) {
	for _, o := range w.blocks {
		call := plain(o.String("tool_use_id"))
		key := st.starters[call]
		if key == "" || o.String("type") != "tool_result" {
			continue
		}
		agent, run := startedBy(w.Inner("toolUseResult"), textOf(o.Get("content")))
		agents := agentsOf(r.in, run)
		if agent != "" {
			agents = append(agents, agent)
		}
		for _, agent := range agents {
			st.Starts(w.offset, r.sourceID("agent-"+plain(agent)), key, call)
		}
	}
}

// agentLine is what the text of a result says of the sub-agent that its call started.
var agentLine = pattern.New(`(?m)^agentId: ([0-9A-Za-z_-]+)`)

// startedBy returns the sub-agent, or the run of a workflow, that a result says its call started.
func startedBy(result jsonx.Object, text string) (agent, run string) {
	agent, run = plain(result.String("agentId")), plain(result.String("runId"))
	if found := agentLine.FindStringSubmatch(text); agent == "" && run == "" && found != nil {
		agent = found[1]
	}
	return agent, run
}

// findOrigins finds the sessions whose rows the file repeats, by the responses that they own: a
// resumed or forked session of older versions begins with copies, under their own names. Newer
// ones say which row they repeat.
func (r *reader) findOrigins() {
	var origins []*session.Session // the nearest first
	add := func(s *session.Session) {
		known := s == nil || slices.ContainsFunc(origins, func(o *session.Session) bool { return o.ID == s.ID })
		if !known && (r.main.Here == nil || s.ID != r.main.Here.ID) {
			origins = slices.Insert(origins, 0, s)
		}
	}
	for misses, i := 0, 0; i < len(r.replies) && misses <= 3; i++ {
		owner := r.in.CallOwner("claude-code:" + r.replies[i])
		if owner == nil || r.main.Here != nil && owner.ID == r.main.Here.ID {
			misses++
		}
		add(owner)
	}
	for _, id := range r.forks {
		origin := r.in.Session(id)
		if add(origin); origin == nil {
			r.in.NeedsOrigin()
		}
	}
	if len(origins) == 0 && r.main.Here == nil && copiesSilently(r.version) {
		r.in.NeedsOrigin()
	}
	if len(origins) > 0 {
		r.forked = true
		r.main.New.ParentID, r.main.New.ParentKind = origins[0].ID, session.ParentFork
		r.main.ForkedFrom(origins...)
	}
}

// copiesSilently reports whether a version begins resumed sessions with copies that do not say what they repeat.
func copiesSilently(version string) bool {
	return version == "" || strings.HasPrefix(version, "0.") || strings.HasPrefix(version, "1.")
}

// nameInOrigin is the name of a row, or of the one that it repeats.
func (r *reader) nameInOrigin(st *stream, w *row) string {
	if r.forked && st == r.main {
		name := plain(w.Inner("forkedFrom").String("messageUuid"))
		if at, _ := st.Find(name); at.Session != "" {
			return name
		}
	}
	return w.uuid
}

// copiedAfter is how much older a row is than its file, at least, that was not written when it
// was made, but copied.
const copiedAfter = 2 * time.Second

// isUnclear reports whether the file may be the beginning of a copy: its rows are older than the
// file, and no response among them tells its origin yet. What a person just typed in a new
// session is as old as the file.
func (r *reader) isUnclear() bool {
	return !r.in.Quiet() && !isAgentFile(r.in.Found.Path) && len(r.replies) == 0 && !r.last.IsZero() &&
		r.in.Found.ModifiedAt.Sub(r.last.Time) > copiedAfter
}
