package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/store"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// arguments checks the number of arguments; errors quote the usage line.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		name, wanted, _ := strings.Cut(cmd.Use, " ")
		switch {
		case len(given) < least:
			return usagef("%s needs %s", name, wanted)
		case len(given) > most && most == 0:
			return usagef("%s takes no arguments, but got %q", name, given[0])
		case len(given) > most:
			return usagef("%s takes %s; the argument %q is too many", name, wanted, given[most])
		}
		return nil
	}
}

// exclusive returns an error if more than one of the flags is set.
func exclusive(cmd *cobra.Command, names ...string) error {
	var set []string
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() != "false" {
			set = append(set, "--"+name)
		}
	}
	if len(set) > 1 {
		return usagef("%s exclude one another", strings.Join(set, " and "))
	}
	return nil
}

// unlimited is the limit of a command that takes any number of arguments.
const unlimited = 1 << 20

// word is a flag that takes one of a few words.
type word struct {
	to *string
	of []string
}

func (w word) String() string { return *w.to }
func (w word) Type() string   { return "WORD" }

func (w word) Set(s string) error {
	if !slices.Contains(w.of, s) {
		return fmt.Errorf("must be one of %s", strings.Join(w.of, ", "))
	}
	*w.to = s
	return nil
}

// wordFlag adds a flag that takes one of the words, and completes it.
func wordFlag(cmd *cobra.Command, to *string, name, usage string, of ...string) {
	cmd.Flags().Var(word{to, of}, name, usage)
	// fails only if the flag is missing
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(of, cobra.ShellCompDirectiveNoFileComp))
}

// number is a flag that takes a whole number, not below least.
type number struct {
	to    *int64
	least int64
}

func (n number) String() string { return fmt.Sprint(*n.to) }
func (n number) Type() string   { return "N" }

func (n number) Set(s string) error {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < n.least {
		return fmt.Errorf("must be a whole number, %d or more", n.least)
	}
	*n.to = v
	return nil
}

// numberFlag adds a flag that takes a whole number, not below least; short may be "".
func numberFlag(flags *pflag.FlagSet, to *int64, name, short string, least int64, usage string) {
	flags.VarP(number{to, least}, name, short, usage)
}

// pageFlags choose a part of a list.
type pageFlags struct {
	limit  int64
	cursor string
	oldest bool
}

// add adds the flags to a command. initially describes the limit without --limit.
func (f *pageFlags) add(fl *pflag.FlagSet, initially string) {
	numberFlag(fl, &f.limit, "limit", "n", 1, "list at most `N` ("+initially+")")
	fl.StringVar(&f.cursor, "cursor", "", "continue at this `CURSOR`, the next_cursor of the previous list")
}

// The length of a list on a terminal without --limit: in a pager, and without one.
const (
	pagedLimit   = 1000
	screenLimit  = 30
	defaultLimit = "default: 1,000 in a pager, 30 on a terminal without one, else all"
)

// readPages reads a list: limit items, or all of them if limit is 0.
func readPages[T any](limit int, page store.Page,
	read func(store.Page) ([]T, string, error),
) (data []T, next string, err error) {
	page.Limit = limit
	if limit == 0 {
		page.Limit = 1000
	}
	for {
		var more []T
		more, next, err = read(page)
		data = append(data, more...)
		if page.Cursor = next; err != nil || limit > 0 || next == "" {
			return data, next, err
		}
	}
}

// lengthOfList is --limit, else what a terminal or its pager shows, else 0 for everything.
func (a *app) lengthOfList(f pageFlags) int {
	switch {
	case f.limit > 0 || !a.outTTY:
		return int(f.limit)
	case a.pagerCommand() != "":
		return pagedLimit
	}
	return screenLimit
}

// printMore says below a list that it continues.
func (a *app) printMore(next string) {
	if next != "" {
		fmt.Fprintln(a.out, a.dim("… and more: --limit N shows them"))
	}
}
