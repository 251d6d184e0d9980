// Command bench measures sessiond beside baselines: what the product does, and next to it the
// same SQL statements straight on the driver, turn by turn in one run. docs/performance.md
// says what the rows mean. Timings decide nothing: it fails only when something is broken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	data     string // folder of what is kept from run to run
	work     string // folder of this run
	quick    bool
	rounds   int
	large    int      // MiB of a large transcript
	programs []string // whose memory is measured; none: all
	binary   string
	markdown bool
	out      io.Writer
	text     string // of a message that is appended
	sockets  int    // given out
	rows     []row
}

// measurement is a group of rows that can be asked for by name.
type measurement struct {
	name, about string
	run         func(*bench, context.Context) error
}

func measurements() []measurement {
	return []measurement{
		{"append", "appends in process, 1 and 16 writers", (*bench).appendInProcess},
		{"http", "appends over HTTP, 1 and 16 clients", (*bench).appendOverHTTP},
		{"route", "finding the session of a key, and resets, over HTTP", (*bench).routes},
		{"sides", "what each side table, trigger and index of an append costs", (*bench).appendSides},
		{"reads", "last messages and contexts, at three sizes of the history", (*bench).reads},
		{"turns", "contexts with recall and turns over HTTP, at three sizes of the history", (*bench).turns},
		{"compact", "turns beside compactions and a summary server that hangs; plans and digests", (*bench).compact},
		{"dialects", "reading 200 messages of each wire form, and making contexts of them", (*bench).dialects},
		{"list", "the newest 50 of many sessions", (*bench).list},
		{"search", "searches and recall", (*bench).find},
		{"cold", "commands from a cold start, and the daemon's start", (*bench).cold},
		{"trees", "forks, moves of the head and trees of a session of 1 M messages and one of 10 k branches", (*bench).trees},
		{"import", "transcripts of pi into an empty database", (*bench).imports},
		{"memory", "what an import of a large transcript of each program takes of memory", (*bench).memory},
		{"exports", "what writing a large session takes of memory, in every format", (*bench).exports},
		{"beside", "appends to a daemon while a command imports into its database", (*bench).importBeside},
		{"events", "appends with fifty listeners to the events", (*bench).events},
		{"purge", "appends beside a purge", (*bench).purge},
		{"history", "only make the histories that the others read", (*bench).histories},
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	b := &bench{out: out, text: newAuthor(3).sentence(60)}
	all := measurements()
	fl := flag.NewFlagSet("bench", flag.ContinueOnError)
	fl.Usage = func() {
		fmt.Fprintln(fl.Output(), "usage: scripts/bench [FLAGS] [NAME...]\n\nMeasurements:")
		for _, m := range all {
			fmt.Fprintf(fl.Output(), "  %-9s %s\n", m.name, m.about)
		}
		fmt.Fprintln(fl.Output(), "\nFlags:")
		fl.PrintDefaults()
	}
	fl.StringVar(&b.data, "data", filepath.Join(os.TempDir(), "sessiond-bench"), "folder for the generated histories, which later runs use again")
	fl.BoolVar(&b.quick, "quick", false, "small sizes, few rounds: shows that everything runs, and no more")
	fl.IntVar(&b.rounds, "rounds", 0, "how often product and baseline take turns (default 9, quick 3)")
	fl.IntVar(&b.large, "large", 200, "MiB of a large transcript, of which memory imports one of each program, and exports writes a session")
	programs := fl.String("programs", "", "programs of which memory imports histories, like goose,opencode (default all)")
	fl.StringVar(&b.binary, "binary", "", "sessiond binary to run (default: built now)")
	fl.BoolVar(&b.markdown, "markdown", false, "print the table as Markdown")
	profile := fl.String("cpuprofile", "", "write a CPU profile of this process to a file")
	if err := fl.Parse(args); err != nil {
		return err
	}
	if b.rounds <= 0 {
		b.rounds = 9
		if b.quick {
			b.rounds = 3
		}
	}
	if *programs != "" {
		b.programs = strings.Split(*programs, ",")
	}
	chosen, err := choose(all, fl.Args())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.data, 0o700); err != nil {
		return err
	}
	if b.work, err = os.MkdirTemp(b.data, "run-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.work)) }()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // a profile that is cut short says so itself
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if err := b.machine(ctx); err != nil {
		return err
	}
	for _, m := range chosen {
		start := time.Now()
		if err := m.run(b, ctx); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", m.name, err), b.print())
		}
		b.say("%s took %s", m.name, time.Since(start).Round(time.Second/10))
	}
	return b.print()
}

func choose(all []measurement, names []string) ([]measurement, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []measurement
	for _, name := range names {
		i := slices.IndexFunc(all, func(m measurement) bool { return m.name == name })
		if i < 0 {
			var known []string
			for _, m := range all {
				known = append(known, m.name)
			}
			return nil, fmt.Errorf("there is no measurement %q; there are %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// say tells of progress beside the table.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// sizes are the histories, in messages: the small one that growth is measured from, one
// between, and the large one.
func (b *bench) sizes() []int {
	if b.quick {
		return []int{1_000, 4_000, 20_000}
	}
	return []int{1_000, 100_000, 1_000_000}
}

func (b *bench) histories(ctx context.Context) error {
	for _, size := range b.sizes() {
		if _, err := b.history(ctx, size); err != nil {
			return err
		}
	}
	return nil
}
