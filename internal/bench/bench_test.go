package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

func TestRatiosAreOfTheSameRound(t *testing.T) {
	product, base := series{2, 30, 4}, series{1, 10, 1}
	if got := product.over(base); got[0] != 2 || got[1] != 3 || got[2] != 4 {
		t.Errorf("ratios %v", got)
	}
	if got := product.over(base).median(); got != 3 {
		t.Errorf("median %v", got)
	}
	if got := (series{4, 1, 3, 2}).median(); got != 2.5 {
		t.Errorf("median of an even number: %v", got)
	}
}

func TestRaceTakesTurnsAndDropsTheFirstRound(t *testing.T) {
	var order strings.Builder
	runner := func(name string) variant {
		return variant{name: name, run: func(context.Context, int) error {
			order.WriteString(name)
			return nil
		}}
	}
	times, err := race(t.Context(), 2, 1, runner("A"), runner("B"))
	if err != nil {
		t.Fatal(err)
	}
	if order.String() != "ABABAB" || len(times[0].wall) != 2 || len(times[1].cpu) != 2 {
		t.Errorf("ran %s and counted %d rounds", order.String(), len(times[0].wall))
	}
}

func TestAims(t *testing.T) {
	ms := func(v float64) timing { return timing{wall: series{v * 1e6}, cpu: series{v * 1e6}} }
	busy := timing{wall: series{9e6}, cpu: series{1e6}}
	tests := []struct {
		name    string
		row     row
		aim, is string
	}{
		{"met", row{product: ms(1), aims: []aim{{atMost: 1e6}}}, "≤ 1.00 ms", "yes"},
		{"missed", row{product: ms(2), aims: []aim{{atMost: 1e6}}}, "≤ 1.00 ms", "no"},
		{"missed by the clock alone", row{product: busy, aims: []aim{{atMost: 2e6}}}, "≤ 2.00 ms", "by processor time"},
		{"a ratio", row{product: ms(3), baseline: ms(2), aims: []aim{{ratio: 2}}}, "≤ 2×", "yes"},
		{"one of two missed", row{product: ms(3), baseline: ms(1), aims: []aim{{atMost: 5e6}, {ratio: 2}}}, "≤ 5.00 ms, ≤ 2×", "no"},
		{"a rate", row{product: ms(0.1), unit: rate, aims: []aim{{atLeast: 7000}}}, "≥ 7000/s", "yes"},
		{"a rate is of the clock", row{product: busy, unit: rate, aims: []aim{{atLeast: 500}}}, "≥ 500/s", "no"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cells := tt.row.cells()
			if cells[5] != tt.aim || cells[6] != tt.is {
				t.Errorf("aim %q is met: %q; want %q, %q", cells[5], cells[6], tt.aim, tt.is)
			}
		})
	}
}

func TestHistoryIsWhatTheMeasurementsExpect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	if err := fill(t.Context(), path, 1000); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), path, options())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test is over
	checks, err := s.Doctor(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		if !c.OK {
			t.Errorf("doctor: %+v", c)
		}
	}
	for key, kept := range map[string]int64{"long": keptShort, "wide": keptWide} {
		found, _, err := s.Sessions(t.Context(), store.Filter{Key: key}, store.Page{})
		if err != nil || len(found) != 1 || found[0].CompactionID == nil {
			t.Fatalf("session %q: %v, %v", key, found, err)
		}
		first, err := s.Message(t.Context(), session.MessageRef{Session: found[0].ID, Seq: found[0].LastSeq - kept + 1})
		if err != nil || first.Role != session.User {
			t.Errorf("what %q keeps begins with %s, %v", key, first.Role, err)
		}
	}
	index, err := search.Open(t.Context(), filepath.Join(filepath.Dir(path), "search.db"), s)
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close() //nolint:errcheck // the test is over
	r, err := index.Search(t.Context(), search.Query{Text: rareWord, Limit: 100})
	if err != nil || r.Pending > 0 || len(r.Hits) < rareIn/2 || len(r.Hits) > 2*rareIn {
		t.Errorf("the rare word: %d hits, %d not indexed, %v", len(r.Hits), r.Pending, err)
	}
}

func TestCommandLine(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--data", t.TempDir(), "nonsense"}, &out); err == nil || !strings.Contains(err.Error(), "append") {
		t.Errorf("an unknown measurement: %v", err)
	}
	out.Reset()
	if err := run(t.Context(), []string{"--data", t.TempDir(), "--quick", "--rounds", "1", "append"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"SQLite 3.", time.Now().UTC().Format("2006-01-02"), "append in process, 16 writers"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
}
