package pages

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

// seen is the context that the model would get now.
type seen struct {
	Tokens   contextmgr.Tokens
	Bar      []share
	Warnings []string
	Plan     *contextmgr.Preview
	PlanCost string

	firstKept session.MessageRef
	kept      map[session.MessageRef]bool
	before    map[session.MessageRef][]given // what stands before a kept message
	atEnd     []given
	pinned    map[session.MessageRef]bool // of the messages that are shown
}

// share is a kind of content in the context, as a part of the bar.
type share struct {
	Kind   string
	Tokens int64
	X, W   float64 // percent of the window
}

// given is an item of the context that is no message of the conversation.
type given struct {
	Kind    string
	Tokens  int64
	Note    string // where it comes from
	Content string
}

// kinds of the bar, in its order, with the items that belong to them.
var barKinds = []struct {
	name  string
	items []string
}{
	{"system", []string{contextmgr.ItemSystem, contextmgr.ItemTools, contextmgr.ItemInitial}},
	{"summary", []string{contextmgr.ItemSummary, contextmgr.ItemReplaced, contextmgr.ItemWords}},
	{"pinned", []string{contextmgr.ItemPinned, contextmgr.ItemTurnStart, contextmgr.ItemPerson}},
	{"recalled", []string{contextmgr.ItemRecall, contextmgr.ItemVolatile}},
	{"kept", []string{contextmgr.ItemMessage, contextmgr.ItemClosedCall, contextmgr.ItemLead}},
}

// seenBy reads the context of a session, and with plan what a compaction would do.
func (p *Pages) seenBy(ctx context.Context, sess *session.Session, plan bool) (*seen, error) {
	view, err := p.Contexts.Assemble(ctx, sess.ID, contextmgr.Budget{CloseCalls: true})
	if err != nil {
		return nil, err
	}
	s := &seen{
		Tokens: view.Tokens, Warnings: view.Warnings, kept: map[session.MessageRef]bool{},
		before: map[session.MessageRef][]given{},
	}
	sums, waiting := map[string]int64{}, []given(nil)
	for _, item := range view.Provenance {
		sums[item.Kind] += item.Tokens
		if item.Kind == contextmgr.ItemMessage {
			for _, ref := range item.Sources {
				if s.kept[ref] = true; s.firstKept.Seq == 0 {
					s.firstKept = ref
				}
				s.before[ref], waiting = append(s.before[ref], waiting...), nil
			}
			continue
		}
		g := given{Kind: kindName(item.Kind), Tokens: item.Tokens, Note: sourceNote(item)}
		if item.Message >= 0 && item.Message < len(view.Messages) {
			g.Content = view.Messages[item.Message].Text()
		} else if item.Kind == contextmgr.ItemSystem {
			g.Content = view.System
		}
		waiting = append(waiting, g)
	}
	s.atEnd = waiting
	s.fillBar(sums)
	if plan {
		_, preview, err := p.Contexts.Compact(ctx, sess.ID,
			contextmgr.CompactInput{Trigger: session.TriggerManual, DryRun: true})
		if err != nil {
			return nil, err
		}
		s.Plan, s.PlanCost = &preview, "a digest without a model, free"
	}
	return s, nil
}

// fillBar fills the bar. The provider may count more than the items have: its programs add what is not stored.
func (s *seen) fillBar(sums map[string]int64) {
	counted := int64(0)
	for _, tokens := range sums {
		counted += tokens
	}
	window, x := max(s.Tokens.Window, s.Tokens.Total, counted, 1), 0.0
	add := func(kind string, tokens int64) {
		if tokens > 0 {
			w := 100 * float64(tokens) / float64(window)
			s.Bar = append(s.Bar, share{kind, tokens, x, w})
			x += w
		}
	}
	for _, kind := range barKinds {
		sum := int64(0)
		for _, item := range kind.items {
			sum += sums[item]
		}
		add(kind.name, sum)
	}
	add("other", s.Tokens.Total-counted)
	add("free", window-max(s.Tokens.Total, counted))
}

func kindName(kind string) string { return strings.ReplaceAll(kind, "_", " ") }

// sourceNote says which messages an item comes from.
func sourceNote(item contextmgr.Provenance) string {
	var words []string
	if item.Compaction != "" {
		words = append(words, item.Compaction)
	}
	switch n := len(item.Sources); {
	case n == 1:
		words = append(words, "from "+item.Sources[0].String())
	case n > 1:
		words = append(words, fmt.Sprintf("from %d messages, %s to %s", n, item.Sources[0], item.Sources[n-1]))
	}
	return strings.Join(words, ", ")
}

// readPins notes which of some messages are pinned.
func (p *Pages) readPins(ctx context.Context, s *seen, id session.ID, msgs []session.Message) error {
	pins, err := p.Store.Pins(ctx, id)
	if err != nil {
		return err
	}
	s.pinned = map[session.MessageRef]bool{}
	for i := range msgs {
		if slices.Contains(pins, msgs[i].RowID) {
			s.pinned[msgs[i].ID] = true
		}
	}
	return nil
}

// mark greys out what the model does not see, and offers to pin it.
func (p *Pages) mark(s *seen, id session.ID, form string) func(*transcript.Item) (string, template.HTML) {
	return func(item *transcript.Item) (class string, note template.HTML) {
		gone := !s.kept[item.Ref] && !s.pinned[item.Ref]
		if gone {
			class = "gone"
		}
		return class, p.piece("pin", map[string]any{
			"Session": id, "Ref": item.Ref.String(), "Form": form, "Gone": gone, "Pinned": s.pinned[item.Ref],
			"Tokens": item.Tokens,
		})
	}
}

// interleaved puts what the model gets beside the messages into its place.
type interleaved struct {
	transcript.Writer
	pieces *transcript.Pieces
	seen   *seen
}

// Item implements transcript.Writer.
func (i *interleaved) Item(item *transcript.Item) error {
	for _, g := range i.seen.before[item.Ref] {
		i.pieces.Given(g.Kind, transcript.Count(g.Tokens)+" tokens", g.Note, g.Content)
	}
	delete(i.seen.before, item.Ref)
	return i.Writer.Item(item)
}

// Close implements transcript.Writer.
func (i *interleaved) Close() error {
	for _, g := range i.seen.atEnd {
		i.pieces.Given(g.Kind, transcript.Count(g.Tokens)+" tokens", g.Note, g.Content)
	}
	return i.Writer.Close()
}

// act does what a form of a conversation asks for, and shows the conversation again.
func (p *Pages) act(w http.ResponseWriter, r *http.Request) error {
	ctx, id := r.Context(), session.ID(r.PathValue("id"))
	said, to := "", "/s/"+string(id)+"?view=model"
	var err error
	switch r.PathValue("action") {
	case "compact":
		var c session.Compaction
		var plan contextmgr.Preview
		if c, plan, err = p.Contexts.Compact(ctx, id, contextmgr.CompactInput{Trigger: session.TriggerManual}); err == nil {
			said = fmt.Sprintf("%s: the context went from %s to %s tokens.", c.ID, transcript.Count(plan.TokensBefore),
				transcript.Count(plan.TokensAfter))
			if plan.NoGain != "" {
				said = "Nothing was done: " + plan.NoGain + "."
			}
		}
	case "undo", "redo":
		said, err = p.shift(ctx, id, r.PathValue("action"), r.PostFormValue("compaction"))
	case "pin", "unpin":
		var ref session.MessageRef
		if ref, err = refIn(id, r.PostFormValue("message")); err != nil {
			break
		}
		on := r.PathValue("action") == "pin"
		if on {
			err = p.Contexts.CheckPin(ctx, id, ref)
		}
		if err == nil {
			_, err = p.Store.SetMark(ctx, id, ref, store.MarkPin, "", on)
			said, to = ref.String()+" is pinned: every context has it.", to+"&at="+ref.String()+"#"+anchorIn(id, ref)
			if !on {
				said = ref.String() + " is no longer pinned."
			}
		}
	case "tag", "untag", "note", "rename", "star", "unstar", "archive", "unarchive":
		said, to, err = p.markBy(ctx, id, r)
		if session.CodeOf(err) == session.PreconditionFailed {
			return p.showConflict(w, r, id)
		}
	default:
		return session.Errorf(session.NotFound, "a conversation has no action %q", r.PathValue("action"))
	}
	if err != nil {
		return err
	}
	http.SetCookie(w, saidCookie("/s/"+string(id), url.QueryEscape(said), 60))
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// saidCookie hands what an action did to the page that is shown next. In its address, others could write it.
func saidCookie(path, value string, seconds int) *http.Cookie {
	name := "said"
	if path == "/" { // which browsers send to all pages
		name = "did"
	}
	return &http.Cookie{
		Name: name, Value: value, Path: path, MaxAge: seconds, HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
	}
}

// takeSaid returns what the action before did, once.
func takeSaid(w http.ResponseWriter, r *http.Request, path string) string {
	over := saidCookie(path, "", -1)
	c, err := r.Cookie(over.Name)
	if err != nil {
		return ""
	}
	http.SetCookie(w, over)
	said, err := url.QueryUnescape(c.Value)
	if err != nil {
		return ""
	}
	return said
}

func (p *Pages) shift(ctx context.Context, id session.ID, action, compaction string) (said string, err error) {
	row, err := strconv.ParseInt(compaction, 10, 64)
	if err != nil {
		return "", session.Errorf(session.Invalid, "compaction %q is not a number", compaction)
	}
	do, done := p.Contexts.Undo, "undone"
	if action == "redo" {
		do, done = p.Contexts.Redo, "redone"
	}
	sess, err := do(ctx, id, row)
	if err != nil {
		return "", err
	}
	warning, err := p.Contexts.SizeWarning(ctx, id)
	if err != nil {
		return "", err
	}
	said = fmt.Sprintf("%s is %s: the context has about %s tokens.", session.CompactionName(row), done,
		transcript.Count(sess.ContextTokens))
	if warning != "" {
		said += " " + warning
	}
	return said, nil
}
