package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"sessiond/internal/history"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/history/codex"
	"sessiond/internal/history/geminicli"
	"sessiond/internal/history/goose"
	"sessiond/internal/history/openclaw"
	"sessiond/internal/history/opencode"
	"sessiond/internal/history/pi"
	own "sessiond/internal/history/sessiond"
	"sessiond/internal/session"
)

// sources are the programs whose histories can be imported.
func (a *app) sources() []history.Source {
	return []history.Source{
		claudecode.New(a.getenv, a.now),
		codex.New(a.getenv, a.now),
		geminicli.New(a.getenv, a.now),
		goose.New(a.getenv),
		openclaw.New(a.getenv),
		opencode.New(a.getenv, a.now),
		pi.New(a.getenv),
		&own.Source{AsCopy: a.asCopy},
	}
}

func (a *app) importCommand() *cobra.Command {
	var names []string
	for _, src := range a.sources() {
		names = append(names, string(src.Name()))
	}
	var yes, watch bool
	cmd := &cobra.Command{
		Use:   "import [SOURCE [PATH...]]",
		Short: "Bring in the conversations that other programs left on this host",
		Long: "Imports the transcripts of SOURCE: those at PATH, or in the program's usual places.\n" +
			"Known sources: " + strings.Join(names, ", ") + ". Without SOURCE it looks for every known history on\n" +
			"this host, shows what there is, and asks. A second import brings only what is new.\n" +
			"Sources are never written to. Transcripts hold what an agent printed, secrets\n" +
			"included; they stay on this host. What cannot be read is told and left out; where\n" +
			"that is all there is, the import fails.",
		Example: "  sessiond import\n  sessiond import pi\n  sessiond import pi ~/old-laptop/sessions",
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
				return a.importAll(cmd.Context(), yes, watch)
			}
			at := slices.Index(names, args[0])
			if at < 0 {
				return usageError{fmt.Errorf("no histories of %q can be imported; known: %s", args[0], strings.Join(names, ", "))}
			}
			return a.importPaths(cmd.Context(), a.sources()[at], args[1:], watch)
		},
	}
	cmd.Flags().BoolVar(&a.asCopy, "as-copy", false, "of a sessiond export: what is here with other content comes in under a new id")
	cmd.Flags().BoolVar(&a.purgedToo, "purged", false, "read everything anew, and bring back what was purged here")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on with what is written from now on, until Ctrl-C; the daemon does so by itself")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "without SOURCE: import what is found, do not ask")
	return cmd
}

// importPaths imports what one source has at paths, or in its usual places.
func (a *app) importPaths(ctx context.Context, src history.Source, paths []string, watch bool) error {
	for i, p := range paths {
		paths[i] = a.absolute(p)
	}
	h := past{source: src, roots: paths}
	if a.errTTY && !a.flags.json { // the bar must know how much there is
		var err error
		if h.found, _, err = src.Find(ctx, paths); err != nil { // the import itself tells the problems
			return err
		}
	}
	return a.importPasts(ctx, []past{h}, watch)
}

// importAll imports every history that is found on this host, when somebody agrees.
func (a *app) importAll(ctx context.Context, yes, watch bool) error {
	pasts, err := a.findPasts(ctx)
	if err != nil {
		return err
	}
	var fresh, found, apart int
	var size int64
	var shut []history.Problem
	for _, h := range pasts {
		fresh, found, apart, size = fresh+h.New, found+len(h.found), apart+h.Waiting+h.Refused, size+h.NewBytes
		shut = append(shut, h.problems...)
	}
	there := slices.DeleteFunc(slices.Clone(pasts), func(h past) bool { return len(h.found) == 0 })
	asks := a.inTTY && a.outTTY && !a.flags.json
	switch {
	case yes && (fresh > 0 || a.flags.json):
	case a.flags.json:
		if err := a.printJSON(map[string]any{"found": there}); err != nil {
			return err
		}
	case found == 0 && len(shut) > 0:
	case found == 0:
		fmt.Fprintln(a.out, "No known history is on this host. `sessiond import SOURCE PATH` imports from another place.")
	default:
		a.printPasts(there)
	}
	switch {
	case yes && a.flags.json:
	case found == 0 && len(shut) > 0:
		return failedImport(history.Accounting{Errors: shut})
	case fresh == 0:
		switch {
		case found == 0 || a.flags.json:
		case apart > 0:
			fmt.Fprintln(a.out, "\nEverything else is here already.")
		default:
			fmt.Fprintln(a.out, "\nEverything is here already.")
		}
		if found == 0 || !watch {
			return nil
		}
	case yes:
	case !asks:
		return usageError{errors.New("nothing was imported: there is nobody to ask; --yes imports what is new")}
	default:
		agreed, err := a.ask(ctx, fmt.Sprintf("\nImport what is new, %s? [Y/n] ", humanize.Bytes(uint64(size))), true)
		if err != nil || !agreed {
			fmt.Fprintln(a.out, "Nothing was imported.")
			return err
		}
	}
	return a.importPasts(ctx, pasts, watch)
}

// ask gets a yes or a no from whoever types. Nothing but Enter is what enter says, the end of
// the input a no.
func (a *app) ask(ctx context.Context, question string, enter bool) (bool, error) {
	fmt.Fprint(a.out, question)
	answer, err := await(ctx, func() (string, error) {
		line, err := bufio.NewReader(a.in).ReadString('\n')
		if errors.Is(err, io.EOF) {
			return "no", nil
		}
		return line, err
	})
	if err != nil {
		fmt.Fprintln(a.out) // behind ^C
		return false, err
	}
	if answer == "\n" {
		return enter, nil
	}
	return slices.Contains([]string{"y\n", "yes\n"}, strings.ToLower(answer)), nil
}

// importPasts imports one history after the other and prints what became of them. With watch
// it goes on with what their programs write then.
func (a *app) importPasts(ctx context.Context, pasts []past, watch bool) error {
	defer tuneGC()()
	return a.with(ctx, wiring{log: a.log(zerolog.WarnLevel)}, func(s *services) error {
		im := history.Importer{Store: s.store, Price: s.catalogue.Price, Purged: a.purgedToo, Serving: a.daemonServes(ctx, a.cfg)}
		var size int64
		for _, h := range pasts {
			for _, f := range h.found {
				size += f.Size
			}
		}
		bar := a.bar("importing", size, true)
		im.Progress = func(_ history.Found, bytes int64) { bar.add(bytes) }
		var accounts []history.Accounting
		var failed error
		stop := indexMeanwhile(ctx, s)
		for _, h := range pasts {
			bar.of(h.source)
			account, err := im.Run(ctx, h.source, h.roots)
			accounts = append(accounts, account)
			if err != nil {
				failed = err
				break
			}
		}
		stop()
		bar.end(failed == nil)
		behind := a.index(ctx, s, 0)
		if err := a.printAccounts(accounts); err != nil && failed == nil {
			return err
		}
		if failed == nil && len(pasts) == 1 {
			a.printNowhere(pasts[0], accounts[0])
		}
		if failed != nil {
			fmt.Fprintln(a.err, "sessiond: the import did not come to its end; the next one goes on from here")
			return failed
		}
		if behind != nil {
			fmt.Fprintln(a.err, "sessiond: all is imported, but not all of it can be searched yet; the daemon sees to it, and the next import")
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fmt.Fprintln(a.err, "sessiond:", printable(behind.Error()))
		}
		if watch {
			return a.watchPasts(ctx, s, pasts)
		}
		return nil
	})
}

// printNowhere says where a program's history was looked for, when there was none.
func (a *app) printNowhere(h past, done history.Accounting) {
	if all := done.Sessions; a.flags.json || len(h.roots) > 0 || all.New+all.Updated+all.Unchanged > 0 || done.Records.Read > 0 || len(done.Errors) > 0 {
		return
	}
	places := slices.Clone(h.source.Places())
	for i, place := range places {
		places[i] = inOneLine(printable(place))
	}
	if len(places) == 0 {
		fmt.Fprintf(a.out, "Name the files: `sessiond import %s PATH`.\n", h.source.Name())
	} else {
		fmt.Fprintf(a.out, "There is no history of %s in its usual places; `sessiond import %[1]s PATH` reads another.\n%s\n", h.source.Name(),
			listed("Looked at:", places, a.columns()))
	}
}

// tuneGC lets garbage grow to four times the live heap, up to 256 MB in all, which saves a sixth
// of an import's processor time. The returned function restores the defaults. A user's GOGC and
// GOMEMLIMIT stay in force.
func tuneGC() func() {
	percent, limit := debug.SetGCPercent(400), debug.SetMemoryLimit(-1)
	if percent != 100 || limit != math.MaxInt64 {
		debug.SetGCPercent(percent)
		return func() {}
	}
	debug.SetMemoryLimit(256 << 20)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// past is the history that one program left on this host.
type past struct {
	source history.Source
	roots  []string // empty: the program's usual places
	found  []history.Found
	size   int64 // bytes

	problems []history.Problem // of what could not be looked at
	history.Plan
}

// MarshalJSON gives a past as `import --json` prints it before it was agreed to.
func (h past) MarshalJSON() ([]byte, error) {
	return session.MarshalPlain(map[string]any{
		"source": h.source.Name(), "sessions": h.Sessions, "bytes": h.size, "new": h.New, "new_bytes": h.NewBytes,
		"waiting": h.Waiting, "unreadable": h.Refused,
	})
}
