package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/rs/zerolog"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
)

// sources are the programs whose histories can be imported.
func (a *app) sources() []history.Source {
	return []history.Source{pi.New(a.getenv)}
}

func (a *app) importCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import SOURCE [PATH...]",
		Short: "Bring in the conversations that another program left on this host",
		Long: "Imports the transcripts of SOURCE: those at PATH, or those in the program's usual places.\n" +
			"A second import brings only what is new. Sources are never written to.\n" +
			"Transcripts hold what an agent printed, secrets included; they stay on this host.",
		Example: "  sessiond import pi\n  sessiond import pi ~/old-laptop/sessions",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var names []string
			for _, src := range a.sources() {
				if string(src.Name()) == args[0] {
					return a.importFrom(cmd.Context(), src, args[1:])
				}
				names = append(names, string(src.Name()))
			}
			return usageError{fmt.Errorf("no histories of %q can be imported; known: %s", args[0], strings.Join(names, ", "))}
		},
	}
	return cmd
}

func (a *app) importFrom(ctx context.Context, src history.Source, paths []string) error {
	for i, p := range paths {
		paths[i] = a.absolute(p)
	}
	return a.with(ctx, wiring{log: a.log(zerolog.WarnLevel)}, func(s *services) error {
		found, _, err := src.Find(ctx, paths) // Run tells its problems
		if err != nil {
			return err
		}
		if len(found) == 0 && !a.flags.json {
			fmt.Fprintf(a.err, "sessiond: no transcripts of %s there\n", src.Name())
		}
		im := history.Importer{Store: s.store}
		if a.outTTY && !a.flags.json && len(found) > 0 {
			bar := a.progress(found)
			im.Progress = func(done history.Found, _ history.Accounting) { _ = bar.Add64(done.Size) } // a bar that cannot draw is no reason to stop
			defer bar.Close()                                                                         //nolint:errcheck // as above
		}
		acc, err := im.Run(ctx, src, paths)
		if err != nil {
			return err
		}
		if _, err := s.index.CatchUp(ctx); err != nil {
			fmt.Fprintln(a.err, "sessiond: imported, but the search index is behind:", err)
		}
		return a.printAccounting(acc)
	})
}

func (a *app) progress(found []history.Found) *progressbar.ProgressBar {
	var size int64
	for _, f := range found {
		size += f.Size
	}
	return progressbar.NewOptions64(size, progressbar.OptionSetWriter(a.err), progressbar.OptionShowBytes(true),
		progressbar.OptionSetDescription("importing"), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30))
}

// importReport is what `import --json` prints.
type importReport struct {
	Sources []history.Accounting `json:"sources"`
	Total   history.Accounting   `json:"total"`
}

func (a *app) printAccounting(acc history.Accounting) error {
	if a.flags.json {
		total := acc
		total.Source, total.Path = "", ""
		if acc.Errors == nil {
			acc.Errors, total.Errors = []history.Problem{}, []history.Problem{}
		}
		if err := a.printJSON(importReport{Sources: []history.Accounting{acc}, Total: total}); err != nil {
			return err
		}
		return failedImport(acc)
	}
	count := func(n int) string { return humanize.Comma(int64(n)) }
	fmt.Fprintf(a.out, "sessions  %s new, %s updated, %s unchanged\n", count(acc.Sessions.New), count(acc.Sessions.Updated), count(acc.Sessions.Unchanged))
	fmt.Fprintf(a.out, "records   %s read = %s imported + %s kept raw", count(acc.Records.Read), count(acc.Records.Imported), count(acc.Records.Raw))
	reasons := make([]string, 0, len(acc.Records.Skipped))
	for reason := range acc.Records.Skipped {
		reasons = append(reasons, reason)
	}
	sort.Strings(reasons)
	for _, reason := range reasons {
		fmt.Fprintf(a.out, " + %s skipped (%s)", count(acc.Records.Skipped[reason]), reason)
	}
	fmt.Fprintln(a.out)
	for _, p := range acc.Errors {
		fmt.Fprintf(a.err, "sessiond: %s\n", printable(problemLine(p)))
	}
	return failedImport(acc)
}

func problemLine(p history.Problem) string {
	p.Error = strings.TrimPrefix(p.Error, p.Path+": ")
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Error)
	}
	return fmt.Sprintf("%s: %s", p.Path, p.Error)
}

// failedImport is an error when nothing at all could be read, so that scripts notice.
func failedImport(acc history.Accounting) error {
	touched := acc.Sessions.New + acc.Sessions.Updated + acc.Sessions.Unchanged
	if touched > 0 || len(acc.Errors) == 0 {
		return nil
	}
	if slices.ContainsFunc(acc.Errors, func(p history.Problem) bool { return p.Line == 0 }) {
		return quietError{session.Errorf(session.Invalid, "nothing could be imported")}
	}
	return quietError{errors.New("nothing could be imported")}
}
