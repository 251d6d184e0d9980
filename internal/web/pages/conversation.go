package pages

import (
	"bytes"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

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
	promptWidth = 90 // columns
)

// talk is a conversation's page.
type talk struct {
	*session.Session
	Facts    []string
	Prompts  []prompt
	Family   []relative
	Pieces   template.HTML
	Earlier  string // addresses of what comes before and after; "": nothing does
	Later    string
	Newest   string
	Total    int64
	From, To int64  // positions on the path, counted from 1
	Next     int64  // the position behind the last one
	Model    *seen  // what the model sees; nil: everything is shown
	All      string // addresses of the two views
	Seen     string
	Resume   string
	Said     string // what an action did
}

type prompt struct {
	N    int
	Text string
	At   string
}

// relative is a session that this one comes from, or that came from it.
type relative struct{ Word, ID, Title string }

// place is a range of the path to the head, with the position of its first message.
type place struct {
	store.Span
	at int64
}

func (p *Pages) conversation(w http.ResponseWriter, r *http.Request) error {
	ctx, q := r.Context(), r.URL.Query()
	sess, err := p.Store.Session(ctx, session.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	t := talk{Session: &sess, Said: q.Get("said")}
	path, err := p.pathOf(ctx, &sess, &t)
	if err != nil {
		return err
	}
	if q.Get("view") == "model" {
		if t.Model, err = p.seenBy(ctx, &sess, q.Get("plan") != ""); err != nil {
			return err
		}
	}
	from, err := p.begin(ctx, q, &t, path)
	if err != nil {
		return err
	}
	t.From, t.To = from, min(from+windowSize-1, t.Total)
	t.Next = max(t.To, t.From-1) + 1
	if err := p.renderPieces(ctx, &sess, &t, path, r); err != nil {
		return err
	}
	base := "/s/" + string(sess.ID)
	t.All, t.Seen = address(base, nil), base+"?view=model"
	if t.From > 1 {
		t.Earlier = address(base, q, "from", strconv.FormatInt(max(1, t.From-windowSize), 10), "at", "", "said", "")
	}
	if t.To < t.Total {
		t.Later = address(base, q, "from", strconv.FormatInt(t.To+1, 10), "at", "", "said", "")
		t.Newest = address(base, q, "from", strconv.FormatInt(max(1, t.Total-beforeAsked), 10), "at", "", "said", "")
	}
	if !isFragment(r) {
		if err := p.describe(ctx, &sess, &t, path); err != nil {
			return err
		}
	}
	return p.show(w, r, "conversation", frame{Title: titleOf(&sess), Body: t})
}

// pathOf returns the ranges of the path to the head, oldest first, and counts their messages.
func (p *Pages) pathOf(ctx context.Context, sess *session.Session, t *talk) ([]place, error) {
	if sess.HeadID == nil {
		return nil, nil
	}
	spans, err := p.Store.Spans(ctx, *sess.HeadID)
	if err != nil {
		return nil, err
	}
	path := make([]place, 0, len(spans))
	for _, s := range slices.Backward(spans) {
		path = append(path, place{s, t.Total + 1})
		t.Total += s.To - s.From + 1
	}
	return path, nil
}

// begin returns the position from which messages are shown. Codes: Invalid.
func (p *Pages) begin(ctx context.Context, q url.Values, t *talk, path []place) (int64, error) {
	if from := q.Get("from"); from != "" {
		n, err := strconv.ParseInt(from, 10, 64)
		if err != nil || n < 1 {
			return 0, session.Errorf(session.Invalid, "from=%.40s is not a position in the conversation: it is counted from 1", from)
		}
		return n, nil // behind the end there is nothing yet
	}
	asked := session.MessageRef{}
	if at := q.Get("at"); at != "" {
		var err error
		if asked, err = refIn(t.ID, at); err != nil {
			return 0, err
		}
	} else if t.Model != nil {
		asked = t.Model.firstKept
	}
	if asked.Seq == 0 {
		return 1, nil
	}
	for _, s := range path {
		if asked.Session == s.Session && s.From <= asked.Seq && asked.Seq <= s.To {
			return max(1, s.at+asked.Seq-s.From-beforeAsked), nil
		}
	}
	if _, err := p.Store.TreeMessage(ctx, t.ID, asked); err != nil {
		return 0, err
	}
	return 0, session.Errorf(session.NotFound, "message %s lies on another branch of %s: `sessiond show %s --tree` draws them", asked, t.ID, t.ID)
}

// refIn parses a message's name: 27 is one of the session, 20260112_001.27 of any. Codes: Invalid.
func refIn(id session.ID, name string) (session.MessageRef, error) {
	if seq, err := strconv.ParseInt(name, 10, 64); err == nil && seq > 0 {
		return session.MessageRef{Session: id, Seq: seq}, nil
	}
	return session.ParseRef(name)
}

// renderPieces renders the messages of the window.
func (p *Pages) renderPieces(ctx context.Context, sess *session.Session, t *talk, path []place, r *http.Request) error {
	compactions, err := p.Store.Compactions(ctx, sess.ID)
	if err != nil {
		return err
	}
	links, err := p.Store.Hanging(ctx, sess.ID, mostLinks)
	if err != nil {
		return err
	}
	inWindow := map[int64]bool{} // rows
	var b bytes.Buffer
	pieces := transcript.NewPieces(&b, p.Zone)
	pieces.Own, pieces.Sessions = sess.ID, "/s/"
	form := p.Guard.FormToken(r)
	pieces.Cut = func(c *session.Compaction) template.HTML { return p.offers(sess, c, form) }
	var items transcript.Writer = transcript.Mention(pieces, links)
	if t.Model != nil {
		pieces.Mark = p.mark(t.Model, sess.ID, form)
		items = &interleaved{Writer: items, pieces: pieces, seen: t.Model}
	}
	var msgs []session.Message
	for _, s := range spansIn(path, t.From, t.To) {
		if err := p.Store.EachInRange(ctx, s.Session, s.From, s.To, func(m *session.Message) error {
			msgs = append(msgs, *m)
			inWindow[m.RowID] = true
			return nil
		}); err != nil {
			return err
		}
	}
	compactions = slices.DeleteFunc(compactions, func(c session.Compaction) bool { return c.ThroughID == nil || !inWindow[*c.ThroughID] })
	stream := transcript.NewStream(*sess, compactions, items.Item)
	for i := range msgs {
		if i == 0 && t.From > 1 {
			stream.GoesOn(&msgs[0])
		}
		if err := stream.Message(&msgs[i]); err != nil {
			return err
		}
	}
	if err := stream.Close(); err != nil {
		return err
	}
	if err := items.Close(); err != nil {
		return err
	}
	t.Pieces = template.HTML(b.String()) //nolint:gosec // pieces are escaped
	return nil
}

// describe fills what stands around the messages.
func (p *Pages) describe(ctx context.Context, sess *session.Session, t *talk, path []place) error {
	heading := transcript.HeadingOf(sess, t.Total, p.Zone)
	t.Facts = heading.Facts
	if err := p.fillRail(ctx, sess, t, path); err != nil {
		return err
	}
	if own, err := p.Store.Link(ctx, *sess); err != nil {
		return err
	} else if own != nil {
		word := "started by"
		if own.Kind == session.ParentFork {
			word = "forked from"
		}
		t.Family = append(t.Family, relative{word, string(own.Parent), ""})
	}
	links, err := p.Store.Hanging(ctx, sess.ID, 50)
	if err != nil {
		return err
	}
	for _, l := range links {
		word := "fork"
		if l.Kind == session.ParentChild {
			word = "started"
		}
		t.Family = append(t.Family, relative{word, string(l.Session), transcript.OneLine(l.Title, promptWidth)})
	}
	t.Resume = "sessiond resume " + string(sess.ID)
	return nil
}

// fillRail lists the prompts around the messages that are shown.
func (p *Pages) fillRail(ctx context.Context, sess *session.Session, t *talk, path []place) error {
	lowest := max(1, t.From-railReach)
	_, earlier, err := p.Store.PromptsIn(ctx, spansIn(path, 1, lowest-1), 1, 0)
	if err != nil {
		return err
	}
	_, before, err := p.Store.PromptsIn(ctx, spansIn(path, lowest, t.From-1), 1, 0)
	if err != nil {
		return err
	}
	skip := max(0, before-mostPrompts/2)
	prompts, _, err := p.Store.PromptsIn(ctx, spansIn(path, lowest, t.To+railReach), skip+1, mostPrompts)
	if err != nil {
		return err
	}
	for i := range prompts {
		m := &prompts[i]
		t.Prompts = append(t.Prompts, prompt{earlier + skip + i + 1, transcript.OneLine(m.Text(), promptWidth), messageAddress(sess.ID, m.ID)})
	}
	return nil
}

// spansIn returns the ranges of a path between two positions.
func spansIn(path []place, from, to int64) (spans []store.Span) {
	for _, s := range path {
		if lo, hi := max(s.From, s.From+from-s.at), min(s.To, s.From+to-s.at); lo <= hi {
			spans = append(spans, store.Span{Session: s.Session, From: lo, To: hi})
		}
	}
	return spans
}

// offers is what can be done with a compaction.
func (p *Pages) offers(sess *session.Session, c *session.Compaction, form string) template.HTML {
	data := map[string]any{"Session": sess.ID, "ID": c.RowID, "Form": form, "Before": c.TokensBefore, "After": c.TokensAfter}
	switch {
	case c.SessionID != sess.ID:
		return ""
	case sess.CompactionID != nil && *sess.CompactionID == c.RowID:
		data["Undo"] = true
	case c.Undone:
		data["Redo"] = true
	default:
		return ""
	}
	var b strings.Builder
	if err := p.templates.ExecuteTemplate(&b, "offers", data); err != nil {
		return ""
	}
	return template.HTML(b.String()) //nolint:gosec // it was escaped by its own template
}
