package pages

import (
	"cmp"
	"context"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/find"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

const (
	windowSize  = 150  // messages of a piece of a conversation
	beforeAsked = 20   // messages before the one that is asked for
	mostPrompts = 300  // in the rail
	railReach   = 5000 // messages before and after the shown ones whose prompts are in the rail
	mostLinks   = 1000
	mostFamily  = 50 // sessions that are named above a conversation
	promptWidth = 90 // columns
)

// talk is a conversation's page.
type talk struct {
	*session.Session
	Facts    []string
	Prompts  []prompt
	Family   []relative
	Branch   string // the end of the branch that is shown; "": the current one
	Earlier  string // addresses of what comes before and after; "": nothing does
	Later    string
	Newest   string
	Total    int64
	From, To int64  // positions on the path, counted from 1
	Next     int64  // the position from which what arrives is shown; it replaces the pieces behind the edge
	Live     bool   // what arrives is shown
	Model    *seen  // what the model sees; nil: everything is shown
	All      string // addresses of the two views
	Seen     string
	Resume   string

	Find  string // what is looked for in the session; "": nothing is
	Hits  []hit
	Notes []string  // what was not found
	Files string    // address of the view of files
	Older *relative // the sessions of the project before and after; nil: none
	Newer *relative

	Doing     *doing   // who acts now; nil: that is not known
	Limit     string   // until when its program answers nothing; "": it answers
	Elsewhere string   // the command that continues it in another program
	Others    []string // such commands for each program
	Said      string   // what an action did
	Marks     marksOf

	links  []session.Link // its forks and children
	own    int64          // messages on the path that are the session's own
	pieces func(w io.Writer) error
}

// Pieces marks the place of the messages in the page: show writes them there, as they are rendered.
func (t *talk) Pieces() template.HTML { return piecesMark }

const piecesMark = "<!--pieces-->"

type prompt struct {
	N      int
	Text   string
	At     string
	Weight string // tokens until the next prompt, and what they cost
}

// hit is a message that has what one looks for.
type hit struct {
	Seq     int64
	At, Who string
	Snippet template.HTML
}

// relative is a session that this one comes from, or that came from it, or a message of another branch.
type relative struct{ Word, Address, Title string }

func (p *Pages) conversation(w http.ResponseWriter, r *http.Request) error {
	ctx, q := r.Context(), r.URL.Query()
	sess, err := p.Store.Session(ctx, session.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	q.Del("in") // which a link does not keep
	t := talk{Session: &sess}
	path, err := p.pathOf(ctx, &sess, &t, q.Get("branch"))
	if err != nil {
		return err
	}
	if q.Get("view") == "model" && t.Branch == "" {
		if t.Model, err = p.seenBy(ctx, &sess, q.Get("plan") != ""); err != nil {
			return err
		}
	}
	from, branch, err := p.begin(ctx, q, &t, path)
	if err != nil {
		return err
	}
	base := "/s/" + string(sess.ID)
	if branch != "" {
		http.Redirect(w, r, address(base, q, "branch", branch, "view", ""), http.StatusSeeOther)
		return nil
	}
	t.From, t.To = from, min(from+windowSize-1, t.Total)
	t.Next = max(t.To, t.From-1) + 1
	t.All, t.Seen, t.Files = address(base, url.Values{}, "branch", t.Branch), base+"?view=model", base+"/files"
	if t.From > 1 {
		t.Earlier = address(base, q, "from", strconv.FormatInt(max(1, t.From-windowSize), 10), "at", "")
	}
	if t.To < t.Total {
		t.Later = address(base, q, "from", strconv.FormatInt(t.To+1, 10), "at", "")
		t.Newest = address(base, q, "from", strconv.FormatInt(max(1, t.Total-beforeAsked), 10), "at", "")
	}
	t.Live = t.Later == "" && t.Branch == "" && t.Model == nil
	if err := p.readPieces(ctx, &sess, &t, path, r); err != nil {
		return err
	}
	if err := p.describe(ctx, &sess, &t, path); err != nil {
		return err
	}
	if t.Live {
		if t.Doing, err = p.doingIn(ctx, &sess); err != nil {
			return err
		}
	}
	if !isFragment(r) { // what arrives replaces none of these
		t.Said = takeSaid(w, r, "/s/"+string(sess.ID))
		if t.Marks, err = p.readMarks(ctx, sess.ID); err != nil {
			return err
		}
		if err := p.findIn(ctx, &sess, &t, q.Get("find")); err != nil {
			return err
		}
	}
	return p.show(w, r, "conversation", frame{Title: titleOf(&sess), Body: &t, pieces: t.pieces})
}

// pathOf returns the ranges of the path to the head, or to the end of another branch, oldest first, and counts their
// messages. Codes: Invalid, NotFound.
func (p *Pages) pathOf(ctx context.Context, sess *session.Session, t *talk, branch string) (store.Ranges, error) {
	head := sess.HeadID
	if branch != "" {
		ref, err := refIn(sess.ID, branch)
		if err != nil {
			return nil, err
		}
		end, err := p.Store.TreeMessage(ctx, sess.ID, ref)
		if err != nil {
			return nil, err
		}
		head, t.Branch = &end.RowID, ref.String()
	}
	if head == nil {
		return nil, nil
	}
	spans, err := p.Store.Spans(ctx, *head)
	if err != nil {
		return nil, err
	}
	slices.Reverse(spans)
	path := store.Ranges(spans)
	t.Total, t.own = path.Len(), path.Own(sess.ID)
	return path, nil
}

// begin returns the position from which messages are shown. If the address asks for a message of another branch, it
// returns the end of that branch instead. Codes: Invalid, NotFound.
func (p *Pages) begin(ctx context.Context, q url.Values, t *talk,
	path store.Ranges,
) (from int64, branch string, err error) {
	if from := q.Get("from"); from != "" {
		n, err := strconv.ParseInt(from, 10, 64)
		if err != nil || n < 1 {
			return 0, "", session.Errorf(session.Invalid,
				"from=%.40s is not a position in the conversation: it is counted from 1", from)
		}
		return n, "", nil // behind the end there is nothing yet
	}
	asked := session.MessageRef{}
	if at := q.Get("at"); at != "" {
		if asked, err = refIn(t.ID, at); err != nil {
			return 0, "", err
		}
	} else if t.Model != nil {
		asked = t.Model.firstKept
	}
	if asked.Seq == 0 {
		return 1, "", nil
	}
	if at := path.Position(asked); at > 0 {
		return max(1, at-beforeAsked), "", nil
	}
	branch, err = p.endOfBranch(ctx, t, asked)
	return 0, branch, err
}

// refIn parses a message's name: 27 is one of the session, 20260112_001.27 of any. Codes: Invalid.
func refIn(id session.ID, name string) (session.MessageRef, error) {
	if seq, err := strconv.ParseInt(name, 10, 64); err == nil && seq > 0 {
		return session.MessageRef{Session: id, Seq: seq}, nil
	}
	return session.ParseRef(name)
}

// Of a message a page shows so much; what is larger it leads to.
const (
	headOfText    = 32 << 10 // bytes of one text
	headOfMessage = 48 << 10 // of all texts together, about
	leastOfText   = 200
	largestImage  = 1 << 20
	mostOfImages  = 16 << 20 // of a page
)

// shorten cuts the parts of a message to what a page shows. images is what is left for images.
func shorten(m *session.Message, images *int) {
	left := headOfMessage
	for i := range m.Parts {
		part := &m.Parts[i]
		part.Shorten(session.Head{Text: max(leastOfText, min(left, headOfText)), Bytes: min(largestImage, *images)})
		left -= len(part.Text) + len(part.Arguments) + len(part.Extra)
		if part.Blob == nil {
			continue
		}
		if part.Kind.HasBytes() {
			*images -= len(part.Blob.Data)
		} else {
			left -= len(part.Blob.Data)
		}
	}
}

// readPieces reads the beginnings of the messages of the window, and sets how they are rendered.
func (p *Pages) readPieces(ctx context.Context, sess *session.Session, t *talk, path store.Ranges,
	r *http.Request,
) error {
	compactions, err := p.Store.Compactions(ctx, sess.ID)
	if err != nil {
		return err
	}
	if t.links, err = p.Store.Hanging(ctx, sess.ID, mostLinks); err != nil {
		return err
	}
	var out lateWriter
	pieces := transcript.NewPieces(&out, p.Zone)
	pieces.Own, pieces.Sessions, pieces.Whole = sess.ID, "/s/", "/s/"+string(sess.ID)+"/whole/"
	pieces.Opens = true
	if in := session.ID(r.URL.Query().Get("in")); in != "" && isFragment(r) {
		pieces.Own = in // places have the names that the page around it gives them
	}
	form := p.Guard.FormToken(r)
	hides := firstHidden(compactions, path)
	pieces.Cut = func(c *session.Compaction) template.HTML { return p.offers(sess, c, form, hides[c.RowID]) }
	mentions := transcript.Mention(pieces, t.links)
	if err := p.mentionBranches(ctx, mentions, t, path); err != nil {
		return err
	}
	var msgs []session.Message
	inWindow := map[int64]bool{} // rows
	images := mostOfImages
	head := session.Head{Text: headOfText, Bytes: largestImage}
	for _, s := range path.Between(t.From, t.To) {
		if err := p.Store.EachHeadInRange(ctx, s.Session, s.From, s.To, head, func(m *session.Message) error {
			shorten(m, &images)
			msgs = append(msgs, *m)
			inWindow[m.RowID] = true
			return nil
		}); err != nil {
			return err
		}
	}
	var items transcript.Writer = mentions
	if t.Live {
		at := unsettled(msgs)
		t.Next = t.From + int64(at)
		items = newEdged(items, pieces, msgs[at:])
	}
	if in := rangeOf(sess.ID, r.URL.Query()); in != nil {
		pieces.Mark = func(item *transcript.Item) (class string, note template.HTML) {
			if item.Ref.Session == in[0].Session && item.Ref.Seq >= in[0].Seq && item.Ref.Seq <= in[1].Seq {
				class = "ranged"
			}
			return class, ""
		}
	}
	if t.Model != nil {
		if err := p.readPins(ctx, t.Model, sess.ID, msgs); err != nil {
			return err
		}
		pieces.Mark = p.mark(t.Model, sess.ID, form)
		items = &interleaved{Writer: items, pieces: pieces, seen: t.Model}
	}
	compactions = slices.DeleteFunc(compactions, func(c session.Compaction) bool {
		return c.ThroughID == nil || !inWindow[*c.ThroughID]
	})
	t.pieces = func(w io.Writer) error {
		out.Writer = w
		stream := transcript.NewStream(*sess, compactions, items.Item)
		for i := range msgs {
			if i == 0 && t.From > 1 {
				stream.GoesOn(&msgs[0])
			}
			if err := stream.Message(&msgs[i]); err != nil {
				return err
			}
		}
		return cmp.Or(stream.Close(), items.Close())
	}
	return nil
}

// rangeOf returns the first and the last message of the range that an address names; nil if it names none.
func rangeOf(id session.ID, q url.Values) *[2]session.MessageRef {
	from, err := refIn(id, q.Get("at"))
	through, err2 := refIn(id, q.Get("through"))
	if err != nil || err2 != nil || from.Session != through.Session || through.Seq < from.Seq {
		return nil
	}
	return &[2]session.MessageRef{from, through}
}

// lateWriter is a writer that is known later.
type lateWriter struct{ io.Writer }

// mostUnsettled is the number of messages at the end of a conversation among which a call still waits for its result.
const mostUnsettled = 50

// unsettled returns the index of the first message whose pieces a later message can change: calls get results, and
// calls and rows of the program at the end share a line with those that follow them.
func unsettled(msgs []session.Message) int {
	at, atEnd := len(msgs), true // atEnd: only calls, results and rows of the program follow
	results := map[int64]int{}   // index of the message with the result, by the row of the call
	resultsByID := map[string]int{}
	for i := len(msgs) - 1; i >= max(0, len(msgs)-mostUnsettled); i-- {
		m := &msgs[i]
		calls := m.Calls()
		for _, result := range m.Results() {
			if resultsByID[result.CallID] = i; result.CallPartID != nil {
				results[*result.CallPartID] = i
			}
		}
		for _, call := range calls {
			result, answered := results[call.RowID]
			if !answered {
				result, answered = resultsByID[call.CallID]
			}
			if !answered && !m.Finish.Failed() || answered && result >= at {
				at = i
			}
		}
		talk := isTalk(m)
		switch {
		case talk && m.Role == session.User && m.Origin == session.Person:
			return at
		case talk && (len(calls) == 0 || m.Text() != ""):
			if atEnd && len(calls) > 0 {
				at = i
			}
			atEnd = false
		case atEnd && m.Role != session.Tool:
			at = i
		}
	}
	return at
}

// isTalk reports whether a message is shown as one: it is no row of the program, and no result beside its call.
func isTalk(m *session.Message) bool {
	switch m.Kind {
	case session.KindMarker, session.KindCustom, session.KindUnknown:
		return false
	}
	return m.Display && m.Talk != session.OfProgram && m.Role != session.Tool
}

// edged writes an edge into a page before the first piece that a later message can change.
type edged struct {
	transcript.Writer
	pieces *transcript.Pieces
	behind map[session.MessageRef]bool
	done   bool
}

func newEdged(items transcript.Writer, pieces *transcript.Pieces, behind []session.Message) *edged {
	e := &edged{Writer: items, pieces: pieces, behind: map[session.MessageRef]bool{}}
	for i := range behind {
		e.behind[behind[i].ID] = true
	}
	return e
}

// Item implements transcript.Writer.
func (e *edged) Item(item *transcript.Item) error {
	if e.behind[item.Ref] {
		e.write()
	}
	return e.Writer.Item(item)
}

// Close implements transcript.Writer.
func (e *edged) Close() error {
	e.write()
	return e.Writer.Close()
}

func (e *edged) write() {
	if !e.done {
		e.done = true
		e.pieces.Edge()
	}
}

// firstHidden returns for each compaction the position of the first message that it newly hides.
func firstHidden(compactions []session.Compaction, path store.Ranges) map[int64]int64 {
	through, first := map[int64]int64{}, map[int64]int64{}
	for i := range compactions {
		if c := &compactions[i]; c.Through != nil {
			through[c.RowID] = path.Position(*c.Through)
		}
	}
	for i := range compactions {
		c := &compactions[i]
		first[c.RowID] = 1
		if c.PreviousID != nil {
			first[c.RowID] = through[*c.PreviousID] + 1
		}
	}
	return first
}

// describe fills what is around the messages.
func (p *Pages) describe(ctx context.Context, sess *session.Session, t *talk, path store.Ranges) error {
	measures, err := p.Store.Measures(ctx, []session.Session{*sess}, p.models)
	if err != nil {
		return err
	}
	said := sess.SaidCount
	if t.own != sess.MessageCount { // some are on other branches
		if said, err = p.Store.SaidOnPath(ctx, path, sess.ID); err != nil {
			return err
		}
	}
	measure := measures[sess.ID]
	t.Facts = transcript.HeadingWith(sess, &measure, said, p.Zone).Facts
	t.Resume = "sessiond resume " + string(sess.ID)
	t.Elsewhere = "sessiond to codex " + string(sess.ID)
	if sess.Source == session.SourceCodex {
		t.Elsewhere = "sessiond to claude-code " + string(sess.ID)
	}
	for _, program := range session.Programs {
		if program.Target && program.Name != sess.Source {
			t.Others = append(t.Others, "sessiond to "+string(program.Name)+" "+string(sess.ID))
		}
	}
	before, after, err := p.Store.Neighbours(ctx, sess)
	if err != nil {
		return err
	}
	t.Older, t.Newer = neighbour("the session before in this project", before),
		neighbour("the session after in this project", after)
	limits, err := p.finder().Limits(ctx)
	if err != nil {
		return err
	}
	for _, l := range limits {
		if l.Source == sess.Source {
			var command string
			t.Limit, command = l.Words(p.Now().In(p.Zone), sess.ID)
			t.Elsewhere = cmp.Or(command, t.Elsewhere)
		}
	}
	if err := p.fillRail(ctx, sess, t, path); err != nil {
		return err
	}
	if own, err := p.Store.Link(ctx, *sess); err != nil {
		return err
	} else if own != nil {
		word, to := "started by", "/s/"+string(own.Parent)
		if own.Kind == session.ParentFork {
			word = "forked from"
		}
		if own.Message != nil {
			to = messageAddress(own.Parent, *own.Message)
		}
		name := string(own.Parent)
		if parent, err := p.Store.Session(ctx, own.Parent); err == nil { // it may be purged, or another owner's
			name = cmp.Or(transcript.OneLine(parent.Title, promptWidth), name)
		}
		t.Family = append(t.Family, relative{word, to, name})
	}
	for _, l := range t.links[:min(len(t.links), mostFamily)] {
		word := "fork"
		if l.Kind == session.ParentChild {
			word = "started"
		}
		t.Family = append(t.Family, relative{
			word, "/s/" + string(l.Session),
			cmp.Or(transcript.OneLine(l.Title, promptWidth), string(l.Session)),
		})
	}
	return p.addGenerations(ctx, sess, t)
}

// addGenerations adds the sessions before and after this one at its routing key.
func (p *Pages) addGenerations(ctx context.Context, sess *session.Session, t *talk) error {
	if sess.Key == "" {
		return nil
	}
	for _, side := range []struct {
		word      string
		ascending bool
	}{{"the session before", false}, {"the session after", true}} {
		_, next, _, err := p.Store.Generations(ctx, sess.Key,
			store.Page{Limit: 1, Cursor: store.CursorAfter(sess), Ascending: side.ascending})
		if err != nil {
			return err
		}
		for i := range next {
			t.Family = append(t.Family, relative{side.word, "/s/" + string(next[i].ID), titleOf(&next[i])})
		}
	}
	return nil
}

// fillRail lists the prompts around the messages that are shown.
func (p *Pages) fillRail(ctx context.Context, sess *session.Session, t *talk, path store.Ranges) error {
	lowest := max(1, t.From-railReach)
	_, earlier, err := p.Store.PromptsIn(ctx, path.Between(1, lowest-1), 1, 0)
	if err != nil {
		return err
	}
	_, before, err := p.Store.PromptsIn(ctx, path.Between(lowest, t.From-1), 1, 0)
	if err != nil {
		return err
	}
	skip := max(0, before-mostPrompts/2)
	prompts, _, err := p.Store.PromptsIn(ctx, path.Between(lowest, t.To+railReach), skip+1, mostPrompts)
	if err != nil {
		return err
	}
	costs := costsAfter(nil, nil)
	if len(prompts) > 0 && t.Total <= mostWeighed {
		calls, err := p.Store.CallCosts(ctx, sess.ID)
		if err != nil {
			return err
		}
		costs = costsAfter(prompts, calls)
	}
	for i := range prompts {
		m := &prompts[i]
		end := sess.TotalTokens
		if i+1 < len(prompts) {
			end = prompts[i+1].PathTokens - prompts[i+1].Tokens
		} else if t.To+railReach < t.Total || t.Branch != "" || m.SessionID != sess.ID || t.own != sess.MessageCount {
			end = 0 // the prompt's end is not here
		}
		t.Prompts = append(t.Prompts, prompt{
			earlier + skip + i + 1, transcript.PromptLine(m, promptWidth),
			messageAddress(sess.ID, m.ID), weight(end-m.PathTokens+m.Tokens, costs[m.RowID]),
		})
	}
	return nil
}

// mostWeighed is the longest conversation, in messages, beside whose prompts costs are written.
const mostWeighed = 20_000

// costsAfter sums up calls by the prompt before them, by its row.
func costsAfter(prompts []session.Message, calls []store.CallCost) map[int64]int64 {
	sums := map[int64]int64{}
	for _, c := range calls {
		at, _ := slices.BinarySearchFunc(prompts, c.Message, func(m session.Message, row int64) int {
			return cmp.Compare(m.RowID, row)
		})
		if at > 0 && c.NanoUSD != nil {
			sums[prompts[at-1].RowID] += *c.NanoUSD
		}
	}
	return sums
}

// weight says what a prompt and what followed it weigh: 12k · $0.30.
func weight(tokens, nanoUSD int64) string {
	words := ""
	if tokens > 0 {
		words = transcript.ShortCount(tokens)
	}
	if nanoUSD > 0 {
		words = strings.TrimPrefix(words+" · "+transcript.Dollars(nanoUSD), " · ")
	}
	return words
}

// neighbour leads to a session; nil where there is none.
func neighbour(word string, s *session.Session) *relative {
	if s == nil {
		return nil
	}
	return &relative{word, "/s/" + string(s.ID), titleOf(s)}
}

// mostFound is how many messages of a session a search lists.
const mostFound = 100

// findIn looks for words in the whole session.
func (p *Pages) findIn(ctx context.Context, sess *session.Session, t *talk, words string) error {
	if t.Find = strings.TrimSpace(words); t.Find == "" {
		return nil
	}
	found, err := p.finder().Search(ctx, find.Request{
		Text: t.Find, Session: string(sess.ID), Group: string(search.GroupMessage), Limit: mostFound,
		AsWritten: true, // of one conversation nobody forgot when it was
	})
	if err != nil {
		return err
	}
	for _, note := range found.Notes(func(word string) string { return "“" + word + "”" }) {
		t.Notes = append(t.Notes, sentence(note))
	}
	for i := range found.Hits {
		h := &found.Hits[i]
		t.Hits = append(t.Hits, hit{
			h.MessageID.Seq, address("/s/"+string(sess.ID), url.Values{}, "at", h.MessageID.String(), "find", t.Find) + "#" +
				anchorIn(sess.ID, h.MessageID), string(h.Role), marked(h),
		})
	}
	slices.SortStableFunc(t.Hits, func(a, b hit) int { return cmp.Compare(a.Seq, b.Seq) })
	return nil
}

// offers is what can be done with a compaction that hides messages from a position on.
func (p *Pages) offers(sess *session.Session, c *session.Compaction, form string, hides int64) template.HTML {
	data := map[string]any{
		"Session": sess.ID, "ID": c.RowID, "Form": form, "Before": c.TokensBefore,
		"After": c.TokensAfter,
	}
	if c.MessageCount > 0 && c.Strategy != session.StrategyPrune {
		data["Hides"] = hides
	}
	if c.SessionID == sess.ID {
		data["Undo"] = sess.CompactionID != nil && *sess.CompactionID == c.RowID
		data["Redo"] = c.Undone
	}
	return p.piece("offers", data)
}
