package codex

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// start finds where the thread comes from, and says what its session is.
func (r *reader) start() {
	r.from = r.origins()
	r.agent = isAgent(r.header)
	r.forked = !r.novel() && (r.header.String("forked_from_id") != "" || r.foreign || r.replays ||
		r.header.Get("subagent_history_start_ordinal") != nil)
	if r.forked && r.from.parent == nil {
		r.in.NeedsOrigin()
	}
	r.findCopies()
	if r.agent && r.forked && r.own >= 0 { // the events of copies say nothing of its own prompts
		r.witnesses = slices.ContainsFunc(slices.Collect(maps.Keys(r.person)), func(at int64) bool { return at >= r.own })
	}
	r.state = state{
		Chain: "codex:" + r.from.root, Provider: plainText(r.header.String("model_provider")), LastAt: r.created(),
		Usage: r.from.root, Copying: r.forked && r.from.kind != session.ParentChild,
	}
	r.describe()
	if r.from.parent != nil && r.talk.LinkTo(r.from.parent, r.from.kind, nil) && r.from.kind == session.ParentChild {
		r.talk.StartedIn(r.from.parent.ID, startOf(r.id,
			cmp.Or(r.header.String("agent_path"), spawn(r.header).String("agent_path"))))
	}
	r.talk.ForkedFrom(r.from.sessions...)
	r.state.Tip = r.talk.Base()
	r.findBase()
}

// finish says what the session is now.
func (r *reader) finish() {
	r.talk.Head = r.state.Tip
	for _, s := range r.started {
		r.talk.Starts(s.at, s.thread, r.spawns[s.call], s.call)
	}
	title, here := r.name, r.talk.Here
	if title == "" && !r.in.Continues() {
		title = r.title()
	}
	if title == "" && here != nil && here.Title == "" {
		title = r.firstTitle()
	}
	r.talk.Title = title
	f := r.talk.Change()
	f.Provider, f.Model = r.state.Provider, r.state.Model
	if r.in.Rewritten() {
		f.FirstTitle = r.firstTitle()
	}
	if strings.Contains(filepath.ToSlash(r.path), "/"+archive+"/") {
		f.ArchivedAt = new(session.At(r.in.Found.ModifiedAt))
	}
}

// created is the time of the thread: of its header, else of the file.
func (r *reader) created() session.Time {
	if at, ok := history.ParseTime(r.header.String("timestamp")); ok {
		return at
	}
	if !r.stamp.IsZero() {
		return r.stamp
	}
	return session.At(r.in.Found.ModifiedAt)
}

// describe says what the session is: from the header, the records and the store.
func (r *reader) describe() {
	created := r.created()
	if r.from.kind == session.ParentFork && !r.stamp.IsZero() && created.Before(r.stamp.Time) {
		created = r.stamp // a header that repeats the origin's time
	}
	s := &r.talk.New
	s.CreatedAt = &created
	if r.limits > 0 {
		s.Window = &r.limits
	}
	s.Directory = cmp.Or(plainText(r.header.String("cwd")), r.cwd)
	s.GitBranch = plainText(cmp.Or(r.header.Inner("git").String("branch"), r.header.String("branch")))
	s.Provider = plainText(r.header.String("model_provider"))
	s.Title, s.TitleSource = history.Titled(r.title(), r.firstTitle())
	if r.agent {
		s.Kind = "subagent"
	}
	about := r.header.Without("type", "cwd")
	if jsonx.Depth([]byte(about.Column())) <= history.MaxDepth {
		s.Metadata = jsonx.Object{{Key: "codex", Value: about.Value()}}.Column()
	}
}

// title is the name that a person gave the thread: in the rollout, else in the index of names.
func (r *reader) title() string {
	if r.name != "" {
		return plainText(r.name)
	}
	return r.indexed()
}

// firstTitle makes a title of the first thing that a person said.
func (r *reader) firstTitle() string {
	title := r.firstUser
	if title == "" && !r.witnesses && (r.in.Quiet() || !r.waits) {
		title = r.typed
	}
	if !r.agent {
		return title
	}
	agent, start := r.header.Inner("source").String("subagent"), spawn(r.header)
	name := plainText(cmp.Or(
		r.header.String("agent_nickname"), r.header.String("agent_role"), start.String("agent_nickname"),
		start.String("agent_role"), agent,
	))
	switch {
	case name == "":
		return title
	case title == "":
		return history.FirstLine(name)
	}
	return history.FirstLine(name + ": " + title)
}
