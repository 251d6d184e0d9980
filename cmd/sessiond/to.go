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
	"sessiond/internal/export"
	"sessiond/internal/folders"
	"sessiond/internal/handover"
	"sessiond/internal/history"
	"sessiond/internal/memory"
	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize/digest"
	"sessiond/internal/tokens"
	"sessiond/internal/transcript"
)

type toFlags struct {
	model, from               string
	whole, dryRun, text, here bool
	yes, back, remove         bool
}

func (a *app) toCommand() *cobra.Command {
	var f toFlags
	names := a.targetNames()
	cmd := &cobra.Command{
		Use: "to PROGRAM [SESSION]", Short: "Continue a conversation in another program", Args: cobra.ArbitraryArgs,
		ValidArgs: names,
		Long: "Writes SESSION as a session of PROGRAM, and on a terminal starts PROGRAM with it in its folder.\n" +
			"Without SESSION that is the newest conversation of this project.\n" +
			"Programs: " + strings.Join(names, ", ") + ".\n" +
			"PROGRAM is given the context as sessiond would send it to its model: the newest messages word\n" +
			"for word, a summary of the older ones, and a note with the branch, changed files and open steps.\n" +
			"Secrets of known forms are masked. What is said there is imported as a fork of SESSION.\n" +
			"--back continues the first session in its own program, and says there what was done meanwhile.",
		Example: "  sessiond to codex\n  sessiond to claude-code 20260211_001\n  sessiond to codex --dry-run\n" +
			"  sessiond to --back",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(args); err != nil {
				return err
			}
			if f.back {
				return a.toBack(cmd.Context(), append(args, "@")[0], f)
			}
			name := append(args[1:], "@")[0]
			if f.remove {
				return a.removeHandovers(cmd.Context(), args[0], name)
			}
			return a.to(cmd.Context(), args[0], name, f)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.whole, "whole", false, "hand over the whole conversation, not the context")
	fl.StringVar(&f.from, "from", "", "hand over the messages from number `N` on")
	fl.StringVar(&f.model, "model", "", "fit the context to `MODEL` (default: the program's last one)")
	fl.BoolVar(&f.dryRun, "dry-run", false, "say what would be handed over, and write nothing")
	fl.BoolVar(&f.text, "text", false, "print it as text to paste, for any program")
	fl.BoolVar(&f.here, "here", false, "continue in the current folder instead of the session's")
	fl.BoolVarP(&f.yes, "yes", "y", false, "do not ask before the program starts")
	fl.BoolVar(&f.back, "back", false, "continue the session that was handed over, in its own program")
	fl.BoolVar(&f.remove, "remove", false, "remove what was written for PROGRAM and not continued there")
	return cmd
}

// check rejects arguments and flags that exclude one another.
func (f *toFlags) check(args []string) error {
	least, most, what := 1, 2, "PROGRAM, and perhaps SESSION"
	if f.back {
		least, most, what = 0, 1, "at most SESSION with --back"
	}
	switch {
	case len(args) < least || len(args) > most:
		return usagef("to needs %s", what)
	case f.whole && f.from != "":
		return usagef("--whole and --from exclude one another")
	case f.back && f.remove:
		return usagef("--back and --remove exclude one another")
	case f.dryRun && f.remove: // it would delete files
		return usagef("--dry-run and --remove exclude one another: --remove names each file that it removes, and keeps " +
			"those that were continued")
	case f.text && f.remove:
		return usagef("--text and --remove exclude one another")
	}
	return nil
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
	h := handedOver{LeftOut: map[string]int{}}
	var err error
	if h.target, h.info, err = a.targetNamed(program, f.text); err != nil {
		return err
	}
	h.Program = h.info.Name
	a.catchUp(ctx)
	var start *resumption
	if err := a.onSession(ctx, reading, name, func(s *opened, sess session.Session) error {
		if err := a.prepareHandover(ctx, s, &sess, f, &h); err != nil {
			return err
		}
		if f.text {
			return handover.WriteText(a.out, h.draft.Each)
		}
		start, err = a.handOver(ctx, f, &h)
		return err
	}); err != nil || start == nil {
		return err
	}
	return a.replaceBy(*start)
}

// checkTarget rejects a program that is not installed and a folder that is gone, before anything is written.
// Codes: NotFound.
func (a *app) checkTarget(h *handedOver) error {
	again := "sessiond to " + string(h.Program) + " " + string(h.Session)
	if !isFolder(h.Directory) {
		return session.Errorf(session.NotFound, "folder %s no longer exists, so nothing was written; `%s --here` continues "+
			"in the current folder", printable(h.Directory), again)
	}
	if name, _, _ := strings.Cut(h.info.Resume, " "); a.host().LookPath(name) == "" {
		return session.Errorf(session.NotFound, "%s is not on the PATH, so nothing was written; install %s and try again, "+
			"or paste what `%s --text` prints into another program", name, h.info.Title, again)
	}
	return nil
}

// handOver writes the session, and returns how its program is started; nil: it is not to be.
func (a *app) handOver(ctx context.Context, f toFlags, h *handedOver) (*resumption, error) {
	if err := a.checkTarget(h); err != nil {
		return nil, err
	}
	id := h.ID
	if h.Program == session.SourcePi { // finds a session of another folder by its file alone
		id = h.File
	}
	r, err := a.checked(resumption{
		Session: h.Session, Source: h.Program, Directory: h.Directory, Command: append(strings.Fields(h.info.Resume), id),
	})
	h.Command, h.Shell = r.Command, r.Shell
	starts := a.inTTY && a.outTTY && !a.flags.json
	switch {
	case err != nil:
		return nil, err // nothing is written for a program that cannot be started
	case f.dryRun:
		return nil, a.reportHandover(h)
	case starts && !f.yes:
		sure, err := a.ask(ctx, h.question()+" [Y/n] ", true)
		if err != nil || !sure {
			return nil, err
		}
	}
	if h.target.Import != nil {
		err = a.importSession(ctx, h, r.Directory)
	} else {
		err = writeSession(h.File, h)
	}
	switch {
	case err != nil:
		return nil, err
	case starts:
		return &r, nil
	}
	return nil, a.reportHandover(h)
}

// targetNames are the programs whose sessions sessiond writes.
func (a *app) targetNames() (names []string) {
	for _, t := range a.targets() {
		names = append(names, string(t.Source))
	}
	return names
}

// targets are the programs that conversations are handed over to. Others can only be given an exported file.
func (a *app) targets() []history.Target {
	return slices.DeleteFunc(export.Targets(a.getenv), func(t history.Target) bool {
		return t.Path == nil && t.Import == nil
	})
}

// targetNamed finds a program that sessiond can hand conversations over to.
// A text needs no more than its name.
func (a *app) targetNamed(name string, text bool) (history.Target, session.ProgramInfo, error) {
	info, known := session.ProgramNamed(name)
	targets := a.targets()
	at := slices.IndexFunc(targets, func(t history.Target) bool { return known && t.Source == info.Name })
	names := strings.Join(a.targetNames(), ", ")
	switch {
	case at >= 0:
		return targets[at], info, nil
	case known && text:
		return history.Target{Source: info.Name}, info, nil
	case known:
		return history.Target{}, info, usagef("sessiond writes no sessions of %s, only of %s; `sessiond to %s --text` "+
			"prints the conversation to paste there", info.Title, names, info.Name)
	}
	return history.Target{}, info, usagef("unknown program %q; known: %s", name, names)
}

// catchUpTime limits the import before a handover.
const catchUpTime = 700 * time.Millisecond

// catchUp imports what the programs wrote since the last import, as far as the time allows: what was just said goes
// with the handover. A program whose history was never imported is left out. What fails here fails later where it is
// told.
func (a *app) catchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	_, _ = await(ctx, func() (any, error) {
		return nil, a.with(ctx, wiring{}, func(s *opened) error {
			im := a.importer(s)
			im.Once = true
			for _, src := range a.sources() {
				imported, err := s.store.ImportedPaths(ctx, src.Name())
				if err == nil && src.Places() != nil && len(imported) > 0 {
					_, err = im.Run(ctx, src, nil)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// overheadTokens is about what a program's own system prompt and tools take, in tokens.
const overheadTokens = 24_000

// prepareHandover decides what goes.
func (a *app) prepareHandover(ctx context.Context, s *opened, sess *session.Session, f toFlags, h *handedOver) error {
	if err := a.checkShared(sess); err != nil {
		return err
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
	from, _ := session.ProgramNamed(string(sess.Source))
	note := handover.Note{
		From: from.Title, To: h.info.Title, Session: sess.ID, Model: sess.Model,
		Place: a.workPlace(ctx, h.Directory, sess.GitBranch), Rules: rulesElsewhere(sess.Source, h.Program, h.Directory),
	}
	now := session.At(a.now())
	mask := &redact.Masker{}
	h.draft = history.Draft{
		Title: mask.Text(cmp.Or(sess.Title, string(sess.ID)) + handoverSuffix(from)), Directory: h.Directory,
		GitBranch: note.Place.Branch, Provider: h.Provider, Model: h.Model, CreatedAt: now,
	}
	if h.draft.Handover, err = export.HandoverOf(ctx, s.store, sess); err != nil {
		return err
	}
	if f.whole || f.from != "" {
		err = a.prepareWhole(ctx, s, sess, f, h, &note)
	} else {
		err = prepareContext(ctx, s, sess, h, &note)
	}
	if err != nil {
		return err
	}
	if h.target.NewID != nil {
		h.ID = h.target.NewID(now, rand.Text())
	}
	if h.draft.ID = h.ID; h.target.Path != nil {
		h.File = h.target.Path(&h.draft)
	}
	return nil
}

// handoverSuffix ends the title of a session that was written of another program's one.
func handoverSuffix(from session.ProgramInfo) string { return " (from " + from.Title + ")" }

// checkShared rejects a session whose project is shown to no other program. Codes: Forbidden.
func (a *app) checkShared(sess *session.Session) error {
	if scope := memory.NewScope(nil, a.cfg.ExcludeProjects); scope.Excludes(sess) {
		return session.Errorf(session.Forbidden, "%s belongs to a project in exclude_projects of your configuration: "+
			"sessiond shows it to no other program", sess.ID)
	}
	return nil
}

// prepareContext hands over the context as the program's model would get it.
func prepareContext(ctx context.Context, s *opened, sess *session.Session, h *handedOver, note *handover.Note) error {
	budget := contextmgr.Budget{
		Model: h.Model, System: new(""), Initial: &[]session.Part{}, CloseCalls: true, Window: contextmgr.DefaultWindow,
	}
	if info, known := s.catalogue.Model(h.Model); known {
		budget.Window, h.Provider = info.Window, cmp.Or(h.Provider, info.Provider)
	}
	ofRequests := budget.Window / requestShare
	budget.OverheadTokens = new(min(overheadTokens, budget.Window/4) + ofRequests)
	view, err := s.contexts.Assemble(ctx, sess.ID, budget)
	if session.CodeOf(err) == session.DoesNotFit {
		return session.Errorf(session.DoesNotFit, "%w; name a model with a larger window by --model, or hand over the "+
			"newest messages by --from N", err)
	}
	if err != nil {
		return err
	}
	carrier := handover.Carrier{Mask: &redact.Masker{}, Left: h.LeftOut}
	messages := carrier.CarryContext(&view)
	var plan handover.Plan
	for i := range messages {
		plan.Add(&messages[i])
	}
	note.Kept, note.Todos = carrier.Said, plan.Todos
	if view.Compaction != nil {
		note.Earlier = max(0, int(sess.MessageCount)-carrier.Said)
		if err := addHidden(ctx, s, sess, &view, ofRequests, h, note); err != nil {
			return err
		}
	}
	messages = append([]session.Message{noteMessage(note, carrier.Mask)}, messages...)
	h.Messages, h.Masked = carrier.Said, carrier.Mask.Masked
	h.Tokens = measureDated(messages, h.draft.CreatedAt)
	h.draft.Each = func(yield func(*session.Message) error) error {
		for i := range messages {
			if err := yield(&messages[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

const (
	requestShare = 16  // of the window, for what was asked in hidden messages
	mostRequests = 500 // that a note names, the newest
)

// addHidden notes what people asked on the path before the first message that a context holds word for word, and counts
// the rules among it that go nowhere.
func addHidden(ctx context.Context, s *opened, sess *session.Session, view *contextmgr.View, limit int64,
	h *handedOver, note *handover.Note,
) error {
	spans, err := s.store.Spans(ctx, *sess.HeadID)
	if err != nil {
		return err
	}
	slices.Reverse(spans)
	path := store.Ranges(spans)
	hidden := path
	for _, p := range view.Provenance {
		if p.Kind == contextmgr.ItemMessage && len(p.Sources) > 0 {
			hidden = path.Between(1, path.Position(p.Sources[0])-1)
			break
		}
	}
	_, total, err := s.store.PromptsIn(ctx, hidden, 1, 0)
	if err != nil {
		return err
	}
	prompts, _, err := s.store.PromptsIn(ctx, hidden, total-mostRequests+1, mostRequests)
	if err != nil {
		return err
	}
	note.Asked = handover.FitRequests(handover.RequestsOf(prompts), limit, tokens.Reference().Text)
	texts := []string{note.Text()}
	for i := range view.Messages {
		texts = append(texts, view.Messages[i].Text())
	}
	var rules []string
	for _, r := range digest.StandingRules(prompts, s.givers(sess.Key)) {
		rules = append(rules, r.Text)
	}
	if missing := handover.CountMissing(rules, texts); missing > 0 {
		h.LeftOut[handover.LeftRules] = missing
	}
	return nil
}

// prepareWhole hands over the path to the head, or the part of it from a message on. It is read twice: to say how much
// it is, and to write it.
func (a *app) prepareWhole(ctx context.Context, s *opened, sess *session.Session, f toFlags, h *handedOver,
	note *handover.Note,
) error {
	first, err := a.namedMessage(ctx, s.store, "--from", f.from, sess.ID, nil)
	if err != nil {
		return err
	}
	note.Whole, note.FromMessage = first == nil, f.from
	each := func(ctx context.Context, yield func(*session.Message) error) error {
		begun := first == nil
		err := s.store.EachOnPath(ctx, *sess.HeadID, func(m *session.Message) error {
			if begun = begun || m.ID == *first; !begun {
				return nil
			}
			return yield(m)
		})
		if err == nil && !begun {
			err = session.Errorf(session.NotFound, "message %s is not on the path of %s", first, sess.ID)
		}
		return err
	}
	carrier := handover.Carrier{Mask: &redact.Masker{}, Left: h.LeftOut}
	var began session.Time
	var plan handover.Plan
	if err := export.CarryAll(ctx, &carrier, each, func(m *session.Message) error {
		if began.IsZero() {
			began = m.CreatedAt
		}
		plan.Add(m)
		tokens.Reference().Measure(m)
		h.Tokens += m.Tokens
		return nil
	}); err != nil {
		return err
	}
	h.Messages, h.Masked, note.Todos = carrier.Said, carrier.Mask.Masked, plan.Todos
	h.draft.Each = func(yield func(*session.Message) error) error {
		mask := &redact.Masker{}
		noted := noteMessage(note, mask)
		noted.CreatedAt = began
		if err := yield(&noted); err != nil {
			return err
		}
		return export.CarryAll(ctx, &handover.Carrier{Mask: mask}, each, yield)
	}
	return nil
}

// noteMessage is the first message of a handover.
func noteMessage(note *handover.Note, mask *redact.Masker) session.Message {
	return session.Message{
		Role: session.User, Origin: session.Program, Parts: []session.Part{session.TextPart(mask.Text(note.Text()))},
	}
}

// ruleFiles are the files with a project's rules that programs read by themselves.
var ruleFiles = map[session.Source][]string{
	session.SourceClaudeCode: {"CLAUDE.md"}, session.SourceCodex: {"AGENTS.md"},
	session.SourcePi:       {"AGENTS.md", "CLAUDE.md"},
	session.SourceOpencode: {"AGENTS.md", "CLAUDE.md"}, session.SourceGeminiCLI: {"GEMINI.md"},
	session.SourceQwenCode: {"QWEN.md", "AGENTS.md"}, session.SourceGoose: {".goosehints", "AGENTS.md"},
	session.SourceCopilotCLI: {"AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"},
}

// rulesElsewhere returns the files with rules that one program read in a folder and the other does not read.
func rulesElsewhere(from, to session.Source, dir string) (files []string) {
	for _, name := range ruleFiles[from] {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil && !slices.Contains(ruleFiles[to], name) {
			files = append(files, name)
		}
	}
	return files
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
	if n := h.LeftOut[handover.LeftRules]; n > 0 {
		text += fmt.Sprintf("; its window has no room for %s, which `sessiond rules %s` lists",
			transcript.Counted(n, "standing rule"), h.Session)
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

// importTime limits the import command of a program.
const importTime = 30 * time.Second

// importSession has the program read the session by its own command, from a file that is deleted again.
func (a *app) importSession(ctx context.Context, h *handedOver, dir string) error {
	file, err := os.CreateTemp("", "sessiond-*.json") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // it lies in a folder of temporary files
	if err := errors.Join(h.target.Write(file, &h.draft), file.Close()); err != nil {
		return err
	}
	program := a.host().LookPath(h.target.Import[0])
	ctx, cancel := context.WithTimeout(ctx, importTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append(slices.Clone(h.target.Import[1:]), file.Name())...)
	cmd.Dir, cmd.Env = dir, a.environ
	if said, err := cmd.CombinedOutput(); err != nil {
		return session.Errorf(session.Invalid, "%s does not take the session: %w: %s", h.info.Title, err,
			inOneLine(printable(strings.TrimSpace(string(said)))))
	}
	return nil
}

// writeSession writes the session's file, whole or not at all; one that is there stays.
func writeSession(path string, h *handedOver) (err error) {
	if path == "" {
		return session.Errorf(session.Invalid, "HOME is not set: it says where %s keeps its sessions", h.info.Title)
	}
	if h.target.TidyUp != nil {
		defer func() {
			if err != nil {
				h.target.TidyUp(path)
			}
		}()
	}
	if h.target.Prepare != nil {
		if err := h.target.Prepare(path, &h.draft); err != nil {
			return err
		}
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
