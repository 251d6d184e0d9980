package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/find"
	"sessiond/internal/folders"
	"sessiond/internal/redact"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/touched"
	"sessiond/internal/transcript"
)

const (
	searchText = `Search what was said, decided, tried and run in earlier sessions of every AI agent on this host. Call it ` +
		`when the user refers to earlier work ("as we decided", "like last time", "last ` +
		`week"), when you are asked why something is as it is, and when a task or an error may have come up before. Not for ` +
		`what the files at hand say. Use 2 to 5 rare words: names, numbers, words of an error. Answer: sessions with ` +
		`passages and ids of messages.`
	queryText = `words; also "exact words", begin*, -without, and filters: role:user (assistant, tool), source:codex, ` +
		`path:FILE, tool:bash, after:7d, before:2026-02-11`
	fileText = `Which sessions read or changed a file or folder, with their last edits, newest first. Call it before you ` +
		`change or revert code whose reasons you do not know, and for a file that is gone.`
	recentText = `The last sessions here, with summaries: "where were we?", "what did we do yesterday?", or to go on with ` +
		`what another agent began.`
)

// ownSession is an argument of the tools that list sessions.
type ownSession struct {
	Own string `json:"own_session,omitempty" jsonschema:"yours: left out"`
}

type searchArgs struct {
	common
	ownSession
	Query  string `json:"query"`
	Limit  int    `json:"limit,omitempty" jsonschema:"default 8"`
	Newest bool   `json:"newest,omitempty" jsonschema:"newest first"`
}

func (c *call) finder() *find.Finder {
	return &find.Finder{Store: c.Store, Index: c.Index, Now: c.cfg.Now}
}

func (c *call) search(ctx context.Context, in searchArgs) error {
	if err := c.leaveOut(ctx, in.Own); err != nil {
		return err
	}
	r := find.Request{Text: in.Query, Group: string(search.GroupSession), Limit: clamp(in.Limit, 8, 30), Scope: find.Scope{
		Projects: c.Projects, Hide: func(s *session.Session) bool {
			return !c.Shows(s)
		}, Mask: mask, Private: len(c.Exclude) > 0,
	}}
	if in.Newest {
		r.Order = string(search.OrderNewest)
	}
	found, err := c.finder().Search(ctx, r)
	if err != nil {
		return err
	}
	shown, left := 0, 0
	for i := range found.Sessions {
		hit := &found.Sessions[i]
		sess, err := c.Store.Session(ctx, hit.SessionID)
		if err != nil || !c.Shows(&sess) { // gone meanwhile
			continue
		}
		var passages []string
		for _, p := range hit.Passages {
			if m, err := c.Store.Message(ctx, p.MessageID); err == nil { // else purged meanwhile
				passages = append(passages, c.quote(p.MessageID, transcript.SpeakerLabel(&m), p.CreatedAt, clean(p.Snippet)))
			}
		}
		if left > 0 || !c.addSession(c.describe(&sess), passages) {
			left++
			continue
		}
		shown++
	}
	switch order := "best"; {
	case shown+left > 0:
		if in.Newest {
			order = "newest"
		}
		c.say("%d session(s)%s, %s first.", shown, c.where(), order)
	default:
		empty, err := c.sayNothingStored(ctx)
		if err != nil || empty {
			return err
		}
		c.say("Nothing found%s. Fewer or other words find more; word* finds beginnings.", c.where())
		if err := c.noteOtherProjects(ctx, r); err != nil {
			return err
		}
	}
	for _, note := range found.Notes(func(word string) string { return strconv.Quote(transcript.OneLine(word, 60)) }) {
		c.note("%s.", session.EscapeBlocks(mask(strings.ToUpper(note[:1])+note[1:])))
	}
	if left > 0 {
		c.note("Left out for want of room: %d more sessions; a larger max_tokens or a narrower query shows them.", left)
	}
	if t := found.Time; t != nil {
		c.note("Messages of the time %q are preferred. Only these: add %s to the query.", t.Text, t.Filter)
	}
	if shown > 0 {
		c.note("Read on: {around}(message: ID%s) or {read_session}(session: ID%s).", c.alike(), c.alike())
	}
	return nil
}

// noteOtherProjects says how many sessions of other projects a search would find that found none in this one.
func (c *call) noteOtherProjects(ctx context.Context, r find.Request) error {
	if c.all() {
		return nil
	}
	everywhere := c.Scope
	everywhere.Projects = nil
	r.Projects, r.Limit = nil, mostElsewhere
	r.Hide = func(s *session.Session) bool { return !everywhere.Shows(s) }
	found, err := c.finder().Search(ctx, r)
	if n := len(found.Sessions); err == nil && n > 0 {
		more := ""
		if n == mostElsewhere {
			more = " or more"
		}
		c.note("Other projects have %d session(s)%s with it: scope: %q.", n, more, scopeAll)
	}
	return err
}

// mostElsewhere limits the sessions of other projects that are counted.
const mostElsewhere = 10

// where names what was looked in.
func (c *call) where() string {
	if c.all() {
		return " in any project"
	}
	more := ""
	if len(c.Projects) > 1 {
		more = " and its worktrees"
	}
	return fmt.Sprintf(" in this project (%s%s; scope: %q is all)", c.Projects[0], more, scopeAll)
}

// alike returns the arguments that the next call needs as this one did.
func (c *call) alike() string {
	switch {
	case c.given.Project != "":
		return fmt.Sprintf(", project: %q", c.given.Project)
	case c.all():
		return fmt.Sprintf(", scope: %q", scopeAll)
	}
	return ""
}

type fileArgs struct {
	common
	ownSession
	Path    string `json:"path" jsonschema:"of a moved file the old path"`
	Changed bool   `json:"changed,omitempty" jsonschema:"not those that only read it"`
	Limit   int    `json:"limit,omitempty" jsonschema:"default 10"`
}

func (c *call) fileHistory(ctx context.Context, in fileArgs) error {
	if in.Path == "" {
		return session.Errorf(session.Invalid, "path is empty: pass a file, or . for the project")
	}
	if err := c.leaveOut(ctx, in.Own); err != nil {
		return err
	}
	paths, err := c.filePaths(ctx, in.Path)
	if err != nil {
		return err
	}
	filter := store.FileFilter{Paths: paths}
	if in.Changed {
		filter.Ops = store.OpsNamed("changed")
	}
	all, _, err := c.Store.FileSessions(ctx, filter, store.Page{Limit: 200})
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(f store.FileSession) bool { return !c.Shows(&f.Session) })
	shown, limit := 0, clamp(in.Limit, 10, 50)
	for i := range all {
		if shown == limit {
			break
		}
		f := &all[i]
		line, edits, err := c.fileSession(ctx, f, filter.Paths)
		if err != nil {
			return err
		}
		if !c.addSession(line, edits) {
			break
		}
		shown++
	}
	if len(all) == 0 {
		if empty, err := c.sayNothingStored(ctx); err != nil || empty {
			return err
		}
		return c.sayNoTouch(ctx, in.Path)
	}
	c.say("%d session(s) touched %s, the last first%s.", len(all), transcript.OneLine(in.Path, 200), c.where())
	if left := len(all) - shown; left > 0 {
		c.note("Left out: %d earlier sessions; a larger limit or max_tokens shows them.", left)
	}
	c.note("Read on: {around}(message: ID%s), or {read_session}(session: ID, messages: \"N\"%s) for a whole edit.",
		c.alike(), c.alike())
	return nil
}

// filePaths returns the paths that a file or folder may have: in the project and its worktrees.
func (c *call) filePaths(ctx context.Context, path string) ([]string, error) {
	if folders.IsAbs(path) {
		return c.Store.FilePaths(ctx, path)
	}
	if len(c.Projects) == 0 {
		return nil, session.Errorf(session.Invalid,
			"path %q is relative and no project is given: pass an absolute path, or project", path)
	}
	var names []string
	for _, root := range c.Projects {
		names = append(names, folders.Join(root, path))
	}
	return c.Store.FilePaths(ctx, names...)
}

// sayNoTouch says that no session touched a file, and which files end in its name.
func (c *call) sayNoTouch(ctx context.Context, path string) error {
	const most = 5
	found, err := c.Store.FilesEnding(ctx, path)
	if err != nil {
		return err
	}
	var alike []string
	for _, f := range found {
		s, err := c.Store.Session(ctx, f.Session)
		if session.CodeOf(err) == session.NotFound {
			continue
		}
		if err != nil {
			return err
		}
		if c.Shows(&s) && len(alike) < most {
			alike = append(alike, session.EscapeBlocks(mask(transcript.OneLine(f.Path, 200))))
		}
	}
	c.say("No session%s touched %s.", c.where(), transcript.OneLine(path, 200))
	if len(alike) > 0 {
		c.note("Paths that end so: %s.", strings.Join(alike, ", "))
	}
	return nil
}

// fileSession describes what a session did to the files, and quotes its last edits.
func (c *call) fileSession(ctx context.Context, f *store.FileSession,
	paths []string,
) (line string, edits []string, err error) {
	const editTokens = 200
	var did []string
	for _, op := range []session.FileOp{session.OpWrite, session.OpEdit, session.OpDelete, session.OpRead} {
		if n := f.Ops[op]; n > 0 {
			did = append(did, fmt.Sprintf("%s %d", op, n))
		}
	}
	line = c.describe(&f.Session) + fmt.Sprintf("  %s; last %s in %s", strings.Join(did, ", "), f.Last.Op, f.Last.Message)
	if !slices.Contains(paths, f.Last.Path) {
		line += " of " + session.EscapeBlocks(mask(transcript.OneLine(f.Last.Path, 200)))
	}
	line += "\n"
	for _, change := range f.Changes {
		m, err := c.Store.Message(ctx, change.Message)
		if session.CodeOf(err) == session.NotFound { // purged meanwhile
			continue
		}
		if err != nil {
			return "", nil, err
		}
		var masker redact.Masker
		for _, p := range m.Calls() {
			one := session.Message{SessionID: m.SessionID, RowID: m.RowID, Parts: []session.Part{*p}}
			if !slices.ContainsFunc(touched.Files(&one, f.Session.Directory), func(t session.TouchedFile) bool {
				return t.Path == change.Path && t.Op == change.Op
			}) {
				continue
			}
			masker.Message(&one)
			arguments := one.Parts[0].Arguments
			if b := one.Parts[0].Blob; arguments == "" && b != nil {
				arguments = string(b.Data)
			}
			text := clean(p.ToolName + " " + transcript.LongArguments(arguments))
			edits = append(edits, c.quoteWithin(editTokens, m.ID, string(m.Role), m.CreatedAt, text, ""))
			break
		}
	}
	return line, edits, nil
}

type recentArgs struct {
	common
	ownSession
	Limit int `json:"limit,omitempty" jsonschema:"default 5"`
}

func (c *call) recent(ctx context.Context, in recentArgs) error {
	limit := clamp(in.Limit, 5, 30)
	if err := c.leaveOut(ctx, in.Own); err != nil {
		return err
	}
	var all []session.Session
	projects := c.Projects
	if c.all() {
		projects = []string{""}
	}
	for _, p := range projects {
		some, err := c.newest(ctx, store.Filter{Project: p}, limit)
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b session.Session) int {
		return cmp.Or(b.ActiveAt.Compare(a.ActiveAt.Time), cmp.Compare(b.ID, a.ID))
	})
	all = all[:min(len(all), limit)]
	if len(all) == 0 {
		empty, err := c.sayNothingStored(ctx)
		if err == nil && !empty {
			c.say("No sessions%s.", c.where())
		}
		return err
	}
	shown, share := 0, c.left/int64(len(all))
	for i := range all {
		text := c.describe(&all[i])
		digest, err := c.digest(ctx, &all[i], max(60, share-c.count.Text(text)))
		if err != nil {
			return err
		}
		if !c.add(text+digest) && !c.add(text) {
			break
		}
		shown++
	}
	c.say("The last %d session(s)%s.", shown, c.where())
	if left := len(all) - shown; left > 0 {
		c.note("Left out for want of room: %d more; a larger max_tokens shows them.", left)
	}
	c.note("Read on: {read_session}(session: ID%s).", c.alike())
	limits, err := c.finder().LimitsLine(ctx)
	if err == nil && limits != "" {
		c.note("Now: %s (a command for the user: it continues the newest conversation of this folder there).", limits)
	}
	return err
}

// newest returns the newest sessions with a conversation, but those that another session started.
func (c *call) newest(ctx context.Context, f store.Filter, limit int) (found []session.Session, err error) {
	const mostPages = 10
	page := store.Page{Limit: 100}
	for range mostPages {
		some, next, err := c.Store.Sessions(ctx, f, page)
		if err != nil {
			return nil, err
		}
		for i := range some {
			if s := &some[i]; len(found) < limit && s.SaidCount > 0 && s.ParentKind != session.ParentChild && c.Shows(s) {
				found = append(found, *s)
			}
		}
		if page.Cursor = next; next == "" || len(found) == limit {
			break
		}
	}
	return found, nil
}

// digest says what a session was about: the newest summary of a compaction, else its first prompts and its end.
func (c *call) digest(ctx context.Context, sess *session.Session, most int64) (string, error) {
	done, err := c.Store.Compactions(ctx, sess.ID)
	if err != nil {
		return "", err
	}
	for _, comp := range slices.Backward(done) {
		// of the session that this one was forked from, which may be private
		if comp.SessionID != sess.ID && len(c.Exclude) > 0 {
			continue
		}
		if comp.Status == session.StatusDone && strings.TrimSpace(comp.Summary) != "" && comp.Through != nil {
			return c.quoteWithin(most, *comp.Through, "summary up to here", comp.CreatedAt, clean(comp.Summary), ""), nil
		}
	}
	if sess.HeadID == nil {
		return "", nil
	}
	first, _, err := c.Store.Prompts(ctx, *sess.HeadID, 1, 2)
	if err != nil {
		return "", err
	}
	path, err := c.Store.Spans(ctx, *sess.HeadID)
	if err != nil {
		return "", err
	}
	slices.Reverse(path)
	last, err := c.Store.LastInTalk(ctx, path, 10, session.Head{Text: session.BlobThreshold})
	if err != nil {
		return "", err
	}
	slices.Reverse(last)
	if first, err = c.withoutPrivate(ctx, first); err == nil {
		last, err = c.withoutPrivate(ctx, last)
	}
	if err != nil {
		return "", err
	}
	if at := slices.IndexFunc(last, func(m session.Message) bool {
		return m.Role == session.Assistant && m.Text() != ""
	}); at >= 0 {
		last[at].Parts = []session.Part{session.TextPart(last[at].Text())}
		first = append(first, last[at])
	}
	items, err := itemsOf(*sess, first)
	if err != nil {
		return "", err
	}
	text := ""
	for _, item := range items {
		text += c.item(item, most/int64(len(items)))
	}
	return text, nil
}
