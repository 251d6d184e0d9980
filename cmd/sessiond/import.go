package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"sessiond/internal/history"
	"sessiond/internal/history/antigravity"
	"sessiond/internal/history/chatgpt"
	"sessiond/internal/history/claudeai"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/history/cline"
	"sessiond/internal/history/codex"
	"sessiond/internal/history/continuedev"
	"sessiond/internal/history/copilotcli"
	"sessiond/internal/history/crush"
	"sessiond/internal/history/cursor"
	"sessiond/internal/history/devin"
	"sessiond/internal/history/droid"
	"sessiond/internal/history/geminicli"
	"sessiond/internal/history/geminitakeout"
	"sessiond/internal/history/generic"
	"sessiond/internal/history/goose"
	"sessiond/internal/history/hermes"
	"sessiond/internal/history/kimicode"
	"sessiond/internal/history/openclaw"
	"sessiond/internal/history/opencode"
	"sessiond/internal/history/pi"
	"sessiond/internal/history/qwencode"
	own "sessiond/internal/history/sessiond"
	"sessiond/internal/history/vscodecopilot"
	"sessiond/internal/history/windsurf"
	"sessiond/internal/history/zed"
	"sessiond/internal/session"
)

// sources are the programs whose histories can be imported.
func (a *app) sources() []history.Source {
	return []history.Source{
		antigravity.New(a.getenv, a.now),
		chatgpt.New(a.now),
		claudeai.New(a.now),
		claudecode.New(a.getenv, a.now),
		cline.New(a.user(), a.now),
		codex.New(a.getenv, a.now),
		continuedev.New(a.getenv, a.now),
		copilotcli.New(a.getenv, a.now),
		crush.New(a.user(), a.now),
		cursor.New(a.user(), a.now),
		devin.New(a.user(), a.now),
		droid.New(a.getenv, a.now),
		geminicli.New(a.getenv, a.now),
		geminitakeout.New(a.now),
		generic.New(a.now),
		goose.New(a.getenv),
		hermes.New(a.user(), a.now),
		opencode.NewKilo(a.getenv, a.now),
		pi.NewOmp(a.getenv),
		kimicode.New(a.getenv, a.now),
		openclaw.New(a.getenv),
		opencode.New(a.getenv, a.now),
		pi.New(a.getenv),
		qwencode.New(a.getenv, a.now),
		cline.NewRoo(a.user(), a.now),
		vscodecopilot.New(a.user(), a.now),
		windsurf.New(a.getenv, a.now),
		zed.New(a.user(), a.now),
		&own.Source{AsCopy: a.asCopy},
	}
}

// lineSources are the programs whose transcripts are kept line by line, as their SDKs send them.
func (a *app) lineSources() []*history.Program {
	return []*history.Program{claudecode.New(a.getenv, a.now)}
}

func (a *app) lineSourceNames() (names []session.Source) {
	for _, program := range a.lineSources() {
		names = append(names, program.Name())
	}
	return names
}

func (a *app) importCommand() *cobra.Command {
	var names []string
	for _, src := range a.sources() {
		names = append(names, string(src.Name()))
	}
	var yes, watch, mine, foreign, first, keepRunning bool
	cmd := &cobra.Command{
		Use:   "import [SOURCE [PATH...]]",
		Short: "Import the conversations of other programs on this host",
		Long: "Imports the histories of SOURCE from PATH, or from the program's usual places.\n" +
			"Sources: " + strings.Join(names, ", ") + ".\n" +
			"Without SOURCE it searches this host for all known histories, lists them, and asks.\n" +
			"A later import reads only new records. Histories are never modified.\n" +
			"Sessions from PATH are not known to be yours: hooks leave them out until you import them with --mine.\n" +
			"On a terminal the first import asks. What lies in a program's usual places is yours.\n" +
			"Imported messages may contain secrets that an agent printed; they stay on this host.\n" +
			"The import reports unreadable records and skips them. It fails if nothing is readable.",
		Example: "  sessiond import\n  sessiond import pi\n  sessiond import pi ~/old-laptop/sessions --mine",
		Args:    arguments(0, unlimited),
		ValidArgsFunction: func(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(given) == 0 {
				return names, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			history.RemoveLeftovers()
			if len(args) == 0 {
				if _, err := whoseFlag(mine, foreign, false); err != nil {
					return err
				}
				all := func() error { return a.importAll(cmd.Context(), yes, watch) }
				if first {
					return a.finishFirst(cmd.Context(), keepRunning, all)
				}
				return all()
			}
			program, _ := session.ProgramNamed(args[0])
			at := slices.Index(names, string(program.Name))
			if at < 0 {
				return usagef("unknown source %q; known: %s", args[0], strings.Join(names, ", "))
			}
			whose, err := whoseFlag(mine, foreign, len(args) > 1)
			if err != nil {
				return err
			}
			return a.importPaths(cmd.Context(), a.sources()[at], args[1:], whose, watch)
		},
	}
	cmd.Flags().BoolVar(&a.asCopy, "as-copy", false,
		"with SOURCE sessiond: import a session that differs from the stored one under a new id")
	cmd.Flags().BoolVar(&mine, "mine", false, "with PATH: these are my own sessions, hooks may tell my agents of them")
	cmd.Flags().BoolVar(&foreign, "foreign", false,
		"with PATH: these are not my own sessions, hooks leave them out (default)")
	cmd.Flags().BoolVar(&a.unfinished, "running", false, "leave a reply that is still being written to a later import")
	_ = cmd.Flags().MarkHidden("running") // of hooks, which a program runs amid a reply
	cmd.Flags().BoolVar(&a.purgedToo, "purged", false, "read all records again, and restore purged sessions")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false,
		"keep importing new messages until Ctrl-C (the daemon does this by itself)")
	cmd.Flags().BoolVar(&first, "first", false, "behind the first screen")
	cmd.Flags().BoolVar(&keepRunning, "keep-running", false, "with --first: then install the service")
	for _, own := range []string{"first", "keep-running"} {
		_ = cmd.Flags().MarkHidden(own) // it exists
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "without SOURCE: import all histories found, do not ask")
	return cmd
}

// importPaths imports what one source has at paths, or in its usual places.
func (a *app) importPaths(ctx context.Context, src history.Source, paths []string, whose history.Whose,
	watch bool,
) error {
	for i, p := range paths {
		paths[i] = a.absolute(p)
	}
	h := past{source: src, roots: paths, whose: whose}
	if a.errTTY && !a.flags.json { // for the length of the progress bar
		var err error
		if h.found, _, err = src.Find(ctx, paths); err != nil { // the import reports the problems
			return err
		}
	}
	return a.importPasts(ctx, []past{h}, watch)
}

// importAll imports every history on this host, after a confirmation.
func (a *app) importAll(ctx context.Context, yes, watch bool) error {
	pasts, err := a.findPasts(ctx)
	if err != nil {
		return err
	}
	var fresh, files, apart int
	var size int64
	var shut []history.Problem
	for _, h := range pasts {
		fresh, files, apart, size = fresh+h.New, files+len(h.found), apart+h.Refused, size+h.NewBytes
		shut = append(shut, h.problems...)
	}
	broken := files == 0 && len(shut) > 0
	switch {
	case a.flags.json && yes:
		return a.importPasts(ctx, pasts, watch)
	case a.flags.json:
		if err := a.printJSON(map[string]any{"found": found(pasts)}); err != nil {
			return err
		}
	case !broken && (!yes || fresh == 0):
		a.printFound(pasts)
	}
	switch {
	case broken:
		return failedImport(history.Accounting{Errors: shut})
	case fresh == 0:
		if files > 0 && !a.flags.json {
			everything := "Everything"
			if apart > 0 {
				everything += " else"
			}
			fmt.Fprintf(a.out, "\n%s is already imported.\n", everything)
		}
		if files == 0 || !watch {
			return nil
		}
	case yes:
	case !a.inTTY || !a.outTTY || a.flags.json:
		return usagef("nothing was imported: no terminal to ask on; --yes imports what is new")
	default:
		agreed, err := a.ask(ctx, fmt.Sprintf("\nImport what is new (%s)? [Y/n] ", humanize.Bytes(uint64(size))), true)
		if err != nil || !agreed {
			fmt.Fprintln(a.out, "Nothing was imported.")
			return err
		}
	}
	return a.importPasts(ctx, pasts, watch)
}

const longestReply = 4096 // bytes of an answer on a terminal

// ask asks the user a yes-or-no question. A bare Enter answers enter; the end of the input, and an answer that is too
// long, no.
func (a *app) ask(ctx context.Context, question string, enter bool) (bool, error) {
	fmt.Fprint(a.out, question)
	answer, err := await(ctx, func() (string, error) {
		line, err := bufio.NewReader(io.LimitReader(a.in, longestReply)).ReadString('\n')
		if errors.Is(err, io.EOF) {
			return "no", nil
		}
		return line, err
	})
	if err != nil {
		fmt.Fprintln(a.out) // behind ^C
		return false, err
	}
	if answer = strings.TrimRight(answer, "\r\n"); answer == "" {
		return enter, nil
	}
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(answer)), nil
}

// importPasts imports one history after the other and prints the results. With watch it then
// follows them.
func (a *app) importPasts(ctx context.Context, pasts []past, watch bool) error {
	a.readHostLists()
	return a.with(ctx, wiring{}, func(s *opened) error {
		if _, err := recordCatalogue(ctx, s.store, s.catalogue); err != nil {
			return err
		}
		newest, err := s.store.Newest(ctx)
		if err != nil {
			return err
		}
		im := a.importer(s)
		im.Purged, im.Serving, im.Once = a.purgedToo, a.daemonServes(ctx), !watch && !a.unfinished
		var size int64
		for _, h := range pasts {
			for _, f := range h.found {
				size += f.Size
			}
		}
		bar := a.bar("importing", size, true)
		im.Progress = func(_ history.Found, bytes int64) { _ = bar.Add64(bytes) } // fails only to draw
		long := longSessions{}
		im.Changed = long.noteFor(s)
		var accounts []history.Accounting
		var failed error
		if err := a.askWhose(ctx, im, pasts); err != nil {
			return err
		}
		stop := indexMeanwhile(ctx, s)
		for _, h := range pasts {
			im.Whose = h.whose
			bar.Describe("importing " + string(h.source.Name()))
			account, err := im.Run(ctx, h.source, h.roots)
			accounts = append(accounts, account)
			if err != nil {
				failed = err
				break
			}
		}
		if failed == nil {
			failed = a.importWaiting(ctx, im, pasts, accounts)
		}
		stop()
		a.endBar(bar, failed == nil)
		if err := a.purgeLeftShells(ctx, s); err != nil && failed == nil {
			failed = err
		}
		behind := a.index(ctx, s, 0)
		a.stageDigests(ctx, s, long)
		err = a.printAccounts(accounts)
		if failed == nil && len(pasts) == 1 {
			a.printNowhere(pasts[0], accounts[0])
			a.printForeign(ctx, im, pasts[0], accounts[0])
		}
		if err != nil && failed == nil {
			return err
		}
		if failed != nil {
			a.warn("the import stopped early; the next import continues from here")
			return failed
		}
		if behind != nil {
			a.warn("everything is imported, but not searchable yet; the daemon or the next import updates the search index")
			if ctx.Err() != nil {
				return ctx.Err()
			}
			a.warn("%s", behind)
		}
		if watch {
			return a.watchPasts(ctx, s, pasts)
		}
		if newest.IsZero() && !a.flags.json {
			return cmp.Or(a.printSeenSecrets(ctx, s.store), a.printAfterFirst(ctx, s))
		}
		return nil
	})
}

// importer returns what imports into a database: calls get their prices.
func (a *app) importer(s *opened) history.Importer {
	return history.Importer{
		Store: s.store, Price: s.catalogue.PriceImported, Now: a.now, Running: history.IsRunning,
	}
}

// importWaiting reads again what waits: a conversation that was handed over from another program waits for the history
// of that one, which may have come after it.
func (a *app) importWaiting(ctx context.Context, im history.Importer, pasts []past,
	accounts []history.Accounting,
) error {
	im.Progress = nil // it was counted
	for i, h := range pasts {
		waiting := accounts[i].Records.Waiting
		if waiting == 0 {
			continue
		}
		im.Whose = h.whose
		again, err := im.Run(ctx, h.source, h.roots)
		if err != nil {
			return err
		}
		accounts[i].Records.Waiting, accounts[i].Records.Read = 0, accounts[i].Records.Read-waiting
		accounts[i].Records.Add(again.Records)
		accounts[i].Sessions.New += again.Sessions.New
		accounts[i].Sessions.Updated += again.Sessions.Updated
		accounts[i].Sessions.Unchanged -= again.Sessions.Updated
		accounts[i].Errors = append(accounts[i].Errors, again.Errors...)
	}
	return nil
}

// purgeLeftShells finishes the purges that an import begins: of what a file holds of a purged session for forks that
// were purged here, too.
func (a *app) purgeLeftShells(ctx context.Context, s *opened) error {
	if left, err := s.store.Purging(ctx); err != nil || len(left) == 0 {
		return err
	}
	return s.purger(a.cfg, a.log(zerolog.WarnLevel)).Resume(ctx)
}

// printAfterFirst says what to type after the first import, if it brought a session.
func (a *app) printAfterFirst(ctx context.Context, s *opened) error {
	newest, err := s.store.Newest(ctx)
	if err != nil || newest.IsZero() {
		return err
	}
	return a.printNext("What to type next:", [][2]string{
		{"sessiond", "the newest sessions"},
		{"sessiond search WORDS", "search all messages"},
		{"sessiond stats", "tokens and cost, by project, program, model and day"},
		{"sessiond connect", "let your agents search these sessions, too"},
		{"sessiond serve", "run the daemon: it imports new messages, and has a page"},
	})
}

// longSessions are imported sessions that may not fit into the window of their model.
type longSessions map[session.ID]bool

// noteFor returns a function that notes a session if it fills half of its model's window or more.
func (l longSessions) noteFor(s *opened) func(session.Session) {
	return func(sess session.Session) {
		if info, _ := s.catalogue.Model(sess.Model); sess.ContextTokens >= info.Window/2 {
			l[sess.ID] = true
		}
	}
}

// stageDigests makes the digests of long sessions, so that a read of their contexts need not make
// one each time. A read still can: an error is only a warning.
func (a *app) stageDigests(ctx context.Context, s *opened, long longSessions) {
	for id := range long {
		if _, err := s.contexts.StageDigest(ctx, id); err != nil && ctx.Err() == nil {
			a.warn("no digest of %s was made, so its context takes longer to read: %s", id, err)
		}
	}
	clear(long)
}

// printNowhere names the program's usual places, if an import found no history at all.
func (a *app) printNowhere(h past, done history.Accounting) {
	sessions := done.Sessions
	if a.flags.json || sessions.New+sessions.Updated+sessions.Unchanged+done.Records.Read > 0 ||
		len(h.roots) == 0 && len(done.Errors) > 0 {
		return
	}
	places := slices.Clone(h.source.Places())
	for i, place := range places {
		places[i] = inOneLine(printable(place))
	}
	name := h.source.Name()
	switch {
	case len(h.roots) > 0 && len(places) > 0:
		a.warn("%s keeps its history in: %s", name, strings.Join(places, ", "))
	case len(h.roots) > 0:
	case len(places) == 0:
		fmt.Fprintf(a.out, "%s has no usual place. Name the files: `sessiond import %[1]s PATH`.\n", name)
	default:
		fmt.Fprintf(a.out,
			"Found no history of %s in its usual places. `sessiond import %[1]s PATH` reads another place.\n%s\n", name,
			a.fit("Searched: "+strings.Join(places, ", "), "  "))
	}
}

// past is the history that one program left on this host.
type past struct {
	source history.Source
	roots  []string // empty: the program's usual places
	whose  history.Whose
	found  []history.Found
	size   int64 // bytes

	problems []history.Problem // of places that could not be read
	history.Plan
}

// MarshalJSON returns a past as `import --json` prints it without --yes.
func (h past) MarshalJSON() ([]byte, error) {
	return session.MarshalPlain(map[string]any{
		"source": h.source.Name(), "sessions": h.Sessions, "bytes": h.size, "new": h.New, "new_bytes": h.NewBytes,
		"unreadable": h.Refused,
	})
}
