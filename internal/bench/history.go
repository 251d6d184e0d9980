package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/tokens"
	"sessiond/internal/touched"
)

// history is a generated database. Half of its messages are one long conversation, a quarter
// is one whose context fills a window, the rest are small ones.
type history struct {
	db   string // path of sessions.db
	size int    // messages in all

	// long ends in an overlay and keptShort messages after it. Its last message, a person's,
	// asks for what the overlay hides.
	long session.ID
	// wide ends in an overlay and as many large messages as fill a window of 128,000 tokens.
	wide session.ID
}

const (
	keptShort = 52 // a little more than 50, so that they begin with a question
	keptWide  = 240
	wideWords = 350 // of one large message; 240 of them have about 90,000 tokens
	smallSize = 200 // messages of a small session
	batchSize = 2000
	// question is what a person asks at the end of the long session.
	question = "What did the " + rareWord + " of " + knownWord + " cost?"

	hundred = 100_000 // sessions in the database that is listed
)

// options are those of a store in production.
func options() store.Options {
	return store.Options{Measure: tokens.Reference().Measure, Touched: touched.Files, Zone: time.UTC}
}

// history gives the database with so many messages, made when it is not there yet.
func (b *bench) history(ctx context.Context, size int) (history, error) {
	dir := filepath.Join(b.data, fmt.Sprintf("history-%d", size))
	h := history{db: filepath.Join(dir, "sessions.db"), size: size}
	made, err := b.cached(dir, func(temp string) error { return fill(ctx, filepath.Join(temp, "sessions.db"), size) })
	if err != nil {
		return h, fmt.Errorf("make a history of %d messages: %w", size, err)
	}
	if made > 0 {
		b.say("made a history of %d messages with its search index in %s", size, made.Round(time.Millisecond))
	}
	s, err := store.Open(ctx, h.db, store.Options{ReadOnly: true})
	if err != nil {
		return h, err
	}
	defer s.Close() //nolint:errcheck // read only
	for key, to := range map[string]*session.ID{"long": &h.long, "wide": &h.wide} {
		found, _, err := s.Sessions(ctx, store.Filter{Key: key}, store.Page{Limit: 1})
		if err != nil || len(found) != 1 {
			return h, errors.Join(err, fmt.Errorf("%s holds no session %q: remove it", h.db, key))
		}
		*to = found[0].ID
	}
	return h, nil
}

// cached makes a folder of the data folder once. It gives the time that this took, 0 when it
// was there. What is left of a run that was stopped does not count.
func (b *bench) cached(dir string, fill func(temp string) error) (time.Duration, error) {
	if _, err := os.Stat(dir); err == nil {
		return 0, nil
	}
	temp := dir + ".partial"
	if err := errors.Join(os.RemoveAll(temp), os.MkdirAll(temp, 0o700)); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := fill(temp); err != nil {
		return 0, err
	}
	return time.Since(start), os.Rename(temp, dir)
}

// fill makes a history. The sessions take turns, so that each one's rows are spread over the file.
func fill(ctx context.Context, path string, size int) (err error) {
	s, err := store.Open(ctx, path, options())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	w := &filler{ctx: ctx, store: s, author: newAuthor(1), at: time.Date(2024, 1, 1, 8, 0, 0, 0, time.UTC), every: 2 * 365 * 24 * time.Hour / time.Duration(size)}
	long, err := w.open("long")
	if err != nil {
		return err
	}
	wide, err := w.open("wide")
	if err != nil {
		return err
	}
	w.rareEvery = max(1, size/2/rareIn)
	index, err := search.Open(ctx, filepath.Join(filepath.Dir(path), "search.db"), s)
	if err != nil {
		return err
	}
	indexed := make(chan error, 1)
	written := make(chan struct{})
	go func() { indexed <- follow(ctx, index, written) }()
	err = w.all(long, wide, size)
	close(written)
	return errors.Join(err, <-indexed, index.Close())
}

// follow indexes beside the writer, as the daemon does, until all is written and indexed.
func follow(ctx context.Context, index *search.Index, written <-chan struct{}) error {
	for {
		done := false
		select {
		case <-written:
			done = true
		case <-time.After(200 * time.Millisecond):
		}
		if _, err := index.CatchUp(ctx); err != nil || done {
			return err
		}
	}
}

func (w *filler) all(long, wide session.ID, size int) error {
	for _, line := range w.plan(long, wide, size) {
		if err := w.append(line.id, line.n, line.words); err != nil {
			return err
		}
	}
	if err := w.end(long, question); err != nil {
		return err
	}
	return errors.Join(w.hide(long, keptShort), w.hide(wide, keptWide))
}

// stretch is a run of messages of one session.
type stretch struct {
	id    session.ID // "": a new small one
	n     int
	words int
}

const usualWords = 24 // of one message, on average

func (w *filler) plan(long, wide session.ID, size int) []stretch {
	var all []stretch
	left := map[session.ID]int{long: size/2 - 1, wide: size/4 - keptWide, "": size - size/2 - size/4}
	for left[long] > 0 || left[wide] > 0 || left[""] > 0 {
		for _, step := range []struct {
			id   session.ID
			most int
		}{{long, batchSize}, {wide, batchSize / 2}, {"", smallSize}, {"", smallSize}, {"", smallSize}, {"", smallSize}, {"", smallSize}} {
			if n := min(step.most, left[step.id]); n > 0 {
				all = append(all, stretch{step.id, n, usualWords})
				left[step.id] -= n
			}
		}
	}
	return append(all, stretch{wide, keptWide, wideWords})
}

// filler writes a history.
type filler struct {
	ctx       context.Context
	store     *store.Store
	author    *author
	at        time.Time
	every     time.Duration
	rareEvery int // messages of the long session for one with the rare word
	written   int
}

func (w *filler) open(key string) (session.ID, error) {
	at := session.At(w.at)
	s, err := w.store.CreateSession(w.ctx, store.NewSession{Key: key, Model: "gpt-4o", Provider: "openai", Directory: "/home/me/project", Project: "/home/me/project", CreatedAt: &at})
	return s.ID, err
}

// append adds n messages: rounds of a question, a call, its result and an answer.
func (w *filler) append(id session.ID, n, words int) error {
	long := id != ""
	if !long {
		var err error
		if id, err = w.open(""); err != nil {
			return err
		}
	}
	msgs := make([]session.Message, n)
	for i := range msgs {
		msgs[i] = w.author.message(i, words)
		w.at = w.at.Add(w.every)
		msgs[i].CreatedAt = session.At(w.at)
		if w.written++; long && w.written%w.rareEvery == 0 {
			msgs[i].Parts[0].Text += " The " + rareWord + " costs " + fmt.Sprint(w.written) + " there."
		}
	}
	_, err := w.store.Append(w.ctx, store.Append{Session: id, Messages: msgs})
	return err
}

// end appends a person's question.
func (w *filler) end(id session.ID, text string) error {
	m := textMessage(session.User, session.Person, text)
	m.CreatedAt = session.At(w.at.Add(w.every))
	_, err := w.store.Append(w.ctx, store.Append{Session: id, Messages: []session.Message{m}})
	return err
}

// hide puts an overlay over all but the last kept messages, as a compaction would.
func (w *filler) hide(id session.ID, kept int64) error {
	s, err := w.store.Session(w.ctx, id)
	if err != nil {
		return err
	}
	first, err := w.store.Message(w.ctx, session.MessageRef{Session: id, Seq: s.LastSeq - kept + 1})
	if err != nil {
		return err
	}
	_, err = w.store.AddCompaction(w.ctx, session.Compaction{
		SessionID: id, Strategy: session.StrategySummarize, Trigger: session.TriggerThreshold, Status: session.StatusDone,
		ThroughID: first.ParentID, FirstKeptID: &first.RowID, HiddenTokens: first.PathTokens - first.Tokens,
		Summary: w.author.sentence(1000), SummaryTokens: 2500, TokensBefore: first.PathTokens, TokensAfter: s.ContextTokens - first.PathTokens + 2500,
	})
	return err
}

// message gives the i-th message of a conversation.
func (a *author) message(i, words int) session.Message {
	call := fmt.Sprintf("call_%d", i/4)
	switch i % 4 {
	case 0:
		return textMessage(session.User, session.Person, a.sentence(words))
	case 1:
		m := textMessage(session.Assistant, session.Model, a.sentence(words/4))
		m.Finish = session.FinishToolCalls
		m.Parts = append(m.Parts, session.Part{Kind: session.PartToolCall, ToolName: "read", CallID: call, Arguments: `{"path":"` + a.path() + `"}`})
		return m
	case 2:
		m := textMessage(session.Tool, session.ByTool, "")
		m.Parts = []session.Part{{Kind: session.PartToolResult, CallID: call, Text: a.sentence(2 * words)}}
		return m
	}
	m := textMessage(session.Assistant, session.Model, a.sentence(words))
	m.Finish = session.FinishStop
	return m
}

func textMessage(role session.Role, origin session.Origin, text string) session.Message {
	return session.Message{
		Kind: session.KindMessage, Role: role, Origin: origin, InContext: true, Display: true,
		Parts: []session.Part{session.TextPart(text)},
	}
}
