package codex

import (
	"path/filepath"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// created is the time of the thread: of its header, else of the file.
func (r *reader) created() session.Time {
	for _, text := range []string{r.header.String("timestamp")} {
		if at, ok := history.ParseTime(text); ok {
			return at
		}
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
	git, _ := history.Fields(r.header.Get("git"))
	s := &r.talk.New
	s.CreatedAt, s.Window = &created, r.window()
	s.Directory, s.GitBranch = plainText(r.header.String("cwd")), plainText(git.String("branch"))
	s.Provider = plainText(r.header.String("model_provider"))
	if s.Directory == "" {
		s.Directory = r.cwd
	}
	if s.GitBranch == "" {
		s.GitBranch = plainText(r.header.String("branch"))
	}
	if s.Title, s.TitleSource = r.title(), "source"; s.Title == "" {
		s.Title, s.TitleSource = r.firstTitle(), "first_message"
	}
	if s.Title == "" {
		s.TitleSource = ""
	}
	if r.agent {
		s.Kind = "subagent"
	}
	about := r.header.Without("type", "cwd")
	if history.Depth([]byte(about.JSON())) <= history.MaxDepth {
		s.Metadata = history.Object{{Key: "codex", Raw: []byte(objectJSON(about))}}.JSON()
	}
}

// window is the model's limit as the thread's first turn says it.
func (r *reader) window() *int64 {
	if r.limits <= 0 {
		return nil
	}
	n := r.limits
	return &n
}

func objectJSON(o history.Object) session.JSON {
	if len(o) == 0 {
		return session.JSON("{}")
	}
	return o.JSON()
}

// title is the name that somebody gave the thread: in the rollout, else in the index of names.
func (r *reader) title() string {
	if r.name != "" {
		return plainText(r.name)
	}
	return r.indexed()
}

// firstTitle makes a title of the first thing that a person said.
func (r *reader) firstTitle() string {
	title := r.firstUser
	if title == "" && !r.witnesses && (r.in.Quiet() || r.waiting == 0) {
		title = r.typed
	}
	if r.agent {
		source, _ := history.Fields(r.header.Get("source"))
		agent, _ := history.Fields(source.Get("subagent"))
		spawn, _ := history.Fields(agent.Get("thread_spawn"))
		name, _ := history.Text(source.Get("subagent"))
		for _, said := range []string{
			spawn.String("agent_role"), spawn.String("agent_nickname"), r.header.String("agent_role"), r.header.String("agent_nickname"),
		} {
			if said != "" {
				name = said
			}
		}
		if name = plainText(name); name != "" && title != "" {
			return history.FirstLine(name + ": " + title)
		} else if name != "" {
			return history.FirstLine(name)
		}
	}
	return title
}

// home is the Codex home that the rollout lies in, "" if it lies elsewhere.
func home(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if name := filepath.Base(dir); name == "sessions" || name == archive {
			return filepath.Dir(dir)
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}
