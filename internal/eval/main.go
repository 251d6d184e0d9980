// Command eval measures what is left of a conversation after it was compacted: of facts that
// stood in the hidden part, how many are in the context, for truncation, for the digest, for
// the digest with its index, and with recall when somebody asks. docs/performance.md says how
// to read its table. It needs no network; nothing fails for a low figure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/history/codex"
	"sessiond/internal/history/opencode"
	"sessiond/internal/history/pi"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "eval:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	fl := flag.NewFlagSet("eval", flag.ContinueOnError)
	fl.Usage = func() {
		fmt.Fprintln(fl.Output(), "usage: scripts/eval [FLAGS] [FOLDER...]\n\nFolders hold transcripts, in folders pi, codex, claude-code, opencode. Without one, only\nthe conversations that come with the program are measured.\n\nFlags:")
		fl.PrintDefaults()
	}
	list := fl.Bool("each", false, "a table for each conversation, too")
	lost := fl.Bool("lost", false, "print the facts that were not found even with recall")
	half := fl.String("half", "both", "looked: only conversations that may be looked at while the product is tuned;\nheld: only the others")
	if err := fl.Parse(args); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "sessiond-eval-")
	if err != nil {
		return fmt.Errorf("make a folder to work in: %w", err)
	}
	defer os.RemoveAll(work) //nolint:errcheck // it lies among what the system removes itself
	rig, err := openRig(ctx, work)
	if err != nil {
		return err
	}
	defer rig.close()

	talks, err := written()
	if err != nil {
		return err
	}
	for _, folder := range fl.Args() {
		more, err := rig.transcripts(ctx, folder)
		if err != nil {
			return err
		}
		talks = append(talks, more...)
	}
	groups := map[string]*tally{}
	group := func(name string) *tally {
		if groups[name] == nil {
			groups[name] = newTally(name)
		}
		return groups[name]
	}
	for _, t := range talks {
		if *half == "looked" && t.held || *half == "held" && !t.held {
			continue
		}
		one, err := rig.measure(ctx, t)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		if *list {
			one.print(out)
		}
		if *lost {
			one.printLost(out)
		}
		for _, name := range t.groups() {
			group(name).add(one)
		}
	}
	for _, name := range []string{allTranscripts, allOwn} {
		if groups[name] != nil {
			groups[name].print(out)
			delete(groups, name)
		}
	}
	var rest []*tally
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		rest = append(rest, groups[name])
	}
	printGroups(out, rest)
	rig.pace.print(out)
	return nil
}

// The groups that get a table of their own.
const (
	allTranscripts = "transcripts"
	allOwn         = "conversations that come with it"
)

// groups names the lines of the tables in which a conversation counts.
func (t *talk) groups() []string {
	half := "looked at"
	if t.held {
		half = "held out"
	}
	if t.language == "" {
		return []string{allTranscripts, allTranscripts + ", " + half}
	}
	return []string{allOwn, t.language + ", " + half}
}

// transcripts imports what a folder holds and gives its conversations.
func (r *rig) transcripts(ctx context.Context, folder string) ([]talk, error) {
	getenv := func(string) string { return "" }
	for name, source := range map[string]history.Source{
		"pi": pi.New(getenv), "codex": codex.New(getenv, time.Now),
		"claude-code": claudecode.New(getenv, time.Now), "opencode": opencode.New(getenv, time.Now),
	} {
		root := filepath.Join(folder, name)
		if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		importer := history.Importer{Store: r.store}
		if _, err := importer.Run(ctx, source, []string{root}); err != nil {
			return nil, fmt.Errorf("import %s: %w", root, err)
		}
	}
	return r.sessions(ctx)
}
