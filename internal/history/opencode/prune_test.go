package opencode_test

import (
	"fmt"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// call is a reply that called a tool and got its output; marked is when opencode took that out
// of its model's sight, in seconds, 0: it did not.
func call(id string, second, marked int) string {
	at := 1770109200000 + second*1000
	return put(id, second, fmt.Sprintf(`{"role":"assistant","time":{"created":%d,"completed":%d},"finish":"tool-calls"}`, at, at+500), output(id, marked))
}

func output(id string, marked int) string {
	mark := ""
	if marked != 0 {
		mark = fmt.Sprintf(`,"compacted":%d`, 1770109200000+marked*1000)
	}
	return fmt.Sprintf(`{"type":"tool","tool":"read","callID":"call_%s","state":{"status":"completed","input":{},"output":"out of %s %s","time":{"start":1,"end":5%s},
		"attachments":[{"type":"file","mime":"image/png","url":"data:image/png;base64,iVBORw0KGgo="}]}}`, id, id, strings.Repeat("long ", 100), mark)
}

func mark(id string, second int) string {
	return `UPDATE part SET data = ` + quote(output(id, second)) + ` WHERE message_id = ` + quote(id)
}

// summarised is a compaction that keeps the conversation from tail on.
func summarised(id string, second int, tail string) string {
	at := 1770109200000 + second*1000
	return put(id, second, fmt.Sprintf(`{"role":"user","time":{"created":%d}}`, at),
		fmt.Sprintf(`{"type":"compaction","auto":true,"tail_start_id":%q}`, tail)) +
		put(id+"s", second+1, fmt.Sprintf(`{"role":"assistant","parentID":%q,"summary":true,"time":{"created":%d,"completed":%d},"finish":"stop"}`, id, at+1000, at+1500), textPart("what was"))
}

// given shows of a context which outputs are whole and which are hidden.
func (h *house) given(id session.ID) string {
	h.Helper()
	var seen []string
	for _, line := range h.Given(id) {
		switch {
		case strings.Contains(line, "[call_"):
			from := strings.TrimPrefix(line[strings.Index(line, "[call_"):], "[")
			name, rest, _ := strings.Cut(from, ": ")
			state := "whole"
			switch {
			case strings.Contains(rest, "hidden to make room") && !strings.Contains(rest, "long") &&
				!strings.Contains(rest, "image"):
				state = "hidden"
			case !strings.Contains(rest, "image"):
				state = "torn: " + line
			}
			seen = append(seen, name+" "+state)
		case strings.Contains(line, "what was"):
			seen = append(seen, "summary")
		}
	}
	return strings.Join(seen, ", ")
}

// undo takes what is in force out of force.
func (h *house) undo(id string) session.Session {
	h.Helper()
	s := h.Session(id)
	if s.CompactionID == nil {
		h.Fatal("nothing is in force")
	}
	s = testkit.Must(h.Store.UndoCompaction(h.Context(), s.ID, *s.CompactionID))(h)
	return s
}

func TestOpencodePruningIsAnOverlay(t *testing.T) {
	h := newHouse(t)
	db := h.load("", schema, user("a", 1, "one"), call("b", 2, 0), call("c", 3, 0), user("d", 4, "two"), call("e", 5, 0),
		reply("f", 6, "done"))
	h.Import(db)
	s := h.Session("ses_1")
	whole := s.ContextTokens
	claim := func(when, want string) {
		t.Helper()
		if got := h.given(s.ID); got != want {
			t.Errorf("%s the model is given %q, want %q", when, got, want)
		}
	}
	claim("before", "call_b whole, call_c whole, call_e whole")

	h.Change(db, updated, mark("b", 10), mark("c", 10))
	if done := h.Import(db); done.Records.Imported != 0 {
		t.Errorf("%+v", done.Records)
	}
	claim("after the marks", "call_b hidden, call_c hidden, call_e whole")
	s = h.Session("ses_1")
	first, err := h.Store.Effective(t.Context(), s)
	if err != nil || first.Strategy != session.StrategyPrune || first.Trigger != session.TriggerImport ||
		s.CompactionCount != 1 {
		t.Fatalf("%+v %v", first, err)
	}
	if saved := whole - s.ContextTokens; saved != first.HiddenTokens || saved < 100 || first.TokensBefore != whole ||
		first.TokensAfter != s.ContextTokens {
		t.Errorf("%d tokens were hidden, of %d to %d: %+v", saved, whole, s.ContextTokens, first)
	}

	// Read again, or marked later: each time is an overlay of its own, once.
	rows := h.Rows()
	h.Change(db, updated)
	h.Import(db)
	if again := h.Rows(); again != rows {
		t.Errorf("the marks were taken twice: %d rows, then %d", rows, again)
	}
	h.Change(db, updated, mark("e", 20))
	h.Import(db)
	claim("after the second pruning", "call_b hidden, call_c hidden, call_e hidden")
	second, err := h.Store.Effective(t.Context(), h.Session("ses_1"))
	if err != nil || second.PreviousID == nil || *second.PreviousID != first.RowID {
		t.Fatalf("%+v %v", second, err)
	}
	h.undo("ses_1")
	claim("after one undo", "call_b hidden, call_c hidden, call_e whole")
	if s = h.undo("ses_1"); s.ContextTokens != whole {
		t.Errorf("%d tokens, before %d", s.ContextTokens, whole)
	}
	claim("after two", "call_b whole, call_c whole, call_e whole")

	// What was undone here stays undone, whatever is imported.
	h.Change(db, updated, user("g", 30, "three"))
	h.Import(db)
	claim("after an import", "call_b whole, call_c whole, call_e whole")
	for _, c := range []*session.Compaction{first, second} {
		testkit.Must(h.Store.RedoCompaction(t.Context(), s.ID, c.RowID))(t)
	}
	claim("after redoing both", "call_b hidden, call_c hidden, call_e hidden")
	h.Examine()
}

func TestOpencodePruningAndSummaries(t *testing.T) {
	for name, tc := range map[string]struct {
		rows  []string
		given string
		undos []string
	}{
		"pruned, then summarised with a tail that was pruned": {
			[]string{
				user("a", 1, "one"), call("b", 2, 8), call("c", 3, 8), user("d", 4, "two"), call("e", 5, 0),
				summarised("x", 10, "c"), reply("y", 12, "on"),
			},
			"summary, call_c hidden, call_e whole",
			[]string{"call_b hidden, call_c hidden, call_e whole", "call_b whole, call_c whole, call_e whole"},
		},
		"summarised, then pruned": {
			[]string{
				user("a", 1, "one"), call("b", 2, 0), user("c", 3, "two"), summarised("x", 10, "c"), call("e", 15, 30),
				call("f", 16, 0), user("g", 17, "three"),
			},
			"summary, call_e hidden, call_f whole",
			[]string{"summary, call_e whole, call_f whole", "call_b whole, call_e whole, call_f whole"},
		},
		"pruned, summarised, pruned": {
			[]string{
				user("a", 1, "one"), call("b", 2, 8), user("c", 3, "two"), call("d", 4, 0), summarised("x", 10, "c"),
				call("e", 15, 30), user("g", 17, "three"),
			},
			"summary, call_d whole, call_e hidden",
			[]string{
				"summary, call_d whole, call_e whole", "call_b hidden, call_d whole, call_e whole",
				"call_b whole, call_d whole, call_e whole",
			},
		},
		"marked while the person took turns back": {
			[]string{
				user("a", 1, "one"), call("b", 2, 30), user("c", 3, "two"), call("d", 4, 30), user("g", 17, "three"),
				`UPDATE session SET revert = '{"messageID":"c"}';`,
			},
			"call_b hidden",
			[]string{"call_b whole"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.Import(h.load("", schema+strings.Join(tc.rows, "")))
			s := h.Session("ses_1")
			if got := h.given(s.ID); got != tc.given {
				t.Errorf("given %q, want %q", got, tc.given)
			}
			for i, want := range tc.undos {
				h.undo("ses_1")
				if got := h.given(s.ID); got != want {
					t.Errorf("after %d undos %q, want %q", i+1, got, want)
				}
			}
			if h.Session("ses_1").CompactionID != nil {
				t.Error("more is in force")
			}
		})
	}
}
