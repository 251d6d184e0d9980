package codex_test

import "testing"

// What Codex itself would send next, after what its records say of its context.
func TestWhatTheModelIsGiven(t *testing.T) {
	said := func(text string) []string {
		return []string{says("user", text), event(`{"type":"user_message","message":"` + text + `"}`)}
	}
	compacted := func(payload string) string {
		return `{"timestamp":"2026-03-01T11:00:00.000Z","type":"compacted","payload":` + payload + `}`
	}
	all := func(pieces ...[]string) (lines []string) {
		for _, piece := range pieces {
			lines = append(lines, piece...)
		}
		return lines
	}
	reply := func(text string) []string { return []string{says("assistant", text)} }
	for _, test := range []struct {
		name  string
		lines []string
		given []string
	}{
		{
			"items, and no events",
			all(said("a"), []string{event(`{"type":"agent_reasoning","text":"hm"}`)}, reply("b"),
				[]string{event(`{"type":"agent_message","message":"b"}`)}, said("c")),
			[]string{"user: a", "assistant: b", "user: c"},
		},
		{
			"a turn that was rolled back is not sent",
			all(said("a"), reply("b"), said("c"), reply("d"), []string{event(`{"type":"thread_rolled_back","num_turns":1}`)},
				said("e")),
			[]string{"user: a", "assistant: b", "user: e"},
		},
		{
			"a replacement is the context, and what follows it",
			all(said("a"), reply("b"), []string{compacted(`{"message":"So far.","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"kept"}]}]}`)}, said("c"), reply("d")),
			[]string{"user: <conversation_summary>", "user: kept", "user: c", "assistant: d"},
		},
		{
			"without one the person's words stay",
			all(said("a"), reply("b"), []string{compacted(`{"message":"So far."}`)}, said("c")),
			[]string{"user: <conversation_summary>", "user: a", "user: c"},
		},
		{
			"a rollback behind a compaction brings back what was before",
			all(said("a"), reply("b"), said("x"), reply("y"),
				[]string{compacted(`{"message":"So far.","replacement_history":[]}`)}, said("c"), reply("d"),
				[]string{event(`{"type":"thread_rolled_back","num_turns":2}`)}, said("e")),
			[]string{"user: a", "assistant: b", "user: e"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			h.Import(h.Write("rollout-1.jsonl", append([]string{header}, test.lines...)...))
			h.BeginsWith(h.Session("one").ID, test.given)
		})
	}
}
