package sessiond_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	own "sessiond/internal/history/sessiond"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// What belongs to the store and to none of its sessions comes back with an export of everything,
// once, and gives way to what is here.
func TestStoreDataComesBack(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	defer s.Close()
	must := func(err error) {
		t.Helper()
		testkit.Check(t, err)
	}
	talkIn := func(s *store.Store, key string) session.ID {
		t.Helper()
		made, err := s.CreateSession(ctx, store.NewSession{Key: key})
		must(err)
		cost := int64(5)
		_, err = s.Append(ctx, store.Append{
			Session: made.ID,
			Messages: []session.Message{{
				Role: session.User, InContext: true, Display: true,
				Parts: []session.Part{session.TextPart("hello")},
			}},
			Call: &session.Call{Model: "m", InputTokens: 3, CostNanoUSD: &cost},
		})
		must(err)
		return made.ID
	}
	talkIn(s, "agent:main:main")
	must(s.SetKeyLabel(ctx, "agent:main:main", "the main one"))
	must(s.SetCalibration(ctx, store.Calibration{Model: "m", Scale: 1.25, Weight: 500}))
	purge(t, s, talkIn(s, ""))
	at := session.At(time.Date(2026, 2, 11, 9, 0, 1, 0, time.UTC))
	for range 2 { // two calls that say the same are two
		_, err := s.AddCall(ctx, session.Call{
			Model: "m", OutputTokens: 7, Source: "billing", CreatedAt: at,
			Metadata: session.JSON(`{"team":"a"}`),
		})
		must(err)
	}
	_, err := s.AddCall(ctx, session.Call{Model: "m", OutputTokens: 8, ExternalID: "call-1"})
	must(err)
	file := export(t, s, nil)
	for _, want := range []string{
		"purged_days", "session_days", "the main one", `"scale":1.25`, `"external_id":"call-1"`,
		`{"team":"a"}`,
	} {
		if !bytes.Contains(file, []byte(want)) {
			t.Errorf("%s is not in the export:\n%s", want, file)
		}
	}

	there := t.TempDir()
	other := openLater(t, there)
	defer other.Close()
	for range 2 {
		if done := importFile(t, other, there, file, own.Source{}); len(done.Errors) > 0 {
			t.Fatalf("%+v", done)
		}
		if again := export(t, other, nil); !bytes.Equal(again, file) {
			t.Errorf("differs in %s", firstDifference(file, again))
		}
		sound(t, other)
	}
	if next := talkIn(other, ""); next != "20260211_003" {
		t.Errorf("the next session is %s: an id was given again", next)
	}

	// A label that another key has here stays there, and the rest comes in.
	third := t.TempDir()
	last := openLater(t, third)
	defer last.Close()
	talkIn(last, "another")
	must(last.SetKeyLabel(ctx, "another", "the main one"))
	done := importFile(t, last, third, file, own.Source{AsCopy: true})
	if len(done.Errors) != 1 || !strings.Contains(done.Errors[0].Error, `the label "the main one" of key agent:main:main is not imported: key another has it here`) {
		t.Errorf("%+v", done.Errors)
	}
	if c, err := last.Calibration(ctx, "m"); err != nil || c == nil || c.Scale != 1.25 {
		t.Errorf("%+v, %v", c, err)
	}
	sound(t, last)
}
