package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"path/filepath"
	"strings"
	"time"

	"sessiond/internal/contextmgr"
	"sessiond/internal/recall"
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
	pace     *pace
}

func openRig(ctx context.Context, folder string) (*rig, error) {
	r := &rig{pace: &pace{}}
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
		Reference: string(reference.Family()), Recall: watch{recall.Lookup{Index: r.index, Store: r.store}, r.pace}, OnSoft: func(session.ID) {}, Now: time.Now,
		Mask: func(text string) string { masked, _ := redact.Mask(text); return masked },
	})
	return r, nil
}

func (r *rig) close() {
	_ = r.index.Close() //nolint:errcheck // the folder is removed
	_ = r.store.Close() //nolint:errcheck // as well
}

// watch is the daemon's recall, asked twice: as a turn does, within its five milliseconds, to
// see how often that is too short on this machine, and then with time enough, so that the
// figures do not depend on it.
type watch struct {
	recall.Lookup
	*pace
}

// pace is how long recalls took.
type pace struct {
	took   []time.Duration
	cutOff int
}

// turnWaits is how long a turn waits for a recall.
const turnWaits = 5 * time.Millisecond

// Recall implements contextmgr.Recall.
func (w watch) Recall(ctx context.Context, q contextmgr.RecallQuery) ([]contextmgr.Hit, bool, error) {
	hurried := q
	hurried.Budget = turnWaits
	start := time.Now()
	_, timedOut, err := w.Lookup.Recall(ctx, hurried)
	if err != nil {
		return nil, false, err
	}
	w.took = append(w.took, time.Since(start))
	if timedOut {
		w.cutOff++
	}
	q.Budget = time.Minute
	return w.Lookup.Recall(ctx, q)
}

// talk is a conversation to be compacted.
type talk struct {
	name      string
	directory string
	messages  []session.Message
	labelled  []fact // by hand; none: sampled by rule
	language  string // of one that comes with the program
	held      bool   // not looked at while the product is tuned
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
			t.held = heldOut(&t.messages[0])
			talks = append(talks, t)
		}
	}
	return talks, nil
}

// heldOut chooses half of the transcripts by how they begin.
func heldOut(first *session.Message) bool {
	h := fnv.New32a()
	_, _ = io.WriteString(h, first.Text())
	return h.Sum32()%2 == 0
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

// measure brings a conversation in in as many pieces as it is compacted, and asks behind some
// of them for what was said until then.
func (r *rig) measure(ctx context.Context, t talk) (*tally, error) {
	out := newTally(t.name)
	out.talks = 1
	sess, err := r.store.CreateSession(ctx, store.NewSession{Model: "m", Directory: t.directory})
	if err != nil {
		return nil, err
	}
	facts := t.labelled
	if facts == nil {
		facts = factsOf(t.messages, len(t.messages)/compactions)
	}
	var head *session.MessageRef
	told := 0
	for n := 1; n <= compactions; n++ {
		upto := len(t.messages) * n / compactions
		added, err := r.store.Append(ctx, store.Append{Session: sess.ID, Messages: t.messages[told:upto], Parent: head})
		if err != nil {
			return nil, err
		}
		told, head = upto, added.Head
		if err := r.compact(ctx, sess.ID, &t, out); err != nil {
			return nil, err
		}
		if !asks(n) {
			continue
		}
		for _, f := range facts {
			if f.told >= told {
				continue
			}
			f.first = f.told < len(t.messages)/compactions
			got, err := r.ask(ctx, sess.ID, head, &f, f.asked)
			if err != nil {
				return nil, err
			}
			out.note(n, &f, got)
			if f.otherwise == "" {
				continue
			}
			if got, err = r.ask(ctx, sess.ID, head, &f, f.otherwise); err != nil {
				return nil, err
			}
			out.noteOtherwise(n, &f, got)
		}
	}
	return out, nil
}

// compact hides all but about 1,500 tokens.
func (r *rig) compact(ctx context.Context, id session.ID, t *talk, out *tally) error {
	keep, none := int64(1500), int64(0)
	c, _, err := r.contexts.Compact(ctx, id, contextmgr.CompactInput{
		KeepTokens: &keep, Strategy: session.StrategySummarize, Budget: contextmgr.Budget{CloseCalls: true, Settings: contextmgr.Settings{KeepRecentMessages: &none}},
	})
	if err != nil {
		return err
	}
	if _, err := r.index.CatchUp(ctx); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	return r.compareFiles(ctx, t, &c, out)
}

// compareFiles looks for the files of the hidden messages in a record's details.
func (r *rig) compareFiles(ctx context.Context, t *talk, c *session.Compaction, out *tally) error {
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
func (r *rig) ask(ctx context.Context, id session.ID, head *session.MessageRef, f *fact, question string) (found, error) {
	var got found
	asked := session.Message{Kind: session.KindMessage, Role: session.User, Origin: session.Person, InContext: true, Display: true, Parts: []session.Part{session.TextPart(strings.TrimRight(question, "?？") + "?")}}
	if _, err := r.store.Append(ctx, store.Append{Session: id, Parent: head, Messages: []session.Message{asked}}); err != nil {
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
