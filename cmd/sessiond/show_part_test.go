package main

import (
	"fmt"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

func TestPartsOfAPath(t *testing.T) {
	t.Parallel()
	// A fork "b" that shares 1 to 3 and 5 to 6 of "a", and left its own 2 behind.
	spans := store.Ranges{
		{Session: "a", From: 1, To: 3},
		{Session: "a", From: 5, To: 6},
		{Session: "b", From: 1, To: 1},
		{Session: "b", From: 3, To: 6},
	}
	for _, c := range []struct {
		from, to int64
		want     string
	}{
		{0, 0, "a1-3 a5-6 b1-1 b3-6"},
		{3, 0, "b3-6"},
		{2, 0, "b3-6"},
		{4, 5, "b4-5"},
		{0, 1, "a1-3 a5-6 b1-1"},
		{1, 3, "b1-1 b3-3"},
		{2, 2, ""},
		{7, 0, ""},
	} {
		if got := spanText(ownRange(spans, "b", c.from, c.to)); got != c.want {
			t.Errorf("%d to %d: %q, want %q", c.from, c.to, got, c.want)
		}
	}
	for n, want := range map[int64]string{
		1: "b6-6", 4: "b3-6", 5: "b1-1 b3-6", 6: "a6-6 b1-1 b3-6",
		99: "a1-3 a5-6 b1-1 b3-6",
	} {
		p := part{spans: spans, path: spans.Len()}
		p.cut(max(1, p.path-n+1), p.path)
		if got := spanText(p.spans); got != want {
			t.Errorf("the last %d: %q, want %q", n, got, want)
		}
	}
	for ref, want := range map[session.MessageRef]int64{
		{Session: "a", Seq: 5}: 4, {Session: "b", Seq: 3}: 7,
		{Session: "b", Seq: 2}: 0,
	} {
		if got := spans.Position(ref); got != want {
			t.Errorf("%s is at %d, want %d", ref, got, want)
		}
	}
}

func spanText(spans []store.Span) (s string) {
	for i, sp := range spans {
		if i > 0 {
			s += " "
		}
		s += fmt.Sprintf("%s%d-%d", sp.Session, sp.From, sp.To)
	}
	return s
}

func TestSeqsAreParsed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]int64{
		"": {}, "7": {7, 7}, "#7": {7, 7}, "7-12": {7, 12}, "7..12": {7, 12}, "120..": {120, 0}, "7-": {7, 0},
		"..12": {0, 12}, "-12": {0, 12},
	} {
		from, to, err := seqRange(text)
		if err != nil || from != want[0] || to != want[1] {
			t.Errorf("%q is %d to %d, %v", text, from, to, err)
		}
	}
	for _, text := range []string{"0", "-", "..", "5-2", "0..3", "..0", "x", "1.5", "1...5", "-1-2"} {
		if from, to, err := seqRange(text); err == nil {
			t.Errorf("%q is %d to %d", text, from, to)
		}
	}
}
