package goose_test

import (
	"fmt"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

const (
	forModel  = `{"userVisible":false,"agentVisible":true}`
	forPeople = `{"userVisible":true,"agentVisible":false}`
	forNobody = `{"userVisible":false,"agentVisible":false}`
)

// used is a call of a tool with its result, each a row, in one second.
func used(id string, second int, metadata string) string {
	return put(id+"q", "assistant", fmt.Sprintf(`[{"type":"toolRequest","id":"call_%s","toolCall":{"status":"success","value":{"name":"shell","arguments":{}}}}]`, id), 1773478800+second, metadata) +
		put(id+"r", "user", fmt.Sprintf(`[{"type":"toolResponse","id":"call_%s","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"out of %s"}]}}}]`, id, id), 1773478800+second, metadata)
}

func told(id, text string, second int, metadata string) string {
	return put(id, "user", fmt.Sprintf(`[{"type":"text","text":%q}]`, text), 1773478800+second, metadata)
}

// summarise is what Goose does to a pair: it hides both and says what happened at their time.
func summarise(id string, second int) string {
	return `UPDATE messages SET metadata_json = '` + forPeople + `' WHERE message_id IN ('` + id + `q', '` + id + `r');` +
		told(id+"s", "It used "+id, second, forModel)
}

func TestGoosePairsAreReplacedByTheirSummaries(t *testing.T) {
	h := newHouse(t)
	db := h.load("", schema, say("a", "user", "one", 0), used("b", 1, ""), used("c", 1, ""), used("d", 2, ""),
		say("e", "assistant", "done", 3))
	h.Import(db)
	s := h.Session("20260314_1")
	whole := s.ContextTokens
	claim := func(when string, want ...string) {
		t.Helper()
		if got := strings.Join(h.Given(s.ID), "|"); got != strings.Join(want, "|") {
			t.Errorf("%s the model is given\n     %s\nwant %s", when, got, strings.Join(want, "|"))
		}
	}
	b := []string{"assistant: (shell call_b)", "tool: [call_b: out of b]"}
	c := []string{"assistant: (shell call_c)", "tool: [call_c: out of c]"}
	d := []string{"assistant: (shell call_d)", "tool: [call_d: out of d]"}
	all := func(pieces ...[]string) []string {
		lines := []string{"user: one"}
		for _, piece := range pieces {
			lines = append(lines, piece...)
		}
		return append(lines, "assistant: done")
	}
	claim("at first", all(b, c, d)...)

	// The rows were imported already: their summaries come later, with their time.
	h.Change(db, summarise("b", 1), summarise("c", 1))
	h.Import(db)
	claim("when two are summarised", all([]string{"user: It used b", "user: It used c"}, d)...)
	rows := h.Rows()
	h.Change(db, `UPDATE sessions SET name = name || '!'`)
	h.Import(db)
	if effective, _ := h.Store.Effective(t.Context(), h.Session("20260314_1")); effective == nil ||
		h.Session("20260314_1").CompactionCount != 1 || effective.Strategy != session.StrategyPrune {
		t.Errorf("%d rows, then %d: %+v", rows, h.Rows(), effective)
	}
	h.Change(db, summarise("d", 2), say("f", "user", "more", 9))
	h.Import(db)
	claim("when the third is, too", append(all([]string{"user: It used b", "user: It used c", "user: It used d"}),
		"user: more")...)

	for range 2 {
		s = h.Session("20260314_1")
		testkit.Must(h.Store.UndoCompaction(t.Context(), s.ID, *s.CompactionID))(t)
	}
	claim("undone", append(all(b, c, d), "user: more")...)
	if s = h.Session("20260314_1"); s.ContextTokens != whole+1 {
		t.Errorf("%d tokens, at first %d", s.ContextTokens, whole)
	}
	h.Examine()
}

func TestGoosePairsBeforeAndAfterACompaction(t *testing.T) {
	h := newHouse(t)
	h.Import(h.load("", schema,
		put("a", "user", `[{"type":"text","text":"one"}]`, 1773478800, forPeople), used("b", 1, forPeople),
		told("bs", "It used b", 1, forNobody), used("c", 2, forPeople),
		told("A", "the summary", 10, forModel),
		put("B", "assistant", `[{"type":"text","text":"go on"}]`, 1773478810, forModel),
		told("p", "two", 11, ""), used("d", 12, forPeople), told("ds", "It used d", 12, forModel),
		say("e", "assistant", "done", 13)))
	s := h.Session("20260314_1")
	for i, want := range []string{
		"user: <conversation_summary> the summary|user: two|user: It used d|assistant: done",
		"user: <conversation_summary> the summary|user: two|assistant: (shell call_d)|tool: [call_d: out of d]|assistant: " +
			"done",
		"user: one|user: It used b|assistant: (shell call_c)|tool: [call_c: out of c]|user: two|assistant: " +
			"(shell call_d)|tool: [call_d: out of d]|assistant: done",
		"user: one|assistant: (shell call_b)|tool: [call_b: out of b]|assistant: (shell call_c)|tool: [call_c: " +
			"out of c]|user: two|assistant: (shell call_d)|tool: [call_d: out of d]|assistant: done",
	} {
		lines := h.Given(s.ID)
		for k := range lines {
			if strings.Contains(lines[k], "<conversation_summary>") && strings.Contains(lines[k], "the summary") {
				lines[k] = "user: <conversation_summary> the summary"
			}
		}
		if got := strings.Join(lines, "|"); got != want {
			t.Errorf("after %d undos\n got %s\nwant %s", i, got, want)
		}
		if s = h.Session("20260314_1"); s.CompactionID != nil {
			testkit.Must(h.Store.UndoCompaction(t.Context(), s.ID, *s.CompactionID))(t)
		}
	}
}
