package main

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"

	"sessiond/internal/analytics"
	"sessiond/internal/engine"
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
	s, err := a.open(ctx, reading)
	if session.CodeOf(err) == session.NotFound {
		return a.welcome(ctx, cfg.DB)
	}
	if err != nil {
		return err
	}
	defer s.Close()                              //nolint:errcheck // a reader
	by := []analytics.Dimension{analytics.ByDay} // the fastest way to the sums
	if a.flags.json {
		by = analytics.Dimensions()
	}
	st, err := analytics.New(s.Reader(), s.Zone()).Stats(ctx, analytics.Filter{}, by...)
	if err != nil {
		return err
	}
	if err := a.printAlarm(ctx); err != nil {
		return err
	}
	if st.Sessions == 0 && !a.flags.json {
		return a.welcome(ctx, cfg.DB)
	}
	data, _, err := s.Sessions(ctx, store.Filter{People: true}, store.Page{Limit: 5})
	if err != nil {
		return err
	}
	newest, err := a.listed(ctx, s, data, true)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(map[string]any{
			"database": engine.PrintableName(cfg.DB), "stats": st,
			"newest": api.ListOf(newest, "").Data,
		})
	}
	limits, err := a.finder(s, nil).LimitsLine(ctx)
	if err != nil {
		return err
	}
	if limits != "" {
		fmt.Fprintln(a.out, a.bold(a.fit(limits, "")))
	}
	sessions := transcript.Counted(st.Sessions-st.Subagents, "session")
	if st.Subagents > 0 {
		sessions += " and " + transcript.Counted(st.Subagents, "sub-agent")
	}
	fmt.Fprintf(a.out, "%s in %s, %s. Database: %s\n\n", transcript.Counted(st.Messages, "message"), sessions,
		transcript.Money(st.NanoUSD(), st.UnpricedCalls), engine.PrintableName(cfg.DB))
	if len(newest) > 0 {
		if err := a.printSessions(ctx, s, newest, ""); err != nil {
			return err
		}
	}
	return a.printNext("", [][2]string{
		{"sessiond show " + firstID(data), "read the newest session"},
		{"sessiond search WORDS", "search all messages"},
		{"sessiond stats", humanize.Comma(st.Tokens.AllInput()+st.Tokens.Output) +
			" tokens, by project, program, model and day"},
		{"sessiond serve", "run the daemon: the page, HTTP for agents"},
		{"sessiond help", "all commands"},
	})
}

func firstID(sessions []session.Session) string {
	if len(sessions) == 0 {
		return "SESSION"
	}
	return string(sessions[0].ID)
}

// welcome is the overview of a first start: what is on this host, and what to type next.
func (a *app) welcome(ctx context.Context, db string) error {
	pasts, err := a.findPasts(ctx)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(map[string]any{
			"database": db, "stats": nil, "newest": []string{},
			"found": append([]past{}, found(pasts)...),
		})
	}
	fmt.Fprintln(a.out,
		a.fit("sessiond keeps the conversations of every AI agent on this host in one file. None is here yet: "+
			"`sessiond import` fills "+db+".", ""))
	fmt.Fprintln(a.out)
	a.printFound(pasts)
	return a.printNext("To begin:", [][2]string{
		{"sessiond import", "import the histories of your agents; they are only read"},
		{"sessiond append --new user 'hello'", "begin a session by hand"},
		{"sessiond serve", "run the daemon: the page, HTTP for agents, new messages of imported histories"},
		{"sessiond help", "all commands"},
	})
}

// printFound prints the histories on this host, or that there are none.
func (a *app) printFound(pasts []past) {
	if there := found(pasts); len(there) > 0 {
		fmt.Fprintln(a.out, "Histories on this host:")
		a.printPasts(there)
		return
	}
	fmt.Fprintln(a.out,
		a.fit("Found no history of a known program in its usual place. "+
			"`sessiond import SOURCE PATH` imports from another one.", ""))
}

// printNext prints, below a blank line, commands to type next.
func (a *app) printNext(heading string, commands [][2]string) error {
	fmt.Fprintln(a.out)
	if heading != "" {
		fmt.Fprintln(a.out, heading)
	}
	width := 0
	for _, c := range commands {
		width = max(width, len(c[0]))
	}
	for _, c := range commands {
		if _, err := fmt.Fprintf(a.out, "  %-*s  %s\n", width, c[0], c[1]); err != nil {
			return err
		}
	}
	return nil
}
