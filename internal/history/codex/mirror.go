package codex

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// The mirror is a database in which Codex keeps what it lists threads by: state_5.sqlite, where
// 5 is the generation of its schema. The rollouts are the truth; of the mirror counts what no
// rollout says: the name that a person gave a thread, since when it is archived, which thread
// started which, and where a rollout of the first era says nothing, its folder and branch.
// Only these two tables are read, and of them only columns that are named here.
const (
	tableThreads = "threads"
	tableEdges   = "thread_spawn_edges"
)

var mirrorName = pattern.New(`^state_([0-9]{1,6})\.sqlite$`)

// generation returns which schema a mirror has, by its file's name; 0: it is no mirror.
func generation(path string) int {
	name := mirrorName.FindStringSubmatch(filepath.Base(path))
	if name == nil {
		return 0
	}
	n, _ := strconv.Atoi(name[1]) // it is all digits
	return n
}

// mirrorIn names the newest mirror of a folder, "" if there is none.
func mirrorIn(folder string) string {
	found, _ := filepath.Glob(filepath.Join(folder, "state_*.sqlite")) // a folder whose name is no valid pattern has none
	newest := ""
	for _, path := range found {
		if generation(path) > generation(newest) {
			newest = path
		}
	}
	return newest
}

// thread is what the mirror says of one.
type thread struct {
	ID       string `db:"id"`
	Name     string `db:"name"` // that a person gave it
	Archived int64  `db:"archived"`
	Since    int64  `db:"archived_at"` // Unix seconds
	Folder   string `db:"cwd"`
	Branch   string `db:"git_branch"`
	Provider string `db:"model_provider"`
	Model    string `db:"model"`
	Commit   string `db:"git_sha"`
	Origin   string `db:"git_origin_url"`
	Nickname string `db:"agent_nickname"`
	Role     string `db:"agent_role"`
	Version  string `db:"cli_version"`
}

type edge struct {
	Parent string `db:"parent"`
	Child  string `db:"child"`
}

// readMirror reads the whole mirror: it holds a thread in one row, and any may have changed.
func readMirror(in *history.Intake, db *history.SQLite) {
	schema := db.Schema(tableThreads, tableEdges)
	in.Fail(db.TakeErr())
	var threads []thread
	if schema.Has(tableThreads, "id") {
		db.Select(&threads, threadsQuery(schema[tableThreads]))
	} else {
		in.Fail(session.Errorf(session.Invalid, "no state of Codex that this version knows: it has no table %s with ids",
			tableThreads))
	}
	var edges []edge
	if schema.Has(tableEdges, "parent_thread_id") && schema.Has(tableEdges, "child_thread_id") {
		db.Select(&edges, `SELECT COALESCE(CAST(parent_thread_id AS TEXT), '') AS parent, COALESCE(CAST(child_thread_id AS TEXT), '') AS child
			FROM thread_spawn_edges ORDER BY 2, 1`)
	}
	in.Fail(db.TakeErr())
	m := mirrored{in}
	for i := range threads {
		m.thread(&threads[i])
	}
	for _, e := range edges {
		m.edge(e)
	}
}

type mirrored struct{ *history.Intake }

// threadsQuery selects what there is of a thread's columns. A title is the first thing that
// was said, unless a person named the thread: since one generation the name stands by itself,
// before it in the title's place.
func threadsQuery(columns []string) string {
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(columns, name) })
	}
	name := `''`
	switch {
	case has("name", "name_state"):
		name = `CASE WHEN name_state = 'explicit' THEN name ELSE '' END`
	case has("name"):
		name = `name`
	case has("title", "first_user_message"):
		name = `CASE WHEN trim(title) <> trim(first_user_message) THEN title ELSE '' END`
	}
	query := `SELECT COALESCE(CAST(id AS TEXT), '') AS id, substr(COALESCE(CAST(` + name + ` AS TEXT), ''), 1, 1000) AS name`
	for _, number := range []string{"archived", "archived_at"} {
		if has(number) {
			query += `, COALESCE(CAST(` + number + ` AS INTEGER), 0) AS ` + number
		}
	}
	for _, text := range []string{
		"cwd", "git_branch", "model_provider", "model", "git_sha", "git_origin_url",
		"agent_nickname", "agent_role", "cli_version",
	} {
		if has(text) {
			query += `, substr(COALESCE(CAST(` + text + ` AS TEXT), ''), 1, 4096) AS ` + text
		}
	}
	return query + ` FROM threads ORDER BY 1`
}

// maxUnix is the end of the year 9999 in seconds.
const maxUnix = 253402300799

// thread tells a session that is here what it does not know yet.
func (m *mirrored) thread(t *thread) {
	existing := m.Session(t.ID)
	if existing == nil {
		m.Skip(skipThread, 1)
		return
	}
	b := history.Batch{Aside: true}
	b.ID, b.Fields = existing.ID, &history.Changes{}
	changes := false
	if name := plainText(strings.TrimSpace(t.Name)); name != "" && name != existing.Title &&
		existing.TitleSource != "given" {
		b.Title, changes = &name, true
	}
	if t.Archived != 0 && existing.ArchivedAt == nil {
		at := session.At(time.Unix(t.Since, 0))
		if t.Since <= 0 || t.Since > maxUnix {
			at = existing.ActiveAt
		}
		b.Fields.ArchivedAt, changes = &at, true
	}
	for _, f := range []struct {
		to   *string
		here string
		said string
	}{
		{&b.Fields.Directory, existing.Directory, t.Folder},
		{&b.Fields.GitBranch, existing.GitBranch, t.Branch},
		{&b.Fields.Provider, existing.Provider, t.Provider},
		{&b.Fields.Model, existing.Model, t.Model},
	} {
		if said := plainText(f.said); f.here == "" && said != "" {
			*f.to, changes = said, true
		}
	}
	if about := t.about(existing); about != nil {
		b.Fields.Metadata, changes = about, true
	}
	if !changes {
		m.Skip(history.SkipKnown, 1)
		return
	}
	b.Records.Import(1)
	m.Emit(b)
}

// about adds to what the rollout's header says of the thread; nil if there is nothing to add.
// The header is the truth where it says something.
func (t *thread) about(existing *session.Session) session.JSON {
	header := history.Notes(existing, "codex") // of its rollout
	git := header.Inner("git")
	before := header.Get("state")
	state, _ := jsonx.ReadFields(before)
	state = slices.Clone(state)
	for _, f := range []struct{ key, said, known string }{
		{"git_sha", t.Commit, git.String("commit_hash")},
		{"git_origin_url", t.Origin, git.String("repository_url")},
		{"agent_nickname", t.Nickname, header.String("agent_nickname")},
		{"agent_role", t.Role, header.String("agent_role")},
		{"cli_version", t.Version, header.String("cli_version")},
	} {
		if said := plainText(f.said); said != "" && f.known == "" {
			state = state.With(f.key, session.JSONOf(said))
		}
	}
	if len(state) == 0 || string(state.Column()) == string(before) {
		return nil
	}
	return header.With("state", state.Column()).Column()
}

// edge links a thread to the one that started it, where its rollout did not say.
func (m *mirrored) edge(e edge) {
	child, parent := m.Session(e.Child), m.Session(e.Parent)
	switch {
	case child == nil || parent == nil:
		m.Skip(skipEdge, 1)
		return
	case child.ParentID != "":
		m.Skip(history.SkipKnown, 1)
		return
	case m.ComesFrom(parent, child):
		m.Skip(skipCircle, 1)
		m.Problem(0, "thread "+strconv.Quote(e.Child)+" would be among those that it comes from; the link is left out")
		return
	}
	at, call := m.StartOf(parent.ID, startOf(child.SourceID, ""))
	b := history.Batch{Aside: true}
	b.ID, b.Fields = child.ID, &history.Changes{
		ParentID: parent.ID, ParentKind: session.ParentChild, Started: at,
		StartedCall: call,
	}
	b.Records.Import(1)
	m.Emit(b)
}
