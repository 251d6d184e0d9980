package search

import (
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// Only the last word may be a short beginning: FTS5 reads a large part of the index for each.
func TestShortBeginningsCountOnlyAtTheEnd(t *testing.T) {
	for text, want := range map[string]string{
		"a* b* c*":         "..c",
		"pla* b* gard*":    "p.g",
		"a*":               "a",
		"be* project:x":    "b",
		"計* 画*":            "計画",
		"a* -b* garden":    "...",
		"go* \"a phrase\"": "..",
	} {
		got := ""
		for _, term := range parse(text).terms {
			if term.prefix {
				got += string([]rune(term.norm.Text)[:1])
			} else {
				got += "."
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// A search that meets its limit of time fails with advice, or returns what it found and says so.
func TestSearchEndsAtItsLimitOfTime(t *testing.T) {
	src := newFakeStore()
	for range 50 {
		src.add(first, session.User, "needle in a haystack")
	}
	ix := openIndex(t, src)
	catchUp(t, ix)
	for _, group := range []Group{GroupMessage, GroupSession} {
		r, err := ix.Search(t.Context(), Query{Text: "needle", Group: group, Time: time.Nanosecond})
		if !r.Stopped && (session.CodeOf(err) != session.Invalid || !strings.Contains(err.Error(), "narrow it")) {
			t.Errorf("%s: %+v, %v", group, r, err)
		}
	}
	if r := search(t, ix, Query{Text: "needle"}); r.Stopped || len(r.Hits) == 0 {
		t.Errorf("%+v", r)
	}
}

// Messages beside a hit are short, however long they are.
func TestNeighboursAreShort(t *testing.T) {
	src := newFakeStore()
	long := strings.Repeat("wörter ", 100_000)
	src.add(first, session.User, long)
	src.add(first, session.Assistant, "needle")
	src.add(first, session.User, long)
	ix := openIndex(t, src)
	catchUp(t, ix)
	h := search(t, ix, Query{Text: "needle", Expand: 1}).Hits[0]
	testkit.Equal(t, 1, len(h.Before))
	testkit.Equal(t, 1, len(h.After))
	for _, m := range append(h.Before, h.After...) {
		if p := m.Parts[0]; len(p.Text) > neighbourHead.Text || p.Cut+int64(len(p.Text)) != int64(len(long)) ||
			!strings.HasPrefix(long, p.Text) {
			t.Errorf("%d bytes, %d cut of %d", len(p.Text), p.Cut, len(long))
		}
	}
}
