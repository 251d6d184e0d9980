package pi_test

import "testing"

// What pi itself would send next, after what its lines say of its context.
func TestPiWhatTheModelIsGiven(t *testing.T) {
	one, two, three := user("1", "", "one"), user("2", "1", "two"), user("3", "2", "three")
	line := func(kind, id, parent, rest string) string {
		return `{"type":"` + kind + `","id":"` + id + `","parentId":"` + parent + `","timestamp":"2026-01-02T09:04:00.000Z",` + rest + `}`
	}
	for _, test := range []struct {
		name  string
		lines []string
		given []string
	}{
		{"all of the path", []string{one, two, three}, []string{"user: one", "user: two", "user: three"}},
		{"a branch that was left is not sent", []string{one, two, user("x", "1", "other")}, []string{"user: one", "user: other"}},
		{"what a branch came to is", []string{one, two, line("branch_summary", "b", "1", `"fromId":"2","summary":"Tried it."`), user("4", "b", "four")}, []string{"user: one", "user: ", "user: four"}},
		{"a summary, and what it kept", []string{one, two, three, compacted("C", "3", "3", 3), user("4", "C", "four")}, []string{"user: <conversation_summary>", "user: three", "user: four"}},
		{"nothing was kept", []string{one, two, three, compacted("C", "3", "gone", 3), user("4", "C", "four")}, []string{"user: <conversation_summary>", "user: four"}},
		{"the newest of two", []string{one, two, compacted("C", "2", "2", 3), user("3", "C", "three"), compacted("D", "3", "3", 4), user("4", "D", "four")}, []string{"user: <conversation_summary>", "user: three", "user: four"}},
		{"an edit takes a message away", []string{one, two, three, line("context_edit", "e", "3", `"targetId":"2","replacement":null`), user("4", "e", "four")}, []string{"user: one", "user: three", "user: four"}},
		{"or says it otherwise", []string{one, two, line("context_edit", "e", "2", `"targetId":"1","replacement":{"content":"uno"}`)}, []string{"user: uno", "user: two"}},
		{"labels, names and an extension's state are not sent", []string{one, label("L", "1", "1", "x"), line("custom", "c", "L", `"customType":"x","data":1`), line("session_info", "s", "c", `"name":"n"`), user("4", "s", "four")}, []string{"user: one", "user: four"}},
		{"an extension's message is, also one that people do not see", []string{one, line("custom_message", "c", "1", `"customType":"x","content":"be short","display":false`)}, []string{"user: one", "user: be short"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			h.Import(h.Write("1.jsonl", append([]string{head("s", "")}, test.lines...)...))
			h.BeginsWith(h.Session("s").ID, test.given)
		})
	}
}
