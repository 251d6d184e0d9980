package main

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/pattern"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
	"sessiond/internal/web/api"
)

// part is what show prints of a session: ranges of messages, oldest first.
type part struct {
	spans   store.Ranges
	chosen  bool                // the user chose it
	before  int64               // messages of the path before it
	path    int64               // messages of the whole path
	named   *session.MessageRef // the message to point at
	program bool                // it is a row of the program
}

// around is how many messages show prints before and after a named one.
const around = 5

// partToShow finds the messages to show: all of the path to the head, or those that the user chose.
func partToShow(ctx context.Context, s *store.Store, sess session.Session, ref *session.MessageRef,
	f showFlags,
) (part, error) {
	from, to, err := seqRange(f.seq)
	if err != nil {
		return part{}, err
	}
	spans, err := pathOf(ctx, s, sess, f.all)
	if err != nil {
		return part{}, err
	}
	p := part{spans: spans, path: spans.Len()}
	switch {
	case f.seq != "":
		p.chosen = true
		if p.spans = ownRange(spans, sess.ID, from, to); len(p.spans) == 0 {
			return p, session.Errorf(session.NotFound,
				"session %s has no message %s on its current branch: its last seq is %d, and --all includes abandoned branches",
				sess.ID, f.seq, sess.LastSeq)
		}
		p.before = spans.Position(session.MessageRef{Session: p.spans[0].Session, Seq: p.spans[0].From}) - 1
	case ref != nil && !f.prompts && f.grep == "" && f.last == 0:
		return neighbourhood(ctx, s, p, *ref)
	}
	p.program = f.seq != "" && from == to
	if f.last > 0 && !f.prompts && f.grep == "" {
		p.chosen = true
		return p, p.cutToLast(ctx, s, f)
	}
	return p, nil
}

// cutToLast keeps the last messages. Rows of the program do not count where they are not shown.
func (p *part) cutToLast(ctx context.Context, s *store.Store, f showFlags) error {
	first := max(1, p.spans.Len()-f.last+1)
	if !f.program && !p.program {
		last, err := s.LastInTalk(ctx, p.spans, int(min(f.last, math.MaxInt32)), session.Head{})
		if err != nil {
			return err
		}
		if len(last) > 0 {
			first = p.spans.Position(last[0].ID)
		}
	}
	p.cut(first, p.spans.Len())
	return nil
}

// pathOf returns the path to the head of a session, oldest first, or all its own messages.
func pathOf(ctx context.Context, s *store.Store, sess session.Session, all bool) (store.Ranges, error) {
	if all {
		return store.Ranges{{Session: sess.ID, From: 1, To: sess.LastSeq}}, nil
	}
	if sess.HeadID == nil {
		return nil, nil
	}
	spans, err := s.Spans(ctx, *sess.HeadID)
	slices.Reverse(spans)
	return spans, err
}

// neighbourhood cuts a path to a message and those around it. A message on an abandoned branch comes with its own path.
func neighbourhood(ctx context.Context, s *store.Store, p part, ref session.MessageRef) (part, error) {
	at := p.spans.Position(ref)
	if at == 0 {
		m, err := s.Message(ctx, ref)
		if err != nil {
			return p, err
		}
		spans, err := s.Spans(ctx, m.RowID)
		if err != nil {
			return p, err
		}
		slices.Reverse(spans)
		p = part{spans: spans}
		p.path = p.spans.Len()
		at = p.path
	}
	p.chosen = true
	before, err := s.LastInTalk(ctx, p.spans.Between(1, at-1), around, session.Head{})
	if err != nil {
		return p, err
	}
	first := max(1, at-around)
	if len(before) > 0 {
		first = p.spans.Position(before[0].ID)
	}
	p.cut(first, min(p.path, at+around))
	for { // a result is shown with its call
		m, err := s.MessageHead(ctx, ref, session.Head{})
		if err != nil {
			return p, err
		}
		if p.program = m.Talk == session.OfProgram; m.Role != session.Tool || ref.Seq == 1 {
			break
		}
		ref.Seq--
	}
	p.named = &ref
	return p, nil
}

// extent says how much of the session is shown.
func (p *part) extent(ctx context.Context, s *store.Store, sess *session.Session, all bool) (string, error) {
	switch {
	case p.chosen:
		return fmt.Sprintf("%s of %s", transcript.Count(p.spans.Len()), transcript.Counted(p.path, "row")), nil
	case all:
		return transcript.Counted(sess.SaidCount, "message"), nil
	}
	said, err := s.SaidOnPath(ctx, p.spans, sess.ID)
	return transcript.Extent(sess, said), err
}

// ownRange returns the part of a path with a session's own seqs; 0 is open, and an open beginning includes what a fork
// shares.
func ownRange(path store.Ranges, id session.ID, from, to int64) (own store.Ranges) {
	for _, sp := range path {
		switch {
		case sp.Session == id:
			if sp.From = max(sp.From, from); to > 0 {
				sp.To = min(sp.To, to)
			}
		case from > 0:
			continue
		}
		if sp.From <= sp.To {
			own = append(own, sp)
		}
	}
	return own
}

// cut keeps the messages at the positions from first to last.
func (p *part) cut(first, last int64) {
	p.spans, p.before = p.spans.Between(first, last), p.before+first-1
}

var seqsWritten = pattern.New(`^#?([0-9]*)(?:(\.\.|-)#?([0-9]*))?$`)

// seqRange parses SEQS; 0 is open.
func seqRange(s string) (from, to int64, err error) {
	if s == "" {
		return 0, 0, nil
	}
	m := seqsWritten.FindStringSubmatch(s)
	if m != nil {
		from, _ = strconv.ParseInt(m[1], 10, 64) // 0 if it is open
		if to = from; m[2] != "" {
			to, _ = strconv.ParseInt(m[3], 10, 64)
		}
	}
	if m == nil || m[1] == "" && m[3] == "" || m[1] != "" && from < 1 || m[3] != "" && to < 1 || to != 0 && from > to {
		return 0, 0, usagef("%q is not a message (7) or a range of them (7..12, 7.., ..12); quote a title of several words",
			s)
	}
	return from, to, nil
}

// lastOf returns the last elements of a list, how many are before them, and how a heading counts them.
func lastOf[T any](list []T, last int64, noun string) (kept []T, before int, extent string) {
	extent = transcript.Counted(len(list), noun)
	if last > 0 && int64(len(list)) > last {
		before = len(list) - int(last)
		extent = fmt.Sprintf("last %s of %s", transcript.Count(last), extent)
	}
	return list[before:], before, extent
}

// showPrompts lists what the person asked; last limits them, 0 does not.
func (a *app) showPrompts(ctx context.Context, s *store.Store, sess session.Session, p part, last int64) error {
	prompts, _, err := s.PromptsIn(ctx, p.spans, 1, int(max(1, p.path)))
	if err != nil {
		return err
	}
	prompts, before, extent := lastOf(prompts, last, "prompt")
	if a.flags.json {
		return a.printJSON(api.ListOf(prompts, ""))
	}
	if err := a.showHeading(ctx, s, sess, extent); err != nil {
		return err
	}
	rows := make([][]string, len(prompts))
	for i := range prompts {
		m := &prompts[i]
		rows[i] = []string{
			fmt.Sprint(before + i + 1), m.ID.String(), transcript.Ago(m.CreatedAt.Time, a.now().In(s.Zone())),
			transcript.PromptLine(m, mostOfAPrompt),
		}
	}
	a.printTable([]column{
		{name: "", right: true},
		{name: "message"},
		{name: "when", keep: 1},
		{name: "prompt", least: 20, grow: true},
	}, rows)
	return nil
}

// mostOfAPrompt limits a prompt in a list, in columns.
const mostOfAPrompt = 300

// showMatches lists the messages that have all the words; last limits them, 0 does not.
func (a *app) showMatches(ctx context.Context, s *store.Store, sess session.Session, p part, grep string,
	last int64,
) error {
	words := strings.Fields(strings.ToLower(grep))
	if len(words) == 0 {
		return usagef("--grep needs words")
	}
	var found []session.Message
	if err := eachReadable(ctx, s, p.spans, func(m *session.Message) error {
		text := strings.ToLower(contextText(m))
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
			found = append(found, *m)
		}
		return nil
	}); err != nil {
		return err
	}
	found, _, extent := lastOf(found, last, "matching message")
	if a.flags.json {
		return a.printJSON(api.ListOf(found, ""))
	}
	if err := a.showHeading(ctx, s, sess, extent); err != nil {
		return err
	}
	if len(found) == 0 {
		fmt.Fprintf(a.out, "No message has %s. `sessiond search` finds other forms of words, and other sessions.\n",
			printable(strings.Join(words, " and ")))
	}
	for i := range found {
		m := &found[i]
		fmt.Fprintf(a.out, "%s  %s  %s\n", m.ID, m.Role, a.dim(m.CreatedAt.In(s.Zone()).Format("2006-01-02 15:04")))
		fmt.Fprintln(a.out, a.indented(a.highlight(excerpt(contextText(m), words))))
	}
	return nil
}

// excerpt cuts a text to the surroundings of the first word, and marks the words in it.
func excerpt(text string, words []string) *search.Hit {
	const before, most = 60, 240 // runes
	text = strings.Join(strings.Fields(printable(text)), " ")
	place := regexp.MustCompile("(?i)" + strings.Join(quotedAll(words), "|"))
	if at := place.FindStringIndex(text); at != nil {
		head := []rune(text[:at[0]])
		if len(head) > before {
			text = "…" + string(head[len(head)-before:]) + text[at[0]:]
		}
	}
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	h := search.Hit{Snippet: text}
	for _, at := range place.FindAllStringIndex(text, -1) {
		h.Marks = append(h.Marks, [2]int(at))
	}
	return &h
}

func quotedAll(words []string) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = regexp.QuoteMeta(w)
	}
	return all
}
