package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"sessiond/internal/connect"
	"sessiond/internal/pattern"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

type searchFlags struct {
	session, key, source, project, role, since, until, order string
	limit, expand                                            int64
	group                                                    string
	messages                                                 bool
}

func (a *app) searchCommand() *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use: "search TEXT", Short: "Search the messages of all sessions", Args: arguments(1, unlimited),
		Long: "Searches the messages of every program, and lists the sessions in which the words are, best first. Up to\n" +
			"three words are found together first. For a question (who, what, …?) --messages also lists messages beside\n" +
			"the best ones: an answer rarely repeats the question. The first 32 words of a query count, and the first\n" +
			"8 MiB of a text.\n\n" +
			search.Grammar,
		Example: "  sessiond search what did we decide about the schema\n  sessiond search '\"exact words\"' -draft tool:bash --since 30d\n  sessiond search migration plan --messages --newest",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), wiring{readOnly: true}, func(s *opened) error {
				return a.paged(cmd.Context(), func() error { return a.search(cmd.Context(), s, strings.Join(args, " "), f) })
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.session, "session", "", "only in this `SESSION`")
	fl.StringVar(&f.key, "key", "", "only in sessions with this routing `KEY`")
	scopeFlags(fl, &f.source, &f.project)
	wordFlag(cmd, &f.role, "role", "only this role: user, assistant, tool, system",
		string(session.User), string(session.Assistant), string(session.Tool), string(session.System))
	fl.StringVar(&f.since, "since", "", "only since this `TIME`: yesterday, \"last week\", \"7 October\", 7d, 12h, 2026-02-11")
	fl.StringVar(&f.until, "until", "", "only before this `TIME`")
	wordFlag(cmd, &f.order, "order", "rank (default) or newest", string(search.OrderRank), string(search.OrderNewest))
	numberFlag(fl, &f.limit, "limit", "n", 1, "maximum number of messages, or of sessions (default 20, 10)")
	numberFlag(fl, &f.expand, "expand", "", 0, "show this many messages before and after each hit")
	wordFlag(cmd, &f.group, "group", "session (default) or message; with --session or --expand, message is the default", string(search.GroupMessage), string(search.GroupSession))
	fl.BoolVar(&f.messages, "messages", false, "the same as --group message")
	newest := fl.Bool("newest", false, "the same as --order newest")
	cmd.PreRun = func(*cobra.Command, []string) {
		if *newest {
			f.order = string(search.OrderNewest)
		}
		if f.messages {
			f.group = string(search.GroupMessage)
		}
	}
	return cmd
}

// excludedLast moves the -words of a search behind --, where they are no flags.
func excludedLast(args []string) []string {
	at := 0
	for at < len(args) && strings.HasPrefix(args[at], "-") {
		if at++; args[at-1] == "--db" || args[at-1] == "--config" {
			at++
		}
	}
	if at >= len(args) || args[at] != "search" {
		return args
	}
	kept, excluded, rest := slices.Clone(args[:at]), []string(nil), []string(nil)
	for i, arg := range args[at:] {
		if arg == "--" {
			rest = args[at+i+1:]
			break
		}
		if len(arg) < 2 || arg[0] != '-' || arg[1] == '-' || searchShorthand.MatchString(arg) {
			kept = append(kept, arg)
		} else {
			excluded = append(excluded, arg)
		}
	}
	return slices.Concat(kept, []string{"--"}, excluded, rest)
}

var searchShorthand = pattern.New(`^-(h|n|n=?[0-9]+)$`)

func (a *app) search(ctx context.Context, s *opened, words string, f searchFlags) error {
	q := search.Query{
		Text: words, Key: f.key, Role: session.Role(f.role),
		Order: search.Order(f.order), Group: search.Group(f.group), Limit: int(f.limit), Expand: int(f.expand), Now: a.now().In(s.store.Zone()),
	}
	if q.Group == "" && f.expand == 0 && f.session == "" {
		q.Group = search.GroupSession
	}
	if q.Group == search.GroupSession {
		q.Limit = cmp.Or(q.Limit, 10)
	}
	var err error
	if q.Key, err = a.key(q.Key); err != nil {
		return err
	}
	if f.session != "" {
		sess, err := a.resolve(ctx, s.store, f.session)
		if err != nil {
			return err
		}
		q.Session = sess.ID
	}
	if err := a.searchScope(ctx, s.store, f, &q); err != nil {
		return err
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
	if res.Time != nil {
		res.Time.Flags = timeFlags(res.Time)
	}
	if a.flags.json {
		return a.printJSON(res)
	}
	if err := a.printSessionHits(ctx, s, res.Sessions); err != nil {
		return err
	}
	if err := a.printHits(ctx, s, res.Hits); err != nil {
		return err
	}
	return a.explainSearch(ctx, s, &res)
}

// searchScope sets the program and the projects that the flags mean. The search explains names that match nothing.
func (a *app) searchScope(ctx context.Context, s *store.Store, f searchFlags, q *search.Query) error {
	q.Source, q.Project = session.Source(f.source), f.project
	if f.source != "" {
		values, err := s.Values(ctx, store.ColumnSource)
		if err != nil {
			return err
		}
		source, err := a.theMeant("--source", f.source, store.ColumnSource, values)
		switch {
		case err == nil:
			q.Source = session.Source(source)
		case session.CodeOf(err) != session.NotFound:
			return err
		}
	}
	if f.project != "" {
		values, err := s.Values(ctx, store.ColumnProject)
		if err != nil {
			return err
		}
		switch projects := a.meant(f.project, store.ColumnProject, values); len(projects) {
		case 0:
		case 1:
			q.Project = projects[0]
		default:
			q.Project, q.Projects = "", projects
		}
	}
	return nil
}

// explainSearch says what was not found, and why.
func (a *app) explainSearch(ctx context.Context, s *opened, res *search.Result) error {
	if res.Stopped {
		a.warn("the search was stopped: %s", search.StoppedAdvice)
	}
	if len(res.Hits)+len(res.Sessions) == 0 {
		if last, err := s.store.LastMessageID(ctx); err != nil {
			return err
		} else if last == 0 {
			fmt.Fprintln(a.out, "Nothing is stored yet. `sessiond import` reads the histories of the agents on this host.")
			return nil
		}
		if len(res.Elsewhere) > 0 {
			fmt.Fprintln(a.out, "Nothing found with these filters.")
		} else {
			fmt.Fprintln(a.out, "Nothing found. Fewer words find more; word* finds beginnings.")
		}
	}
	for _, note := range searchNotes(res, s.index.Reason()) {
		a.warn("%s", note)
	}
	return nil
}

// timeFlags returns the flags that limit a search to the time that its words name.
func timeFlags(t *search.NamedTime) string {
	var flags []string
	if t.SinceText != "" {
		flags = append(flags, "--since "+connect.QuoteShell(t.SinceText))
	}
	if t.UntilText != "" {
		flags = append(flags, "--until "+connect.QuoteShell(t.UntilText))
	}
	return strings.Join(flags, " ")
}

// searchNotes say which words no message has, and what was not searched. reason is why the index is not used.
func searchNotes(res *search.Result, reason string) (notes []string) {
	notes = res.Notes(func(word string) string { return "`" + word + "`" })
	if res.Time != nil {
		notes = append(notes, fmt.Sprintf("messages of the time “%s” are preferred; only these: %s", res.Time.Text, res.Time.Flags))
	}
	if len(res.Elsewhere) > 0 {
		notes = append(notes, "other filters find something: "+strings.Join(res.Elsewhere, " "))
	}
	if reason != "" {
		notes = append(notes, "searched without the index: "+reason)
	}
	if res.Partial {
		notes = append(notes, "not everything was searched: the search index is behind; the daemon or the next append updates it")
	}
	return notes
}

// printSessionHits prints sessions with their best passages, and what resumes them.
func (a *app) printSessionHits(ctx context.Context, s *opened, found []search.SessionHit) error {
	projects, err := s.store.ProjectNames(ctx)
	if err != nil {
		return err
	}
	for i, h := range found {
		facts := []string{string(h.SessionID), string(h.Source)}
		if h.Project != "" {
			facts = append(facts, projects.Of(h.Project))
		}
		facts = append(facts, humanize.RelTime(h.ActiveAt.Time, a.now(), "ago", "from now"))
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		room := 80
		if w := a.columns(); w > 0 {
			room = min(room, w)
		}
		fmt.Fprintln(a.out, a.bold(cmp.Or(transcript.OneLine(h.Title, room), noTitle)))
		fmt.Fprintln(a.out, a.dim(strings.Join(facts, " · ")))
		for i := range h.Passages {
			p := &h.Passages[i]
			fmt.Fprintf(a.out, "  %s\n", a.dim(fmt.Sprintf("%s %s", p.MessageID, p.Role)))
			fmt.Fprintln(a.out, a.indented(a.highlight(p)))
		}
		sess, err := s.store.Session(ctx, h.SessionID)
		if err != nil {
			return err
		}
		if _, err := a.resumption(ctx, s.store, &sess); err == nil {
			fmt.Fprintln(a.out, a.dim("  sessiond resume --exec "+string(h.SessionID)))
		}
	}
	return nil
}

// printHits prints the place of each hit and the text around the words.
func (a *app) printHits(ctx context.Context, s *opened, hits []search.Hit) error {
	titles := map[session.ID]string{}
	for n := range hits {
		h := &hits[n]
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
	return nil
}

// indented indents text and wraps it to the terminal.
func (a *app) indented(said string) string {
	const indent = "    "
	return indent + a.fit(said, indent)
}

func (a *app) printNeighbour(m *session.Message) {
	fmt.Fprintf(a.out, "    %s\n", a.dim(fmt.Sprintf("%d %s: %s", m.Seq, m.Role, transcript.OneLine(printable(session.ReadableText(m.Text())), max(20, a.columns()-20)))))
}

// highlight returns a passage in one line. Matches are bold, with colours.
func (a *app) highlight(h *search.Hit) string {
	var b strings.Builder
	for piece, matched := range h.Pieces() {
		if piece = printable(piece); matched {
			piece = a.bold(piece)
		}
		b.WriteString(piece)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
