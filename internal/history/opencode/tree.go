package opencode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// tree is a folder of JSON files: generation 1 has storage/{session,message,part}, generation
// 0 project/*/storage/session/{info,message,part}.
type tree struct {
	ctx    context.Context
	path   string
	old    bool
	now    time.Time
	known  history.Known
	emit   func(history.Batch) error
	beside bool // a database that may have superseded it
	order  []string
	begin  map[string]int64

	worktrees map[string]string // by project
	waits     bool
	records   history.Records
	problems  []history.Problem
}

func (s *Source) readTree(ctx context.Context, found history.Found, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	t := &tree{ctx: ctx, path: found.Path, old: !isTree(found.Path), now: s.now(), known: known, emit: emit, begin: map[string]int64{}, worktrees: map[string]string{}}
	databases, _ := filepath.Glob(filepath.Join(filepath.Dir(found.Path), "opencode*.db")) // the pattern is good
	t.beside = len(databases) > 0
	sessions, err := t.sessions()
	if err != nil {
		return t.problems, err
	}
	for i := range sessions {
		t.order = append(t.order, sessions[i].id)
	}
	for i := range sessions {
		if err := t.session(sessions[i]); err != nil {
			return t.problems, err
		}
	}
	t.aside()
	return t.problems, emit(lastBatch(found, len(sessions), t.records, t.waits))
}

// sessions reads the sessions' files, and names those of which only messages are left.
func (t *tree) sessions() ([]about, error) {
	pattern := filepath.Join(t.path, "session", "*", "*.json")
	if t.old {
		pattern = filepath.Join(t.path, "info", "*.json")
	}
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var all []about
	there := map[string]bool{}
	for _, file := range files {
		id := strings.TrimSuffix(filepath.Base(file), ".json")
		o, ok := t.object(file)
		if !ok {
			t.records.Skip(skipUnreadable, 1)
			continue
		}
		a := aboutObject(o)
		if a.id == "" {
			a.id = id
		}
		a.store = t.store()
		a.worktree = t.worktree(a.project)
		there[id] = true
		all = append(all, a)
	}
	folders, _ := os.ReadDir(filepath.Join(t.path, "message")) // one that cannot be read has none
	for _, folder := range folders {
		if folder.IsDir() && !there[folder.Name()] {
			a := about{id: folder.Name(), title: "recovered", store: t.store()}
			a.note("recovered", raw(`"its file is gone"`))
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b about) int { return a.created.Compare(b.created.Time) })
	return all, nil
}

// worktree gives the folder of a project; that of no project is the root.
func (t *tree) worktree(project string) string {
	folder, ok := t.worktrees[project]
	if ok || project == "" || strings.ContainsAny(project, `/\`) {
		return folder
	}
	if text, err := history.ReadFile(filepath.Join(t.path, "project", project+".json")); err == nil {
		o, _ := parse(text)
		if folder = clean(o.String("worktree")); folder == "/" {
			folder = ""
		}
	}
	t.worktrees[project] = folder
	return folder
}

func (t *tree) store() store {
	if t.old {
		return inOldTree
	}
	return inTree
}

// object reads one file. One that is cut off is being written: it is read again next time.
func (t *tree) object(file string) (history.Object, bool) {
	text, err := history.ReadFile(file)
	if err == nil {
		o, why := parse(text)
		if why == "" {
			return o, true
		}
		err = errors.New(why)
		if len(text) == 0 {
			err = errors.New("the file is empty")
		}
	}
	t.waits = true
	t.problem(file, history.Reason(err))
	return nil, false
}

func (t *tree) problem(path, why string) {
	if len(t.problems) < history.MaxProblems {
		t.problems = append(t.problems, history.Problem{Path: path, Error: why})
	}
}

// session reads one session if its file or the folder of its messages changed.
func (t *tree) session(a about) error {
	from := &filesOf{tree: t, folder: filepath.Join(t.path, "message", a.id), of: a.id}
	changed, err := from.mark(&a)
	if err != nil {
		t.waits = true
		t.problem(from.folder, history.Reason(err))
	}
	path := t.path + "#" + a.id
	before, err := markAt(t.ctx, t.known, path)
	if err != nil {
		return err
	}
	if before.Mark == changed && before.Reads == reads {
		t.records.Skip(skipCopy+before.Of, before.Copies)
		t.records.Skip(history.SkipKnown, before.Records-before.Copies)
		return nil
	}
	if t.beside {
		a.note("only_in_old_store", raw("true"))
	}
	r := &reader{
		ctx: t.ctx, known: t.known, emit: t.emit, path: from.folder, now: t.now, about: a, from: from, before: before,
		origins: func() ([]*session.Session, error) { return t.origins(a.id) },
	}
	t.todo(r)
	waited := t.waits
	t.waits = false
	err = r.run(func(r *reader) *history.Cursor {
		if t.waits {
			changed = "" // a file could not be read: look again
		}
		return &history.Cursor{Source: session.SourceOpencode, Path: path, State: r.state(changed)}
	})
	t.waits = waited || t.waits || r.waits
	t.problems = append(t.problems, r.problems...)
	return err
}

// todo notes the session's list of things to do.
func (t *tree) todo(r *reader) {
	text, err := history.ReadFile(filepath.Join(t.path, "todo", r.about.id+".json"))
	if err != nil || !history.Valid(text) {
		return
	}
	list, ok := history.Elements(text)
	if !ok || len(list) == 0 {
		return
	}
	r.about.note("todos", history.Array(list))
	r.todos(len(list))
}

// aside counts the files beside the conversations. Shares hold secrets and are not opened.
func (t *tree) aside() {
	for folder, why := range map[string]string{"project": skipBookkeeping, "session_diff": skipDiff, "permission": skipBookkeeping, "session_share": skipForeign, "share": skipForeign} {
		files, _ := os.ReadDir(filepath.Join(t.path, folder)) // mostly there is none
		t.records.Skip(why, len(files))
	}
	if _, err := os.Stat(filepath.Join(t.path, "migration")); err == nil {
		t.records.Skip(skipBookkeeping, 1)
	}
}

// origins are the sessions that one may be a copy of: they begin at the same millisecond, and
// are older.
func (t *tree) origins(id string) ([]*session.Session, error) {
	first := t.first(id)
	var found []*session.Session
	for _, older := range t.order {
		if older == id || first == 0 || len(found) == maxOrigins {
			break
		}
		if t.first(older) != first {
			continue
		}
		origin, err := t.known.Session(t.ctx, session.SourceOpencode, older)
		if err != nil {
			return nil, err
		}
		if origin != nil {
			found = append(found, origin)
		}
	}
	return found, nil
}

// first gives the time of a session's first message.
func (t *tree) first(id string) int64 {
	if at, ok := t.begin[id]; ok {
		return at
	}
	from := &filesOf{tree: t, folder: filepath.Join(t.path, "message", id), of: id}
	first := int64(0)
	for _, file := range from.files() {
		text, err := history.ReadFile(file)
		if err != nil {
			continue
		}
		o, _ := parse(text)
		metadata, _ := history.Fields(o.Get("metadata"))
		times, _ := history.Fields(o.Get("time"))
		if at, ok := history.UnixMilli(times.Get("created")); ok && (first == 0 || at.UnixMilli() < first) {
			first = at.UnixMilli()
		}
		times, _ = history.Fields(metadata.Get("time"))
		if at, ok := history.UnixMilli(times.Get("created")); ok && (first == 0 || at.UnixMilli() < first) {
			first = at.UnixMilli()
		}
	}
	t.begin[id] = first
	return first
}

// filesOf is a conversation of files.
type filesOf struct {
	*tree
	folder string
	of     string
}

// mark tells whether a session changed: its file's own time of change, how many messages it
// has, and when the newest was added.
func (c *filesOf) mark(a *about) (string, error) {
	info, err := os.Stat(c.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprint(a.updated.UnixMilli(), " ", a.title), nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprint(a.updated.UnixMilli(), " ", a.title, " ", len(c.files()), " ", info.ModTime().UnixMilli()), nil
}

func (c *filesOf) files() []string {
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		return nil
	}
	var files []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".json") {
			files = append(files, filepath.Join(c.folder, entry.Name()))
		}
	}
	return files
}

func (c *filesOf) scan(_ context.Context, yield func(*message) error) error {
	for _, file := range c.files() {
		in, ok := c.read(file)
		if !ok {
			c.records.Skip(skipUnreadable, 1)
			continue
		}
		if err := yield(in); err != nil {
			return err
		}
	}
	return nil
}

func (c *filesOf) load(_ context.Context, l *records, i int) (*message, error) {
	id := l.texts.Get(l.at(i).id)
	in, ok := c.read(filepath.Join(c.folder, id+".json"))
	if !ok {
		return nil, session.Errorf(session.Busy, "message %s changed while it was read: import again", id)
	}
	return in, nil
}

func (c *filesOf) close() error { return nil }

// read reads a message's file and those of its parts, in whatever form it is.
func (c *filesOf) read(file string) (*message, bool) {
	o, ok := c.object(file)
	if !ok {
		return nil, false
	}
	in := &message{id: strings.TrimSuffix(filepath.Base(file), ".json"), records: 1}
	if o.Get("parts") != nil { // generation 0
		in.data, in.parts = inline(in.id, o)
		return in, true
	}
	in.data = o.JSON()
	folder := filepath.Join(c.path, "part", in.id)
	if c.old {
		folder = filepath.Join(c.path, "part", c.of, in.id)
	}
	entries, _ := os.ReadDir(folder) // a message may have none
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".json") {
			continue
		}
		in.records++
		if p, ok := c.object(filepath.Join(folder, entry.Name())); ok {
			in.parts = append(in.parts, part{strings.TrimSuffix(entry.Name(), ".json"), p.JSON()})
		}
	}
	inOrder(in.parts)
	return in, true
}

// inline brings a message of generation 0 into the later form: its parts stand in it, and in
// the oldest ones what was known of the reply stands in metadata.
func inline(id string, o history.Object) ([]byte, []part) {
	list, _ := history.Elements(o.Get("parts"))
	metadata, older := history.Fields(o.Get("metadata"))
	data := o.Without("parts", "metadata")
	tools, _ := history.Fields(metadata.Get("tool"))
	if older {
		data = append(data, metadata.Without("assistant", "tool", "sessionID")...)
		reply, _ := history.Fields(metadata.Get("assistant"))
		data = append(data, reply...)
	}
	var parts []part
	for i, element := range list {
		p := part{id: id + ":" + strconv.Itoa(i), data: element}
		fields, ok := history.Fields(element)
		if ok && fields.Get("id") != nil {
			p.id = fields.String("id")
		}
		if ok && older {
			p.data = older0(fields, tools)
		}
		parts = append(parts, p)
	}
	return data.JSON(), parts
}

// older0 brings a part of the oldest form into the later one.
func older0(o, tools history.Object) []byte {
	switch o.String("type") {
	case "tool-invocation":
	case "file":
		if o.Get("mime") == nil && o.Get("mediaType") != nil {
			o = o.With("mime", o.Get("mediaType")).Without("mediaType")
		}
		return objectJSON(o)
	default:
		return objectJSON(o)
	}
	call, _ := history.Fields(o.Get("toolInvocation"))
	about, _ := history.Fields(tools.Get(call.String("toolCallId")))
	state := history.Object{}
	status := "pending"
	switch call.String("state") {
	case "call":
		status = "running"
	case "result":
		status = "completed"
		if string(about.Get("error")) == "true" {
			status = "error"
		}
	}
	state = append(state, history.Field{Key: "status", Raw: raw(session.JSONOf(status))})
	if args := call.Get("args"); args != nil {
		state = append(state, history.Field{Key: "input", Raw: args})
	}
	if result := call.Get("result"); result != nil {
		key := "output"
		if status == "error" {
			key = "error"
		}
		state = append(state, history.Field{Key: key, Raw: result})
	}
	state = append(state, about.Without("error")...)
	return history.Object{
		{Key: "type", Raw: raw(`"tool"`)},
		{Key: "callID", Raw: orNull(call.Get("toolCallId"))},
		{Key: "tool", Raw: orNull(call.Get("toolName"))},
		{Key: "state", Raw: raw(state.JSON())},
	}.JSON()
}
