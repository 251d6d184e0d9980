package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"sessiond/internal/contextmgr"
	"sessiond/internal/redact"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize"
	"sessiond/internal/tokens"
	"sessiond/internal/touched"

	"github.com/rs/zerolog"
)

// window is that of the model, in tokens: a summary may then have 2,000.
const window = 128000

// rig is the product without its daemon: store, search index, context manager, digest.
type rig struct {
	store    *store.Store
	index    *search.Index
	contexts *contextmgr.Manager
}

func openRig(ctx context.Context, folder string) (*rig, error) {
	r := &rig{}
	reference := tokens.Reference()
	var err error
	r.store, err = store.Open(ctx, filepath.Join(folder, "sessions.db"), store.Options{Log: zerolog.Nop(), Measure: reference.Measure, Touched: touched.Files})
	if err != nil {
		return nil, err
	}
	if r.index, err = search.Open(ctx, filepath.Join(folder, "search.db"), r.store); err != nil {
		return nil, errors.Join(err, r.store.Close())
	}
	r.contexts = contextmgr.New(r.store, contextmgr.Config{
		Digest:    summarize.NewExtractive(reference.Text),
		Models:    func(id string) (session.ModelInfo, bool) { return session.ModelInfo{ID: id, Window: window}, true },
		Counter:   func(family string) contextmgr.Counter { return tokens.ForFamily(tokens.Family(family)) },
		Reference: string(reference.Family()), Recall: lookup{r}, OnSoft: func(session.ID) {}, Now: time.Now,
		Mask: func(text string) string { masked, _ := redact.Mask(text); return masked },
	})
	return r, nil
}

func (r *rig) close() {
	_ = r.index.Close() //nolint:errcheck // the folder is removed
	_ = r.store.Close() //nolint:errcheck // as well
}

// lookup lets the context manager look into the search index, as the daemon does.
type lookup struct{ *rig }

// Recall implements contextmgr.Recall.
func (l lookup) Recall(ctx context.Context, q contextmgr.RecallQuery) (hits []contextmgr.Hit, timedOut bool, err error) {
	kept, err := l.store.MessageByID(ctx, q.Before)
	if err != nil {
		return nil, false, err
	}
	hidden := search.Span{Session: kept.ID.Session, From: 1, Through: kept.ID.Seq - 1}
	found, err := l.index.Recall(ctx, search.RecallQuery{Texts: []string{q.Text}, Within: []search.Span{hidden}, MinRare: 1, MaxHits: q.Limit, Time: time.Second})
	if err != nil {
		return nil, false, err
	}
	for _, f := range found.Hits {
		hit := contextmgr.Hit{Score: f.Score}
		if hit.Message, err = l.store.Message(ctx, f.Ref); err != nil {
			return nil, false, err
		}
		before, after, err := l.index.Neighbours(ctx, &hit.Message, 1)
		if err != nil {
			return nil, false, err
		}
		for _, m := range append(before, after...) {
			if m.ID.Seq <= hidden.Through {
				hit.Neighbours = append(hit.Neighbours, m)
			}
		}
		hits = append(hits, hit)
	}
	return hits, !found.Complete, nil
}

// talk is a conversation to be compacted.
type talk struct {
	name      string
	directory string
	messages  []session.Message
	labelled  []fact // by hand; none: sampled by rule
	own       bool   // it comes with the program
}

// leastTalk is how long a transcript must be, in messages, to be compacted five times.
const leastTalk = 40

// sessions gives the conversations that were imported, as plain messages.
func (r *rig) sessions(ctx context.Context) ([]talk, error) {
	var talks []talk
	all, _, err := r.store.Sessions(ctx, store.Filter{}, store.Page{Limit: 1000})
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.HeadID == nil || s.Source == "" {
			continue
		}
		path, err := r.store.Path(ctx, *s.HeadID, 0)
		if err != nil {
			return nil, err
		}
		t := talk{name: string(s.Source) + " " + s.Title, directory: s.Directory}
		for i := range path {
			if m, ok := again(&path[i]); ok {
				t.messages = append(t.messages, m)
			}
		}
		if len(t.messages) >= leastTalk {
			talks = append(talks, t)
		}
	}
	return talks, nil
}

// again gives a message as a caller would append it.
func again(m *session.Message) (session.Message, bool) {
	if m.Kind != session.KindMessage || !m.InContext || m.Role == session.System {
		return session.Message{}, false
	}
	out := session.Message{Kind: m.Kind, Role: m.Role, Origin: m.Origin, Finish: m.Finish, InContext: true, Display: true}
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case session.PartText, session.PartToolCall, session.PartToolResult:
			out.Parts = append(out.Parts, session.Part{Kind: p.Kind, Text: p.Content(), ToolName: p.ToolName, CallID: p.CallID, Arguments: p.Arguments, IsError: p.IsError})
		}
	}
	return out, len(out.Parts) > 0
}

// compactions is how often a conversation is compacted; it is asked about after some of them.
const compactions = 5

func asks(after int) bool { return after == 1 || after == 2 || after == compactions }

// measure brings a conversation in in as many pieces as it is compacted, and asks for the
// facts of the first.
func (r *rig) measure(ctx context.Context, t talk) (*tally, error) {
	out := newTally(t.name)
	out.talks = 1
	sess, err := r.store.CreateSession(ctx, store.NewSession{Model: "m", Directory: t.directory})
	if err != nil {
		return nil, err
	}
	var head *session.MessageRef
	facts, told := t.labelled, 0
	for n := 1; n <= compactions; n++ {
		upto := len(t.messages) * n / compactions
		piece := t.messages[told:upto]
		added, err := r.store.Append(ctx, store.Append{Session: sess.ID, Messages: piece, Parent: head})
		if err != nil {
			return nil, err
		}
		told, head = upto, added.Head
		if n == 1 && facts == nil {
			facts = factsOf(piece)
		}
		keep, none := int64(1500), int64(0)
		c, _, err := r.contexts.Compact(ctx, sess.ID, contextmgr.CompactInput{
			KeepTokens: &keep, Strategy: session.StrategySummarize, Budget: contextmgr.Budget{CloseCalls: true, Settings: contextmgr.Settings{KeepRecentMessages: &none}},
		})
		if err != nil {
			return nil, err
		}
		if _, err := r.index.CatchUp(ctx); err != nil {
			return nil, fmt.Errorf("index: %w", err)
		}
		if err := r.compareFiles(ctx, t, &c, out); err != nil {
			return nil, err
		}
		if !asks(n) {
			continue
		}
		for _, f := range facts {
			got, err := r.ask(ctx, sess.ID, head, f)
			if err != nil {
				return nil, err
			}
			out.note(n, f, got)
		}
	}
	return out, nil
}

// compareFiles looks for the files of the hidden messages in a record's details.
func (r *rig) compareFiles(ctx context.Context, t talk, c *session.Compaction, out *tally) error {
	if c.Status != session.StatusDone || c.FirstKeptID == nil {
		return nil
	}
	kept, err := r.store.MessageByID(ctx, *c.FirstKeptID)
	if err != nil || kept.ParentID == nil {
		return err
	}
	hidden, err := r.store.Path(ctx, *kept.ParentID, 0)
	if err != nil {
		return err
	}
	var d session.CompactionDetails
	if err := unmarshal(c.Details, &d); err != nil {
		return err
	}
	listed := map[string]bool{}
	for _, f := range append(d.ReadFiles, d.ModifiedFiles...) {
		listed[f] = true
	}
	for _, f := range filesOf(hidden, t.directory) {
		out.files++
		if listed[f] {
			out.listed++
		}
	}
	return nil
}

// found tells in which contexts a fact is.
type found [4]bool

// The ways of making room that are compared.
const (
	truncated = iota
	digested
	indexed
	recalled
)

// ask asks for a fact on a branch of its own and looks where it is.
func (r *rig) ask(ctx context.Context, id session.ID, head *session.MessageRef, f fact) (found, error) {
	var got found
	question := session.Message{Kind: session.KindMessage, Role: session.User, Origin: session.Person, InContext: true, Display: true, Parts: []session.Part{session.TextPart(f.asked + "?")}}
	if _, err := r.store.Append(ctx, store.Append{Session: id, Parent: head, Messages: []session.Message{question}}); err != nil {
		return got, err
	}
	v, err := r.contexts.Assemble(ctx, id, contextmgr.Budget{CloseCalls: true})
	if err != nil {
		return got, err
	}
	summary := ""
	kinds := map[int]string{}
	for _, p := range v.Provenance {
		if p.Message >= 0 && kinds[p.Message] == "" {
			kinds[p.Message] = p.Kind
		}
	}
	last := len(v.Messages) - 1
	for i := range v.Messages {
		text := v.Messages[i].Text()
		for k := range v.Messages[i].Parts {
			text += "\n" + v.Messages[i].Parts[k].Arguments
		}
		switch {
		case kinds[i] == contextmgr.ItemSummary:
			summary = text
		case i == last: // the question itself and what was recalled for it
			parts := v.Messages[i].Parts
			for k := 1; k < len(parts); k++ {
				got[recalled] = got[recalled] || f.in(parts[k].Text)
			}
		default:
			got[truncated] = got[truncated] || f.in(text)
		}
	}
	body, index, _ := strings.Cut(summary, "## Index")
	got[digested] = got[truncated] || f.in(body)
	got[indexed] = got[digested] || f.in(index)
	got[recalled] = got[recalled] || got[indexed]
	return got, nil
}

// in tells whether a text holds the fact.
func (f *fact) in(text string) bool {
	if strings.Contains(text, f.text) {
		return true
	}
	return strings.Contains(strings.Join(strings.Fields(text), " "), f.text)
}
