package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"sessiond/internal/analytics"
	"sessiond/internal/card"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

type yearFlags struct {
	out   string
	force bool
}

func (a *app) yearCommand() *cobra.Command {
	var f yearFlags
	cmd := &cobra.Command{
		Use: "year [YEAR]", Short: "Draw a year as one picture to show: sums alone", Args: arguments(0, 1),
		Long: "Draws the hours, conversations, tokens, dollars, days and programs of a year, this one by\n" +
			"default, as one card. No word of a conversation and no project is on it. It is written as\n" +
			"sessiond-YEAR.svg and sessiond-YEAR.png into this folder, unless --output says otherwise.",
		Example: "  sessiond year\n  sessiond year 2025 -o card.png",
		RunE:    a.onStore(func(ctx context.Context, s *store.Store, args []string) error { return a.year(ctx, s, args, f) }),
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "output", "o", "", "write this `FILE` alone, which ends in .svg or .png")
	fl.BoolVar(&f.force, "force", false, "overwrite existing files")
	return cmd
}

func (a *app) year(ctx context.Context, s *store.Store, args []string, f yearFlags) error {
	number := a.now().In(s.Zone()).Year()
	if len(args) == 1 {
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 1970 || n > 9999 {
			return usagef("%q is no year: write one like %d", args[0], number)
		}
		number = n
	}
	year, err := analytics.New(s.Reader(), s.Zone()).Year(ctx, number)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(year)
	}
	files := []string{fmt.Sprintf("sessiond-%d.svg", number), fmt.Sprintf("sessiond-%d.png", number)}
	if f.out != "" {
		files = []string{f.out}
	}
	for _, file := range files {
		if _, ok := card.WriterOf(file); !ok {
			return usagef("%s ends neither in .svg nor in .png", file)
		}
		if _, err := os.Lstat(a.absolute(file)); err == nil && !f.force {
			return session.Errorf(session.Conflict, "%s exists: --force overwrites it", file)
		}
	}
	if year.Prompts == 0 && year.Sessions == 0 {
		return session.Errorf(session.NotFound, "%d has no conversations: nothing is drawn", number)
	}
	picture := card.Draw(&year)
	for _, file := range files {
		var drawn bytes.Buffer
		write, _ := card.WriterOf(file)
		if err := write(picture, &drawn); err != nil {
			return err
		}
		if err := replaceFile(a.absolute(file), drawn.Bytes()); err != nil {
			return fmt.Errorf("%s is not written: %w", file, err)
		}
		fmt.Fprintln(a.out, file)
	}
	fmt.Fprintf(a.err, "%d: %s, %s, %s tokens. No word of a conversation and no project is on it.\n", number,
		transcript.Counted(year.Sessions-year.Subagents, "conversation"), transcript.Counted(year.Hours, "hour"),
		transcript.ShortCount(year.Tokens.AllInput()+year.Tokens.Output))
	return nil
}
