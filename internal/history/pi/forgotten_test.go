package pi_test

import (
	"context"
	"os"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

// without is a store from which a session is gone, as if an older backup had been put in its place.
type without struct {
	historytest.Nobody
	h    *house
	gone session.ID
}

func (w without) Session(ctx context.Context, source session.Source, id string) (*session.Session, error) {
	found, err := w.h.Store.SessionBySource(ctx, source, id)
	if err != nil || found.ID == w.gone {
		return nil, nil
	}
	return &found, nil
}

func (w without) SessionByID(ctx context.Context, id session.ID) (*session.Session, error) {
	found, err := w.h.Store.Session(ctx, id)
	if err != nil || found.ID == w.gone {
		return nil, nil
	}
	return &found, nil
}

// A fork whose origin is not here any more is read from its beginning, with what it had shared.
func TestPiForkOfAForgottenSessionIsReadAnew(t *testing.T) {
	h := newHouse(t)
	lines := []string{user("1", "", "one"), user("2", "1", "two")}
	origin := h.Write("2025_origin.jsonl", append([]string{head("origin", "")}, lines...)...)
	fork := h.Write("2026_fork.jsonl", append([]string{head("fork", origin)}, append(lines, user("3", "2", "own"))...)...)
	h.Import(origin, fork)
	if s := h.Session("fork"); s.MessageCount != 1 || h.Talk(s) != "user: one\nuser: two\nuser: own" {
		t.Fatalf("%+v %q", s, h.Talk(s))
	}
	h.Append(fork, user("4", "3", "more")+"\n")
	cursor, err := h.Store.ImportCursor(t.Context(), session.SourcePi, fork)
	if err != nil || cursor == nil {
		t.Fatal(cursor, err)
	}
	info := testkit.Must(os.Stat(fork))(t)
	var keys []string
	found := history.Found{Path: fork, Size: info.Size(), ModifiedAt: info.ModTime()}
	problems, err := h.Source.Read(t.Context(), found, cursor, without{h: h, gone: h.Session("origin").ID}, func(b history.Batch) error {
		for i := range b.Messages {
			if m := &b.Messages[i]; m.ParentSession != "" {
				t.Errorf("%s still hangs on %s", m.ExternalID, m.ParentSession)
			}
			keys = append(keys, b.Messages[i].ExternalID)
		}
		return nil
	})
	if err != nil || len(problems) > 0 || len(keys) != 4 {
		t.Errorf("%v %v %v", keys, problems, err)
	}
}
