package find

import (
	"context"
	"slices"
	"time"

	"sessiond/internal/session"
)

// Limit is a program that answers nothing until its limit is reset, and the one in which its user may go on.
type Limit struct {
	session.Limit
	Next session.Source // the program that was used last of those whose sessions sessiond writes; "": none
}

// lastUsedDays limits how long ago a program was used in which a conversation may go on.
const lastUsedDays = 60

// Limits returns the programs that are at a limit now, one limit of each: the one that ends last.
func (f *Finder) Limits(ctx context.Context) (out []Limit, err error) {
	all, err := f.Store.Limits(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if n := len(out); l.Reached && n > 0 && out[n-1].Source == l.Source {
			out[n-1].Limit = l // they are in the order of their ends
		} else if l.Reached {
			out = append(out, Limit{Limit: l})
		}
	}
	if out == nil {
		return nil, nil
	}
	since := session.At(f.Now().AddDate(0, 0, -lastUsedDays)).Day(f.Store.Zone())
	used, err := f.Store.LastUsed(ctx, since)
	next := slices.IndexFunc(used, func(s session.Source) bool {
		info, _ := session.ProgramNamed(string(s))
		return info.Target && !slices.ContainsFunc(out, func(l Limit) bool { return l.Source == s })
	})
	for i := range out {
		if next >= 0 {
			out[i].Next = used[next]
		}
	}
	return out, err
}

// Words is what people are told: limit until 15:00 · sessiond to codex. id is of the session that goes on; "": the
// newest of the folder.
func (l *Limit) Words(now time.Time, id session.ID) (until, command string) {
	until = "limit " + l.UntilWords(now)
	if l.Next == "" {
		return until, ""
	}
	command = "sessiond to " + string(l.Next)
	if id != "" {
		command += " " + string(id)
	}
	return until, command
}

// LimitsLine names the programs that are at a limit now, and how to go on; "": none is.
func (f *Finder) LimitsLine(ctx context.Context) (string, error) {
	all, err := f.Limits(ctx)
	line := ""
	for i := range all {
		until, command := all[i].Words(f.Now().In(f.Store.Zone()), "")
		if line != "" {
			line += "; "
		}
		info, _ := session.ProgramNamed(string(all[i].Source))
		line += info.Title + ": " + until
		if command != "" {
			line += " · " + command
		}
	}
	return line, err
}
