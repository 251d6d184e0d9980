package claudecode_test

import (
	"strings"
	"testing"
)

// refused is the row that withdraws others after a refusal.
func refused(uuid, parent string, rows ...string) string {
	return system(uuid, parent, "model_refusal_fallback",
		`"retractedMessageUuids":["`+strings.Join(rows, `","`)+`"],"refusedUserMessageUuid":"1",`)
}

// instead is a reply that supersedes rows.
func instead(uuid, parent, response, says string, rows ...string) string {
	return strings.Replace(answer(uuid, parent, response, says), `"isSidechain"`,
		`"supersedesUuids":["`+strings.Join(rows, `","`)+`"],"isSidechain"`, 1)
}

func answer(uuid, parent, response, words string) string {
	return says(uuid, parent, response, text(words), "end_turn")
}

func TestRetractedRowsAreNotGiven(t *testing.T) {
	boundary := system("c", "", "compact_boundary", `"logicalParentUuid":"2","compactMetadata":{"trigger":"auto","preTokens":900},`)
	kept := system("c", "", "compact_boundary", `"logicalParentUuid":"4","compactMetadata":{"trigger":"auto","preTokens":900,"preservedSegment":{"headUuid":"3","anchorUuid":"s","tailUuid":"6"}},`)
	summary := strings.Replace(user("s", "c", "the summary"), `"type":"user"`, `"isCompactSummary":true,"type":"user"`, 1)
	bulk := `{"type":"attachment","attachment":{"type":"edited_text_file","snippet":"bulk"},"parentUuid":"1","isSidechain":false,"sessionId":"` + id + `","uuid":"2","timestamp":"2026-02-08T05:00:01.000Z"}`
	for _, test := range []given{
		{
			"a reply and the row that withdraws it",
			[]string{
				user("1", "", "one"), answer("2", "1", "m1", "partly"), refused("3", "2", "2"),
				answer("4", "3", "m2", "done"),
			},
			[]string{"user: one", "assistant: done"},
			[][]string{{"user: one", "assistant: partly", "assistant: done"}},
		},
		{
			"a reply of several rows, its call and the result",
			[]string{
				user("1", "", "one"), says("2", "1", "m1", text("look"), ""), says("3", "2", "m1", call("a"), "tool_use"),
				result("4", "3", "a", "out of a"),
				answer("5", "4", "m2", "partly"), refused("6", "5", "2", "3", "4", "5"), answer("7", "6", "m3", "done"),
			},
			[]string{"user: one", "assistant: done"},
			[][]string{{"user: one", "assistant: look (Bash a)", "tool: [a: out of a]", "assistant: partly", "assistant: done"}},
		},
		{
			"a call goes with its result, though that is not named",
			[]string{
				user("1", "", "one"), says("2", "1", "m1", call("a"), "tool_use"), result("3", "2", "a", "out of a"),
				refused("4", "3", "2"), answer("5", "4", "m2", "done"),
			},
			[]string{"user: one", "assistant: done"},
			[][]string{{"user: one", "assistant: (Bash a)", "tool: [a: out of a]", "assistant: done"}},
		},
		{
			"a call whose result alone is named stays, and is closed",
			[]string{
				user("1", "", "one"), says("2", "1", "m1", call("a"), "tool_use"), result("3", "2", "a", "out of a"),
				refused("4", "3", "3"), answer("5", "4", "m2", "done"),
			},
			[]string{"user: one", "assistant: (Bash a)", "tool: [a: No result", "assistant: done"},
			[][]string{{"user: one", "assistant: (Bash a)", "tool: [a: out of a]", "assistant: done"}},
		},
		{
			"a reply that supersedes another, which a note withdraws again",
			[]string{
				user("1", "", "one"), answer("2", "1", "m1", "partly"), instead("3", "2", "m2", "done", "2"),
				refused("4", "3", "2"), user("5", "4", "more"),
			},
			[]string{"user: one", "assistant: done", "user: more"},
			[][]string{{"user: one", "assistant: partly", "assistant: done", "user: more"}},
		},
		{
			"a row that supersedes an earlier one of its own response",
			[]string{
				user("1", "", "one"), says("2", "1", "m1", text("partly"), ""),
				instead("3", "2", "m1", "partly, then done", "2"), user("4", "3", "more"),
			},
			[]string{"user: one", "assistant: partly, then done", "user: more"},
			[][]string{{"user: one", "assistant: partly", "assistant: partly, then done", "user: more"}},
		},
		{
			"a second retraction rests on the first",
			[]string{
				user("1", "", "one"), answer("2", "1", "m1", "first"), refused("3", "2", "2"),
				answer("4", "3", "m2", "second"), refused("5", "4", "4"), answer("6", "5", "m3", "done"),
			},
			[]string{"user: one", "assistant: done"},
			[][]string{
				{"user: one", "assistant: second", "assistant: done"},
				{"user: one", "assistant: first", "assistant: second", "assistant: done"},
			},
		},
		{
			"a row on another branch",
			[]string{
				user("1", "", "one"), answer("2", "1", "m1", "aside"), user("3", "1", "otherwise"), refused("4", "3", "2"),
				answer("5", "4", "m2", "done"),
			},
			[]string{"user: one", "user: otherwise", "assistant: done"},
			nil,
		},
		{
			"no row that is here, and none at all",
			[]string{
				user("1", "", "one"), answer("2", "1", "m1", "all"), refused("3", "2", "gone"),
				system("4", "3", "api_refusal", `"retractedMessageUuids":[],`),
				system("5", "4", "api_refusal", `"retractedMessageUuids":7,`), answer("6", "5", "m2", "done"),
			},
			[]string{"user: one", "assistant: all", "assistant: done"},
			nil,
		},
		{
			"a row that a summary hides already",
			[]string{
				user("1", "", "one"), answer("2", "1", "m1", "partly"), boundary, summary, refused("3", "s", "2"),
				answer("4", "3", "m2", "done"),
			},
			[]string{"user: <conversation_summary>", "assistant: done"},
			[][]string{{"user: one", "assistant: partly", "assistant: done"}},
		},
		{
			"a row behind the summary in force",
			[]string{
				user("1", "", "one"), answer("2", "1", "m1", "all"), boundary, summary, user("3", "s", "two"),
				answer("4", "3", "m2", "partly"), refused("5", "4", "4"), answer("6", "5", "m3", "done"),
			},
			[]string{"user: <conversation_summary>", "user: two", "assistant: done"},
			[][]string{
				{"user: <conversation_summary>", "user: two", "assistant: partly", "assistant: done"},
				{"user: one", "assistant: all", "user: two", "assistant: partly", "assistant: done"},
			},
		},
		{
			"a row among those that a later summary keeps",
			[]string{
				user("1", "", "one"), answer("2", "1", "m1", "all"), user("3", "2", "two"), answer("4", "3", "m2", "partly"),
				refused("5", "4", "4"), answer("6", "5", "m3", "done"),
				strings.Replace(kept, `"logicalParentUuid":"4"`, `"logicalParentUuid":"6"`, 1), summary, user("7", "s", "more"),
			},
			[]string{"user: <conversation_summary>", "user: two", "assistant: done", "user: more"},
			[][]string{
				{"user: one", "assistant: all", "user: two", "assistant: done", "user: more"},
				{"user: one", "assistant: all", "user: two", "assistant: partly", "assistant: done", "user: more"},
			},
		},
		{
			"an attachment that a microcompaction clears",
			[]string{user("1", "", "one"), bulk, system("3", "2", "microcompact_boundary", `"microcompactMetadata":{"compactedToolIds":[],"clearedAttachmentUUIDs":["2","gone"]},`), user("4", "3", "go on")},
			[]string{"user: one", "user: go on"},
			[][]string{{"user: one", "user: bulk", "user: go on"}},
		},
	} {
		t.Run(test.name, test.claim)
	}
}

// The rows were here, and a model may have been given them, before the row that withdraws them.
func TestRetractionThatComesLater(t *testing.T) {
	h := newHouse(t)
	path := h.Write(id+".jsonl", user("1", "", "one"), answer("2", "1", "m1", "partly"))
	h.Import(path)
	s := h.Session(id)
	h.BeginsWith(s.ID, []string{"user: one", "assistant: partly"})
	before := s.ContextTokens
	h.Append(path, refused("3", "2", "2")+"\n")
	h.Import(path)
	h.BeginsWith(s.ID, []string{"user: one"})
	if s = h.Session(id); s.CompactionCount != 1 || s.ContextTokens >= before {
		t.Errorf("%d overlays; %d tokens, before %d", s.CompactionCount, s.ContextTokens, before)
	}
	if _, err := h.Store.UndoCompaction(t.Context(), s.ID, *s.CompactionID); err != nil {
		t.Fatal(err)
	}
	h.Append(path, answer("4", "3", "m2", "done")+"\n")
	h.Import(path)
	h.BeginsWith(s.ID, []string{"user: one", "assistant: partly", "assistant: done"})
	if s = h.Session(id); s.CompactionID != nil {
		t.Error("what was undone is in force")
	}
	h.Examine()
}
