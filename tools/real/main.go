//go:build unix

// Command real runs the newest version of agent programs against a scripted model and checks what sessiond reads of
// them and gives them. scripts/real calls it.
//
//	real -sessiond BINARY [-cache DIR] [-keep DIR] [-results FILE] [-list] [PROGRAM...]
//	real -sessiond BINARY [-cache DIR] [-keep DIR] [-for 30m] follow
//
// Programs come from npm into the cache; nothing but the results is written into the tree.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "real:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("real", flag.ContinueOnError)
	binary := flags.String("sessiond", "", "the `BINARY` to check")
	cache := flags.String("cache", "", "folder of installed programs (default: sessiond-real in the user's cache)")
	keep := flags.String("keep", "", "keep homes, requests and outputs in `DIR`")
	results := flags.String("results", "", "the `FILE` to update with the results; the page beside it is renewed")
	listed := flags.Bool("list", false, "list the programs")
	lasting := flags.Duration("for", 30*time.Minute, "how long `follow` talks")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *listed {
		for _, p := range programs {
			fmt.Printf("%-12s %s\n", p.name, p.pack)
		}
		return nil
	}
	handsOver, follows := flags.Arg(0) == "to", flags.Arg(0) == "follow"
	var chosen []*program
	var err error
	if !handsOver && !follows {
		chosen, err = named(flags.Args())
	}
	if err != nil {
		return err
	}
	if *binary == "" {
		return errors.New("-sessiond is missing: scripts/real builds one and passes it")
	}
	if *cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("no folder for the programs: %w; name one with --cache", err)
		}
		*cache = filepath.Join(dir, "sessiond-real")
	}
	work := *keep
	if work == "" {
		if work, err = os.MkdirTemp("", "sessiond-real-"); err != nil {
			return err
		}
		defer os.RemoveAll(work)
	}
	for _, path := range []*string{binary, cache, &work} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	in := installer{cache: *cache}
	if err := in.prepare(ctx); err != nil {
		return err
	}
	if follows {
		return runFollow(ctx, &in, *binary, filepath.Join(work, "follow"), *lasting)
	}
	wrong := 0
	if handsOver {
		if wrong, err = runHandovers(ctx, &in, *binary, filepath.Join(work, "to"), *results,
			flags.Args()[1:]); err != nil {
			return err
		}
	}
	for _, p := range chosen {
		found := trialOf(ctx, &in, p, *binary, filepath.Join(work, p.name))
		found.print(os.Stdout)
		wrong += found.count(wrongResult)
		if *results != "" {
			if err := store(*results, found); err != nil {
				return err
			}
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d checks are wrong", wrong)
	}
	return ctx.Err()
}

// named returns the programs of these names, or all.
func named(names []string) (chosen []*program, err error) {
	if len(names) == 0 {
		return programs, nil
	}
	for _, name := range names {
		at := slices.IndexFunc(programs, func(p *program) bool { return p.name == name })
		if at < 0 {
			var known []string
			for _, p := range programs {
				known = append(known, p.name)
			}
			return nil, fmt.Errorf("unknown program %q; known: %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, programs[at])
	}
	return chosen, nil
}

// trialOf installs a program and runs every check. What fails on the way is a wrong check.
func trialOf(ctx context.Context, in *installer, p *program, binary, dir string) programResult {
	found := programResult{
		Program: p.name, Title: p.title, Package: p.pack, Date: time.Now().UTC().Format(time.DateOnly),
	}
	fmt.Printf("%s: installs %s\n", p.name, p.pack)
	installed, err := in.install(ctx, p)
	found.Version = cmp.Or(installed.version, "?")
	if err != nil {
		found.add("turns", err)
		return found
	}
	fmt.Printf("%s %s: runs\n", p.name, found.Version)
	t, err := newTrial(p, installed, binary, dir)
	if err != nil {
		found.add("turns", err)
		return found
	}
	defer t.end()
	t.found = &found
	t.all(ctx)
	return found
}
