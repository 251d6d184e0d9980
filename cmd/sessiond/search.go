package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/transcript"
)

type searchFlags struct {
	session, key, source, project, role, since, until, order string
	limit, expand                                            int64
}

func (a *app) searchCommand() *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use: "search TEXT", Short: "Search the messages of all sessions", Args: arguments(1, unlimited),
		Long: "Searches the messages of every program. A hit contains all words of TEXT. \"…\" finds exact\n" +
			"words, word* finds words with this beginning, -word excludes a word. Of a text over\n" +
			"8 MiB only the first 8 MiB are searched.",
		Example: "  sessiond search migration plan\n  sessiond search '\"exact words\" -draft' --since 30d --newest",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), wiring{readOnly: true}, func(s *services) error {
				return a.search(cmd.Context(), s, strings.Join(args, " "), f)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.session, "session", "", "only in this `SESSION`")
	fl.StringVar(&f.key, "key", "", "only in sessions with this routing `KEY`")
	fl.StringVar(&f.source, "source", "", "only from this `PROGRAM` (sessiond, pi, …)")
	fl.StringVar(&f.project, "project", "", "only in this project `FOLDER`")
	wordFlag(cmd, &f.role, "role", "only this role: user, assistant, tool, system",
		string(session.User), string(session.Assistant), string(session.Tool), string(session.System))
	fl.StringVar(&f.since, "since", "", "only since this `TIME`: 2026-02-11, 7d, 12h")
	fl.StringVar(&f.until, "until", "", "only before this `TIME`")
	wordFlag(cmd, &f.order, "order", "rank (default) or newest", string(search.OrderRank), string(search.OrderNewest))
	numberFlag(fl, &f.limit, "limit", "n", 1, "maximum number of hits (default 20)")
	numberFlag(fl, &f.expand, "expand", "", 0, "show this many messages before and after each hit")
	newest := fl.Bool("newest", false, "the same as --order newest")
	cmd.PreRun = func(*cobra.Command, []string) {
		if *newest {
			f.order = string(search.OrderNewest)
		}
	}
	return cmd
}

func (a *app) search(ctx context.Context, s *services, words string, f searchFlags) error {
	q := search.Query{
		Text: words, Key: f.key, Source: session.Source(f.source), Project: f.project, Role: session.Role(f.role),
		Order: search.Order(f.order), Limit: int(f.limit), Expand: int(f.expand),
	}
	var err error
	if q.Key, err = a.key(q.Key); err != nil {
		return err
	}
	if f.session != "" {
		if q.Session, err = s.store.Resolve(ctx, f.session, a.dir); err != nil {
			return err
		}
	}
	if q.Since, err = a.moment("--since", f.since); err != nil {
		return err
	}
	if q.Until, err = a.moment("--until", f.until); err != nil {
		return err
	}
	res, err := s.index.Search(ctx, q)
	if err != nil {
		return err
	}
	if a.flags.json {
		if res.Hits == nil {
			res.Hits = []search.Hit{}
		}
		return a.printJSON(res)
	}
	return a.printHits(ctx, s, res)
}

// printHits prints the place of each hit and the text around the words.
func (a *app) printHits(ctx context.Context, s *services, res search.Result) error {
	if len(res.Hits) == 0 {
		fmt.Fprintln(a.out, "Nothing found. Fewer words find more; word* finds beginnings; \"…\" finds exact words.")
	}
	titles := map[session.ID]string{}
	for _, h := range res.Hits {
		title, ok := titles[h.SessionID]
		if !ok {
			sess, err := s.store.Session(ctx, h.SessionID)
			if err != nil {
				return err
			}
			title = sess.Title
			titles[h.SessionID] = title
		}
		where := fmt.Sprintf("%s  %s  ", h.MessageID, h.Role)
		when := h.CreatedAt.In(s.store.Zone()).Format("2006-01-02 15:04") + "  "
		room := 60
		if w := a.columns(); w > 0 {
			room = min(room, max(12, w-len(where)-len(when)))
		}
		fmt.Fprintf(a.out, "%s%s\n", where, a.dim(when+transcript.OneLine(title, room)))
		for i := range h.Before {
			a.printNeighbour(&h.Before[i])
		}
		fmt.Fprintln(a.out, a.indented(a.highlight(h)))
		for i := range h.After {
			a.printNeighbour(&h.After[i])
		}
	}
	if reason := s.index.Reason(); reason != "" {
		a.warn("searched without the index: %s", reason)
	}
	if res.Partial {
		a.warn("not everything was searched: the search index is behind; the daemon or the next append updates it")
	}
	return nil
}

// indented indents text and wraps it to the terminal.
func (a *app) indented(said string) string {
	const indent = "    "
	return indent + a.fit(said, indent)
}

func (a *app) printNeighbour(m *session.Message) {
	fmt.Fprintf(a.out, "    %s\n", a.dim(fmt.Sprintf("%d %s: %s", m.Seq, m.Role, transcript.OneLine(printable(m.Text()), max(20, a.columns()-20)))))
}

// highlight makes matches bold, with colours.
func (a *app) highlight(h search.Hit) string {
	if !a.color() {
		return printable(strings.Join(strings.Fields(h.Snippet), " "))
	}
	var b strings.Builder
	at := 0
	for _, m := range h.Marks {
		if m[0] < at || m[1] > len(h.Snippet) {
			continue
		}
		b.WriteString(printable(h.Snippet[at:m[0]]))
		b.WriteString(text.Bold.Sprint(printable(h.Snippet[m[0]:m[1]])))
		at = m[1]
	}
	b.WriteString(printable(h.Snippet[at:]))
	return strings.ReplaceAll(b.String(), "\n", " ")
}
