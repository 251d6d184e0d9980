package search_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// The store is the source that the index is for.
var _ search.Source = (*store.Store)(nil)

func TestSearchOverRealStore(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	st := testkit.Must(store.Open(ctx, storetest.New(t, filepath.Join(dir, "sessions.db")),
		store.Options{Zone: time.UTC}))(t)
	defer func() { testkit.Check(t, st.Close()) }()
	made := testkit.Must(st.CreateSession(ctx, store.NewSession{Key: "agent:main:main", Directory: dir}))(t)
	testkit.Must(st.Append(ctx, store.Append{Session: made.ID, Messages: []session.Message{
		{Role: session.User, Parts: []session.Part{session.TextPart("What do the companies ask for?")}},
		{Role: session.Assistant, Parts: []session.Part{{
			Kind: session.PartToolCall, CallID: "c1", ToolName: "read",
			Arguments: `{"path":"internal/prices.go"}`,
		}}},
		{Role: session.Tool, Parts: []session.Part{{
			Kind: session.PartToolResult, CallID: "c1",
			Text: "CompanyB: $129 " + strings.Repeat("filler ", 20_000) + "needle",
		}}},
	}}))(t)

	ix := testkit.Must(search.Open(ctx, filepath.Join(dir, "search.db"), st))(t)
	defer func() { testkit.Check(t, ix.Close()) }()
	for _, state := range []string{"tail", "index"} {
		for query, seq := range map[string]int64{
			"company": 1, "internal/prices.go": 2, "$129": 3, "needle": 3,
			"CompanyB key:agent:main:main": 3,
		} {
			r := testkit.Must(ix.Search(ctx, search.Query{Text: query, Expand: 1, Order: search.OrderNewest}))(t)
			if len(r.Hits) != 1 || r.Hits[0].Seq != seq ||
				r.Hits[0].MessageID != (session.MessageRef{Session: made.ID, Seq: seq}) {
				t.Fatalf("%s: %s found %+v, want message %d", state, query, r.Hits, seq)
			}
			if h := r.Hits[0]; (seq > 1) != (len(h.Before) == 1) || (seq < 3) != (len(h.After) == 1) {
				t.Errorf("%s: %s has %d before and %d after", state, query, len(h.Before), len(h.After))
			}
		}
		testkit.Must(ix.CatchUp(ctx))(t)
	}
	recalled := testkit.Must(ix.Recall(ctx, search.RecallQuery{
		Text: "What was CompanyB's price again?", Within: []search.Span{{Session: made.ID, From: 1, Through: 3}},
	}))(t)
	if len(recalled.Hits) == 0 || recalled.Hits[0].Ref.Seq != 3 {
		t.Errorf("recalled %+v, want message 3", recalled)
	}
	testkit.Must(st.SetTrash(ctx, made.ID, true, nil, nil))(t)
	if r, err := ix.Search(ctx, search.Query{Text: "needle"}); err != nil || len(r.Hits) != 0 {
		t.Errorf("found in the trash: %+v, %v", r.Hits, err)
	}
}
