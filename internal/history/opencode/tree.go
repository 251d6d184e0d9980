package opencode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
)

// tree is a folder of JSON files: generation 1 has storage/{session,message,part}, generation
// 0 project/*/storage/session/{info,message,part}.
type tree struct {
	in        *history.Intake
	path      string
	store     string
	passed    []string          // ids of the sessions before this one
	firsts    map[string]int64  // times of their first messages
	worktrees map[string]string // by project
}

func readTree(in *history.Intake) {
	t := &tree{in: in, path: in.Found.Path, store: inTree, firsts: map[string]int64{}, worktrees: map[string]string{}}
	if !isTree(t.path) {
		t.store = inOldTree
	}
	databases, _ := filepath.Glob(filepath.Join(filepath.Dir(t.path), "opencode*.db")) // the pattern is good
	for _, a := range t.sessions() {
		t.session(a, len(databases) > 0)
		t.passed = append(t.passed, a.id)
	}
	t.countOthers()
}

// sessionFiles returns the files of a tree's sessions.
func sessionFiles(tree string) ([]string, error) {
	pattern := filepath.Join(tree, "session", "*", "*.json")
	if !isTree(tree) {
		pattern = filepath.Join(tree, "info", "*.json")
	}
	return filepath.Glob(pattern)
}

// sessions reads the sessions' files, oldest first, and names those of which only messages are left.
func (t *tree) sessions() (all []about) {
	files, err := sessionFiles(t.path)
	t.in.Fail(err)
	there := map[string]bool{}
	for _, file := range files {
		o, ok := t.object(t.in, file)
		if !ok {
			t.in.Skip(skipUnreadable, 1)
			continue
		}
		id := strings.TrimSuffix(filepath.Base(file), ".json")
		a := aboutObject(o)
		if a.id == "" {
			a.id = id
		}
		a.store, a.worktree, there[id] = t.store, t.worktree(a.project), true
		all = append(all, a)
	}
	folders, _ := os.ReadDir(filepath.Join(t.path, "message")) // one that cannot be read has none
	for _, folder := range folders {
		if folder.IsDir() && !there[folder.Name()] {
			all = append(all, recovered(folder.Name(), t.store, "its file is gone"))
		}
	}
	slices.SortStableFunc(all, func(a, b about) int { return a.created.Compare(b.created.Time) })
	return all
}

// worktree returns the folder of a project; that of no project is the root.
func (t *tree) worktree(project string) string {
	folder, ok := t.worktrees[project]
	if ok || project == "" || strings.ContainsAny(project, `/\`) {
		return folder
	}
	if text, err := history.ReadFile(filepath.Join(t.path, "project", project+".json")); err == nil {
		o := parse(text)
		if folder = clean(o.String("worktree")); folder == "/" {
			folder = ""
		}
	}
	t.worktrees[project] = folder
	return folder
}

// object reads one file. One that is cut off is being written: the next import reads it again.
func (t *tree) object(in *history.Intake, file string) (jsonx.Object, bool) {
	text, err := history.ReadFile(file)
	if err == nil {
		o := parse(text)
		if o.why == "" {
			return o.Object, true
		}
		err = errors.New(o.why)
		if len(text) == 0 {
			err = errors.New("the file is empty")
		}
	}
	in.LookAgain()
	in.ProblemIn(file, history.Reason(err))
	return nil, false
}

// session reads one session if its file or the folder of its messages changed.
func (t *tree) session(a about, besideDatabase bool) {
	folder := filepath.Join(t.path, "message", a.id)
	files := jsonFiles(folder)
	mark := fmt.Sprint(reads, " ", a.updated.UnixMilli(), " ", a.title)
	info, broken := os.Stat(folder)
	if broken == nil {
		mark += fmt.Sprint(" ", len(files), " ", info.ModTime().UnixMilli())
	}
	part := t.in.Part(a.id, mark)
	if part == nil {
		return
	}
	part.Found.Path = folder
	if broken != nil && !errors.Is(broken, fs.ErrNotExist) {
		part.LookAgain()
		part.Problem(0, history.Reason(broken))
	}
	if besideDatabase {
		a.note("only_in_old_store", raw("true"))
	}
	t.todo(&a)
	r := &reader{in: part, about: a, older: t.beginAt}
	for _, file := range files {
		m, ok := t.message(part, a.id, file)
		if !ok {
			part.Skip(skipUnreadable, 1)
			continue
		}
		r.add(m)
	}
	r.run()
	t.firsts[a.id] = r.firstAt()
	t.in.FinishPart(part)
}

// todo notes the session's list of things to do.
func (t *tree) todo(a *about) {
	text, err := history.ReadFile(filepath.Join(t.path, "todo", a.id+".json"))
	if err != nil || !jsonx.Valid(text) {
		return
	}
	if list, ok := jsonx.ReadArray(text); ok && len(list) > 0 {
		a.note("todos", jsonx.Array(list))
		a.todos = len(list)
	}
}

// countOthers counts the files beside the conversations. Shares hold secrets and are not opened.
func (t *tree) countOthers() {
	for folder, why := range map[string]string{
		"project": skipBookkeeping, "session_diff": skipDiff,
		"permission": skipBookkeeping, "session_share": skipForeign, "share": skipForeign,
	} {
		files, _ := os.ReadDir(filepath.Join(t.path, folder)) // mostly there is none
		t.in.Skip(why, len(files))
	}
	if _, err := os.Stat(filepath.Join(t.path, "migration")); err == nil {
		t.in.Skip(skipBookkeeping, 1)
	}
}

// beginAt returns the sessions that were passed whose first message has a time.
func (t *tree) beginAt(first int64) (ids []string) {
	for _, id := range t.passed {
		at, ok := t.firsts[id]
		if !ok {
			r := &reader{}
			for _, file := range jsonFiles(filepath.Join(t.path, "message", id)) {
				if m, ok := t.message(t.in, id, file); ok {
					r.add(m)
				}
			}
			at = r.firstAt()
			t.firsts[id] = at
		}
		if at == first {
			ids = append(ids, id)
		}
	}
	return ids
}

func jsonFiles(folder string) (files []string) {
	entries, _ := os.ReadDir(folder) // a message may have no parts
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".json") {
			files = append(files, filepath.Join(folder, entry.Name()))
		}
	}
	return files
}

// message reads a message's file and those of its parts, in whatever form it is.
func (t *tree) message(in *history.Intake, of, file string) (*message, bool) {
	o, ok := t.object(in, file)
	if !ok {
		return nil, false
	}
	m := &message{id: strings.TrimSuffix(filepath.Base(file), ".json"), records: 1}
	if o.Get("parts") != nil { // generation 0
		m.data, m.parts = inline(m.id, o)
		return m, true
	}
	m.data.Object = o
	folder := filepath.Join(t.path, "part", m.id)
	if t.store == inOldTree {
		folder = filepath.Join(t.path, "part", of, m.id)
	}
	for _, file := range jsonFiles(folder) {
		m.records++
		if p, ok := t.object(in, file); ok {
			m.parts = append(m.parts, part{strings.TrimSuffix(filepath.Base(file), ".json"), body{Object: p}})
		}
	}
	inOrder(m.parts)
	return m, true
}

// inline brings a message of generation 0 into the later form: its parts stand in it, and in
// the oldest ones what was known of the reply stands in metadata.
func inline(id string, o jsonx.Object) (body, []part) {
	list, _ := jsonx.ReadArray(o.Get("parts"))
	metadata, older := jsonx.ReadFields(o.Get("metadata"))
	data := o.Without("parts", "metadata")
	tools := metadata.Inner("tool")
	if older {
		data = append(data, metadata.Without("assistant", "tool", "sessionID")...)
		data = append(data, metadata.Inner("assistant")...)
	}
	var parts []part
	for i, element := range list {
		p := part{id + ":" + strconv.Itoa(i), parse(element)}
		if p.Get("id") != nil {
			p.id = p.String("id")
		}
		if older && p.why == "" {
			p.body = body{Object: older0(p.Object, tools)}
		}
		parts = append(parts, p)
	}
	return body{Object: data}, parts
}

// older0 brings a part of the oldest form into the later one.
func older0(o, tools jsonx.Object) jsonx.Object {
	if o.String("type") == "file" {
		return renamed(o, "mediaType", "mime")
	}
	if o.String("type") != "tool-invocation" {
		return o
	}
	call := o.Inner("toolInvocation")
	about, _ := jsonx.ReadFields(tools.Get(call.String("toolCallId")))
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
	state := jsonx.Object{jsonx.MemberOf("status", status)}
	if args := call.Get("args"); args != nil {
		state = append(state, jsonx.Member{Key: "input", Value: args})
	}
	if result := call.Get("result"); result != nil {
		key := "output"
		if status == "error" {
			key = "error"
		}
		state = append(state, jsonx.Member{Key: key, Value: result})
	}
	state = append(state, about.Without("error")...)
	return jsonx.Object{
		jsonx.MemberOf("type", "tool"),
		{Key: "callID", Value: orNull(call.Get("toolCallId"))},
		{Key: "tool", Value: orNull(call.Get("toolName"))},
		{Key: "state", Value: state.Value()},
	}
}
