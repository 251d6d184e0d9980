package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sessiond/internal/find"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// filterFlags adds flags for the filters of lists or searches; with names only for these.
func filterFlags(cmd *cobra.Command, r *find.Request, uses find.Uses, names ...string) (added []*pflag.Flag) {
	fl := cmd.Flags()
	for _, f := range find.Filters {
		if f.Uses&uses == 0 || len(names) > 0 && !slices.Contains(names, f.Name) {
			continue
		}
		switch text, on := f.Of(r); {
		case f.Words != nil:
			wordFlag(cmd, text, f.Name, f.Help, f.Words...)
		case text != nil:
			fl.Var(filterText{text}, f.Name, f.Help)
		default:
			fl.BoolVar(on, f.Name, false, f.Help)
		}
		added = append(added, fl.Lookup(f.Name))
	}
	if len(names) == 0 {
		fl.StringToStringVar(&r.Metadata, "metadata", nil, "only with this metadata: `NAME=VALUE`")
		metadata := fl.Lookup("metadata")
		metadata.DefValue = "" // help would print []
		added = append(added, metadata)
	}
	return added
}

// filterText is the text of a filter. Where it is empty, like an unset variable of a script, everything would pass.
type filterText struct{ to *string }

func (t filterText) String() string { return *t.to }
func (t filterText) Type() string   { return "string" }

func (t filterText) Set(s string) error {
	if s == "" {
		return errors.New("it is empty: leave the flag out to filter nothing")
	}
	*t.to = s
	return nil
}

// finder runs requests as a person at this terminal writes them.
func (a *app) finder(s *store.Store, index *search.Index) *find.Finder {
	return &find.Finder{
		Store: s, Index: index, Now: a.now, Key: a.key, Folder: a.dir, Home: a.getenv("HOME"),
		Session: func(ctx context.Context, name string) (session.ID, error) {
			sess, err := a.resolve(ctx, s, name)
			return sess.ID, err
		},
	}
}

// orUsage returns an error of what was typed as one of the command line.
func orUsage(err error) error {
	if session.CodeOf(err) == session.Invalid {
		return usageError{err}
	}
	return err
}

// moment parses a time that a person writes, in the configured time zone. The configuration is loaded.
func (a *app) moment(name, text string) (*session.Time, error) {
	at, err := find.Moment(name, text, a.now().In(a.cfg.Zone()))
	return at, orUsage(err)
}

// filter returns the store's filter of a list. Sub-agents and automated sessions are folded unless the flags ask for
// them.
func (a *app) filter(ctx context.Context, s *store.Store, f *lsFlags) (store.Filter, error) {
	f.People = !f.all && f.Folds()
	filter, err := a.finder(s, nil).Filter(ctx, f.Request)
	return filter, orUsage(err)
}
