package claudecode_test

import (
	"slices"
	"strings"
	"testing"
)

// given is a case of what a model is given after an import.
type given struct {
	name  string
	rows  []string
	given []string // what each line begins with
	undos [][]string
}

// claim imports a transcript, undoes what is in force step by step, and imports it again.
func (test given) claim(t *testing.T) {
	h := newHouse(t)
	path := h.Write(id+".jsonl", test.rows...)
	h.Import(path)
	s := h.Session(id)
	h.BeginsWith(s.ID, test.given)
	for _, want := range test.undos {
		if s = h.Session(id); s.CompactionID == nil {
			t.Fatal("nothing is in force")
		}
		if _, err := h.Store.UndoCompaction(t.Context(), s.ID, *s.CompactionID); err != nil {
			t.Fatal(err)
		}
		h.BeginsWith(s.ID, want)
	}
	if s = h.Session(id); s.CompactionID != nil {
		t.Error("something is in force still")
	}
	rows := h.Rows()
	if h.Import(path); h.Rows() != rows {
		t.Error("a second import changed something")
	}
	h.Examine()
}

func system(uuid, parent, subtype, rest string) string {
	return `{"type":"system","subtype":"` + subtype + `","content":"","parentUuid":` + link(parent) +
		`,"isSidechain":false,"sessionId":"` + id + `","version":"2.1.120",` + rest + `"uuid":"` + uuid +
		`","timestamp":"2026-02-08T06:00:00.000Z"}`
}

// keeps is the boundary of a compaction that keeps messages.
func keeps(uuid, after, kept string) string {
	return system(uuid, "", "compact_boundary",
		`"logicalParentUuid":"`+after+`","compactMetadata":{"trigger":"auto","preTokens":900,`+kept+`},`)
}

func summarises(uuid, parent string) string {
	return strings.Replace(user(uuid, parent, "the summary"), `"type":"user"`, `"isCompactSummary":true,"type":"user"`, 1)
}

// What Claude Code itself would send next, after what its rows say of its context.
func TestWhatTheModelIsGiven(t *testing.T) {
	begun := []string{
		user("1", "", "one"), says("2", "1", "m1", call("a"), "tool_use"), result("3", "2", "a", "out of a"),
		says("4", "3", "m2", call("b"), "tool_use"), result("5", "4", "b", "out of b"),
	}
	for _, test := range []given{
		{
			"notes, rows of the program and errors are not sent",
			[]string{
				system("6", "5", "turn_duration", `"durationMs":5,`), system("7", "6", "local_command", ""),
				strings.Replace(says("8", "7", "m3", text("API Error"), "stop"), `"isSidechain"`,
					`"isApiErrorMessage":true,"isSidechain"`, 1), user("9", "8", "go on"),
			},
			[]string{
				"user: one", "assistant: (Bash a)", "tool: [a: out of a]", "assistant: (Bash b)", "tool: [b: out of b]",
				"user: go on",
			},
			nil,
		},
		{
			"a microcompaction clears the results that it names",
			[]string{
				system("6", "5", "microcompact_boundary", `"microcompactMetadata":{"trigger":"auto","preTokens":900,"tokensSaved":300,"compactedToolIds":["a","gone"],"clearedAttachmentUUIDs":[]},`),
				user("7", "6", "go on"),
			},
			[]string{
				"user: one", "assistant: (Bash a)", "tool: [a: [output hidden", "assistant: (Bash b)",
				"tool: [b: out of b]", "user: go on",
			},
			[][]string{{
				"user: one", "assistant: (Bash a)", "tool: [a: out of a]", "assistant: (Bash b)", "tool: [b: out of b]",
				"user: go on",
			}},
		},
		{
			"a compaction sends its summary alone, and clearing goes on behind it",
			[]string{
				system("6", "5", "microcompact_boundary", `"microcompactMetadata":{"compactedToolIds":["a"]},`),
				system("7", "", "compact_boundary", `"logicalParentUuid":"6","compactMetadata":{"trigger":"auto","preTokens":900},`),
				strings.Replace(user("8", "7", "the summary"), `"type":"user"`, `"isCompactSummary":true,"type":"user"`, 1),
				says("9", "8", "m4", call("c"), "tool_use"), result("10", "9", "c", "out of c"),
				system("11", "10", "microcompact_boundary", `"microcompactMetadata":{"compactedToolIds":["c"]},`),
				user("12", "11", "go on"),
			},
			[]string{"user: <conversation_summary>", "assistant: (Bash c)", "tool: [c: [output hidden", "user: go on"},
			[][]string{
				{"user: <conversation_summary>", "assistant: (Bash c)", "tool: [c: out of c]", "user: go on"},
				{
					"user: one", "assistant: (Bash a)", "tool: [a: [output hidden", "assistant: (Bash b)", "tool: [b: out of b]",
					"assistant: (Bash c)", "tool: [c: out of c]", "user: go on",
				},
				{
					"user: one", "assistant: (Bash a)", "tool: [a: out of a]", "assistant: (Bash b)", "tool: [b: out of b]",
					"assistant: (Bash c)", "tool: [c: out of c]", "user: go on",
				},
			},
		},
		{
			// And no more: what began the turn is not kept.
			"a compaction keeps the end of the path, whose cleared results stay cleared",
			[]string{
				system("6", "5", "microcompact_boundary", `"microcompactMetadata":{"compactedToolIds":["a","b"]},`),
				user("7", "6", "two"), answer("8", "7", "m3", "done"),
				keeps("9", "8", `"preservedSegment":{"headUuid":"4","anchorUuid":"10","tailUuid":"8"}`), summarises("10", "9"), user("11", "10", "go on"),
			},
			[]string{
				"user: <conversation_summary>", "assistant: (Bash b)", "tool: [b: [output hidden", "user: two",
				"assistant: done", "user: go on",
			},
			[][]string{
				{
					"user: one", "assistant: (Bash a)", "tool: [a: [output hidden", "assistant: (Bash b)", "tool: [b: [output hidden",
					"user: two", "assistant: done", "user: go on",
				},
				{
					"user: one", "assistant: (Bash a)", "tool: [a: out of a]", "assistant: (Bash b)", "tool: [b: out of b]",
					"user: two", "assistant: done", "user: go on",
				},
			},
		},
		{
			"a compaction keeps some messages, in their order",
			[]string{
				user("6", "5", "two"), answer("7", "6", "m3", "second"), user("8", "7", "three"), answer("9", "8", "m4", "third"),
				keeps("10", "9", `"preservedMessages":{"anchorUuid":"11","uuids":["6","8","9"],"allUuids":["6","8","9"]}`), summarises("11", "10"), user("12", "11", "go on"),
			},
			[]string{"user: <conversation_summary>", "user: two", "user: three", "assistant: third", "user: go on"},
			[][]string{{
				"user: one", "assistant: (Bash a)", "tool: [a: out of a]", "assistant: (Bash b)", "tool: [b: out of b]",
				"user: two", "assistant: second", "user: three", "assistant: third", "user: go on",
			}},
		},
		{
			"a compaction keeps a segment that ends before the path does",
			[]string{
				user("6", "5", "two"), answer("7", "6", "m3", "second"), user("8", "7", "three"), answer("9", "8", "m4", "third"),
				keeps("10", "9", `"preservedSegment":{"headUuid":"6","anchorUuid":"11","tailUuid":"7"}`), summarises("11", "10"), user("12", "11", "go on"),
			},
			[]string{"user: <conversation_summary>", "user: two", "assistant: second", "user: go on"},
			[][]string{{
				"user: one", "assistant: (Bash a)", "tool: [a: out of a]", "assistant: (Bash b)", "tool: [b: out of b]",
				"user: two", "assistant: second", "user: three", "assistant: third", "user: go on",
			}},
		},
		{
			"a compaction keeps the beginning, and its summary follows",
			[]string{
				user("6", "5", "two"), answer("7", "6", "m3", "second"),
				keeps("8", "7", `"preservedSegment":{"headUuid":"1","anchorUuid":"8","tailUuid":"3"}`), summarises("9", "8"), user("10", "9", "go on"),
			},
			[]string{"user: one", "assistant: (Bash a)", "tool: [a: out of a]", "user: the summary", "user: go on"},
			[][]string{{
				"user: one", "assistant: (Bash a)", "tool: [a: out of a]", "assistant: (Bash b)", "tool: [b: out of b]",
				"user: two", "assistant: second", "user: go on",
			}},
		},
		{
			"the last message that is kept is written behind the summary",
			[]string{
				user("6", "5", "two"),
				keeps("7", "8", `"preservedMessages":{"anchorUuid":"9","uuids":["6","8"]}`), summarises("9", "7"),
				answer("8", "9", "m3", "second"), user("10", "8", "go on"),
			},
			[]string{"user: <conversation_summary>", "user: two", "assistant: second", "user: go on"},
			[][]string{{
				"user: one", "assistant: (Bash a)", "tool: [a: out of a]", "assistant: (Bash b)", "tool: [b: out of b]",
				"user: two", "assistant: second", "user: go on",
			}},
		},
		{
			"what follows names the last message that is kept as its parent",
			[]string{
				user("6", "5", "two"), answer("7", "6", "m3", "second"),
				keeps("8", "7", `"preservedMessages":{"anchorUuid":"9","uuids":["6","7"]}`), summarises("9", "8"),
				user("10", "7", "go on"),
			},
			[]string{"user: <conversation_summary>", "user: two", "assistant: second", "user: go on"},
			[][]string{{
				"user: one", "assistant: (Bash a)", "tool: [a: out of a]", "assistant: (Bash b)", "tool: [b: out of b]",
				"user: two", "assistant: second", "user: go on",
			}},
		},
	} {
		test.rows = append(slices.Clone(begun), test.rows...)
		t.Run(test.name, test.claim)
	}
}
