package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"sessiond/internal/connect"
	"sessiond/internal/find"
	"sessiond/internal/pattern"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/transcript"
	"sessiond/internal/web/api"
)

type searchFlags struct {
	find.Request
	limit, expand int64
	messages      bool
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
		Example: "  sessiond search what did we decide about the schema\n" +
			"  sessiond search '\"exact words\"' -draft tool:bash --since 30d\n" +
			"  sessiond search migration plan --messages --newest",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), reading, func(s *opened) error {
				return a.paged(cmd.Context(), func() error { return a.search(cmd.Context(), s, strings.Join(args, " "), f) })
			})
		},
	}
	fl := cmd.Flags()
	filterFlags(cmd, &f.Request, find.Searches)
	a.completeFilters(cmd)
	wordFlag(cmd, &f.Order, "order", "rank (default) or newest", string(search.OrderRank), string(search.OrderNewest))
	numberFlag(fl, &f.limit, "limit", "n", 1, "maximum number of messages, or of sessions (default 20, 10)")
	numberFlag(fl, &f.expand, "expand", "", 0, "show this many messages before and after each hit")
	wordFlag(cmd, &f.Group, "group", "session (default) or message; with --session or --expand, message is the default",
		string(search.GroupMessage), string(search.GroupSession))
	fl.BoolVar(&f.messages, "messages", false, "the same as --group message")
	newest := fl.Bool("newest", false, "the same as --order newest")
	cmd.PreRun = func(*cobra.Command, []string) {
		if *newest {
			f.Order = string(search.OrderNewest)
		}
		if f.messages {
			f.Group = string(search.GroupMessage)
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
	f.Text, f.Limit, f.Expand = words, int(f.limit), int(f.expand)
	if f.Group == "" && f.expand == 0 && f.Session == "" {
		f.Group = string(search.GroupSession)
	}
	if f.Group == string(search.GroupSession) {
		f.Limit = cmp.Or(f.Limit, 10)
	}
	found, err := a.finder(s.store, s.index).Search(ctx, f.Request)
	if err != nil {
		return orUsage(err)
	}
	if found.Time != nil {
		found.Time.Flags = timeFlags(found.Time)
	}
	if a.flags.json {
		view, err := api.SearchViewOf(&found)
		if err != nil {
			return err
		}
		return errors.Join(a.printJSON(view), a.warnOfSearch(&found))
	}
	if err := a.printSessionHits(ctx, s, found.Sessions); err != nil {
		return err
	}
	if err := a.printHits(ctx, s, found.Hits); err != nil {
		return err
	}
	return a.explainSearch(ctx, s, &found)
}

// explainSearch says what was not found, and why.
func (a *app) explainSearch(ctx context.Context, s *opened, found *find.Found) error {
	if len(found.Hits)+len(found.Sessions) == 0 {
		if last, err := s.store.LastMessageID(ctx); err != nil {
			return err
		} else if last == 0 {
			fmt.Fprintln(a.out, "Nothing is stored yet. `sessiond import` reads the histories of the agents on this host.")
			return nil
		}
		if len(found.Elsewhere) > 0 {
			fmt.Fprintln(a.out, "Nothing found with these filters.")
		} else {
			fmt.Fprintln(a.out, "Nothing found. Fewer words find more; word* finds beginnings.")
		}
	}
	return a.warnOfSearch(found)
}

// warnOfSearch prints the notes of a search.
func (a *app) warnOfSearch(found *find.Found) error {
	for _, note := range searchNotes(found) {
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

// searchNotes say which words no message has, and what was not searched.
func searchNotes(found *find.Found) []string {
	notes := found.Notes(func(word string) string { return "`" + word + "`" })
	if note := found.TimeNote(func(t *search.NamedTime) string { return t.Flags }); note != "" {
		notes = append(notes, note)
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
	fmt.Fprintf(a.out, "    %s\n", a.dim(fmt.Sprintf("%d %s: %s", m.Seq, m.Role,
		transcript.OneLine(printable(session.ReadableText(m.Text())), max(20, a.columns()-20)))))
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
