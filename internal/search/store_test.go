package search_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit/storetest"
)

// The store is the source that the index is for.
var _ search.Source = (*store.Store)(nil)

func TestSearchOverRealStore(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	st, err := store.Open(ctx, storetest.New(t, filepath.Join(dir, "sessions.db")), store.Options{Zone: time.UTC})
	check(t, err)
	defer func() { check(t, st.Close()) }()
	made, err := st.CreateSession(ctx, store.NewSession{Key: "agent:main:main", Directory: dir})
	check(t, err)
	_, err = st.Append(ctx, store.Append{Session: made.ID, Messages: []session.Message{
		{Role: session.User, Parts: []session.Part{session.TextPart("What do the companies ask for?")}},
		{Role: session.Assistant, Parts: []session.Part{{Kind: session.PartToolCall, CallID: "c1", ToolName: "read", Arguments: `{"path":"internal/prices.go"}`}}},
		{Role: session.Tool, Parts: []session.Part{{Kind: session.PartToolResult, CallID: "c1", Text: "CompanyB: $129 " + strings.Repeat("filler ", 20_000) + "needle"}}},
	}})
	check(t, err)

	ix, err := search.Open(ctx, filepath.Join(dir, "search.db"), st)
	check(t, err)
	defer func() { check(t, ix.Close()) }()
	for _, state := range []string{"tail", "index"} {
		for query, seq := range map[string]int64{"company": 1, "internal/prices.go": 2, "$129": 3, "needle": 3, "CompanyB key:agent:main:main": 3} {
			r, err := ix.Search(ctx, search.Query{Text: query, Expand: 1, Order: search.OrderNewest})
			check(t, err)
			if len(r.Hits) != 1 || r.Hits[0].Seq != seq || r.Hits[0].MessageID != (session.MessageRef{Session: made.ID, Seq: seq}) {
				t.Fatalf("%s: %s found %+v, want message %d", state, query, r.Hits, seq)
			}
			if h := r.Hits[0]; (seq > 1) != (len(h.Before) == 1) || (seq < 3) != (len(h.After) == 1) {
				t.Errorf("%s: %s has %d before and %d after", state, query, len(h.Before), len(h.After))
			}
		}
		_, err := ix.CatchUp(ctx)
		check(t, err)
	}
	recalled, err := ix.Recall(ctx, search.RecallQuery{
		Text: "What was CompanyB's price again?", Within: []search.Span{{Session: made.ID, From: 1, Through: 3}}, Time: time.Minute,
	})
	check(t, err)
	if len(recalled.Hits) == 0 || recalled.Hits[0].Ref.Seq != 3 {
		t.Errorf("recalled %+v, want message 3", recalled)
	}
	_, err = st.SetTrash(ctx, made.ID, true, nil, nil)
	check(t, err)
	if r, err := ix.Search(ctx, search.Query{Text: "needle"}); err != nil || len(r.Hits) != 0 {
		t.Errorf("found in the trash: %+v, %v", r.Hits, err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
