// Package picker is `sessiond` on a terminal: a list of sessions that narrows as people type, a preview beside it, and
// keys that resume, copy, export, rename, star and archive. Model is a pure function of messages and the answers of
// Data; nothing here knows the database.
package picker

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"sessiond/internal/search"
	"sessiond/internal/session"
)

// Where says in which folders listed sessions were.
type Where int

// The places, in the order in which Tab visits them.
const (
	Everywhere Where = iota
	InProject        // of the current folder
	Here             // the current folder itself
)

// Scope says which sessions are listed. The zero value is all that a person started and did not archive.
type Scope struct {
	Where     Where
	Source    session.Source // "": of every program
	SubAgents bool           // also sub-agents and automated sessions
	Starred   bool           // starred sessions only
	Archived  bool           // archived sessions instead
}

// Row is a session in the list.
type Row struct {
	session.Session
	session.Measure
	Name     string       // of its project, as lists call it
	Passages []search.Hit // the best ones of a search
}

// Children is the number of its sub-agents, at any depth.
func (r *Row) Children() int64 {
	if r.Rollup == nil {
		return 0
	}
	return r.Rollup.Children
}

// Found is a piece of a list, newest first, or the answer of a search, best first.
type Found struct {
	Rows  []Row
	Next  string   // cursor of the next piece; "": this was the last one
	Notes []string // for people: words that no message has, messages that are not searched yet
	Empty bool     // nothing is stored at all
}

// Preview is what stands beside the list.
type Preview struct {
	Row
	Prompts []session.Message // the newest, oldest first
	Last    []session.Message // the end of the conversation, oldest first
}

// ErrGone says that a session does not exist any more.
var ErrGone = errors.New("the session does not exist any more")

// Data answers the picker. Its methods run beside the screen and may take their time; several may run at once.
// Those that get an id return ErrGone.
type Data interface {
	List(ctx context.Context, in Scope, cursor string, limit int) (Found, error)
	Search(ctx context.Context, in Scope, text string) (Found, error)
	Preview(ctx context.Context, id session.ID) (Preview, error)
	// Version changes when anything is stored.
	Version(ctx context.Context) (int64, error)
	// Alarm says in one line why what is stored may be lost; "" if all is well.
	Alarm(ctx context.Context) string
	// Sources lists the programs that sessions come from.
	Sources(ctx context.Context) ([]session.Source, error)
	// Resume returns the shell command that continues a session, if it can run.
	Resume(ctx context.Context, id session.ID) (command string, err error)

	Rename(ctx context.Context, id session.ID, title string) error
	Archive(ctx context.Context, id session.ID, on bool) error
	Star(ctx context.Context, id session.ID, on bool) error
	// Export writes a session to a file and returns what it wrote.
	Export(ctx context.Context, id session.ID, file string) (said string, err error)
	// Open opens a session's page in a browser. Where none can be started it returns the link.
	Open(ctx context.Context, id session.ID) (link string, err error)
}

// Config is what a picker works with.
type Config struct {
	Data     Data
	Now      func() time.Time // in the zone of the person
	Home     string           // written as ~; may be ""
	Project  string           // of the current folder, as lists call it; "": none
	Here     string           // the current folder
	Targets  []string         // programs in which a session can be continued
	Debounce time.Duration    // of typing, before a search
	Poll     time.Duration    // between looks whether the database changed; 0: never
}

// Choice is what a person left the picker for. The zero value is nothing.
type Choice struct {
	Resume session.ID // continue this session
	In     string     // in this program; "": in its own
	Import bool       // import the histories of this host
}

// Terminal is where a picker runs.
type Terminal struct {
	In      io.Reader
	Out     io.Writer
	Environ []string
	NoColor bool
}

// Run shows the picker until the person leaves it, and restores the terminal.
func Run(ctx context.Context, cfg Config, t Terminal) (Choice, error) {
	last, err := tea.NewProgram(New(ctx, cfg), t.options(ctx)...).Run()
	if errors.Is(err, tea.ErrInterrupted) {
		return Choice{}, nil // by a signal, as Ctrl-C does
	}
	if ctx.Err() != nil {
		return Choice{}, ctx.Err()
	}
	if err != nil {
		return Choice{}, err
	}
	return last.(Model).choice, nil
}
