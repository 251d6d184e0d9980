package main

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"

	"sessiond/internal/analytics"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
	"sessiond/internal/web/api"
)

// overview is `sessiond` without arguments: one screen with the newest sessions and next steps.
func (a *app) overview(ctx context.Context) error {
	cfg, err := a.load(nil)
	if err != nil {
		return err
	}
	s, err := a.open(ctx, wiring{readOnly: true})
	if session.CodeOf(err) == session.NotFound {
		return a.welcome(cfg.DB)
	}
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // a reader
	st, err := analytics.New(s.Reader(), s.Zone()).Stats(ctx, analytics.Filter{})
	if err != nil {
		return err
	}
	newest, _, err := s.Sessions(ctx, store.Filter{}, store.Page{Limit: 5})
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(map[string]any{"database": cfg.DB, "stats": st, "newest": api.ListOf(newest, "").Data})
	}
	fmt.Fprintf(a.out, "%s in %s, %s. Database: %s\n\n", plural(st.Messages, "message", "messages"),
		plural(st.Sessions, "session", "sessions"), transcript.Money(st.NanoUSD(), st.UnpricedCalls), cfg.DB)
	if err := a.printSessions(newest, ""); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "\n  %-28s %s\n", "sessiond show "+firstID(newest), "read the newest session")
	for _, hint := range [][2]string{
		{"sessiond search WORDS", "search all messages"},
		{"sessiond stats", humanize.Comma(st.Tokens.AllInput()+st.Tokens.Output) + " tokens, by model and day"},
		{"sessiond serve", "run the daemon, for agents over HTTP"},
		{"sessiond help", "all commands"},
	} {
		fmt.Fprintf(a.out, "  %-28s %s\n", hint[0], hint[1])
	}
	return nil
}

func firstID(sessions []session.Session) string {
	if len(sessions) == 0 {
		return "SESSION"
	}
	return string(sessions[0].ID)
}

// welcome is the overview without a database.
func (a *app) welcome(db string) error {
	if a.flags.json {
		return a.printJSON(map[string]any{"database": db, "stats": nil, "newest": []string{}})
	}
	_, err := fmt.Fprintf(a.out, `sessiond keeps the conversations of every AI agent on this host in one file.
There is none yet at %s. To begin:

  sessiond import                     import the histories of your agents
  sessiond append --new user 'hello'  begin a session by hand
  sessiond serve                      run the daemon, for agents over HTTP
  sessiond help                       all commands
`, db)
	return err
}
