package bench_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/recall"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize/digest"
	"sessiond/internal/testkit"
	"sessiond/internal/tokens"
	"sessiond/internal/usage"
)

// history is a generated database, open as a daemon has it. Half of its messages are one long
// conversation, a quarter one whose context fills a window of 128,000 tokens, the rest small sessions
// of up to 200. Both conversations end in a compaction.
type history struct {
	store      *store.Store
	index      *search.Index
	path       string
	long, wide session.Session
}

const (
	keptLong = 52  // messages of the long conversation that its compaction keeps
	keptWide = 240 // of the wide one
	// question is the last message of the long conversation. What it asks for is hidden.
	question = "What did the " + rareWord + " of " + knownWord + " cost?"
)

func openHistory(tb testing.TB, size int) *history {
	tb.Helper()
	ctx := tb.Context()
	h := &history{path: filepath.Join(tb.TempDir(), "sessions.db")}
	h.store = testkit.Must(store.Open(ctx, h.path, options()))(tb)
	tb.Cleanup(func() { testkit.Check(tb, h.store.Close()) })
	fillHistory(tb, h, size)
	h.openIndex(tb, filepath.Join(filepath.Dir(h.path), "search.db"))
	h.long, h.wide = testkit.Must(h.store.Session(ctx, h.long.ID))(tb), testkit.Must(h.store.Session(ctx, h.wide.ID))(tb)
	return h
}

func (h *history) openIndex(tb testing.TB, path string) {
	tb.Helper()
	h.index = testkit.Must(search.Open(tb.Context(), path, h.store))(tb)
	tb.Cleanup(func() { testkit.Check(tb, h.index.Close()) })
	testkit.Must(h.index.CatchUp(tb.Context()))(tb)
}

// fillHistory appends to the sessions in turn, so that each one's rows are spread over the file.
func fillHistory(tb testing.TB, h *history, size int) {
	tb.Helper()
	ctx, write := tb.Context(), newAuthor(1)
	at, every := time.Date(2024, 1, 1, 8, 0, 0, 0, time.UTC), 2*365*24*time.Hour/time.Duration(size+keptLong+keptWide)
	open := func() session.Session {
		created := session.At(at)
		return testkit.Must(h.store.CreateSession(ctx, store.NewSession{
			Model: "gpt-4o", Provider: "openai",
			Directory: "/home/me/project", CreatedAt: &created,
		}))(tb)
	}
	add := func(id session.ID, msgs []session.Message) {
		for i := range msgs {
			at = at.Add(every)
			msgs[i].CreatedAt = session.At(at)
		}
		testkit.Must(h.store.Append(ctx, store.Append{Session: id, Messages: msgs}))(tb)
	}
	h.long, h.wide = open(), open()
	unit := min(size, 4000)
	rareEvery := max(1, size/2/20)
	for written := 0; written < size; written += unit {
		msgs := write.messages(unit/2, usualWords)
		for i := range msgs {
			if (written/2+i)%rareEvery == 0 {
				msgs[i].Parts[0].Text += fmt.Sprintf(" The %s costs %d there.", rareWord, i)
			}
		}
		add(h.long.ID, msgs)
		add(h.wide.ID, write.messages(unit/4, usualWords))
		for range 5 {
			add(open().ID, write.messages(unit/20, usualWords))
		}
	}
	add(h.long.ID, append(write.messages(keptLong-1, usualWords), textMessage(session.User, session.Person, question)))
	add(h.wide.ID, write.messages(keptWide, 350))
	compact(tb, h.store, h.long.ID, keptLong, write.sentence(1000))
	compact(tb, h.store, h.wide.ID, keptWide, write.sentence(1000))
}

// compact hides all but the last messages behind a summary.
func compact(tb testing.TB, s *store.Store, id session.ID, kept int64, summary string) {
	tb.Helper()
	ctx := tb.Context()
	sess := testkit.Must(s.Session(ctx, id))(tb)
	first := testkit.Must(s.Message(ctx, session.MessageRef{Session: id, Seq: sess.LastSeq - kept + 1}))(tb)
	testkit.Must(s.AddCompaction(ctx, session.Compaction{
		SessionID: id, Strategy: session.StrategySummarize, Trigger: session.TriggerThreshold, Status: session.StatusDone,
		ThroughID: first.ParentID, FirstKeptID: &first.RowID, HiddenTokens: first.PathTokens - first.Tokens,
		Summary: summary, SummaryTokens: 2500, TokensBefore: first.PathTokens,
		TokensAfter: sess.ContextTokens - first.PathTokens + 2500,
	}))(tb)
}

// contexts returns a manager as the daemon has it.
func (h *history) contexts(tb testing.TB) *contextmgr.Manager {
	tb.Helper()
	catalogue := testkit.Must(usage.Load(nil))(tb)
	reference := tokens.Reference()
	return contextmgr.New(h.store, contextmgr.Config{
		Digest: digest.NewExtractive(reference.Text), Models: catalogue.Model,
		Counter:   func(family string) contextmgr.Counter { return tokens.ForFamily(tokens.Family(family)) },
		Dialects:  dialect.Providers{},
		Reference: string(reference.Family()), Recall: recall.Lookup{Index: h.index, Store: h.store},
	})
}

// The benchmarks rest on a history that is whole and whose rare word is where they expect it.
func TestHistory(t *testing.T) {
	h := openHistory(t, 1000)
	for _, c := range testkit.Must(h.store.Doctor(t.Context(), false))(t) {
		if !c.OK {
			t.Errorf("doctor: %+v", c)
		}
	}
	r := testkit.Must(h.index.Search(t.Context(), search.Query{Text: rareWord, Limit: 100}))(t)
	if len(r.Hits) < 20 || len(r.Hits) > 25 || r.Pending > 0 {
		t.Errorf("%d hits for the rare word, %d messages not indexed", len(r.Hits), r.Pending)
	}
	for _, s := range []session.Session{h.long, h.wide} {
		if s.CompactionID == nil {
			t.Errorf("session %s has no compaction", s.ID)
		}
	}
}
