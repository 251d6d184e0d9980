package bench_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// messagesPerSession is the mean length of the many conversations that openSessions writes.
const messagesPerSession = 10

// openSessions returns a database of many short conversations of several programs in 200 projects, one in five a
// sub-agent. With -keep it is made once, in that folder.
func openSessions(tb testing.TB, messages int) *history {
	tb.Helper()
	ctx, dir := tb.Context(), *keptFolder
	if dir == "" {
		dir = tb.TempDir()
	}
	h := &history{path: filepath.Join(dir, "sessions.db")}
	_, err := os.Stat(h.path)
	h.store = testkit.Must(store.Open(ctx, h.path, options()))(tb)
	tb.Cleanup(func() { testkit.Check(tb, h.store.Close()) })
	if err != nil {
		fillSessions(tb, h, messages/messagesPerSession)
	}
	h.index = testkit.Must(search.Open(ctx, filepath.Join(dir, "search.db"), h.store))(tb)
	tb.Cleanup(func() { testkit.Check(tb, h.index.Close()) })
	testkit.Must(h.index.CatchUp(ctx))(tb)
	return h
}

// fillSessions writes sessions whose last message lies within the two years before 2026-11-20.
func fillSessions(tb testing.TB, h *history, n int) {
	tb.Helper()
	ctx := tb.Context()
	newest := time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)
	every := 2 * 365 * 24 * time.Hour / time.Duration(n)
	sources := []session.Source{session.SourceClaudeCode, session.SourceCodex, session.SourcePi, session.SourceOpencode}
	write := func(author *author, i int, parent session.ID) (session.ID, error) {
		at := newest.Add(-every * time.Duration(n-i))
		created := session.At(at)
		in := store.NewSession{
			Title: author.sentence(3 + i%9), TitleSource: "source", Source: sources[i%len(sources)], SourceID: uuid(i), CreatedAt: &created,
			Model: "gpt-4o", Provider: "openai", Directory: fmt.Sprintf("/home/me/project-%d", i*7%200),
		}
		if i%5 == 4 && parent != "" {
			in.ParentID, in.ParentKind, in.Kind = parent, session.ParentChild, "subagent"
		}
		made, err := h.store.CreateSession(ctx, in)
		if err != nil {
			return "", err
		}
		msgs := author.messages(5+author.rng.IntN(messagesPerSession+1), usualWords)
		for k := range msgs {
			msgs[k].CreatedAt = session.At(at.Add(time.Duration(k) * time.Second))
		}
		_, err = h.store.Append(ctx, store.Append{Session: made.ID, Messages: msgs})
		if in.ParentID != "" {
			return parent, err
		}
		return made.ID, err
	}
	const writers = 16 // commits are grouped
	var all sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		all.Go(func() {
			author, parent := newAuthor(uint64(w+1)), session.ID("")
			for i := w; i < n && errs[w] == nil; i += writers {
				parent, errs[w] = write(author, i, parent)
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		testkit.Check(tb, err)
	}
}

func BenchmarkPicker(b *testing.B) {
	openSessions(b, sized(*historySize))
}
