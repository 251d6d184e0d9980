package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// arguments says how many arguments a command has, in the words of its usage line.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		name, wanted, _ := strings.Cut(cmd.Use, " ")
		switch {
		case len(given) < least:
			return usageError{fmt.Errorf("%s needs %s", name, wanted)}
		case len(given) > most && most == 0:
			return usageError{fmt.Errorf("%s takes no argument; %q is too much", name, given[0])}
		case len(given) > most:
			return usageError{fmt.Errorf("%s takes %s; %q is too much", name, wanted, given[most])}
		}
		return nil
	}
}

// unlimited is the most of a command that takes any number of arguments.
const unlimited = 1 << 20

// word is a flag that takes one of a few words.
type word struct {
	to *string
	of []string
}

func (w word) String() string { return *w.to }
func (w word) Type() string   { return "word" }

func (w word) Set(s string) error {
	if !slices.Contains(w.of, s) {
		return fmt.Errorf("it is one of %s", strings.Join(w.of, ", "))
	}
	*w.to = s
	return nil
}

// wordFlag adds a flag that takes one of the words, and completes it.
func wordFlag(cmd *cobra.Command, to *string, name, usage string, of ...string) {
	cmd.Flags().Var(word{to, of}, name, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(of, cobra.ShellCompDirectiveNoFileComp)) // fails only without the flag
}

// number is a flag that takes a whole number, not below least.
type number struct {
	to    *int64
	least int64
}

func (n number) String() string { return fmt.Sprint(*n.to) }
func (n number) Type() string   { return "number" }

func (n number) Set(s string) error {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < n.least {
		return fmt.Errorf("it is a whole number, %d or more", n.least)
	}
	*n.to = v
	return nil
}

// numberFlag adds a flag that takes a whole number, not below least; short may be "".
func numberFlag(flags *pflag.FlagSet, to *int64, name, short string, least int64, usage string) {
	flags.VarP(number{to, least}, name, short, usage)
}
