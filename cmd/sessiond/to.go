package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sessiond/internal/contextmgr"
	"sessiond/internal/folders"
	"sessiond/internal/handover"
	"sessiond/internal/history"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/history/codex"
	"sessiond/internal/memory"
	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/tokens"
	"sessiond/internal/transcript"
)

// targets are the programs whose sessions sessiond writes.
func (a *app) targets() []history.Target {
	return []history.Target{
		claudecode.NewTarget(a.getenv),
		codex.NewTarget(a.getenv),
	}
}

type toFlags struct {
	model       string
	dryRun, yes bool
	here        bool
}

func (a *app) toCommand() *cobra.Command {
	var f toFlags
	var names []string
	for _, t := range a.targets() {
		names = append(names, string(t.Source))
	}
	cmd := &cobra.Command{
		Use: "to PROGRAM [SESSION]", Short: "Continue a conversation in another program", Args: arguments(1, 2),
		ValidArgs: names,
		Long: "Writes SESSION as a session of PROGRAM, and on a terminal starts PROGRAM with it in its folder.\n" +
			"Without SESSION that is the newest conversation of this project.\n" +
			"Programs: " + strings.Join(names, ", ") + ".\n" +
			"PROGRAM is given the context as sessiond would send it to its model: the newest messages word\n" +
			"for word, a summary of the older ones, and a note with the branch, changed files and open steps.\n" +
			"Secrets of known forms are masked. What is said there is imported as a fork of SESSION.",
		Example: "  sessiond to codex\n  sessiond to claude-code 20260211_001\n  sessiond to codex --dry-run",
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "@"
			if len(args) > 1 {
				name = args[1]
			}
			return a.to(cmd.Context(), args[0], name, f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.model, "model", "", "fit the context to `MODEL` (default: the program's last one)")
	fl.BoolVar(&f.dryRun, "dry-run", false, "say what would be handed over, and write nothing")
	fl.BoolVar(&f.here, "here", false, "continue in the current folder instead of the session's")
	fl.BoolVarP(&f.yes, "yes", "y", false, "do not ask before the program starts")
	return cmd
}

// handedOver is a handover: what goes, and where.
type handedOver struct {
	Session   session.ID     `json:"session_id"`
	Program   session.Source `json:"program"`
	Provider  string         `json:"provider,omitempty"`
	Model     string         `json:"model,omitempty"`
	Messages  int            `json:"messages"`
	Tokens    int64          `json:"tokens"`
	Masked    int            `json:"masked"`
	LeftOut   map[string]int `json:"left_out"`
	File      string         `json:"file,omitempty"`
	ID        string         `json:"id,omitempty"` // in the program
	Command   []string       `json:"command,omitempty"`
	Shell     string         `json:"shell,omitempty"`
	Directory string         `json:"directory,omitempty"`

	info   session.ProgramInfo
	target history.Target
	draft  history.Draft
}

// to hands a conversation over to a program. Codes: Invalid (sessiond writes no sessions of the program), NotFound,
// Forbidden (its project is excluded).
func (a *app) to(ctx context.Context, program, name string, f toFlags) error {
	target, info, err := a.targetNamed(program)
	if err != nil {
		return err
	}
	a.catchUp(ctx)
	h := handedOver{Program: target.Source, info: info, target: target, LeftOut: map[string]int{}}
	if err := a.onSession(ctx, wiring{readOnly: true}, name, func(s *opened, sess session.Session) error {
		return a.prepareHandover(ctx, s, &sess, f, &h)
	}); err != nil {
		return err
	}
	r := resumption{
		Session: h.Session, Source: h.Program, Directory: h.Directory,
		Command: append(strings.Fields(info.Resume), h.ID),
	}
	r, err = a.checked(r)
	h.Command, h.Shell = r.Command, r.Shell
	starts := a.inTTY && a.outTTY && !a.flags.json
	switch {
	case err != nil:
		return err // nothing is written for a program that cannot be started
	case f.dryRun:
		return a.reportHandover(&h)
	case starts && !f.yes:
		sure, err := a.ask(ctx, h.question()+" [Y/n] ", true)
		if err != nil || !sure {
			return err
		}
	}
	if err := writeSession(h.File, &h); err != nil {
		return err
	}
	if starts {
		return a.replaceBy(r)
	}
	return a.reportHandover(&h)
}

// targetNamed finds a program that sessiond can hand conversations over to.
func (a *app) targetNamed(name string) (history.Target, session.ProgramInfo, error) {
	info, known := session.ProgramNamed(name)
	targets := a.targets()
	at := slices.IndexFunc(targets, func(t history.Target) bool { return known && t.Source == info.Name })
	if at >= 0 {
		return targets[at], info, nil
	}
	var names []string
	for _, t := range targets {
		names = append(names, string(t.Source))
	}
	if known {
		return history.Target{}, info, usagef("sessiond writes no sessions of %s; it writes those of %s", info.Title,
			strings.Join(names, ", "))
	}
	return history.Target{}, info, usagef("unknown program %q; known: %s", name, strings.Join(names, ", "))
}

// catchUpTime limits the import before a handover.
const catchUpTime = 700 * time.Millisecond

// catchUp imports what the programs wrote since the last import, as far as the time allows: what was just said goes
// with the handover. What fails here fails later where it is told.
func (a *app) catchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	_, _ = await(ctx, func() (any, error) {
		s, err := a.open(ctx, wiring{})
		if err != nil {
			return nil, err
		}
		im := history.Importer{Store: s, Once: true, Now: a.now, Running: history.IsRunning}
		for _, src := range a.sources() {
			if src.Places() == nil || err != nil {
				continue
			}
			_, err = im.Run(ctx, src, nil)
		}
		return nil, errors.Join(err, s.Close())
	})
}

// overheadTokens is about what a program's own system prompt and tools take, in tokens.
const overheadTokens = 24_000

// prepareHandover decides what goes.
func (a *app) prepareHandover(ctx context.Context, s *opened, sess *session.Session, f toFlags, h *handedOver) error {
	if scope := memory.NewScope(nil, a.cfg.ExcludeProjects); scope.Excludes(sess) {
		return session.Errorf(session.Forbidden, "%s belongs to a project in exclude_projects of your configuration: "+
			"sessiond shows it to no other program", sess.ID)
	}
	if sess.HeadID == nil {
		return session.Errorf(session.Invalid, "%s has no messages to hand over", sess.ID)
	}
	h.Session, h.Directory = sess.ID, cmp.Or(sess.Directory, a.dir)
	if f.here {
		h.Directory = a.dir
	}
	newest, err := newestOfProgram(ctx, s.store, h.Program)
	if err != nil {
		return err
	}
	h.Model, h.Provider = cmp.Or(f.model, newest.Model), newest.Provider
	budget := contextmgr.Budget{
		Model: h.Model, System: new(""), Initial: &[]session.Part{}, CloseCalls: true, Window: contextmgr.DefaultWindow,
	}
	if info, known := s.catalogue.Model(h.Model); known {
		budget.Window, h.Provider = info.Window, cmp.Or(h.Provider, info.Provider)
	}
	budget.OverheadTokens = new(min(overheadTokens, budget.Window/4))
	view, err := s.contexts.Assemble(ctx, sess.ID, budget)
	if err != nil {
		return err
	}
	carrier := handover.Carrier{Mask: &redact.Masker{}, Left: h.LeftOut}
	messages := carrier.CarryContext(&view)
	head, err := s.store.MessageByID(ctx, *sess.HeadID)
	if err != nil {
		return err
	}
	from, _ := session.ProgramNamed(string(sess.Source))
	note := handover.Note{
		From: from.Title, To: h.info.Title, Session: sess.ID, Model: sess.Model, Kept: carrier.Said,
		Place: a.workPlace(ctx, h.Directory, sess.GitBranch), Todos: todosOf(messages),
	}
	if view.Compaction != nil {
		note.Earlier = max(0, int(sess.MessageCount)-carrier.Said)
	}
	now := session.At(a.now())
	messages = append([]session.Message{{
		Role: session.User, Origin: session.Program,
		Parts: []session.Part{session.TextPart(carrier.Mask.Text(note.Text()))},
	}}, messages...)
	h.Messages, h.Masked = carrier.Said, carrier.Mask.Masked
	h.Tokens = measureDated(messages, now)
	title := carrier.Mask.Text(cmp.Or(sess.Title, string(sess.ID)) + " (from " + from.Title + ")")
	h.ID = h.target.NewID(now, rand.Text())
	h.draft = history.Draft{
		ID: h.ID, Title: title, Directory: h.Directory, GitBranch: note.Place.Branch, Provider: newest.Provider,
		Model: h.Model, CreatedAt: now,
		Handover: &history.Handover{
			Session: sess.ID, Source: sess.Source, SourceID: sess.SourceID, Message: head.ID, Key: head.ExternalID,
			At: head.CreatedAt,
		},
		Each: func(yield func(*session.Message) error) error {
			for i := range messages {
				if err := yield(&messages[i]); err != nil {
					return err
				}
			}
			return nil
		},
	}
	h.File = h.target.Path(&h.draft)
	return nil
}

// measureDated gives messages that are not stored the time of the next one, and returns the size of all.
func measureDated(messages []session.Message, now session.Time) (size int64) {
	at := now
	for i := range slices.Backward(messages) {
		m := &messages[i]
		if m.CreatedAt.IsZero() {
			m.CreatedAt = at
		}
		at = m.CreatedAt
		tokens.Reference().Measure(m)
		size += m.Tokens
	}
	return size
}

// newestOfProgram returns the newest session of a program, whose model it asks next; an empty one without any.
func newestOfProgram(ctx context.Context, s *store.Store, program session.Source) (session.Session, error) {
	data, _, err := s.Sessions(ctx, store.Filter{Source: program, AnyState: true, People: true}, store.Page{Limit: 1})
	if err != nil || len(data) == 0 {
		return session.Session{}, err
	}
	return data[0], nil
}

// todosOf returns the newest plan of a conversation.
func todosOf(messages []session.Message) []handover.Todo {
	for _, m := range slices.Backward(messages) {
		for _, p := range m.Calls() {
			if todos, ok := handover.TodosOf(p); ok {
				return todos
			}
		}
	}
	return nil
}

const (
	gitTime     = 400 * time.Millisecond
	mostChanged = 40 // files that a note names
)

// workPlace asks git where the work of a folder stands. Without git, or where it is slow, the branch that the program
// noted is all that is known.
func (a *app) workPlace(ctx context.Context, dir, branch string) handover.Place {
	p := handover.Place{Directory: dir}
	if !folders.HasRepository(dir) {
		return p
	}
	p.Branch = branch
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	git := func(args ...string) string {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "--no-optional-locks"}, args...)...)
		cmd.Env = a.environ
		out, err := cmd.Output()
		if err != nil {
			return ""
		}
		return strings.TrimRight(string(out), "\n")
	}
	p.Branch = cmp.Or(git("branch", "--show-current"), p.Branch)
	p.Head = git("log", "-1", "--format=%h %s")
	for line := range strings.Lines(git("status", "--porcelain", "--untracked-files=normal")) {
		if line = printable(strings.TrimRight(line, "\n")); len(p.Changed) < mostChanged {
			p.Changed = append(p.Changed, line)
		} else {
			p.More++
		}
	}
	return p
}

// question names the program, the provider and the size before the conversation goes there.
func (h *handedOver) question() string {
	to := h.info.Title
	if who := strings.Join(slices.DeleteFunc([]string{h.Provider, h.Model}, func(s string) bool { return s == "" }),
		", "); who != "" {
		to += " (" + who + ")"
	}
	text := fmt.Sprintf("%s goes to %s: %s, %s", h.Session, printable(to), transcript.Counted(h.Messages, "message"),
		aboutTokens(h.Tokens))
	if h.Masked > 0 {
		text += ", " + transcript.Counted(h.Masked, "secret") + " masked"
	}
	return text + "."
}

// reportHandover prints what was, or would be, handed over.
func (a *app) reportHandover(h *handedOver) error {
	if a.flags.json {
		return a.printJSON(h)
	}
	fmt.Fprintln(a.out, h.question())
	if len(h.LeftOut) > 0 {
		fmt.Fprintln(a.out, "Stays behind: "+countedKinds(h.LeftOut)+".")
	}
	_, err := fmt.Fprintln(a.out, h.Shell)
	return err
}

// writeSession writes the session's file, whole or not at all; one that is there stays.
func writeSession(path string, h *handedOver) (err error) {
	if path == "" {
		return session.Errorf(session.Invalid, "HOME is not set: it says where %s keeps its sessions", h.info.Title)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the folder of %s's session: %w", h.info.Title, err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".sessiond-*") // 0600
	if err != nil {
		return fmt.Errorf("write a session of %s: %w", h.info.Title, err)
	}
	defer os.Remove(file.Name()) //nolint:errcheck // the link keeps the content
	if err = errors.Join(h.target.Write(file, &h.draft), file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write a session of %s: %w", h.info.Title, err)
	}
	err = os.Link(file.Name(), path)
	if _, there := os.Lstat(path); err != nil && there != nil { // a file system without hard links
		err = os.Rename(file.Name(), path)
	}
	if errors.Is(err, fs.ErrExist) {
		return session.Errorf(session.Conflict, "%s exists: nothing was written; try again", path)
	}
	return err
}
