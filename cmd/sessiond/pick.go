package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sessiond/internal/find"
	"sessiond/internal/folders"
	"sessiond/internal/picker"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/usage"
)

// picks reports whether `sessiond` alone shows the picker: a person types and reads on a terminal that can move its
// cursor.
func (a *app) picks() bool {
	term := a.getenv("TERM")
	return a.inTTY && a.outTTY && !a.flags.json && term != "" && term != "dumb"
}

// pick is `sessiond` without arguments on a terminal: people find a session there and continue it.
func (a *app) pick(ctx context.Context, root *cobra.Command) error {
	cfg, err := a.load(nil)
	if err != nil {
		return err
	}
	debug.SetGCPercent(400) // no collection before the first screen
	s, err := a.wire(ctx, reading)
	if session.CodeOf(err) == session.NotFound {
		return a.firstScreen(ctx, root, cfg)
	}
	if err != nil {
		return err
	}
	data := newPickerData(a, s)
	names, err := s.store.ProjectNames(ctx)
	if err != nil {
		return errors.Join(err, s.close())
	}
	asking, stop := context.WithCancel(ctx)
	choice, err := picker.Run(asking, picker.Config{
		Data: data, Now: func() time.Time { return a.now().In(s.store.Zone()) },
		Home: a.getenv("HOME"), Project: names.Of(folders.Project(a.dir)), Here: a.dir,
		Targets: a.targetNames(), Debounce: 60 * time.Millisecond, Poll: time.Second,
	}, picker.Terminal{In: a.in, Out: raw(a.out), Environ: a.environ, NoColor: !a.color()})
	stop() // a search may still run
	var r resumption
	if err == nil && choice.Resume != "" && choice.In == "" {
		r, err = data.resumption(ctx, choice.Resume)
	}
	if err = errors.Join(err, s.close()); err != nil {
		return err
	}
	switch {
	case choice.In != "":
		return a.to(ctx, choice.In, string(choice.Resume), toFlags{})
	case choice.Resume != "":
		return a.replaceBy(r)
	case choice.Import:
		root.SetArgs([]string{"import"})
		return root.ExecuteContext(ctx)
	}
	return nil
}

// pickerData answers the picker from the database. It opens it for writing only while a key writes.
type pickerData struct {
	*app
	store     *store.Store
	index     *search.Index
	catalogue *usage.Catalogue
	projects  []string // of the current folder: its repository and all worktrees
}

func newPickerData(a *app, s *opened) *pickerData {
	return &pickerData{app: a, store: s.store, index: s.index, catalogue: s.catalogue, projects: folders.Roots(a.dir)}
}

func (d *pickerData) List(ctx context.Context, in picker.Scope, cursor string, limit int) (f picker.Found, err error) {
	data, next, err := d.finder(d.store, d.index).List(ctx, d.request(in), store.Page{Cursor: cursor, Limit: limit})
	if err != nil {
		return f, err
	}
	if len(data) == 0 && cursor == "" {
		last, err := d.store.LastMessageID(ctx)
		return picker.Found{Empty: last == 0}, err
	}
	f.Next = next
	names, err := d.store.ProjectNames(ctx)
	if err != nil {
		return f, err
	}
	for _, s := range data {
		f.Rows = append(f.Rows, picker.Row{Session: s, Name: names.With(s.Project, s.Directory)})
	}
	return f, d.measure(ctx, f.Rows)
}

// request returns what the picker shows, without words.
func (d *pickerData) request(in picker.Scope) find.Request {
	r := find.Request{Source: string(in.Source), Starred: in.Starred, Archived: in.Archived, People: !in.SubAgents}
	switch in.Where {
	case picker.InProject:
		r.Roots = d.projects
	case picker.Here:
		r.Exact = d.dir
	}
	return r
}

// measure reads how large and how dear the sessions of rows are.
func (d *pickerData) measure(ctx context.Context, rows []picker.Row) error {
	sessions := make([]session.Session, len(rows))
	for i := range rows {
		sessions[i] = rows[i].Session
	}
	measures, err := d.store.Measures(ctx, sessions, d.catalogue.Model)
	for i := range rows {
		rows[i].Measure = measures[rows[i].ID]
	}
	return err
}

// Search is `sessiond search`. If no message has the last word, it may be unfinished: words that begin with it are
// searched. A text that is the id of a session, as commands accept it, finds that session, too.
func (d *pickerData) Search(ctx context.Context, in picker.Scope, text string) (f picker.Found, err error) {
	r := d.request(in)
	r.Text, r.Group, r.Limit, r.SkipArchived = text, string(search.GroupSession), pickerHits, true
	finder := d.finder(d.store, d.index)
	found, err := finder.Search(ctx, r)
	if code := session.CodeOf(err); code == session.Invalid || code == session.NotFound {
		return picker.Found{Notes: []string{err.Error()}}, nil
	}
	words := strings.Fields(text)
	if last := words[len(words)-1]; err == nil && len(last) > 2 &&
		slices.ContainsFunc(found.Missing, func(m search.Missing) bool { return m.Word == last }) {
		r.Text = text + "*"
		if begun, err := finder.Search(ctx, r); err == nil && len(begun.Sessions) > 0 {
			found = begun
		}
	}
	if err != nil {
		return f, err
	}
	hits := found.Sessions
	if id, err := d.store.Resolve(ctx, text, d.dir); err == nil &&
		!slices.ContainsFunc(hits, func(h search.SessionHit) bool { return h.SessionID == id }) {
		hits = append([]search.SessionHit{{SessionID: id}}, hits...)
	}
	names, err := d.store.ProjectNames(ctx)
	if err != nil {
		return f, err
	}
	for _, hit := range hits {
		s, err := d.store.Session(ctx, hit.SessionID)
		if session.CodeOf(err) == session.NotFound {
			continue
		}
		if err != nil {
			return f, err
		}
		f.Rows = append(f.Rows, picker.Row{Session: s, Name: names.With(s.Project, s.Directory), Passages: hit.Passages})
	}
	f.Notes = searchNotes(&found)
	return f, d.measure(ctx, f.Rows)
}

// pickerHits is how many sessions a search of the picker lists.
const pickerHits = 50

// Preview reads the end of a conversation, and its newest prompts.
func (d *pickerData) Preview(ctx context.Context, id session.ID) (p picker.Preview, err error) {
	s, err := d.session(ctx, id)
	if err != nil {
		return p, err
	}
	row := []picker.Row{{Session: s}}
	if err := d.measure(ctx, row); err != nil {
		return p, err
	}
	p.Row = row[0]
	if s.HeadID == nil {
		return p, nil
	}
	path, err := pathOf(ctx, d.store, s, false)
	if err != nil {
		return p, err
	}
	if p.Last, err = d.store.LastInTalk(ctx, path, previewMessages, session.Head{Text: previewBytes}); err != nil {
		return p, err
	}
	p.Prompts, err = d.prompts(ctx, *s.HeadID)
	shorten(p.Prompts)
	return p, err
}

const (
	previewMessages = 12
	previewPrompts  = 20
	previewBytes    = 8 << 10
)

// prompts returns the newest prompts on the path to head.
func (d *pickerData) prompts(ctx context.Context, head int64) ([]session.Message, error) {
	_, total, err := d.store.Prompts(ctx, head, math.MaxInt32, 1)
	if err != nil {
		return nil, err
	}
	newest, _, err := d.store.Prompts(ctx, head, max(1, total-previewPrompts+1), previewPrompts)
	return newest, err
}

// shorten cuts texts that no preview shows whole.
func shorten(msgs []session.Message) {
	for i := range msgs {
		for k := range msgs[i].Parts {
			p := &msgs[i].Parts[k]
			p.Text = p.Text[:min(len(p.Text), previewBytes)] // transcripts replace a cut character
			p.Arguments = p.Arguments[:min(len(p.Arguments), previewBytes)]
		}
	}
}

// session reads a session that the list has; it may have been purged since.
func (d *pickerData) session(ctx context.Context, id session.ID) (session.Session, error) {
	s, err := d.store.Session(ctx, id)
	return s, orGone(err)
}

func orGone(err error) error {
	if session.CodeOf(err) == session.NotFound {
		return picker.ErrGone
	}
	return err
}

func (d *pickerData) Version(ctx context.Context) (int64, error) {
	_, _, last, err := d.store.EventRange(ctx)
	return last, err
}

func (d *pickerData) Alarm(ctx context.Context) string {
	alarm := d.alarm(ctx, d.cfg)
	if alarm == "" && firstImportRuns(d.cfg) {
		return "the first import still runs: older conversations and digests may be missing"
	}
	if alarm == "" {
		alarm, _ = d.finder(d.store, d.index).LimitsLine(ctx) // the list itself says what is wrong with the database
	}
	return alarm
}

func (d *pickerData) Sources(ctx context.Context) ([]session.Source, error) {
	return d.store.Sources(ctx)
}

func (d *pickerData) Resume(ctx context.Context, id session.ID) (string, error) {
	r, err := d.resumption(ctx, id)
	return r.Shell, err
}

func (d *pickerData) resumption(ctx context.Context, id session.ID) (resumption, error) {
	s, err := d.session(ctx, id)
	if err != nil {
		return resumption{}, err
	}
	return d.app.resumption(ctx, d.store, &s)
}

func (d *pickerData) Rename(ctx context.Context, id session.ID, title string) error {
	return d.patch(ctx, id, store.SessionPatch{Title: &title})
}

func (d *pickerData) Archive(ctx context.Context, id session.ID, on bool) error {
	return d.patch(ctx, id, store.SessionPatch{Archived: &on})
}

func (d *pickerData) Star(ctx context.Context, id session.ID, on bool) error {
	return d.patch(ctx, id, store.SessionPatch{Starred: &on})
}

func (d *pickerData) patch(ctx context.Context, id session.ID, p store.SessionPatch) error {
	s, err := d.open(ctx, wiring{})
	if err != nil {
		return err
	}
	_, err = s.PatchSession(ctx, id, p)
	return errors.Join(orGone(err), s.Close())
}

// Export is `sessiond export ID -o FILE`.
func (d *pickerData) Export(ctx context.Context, id session.ID, file string) (string, error) {
	if _, err := d.session(ctx, id); err != nil {
		return "", err
	}
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		file = filepath.Join(d.getenv("HOME"), rest)
	}
	var said bytes.Buffer
	quiet, surroundings := *d.app, *d.env
	surroundings.out, surroundings.err = &said, &said
	quiet.env = &surroundings
	err := quiet.export(ctx, d.store, []string{string(id)}, exportFlags{out: file, format: string(formatOf(file))})
	if session.CodeOf(err) == session.Conflict {
		err = session.Errorf(session.Conflict, "%s exists: choose another name", file)
	}
	return strings.TrimSpace(said.String()), err
}

// Open asks the daemon for a link. Over ssh and without a screen no browser is started.
func (d *pickerData) Open(ctx context.Context, id session.ID) (string, error) {
	link, err := askForLink(ctx, d.cfg, "/s/"+string(id))
	if err != nil {
		return "", err
	}
	screen := runtime.GOOS != "linux" || d.getenv("DISPLAY")+d.getenv("WAYLAND_DISPLAY") != ""
	if screen && d.getenv("SSH_CONNECTION") == "" && browse(ctx, link) == "" {
		return "", nil
	}
	return link, nil
}
