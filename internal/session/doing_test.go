package session

import (
	"testing"
	"time"
)

func TestDoingIsReadFromTheNewestMessages(t *testing.T) {
	at := time.Date(2026, 11, 28, 17, 0, 0, 0, time.UTC)
	message := func(seconds int, role Role, origin Origin, finish Finish, parts ...Part) *Message {
		return &Message{
			Kind: KindMessage, Role: role, Origin: origin, Finish: finish, Parts: parts,
			CreatedAt: At(at.Add(time.Duration(seconds) * time.Second)),
		}
	}
	call := func(id, tool string) Part { return Part{Kind: PartToolCall, CallID: id, ToolName: tool} }
	result := func(id string) Part { return Part{Kind: PartToolResult, CallID: id} }
	prompt := message(0, User, Person, "")
	calls := message(5, Assistant, Model, FinishToolCalls, call("a", "Bash"), call("b", "Read"))
	first, second := message(7, Tool, ByTool, "", result("a")), message(9, Tool, ByTool, "", result("b"))
	reply := message(20, Assistant, Model, FinishStop)
	failed := message(20, Assistant, Model, FinishError)
	interrupted := message(5, Assistant, Model, FinishAborted, call("a", "Bash"))
	row := message(21, User, Program, "")
	row.Kind = KindUnknown
	for name, c := range map[string]struct {
		newest []*Message // oldest first
		after  time.Duration
		want   Actor
		tool   string
		since  int
	}{
		"nothing":                        {nil, 0, "", "", 0},
		"a prompt":                       {[]*Message{prompt}, time.Minute, ActsModel, "", 0},
		"a prompt, long ago":             {[]*Message{prompt}, 11 * time.Minute, "", "", 0},
		"a prompt of tomorrow":           {[]*Message{prompt}, -time.Hour, "", "", 0},
		"a text of the program":          {[]*Message{message(0, User, Program, "")}, time.Minute, "", "", 0},
		"calls":                          {[]*Message{prompt, calls}, time.Minute, ActsTool, "Bash", 5},
		"calls, long ago":                {[]*Message{prompt, calls}, 2 * time.Hour, "", "", 0},
		"one result of two":              {[]*Message{prompt, calls, first}, time.Minute, ActsTool, "Read", 5},
		"all results":                    {[]*Message{prompt, calls, first, second}, time.Minute, ActsModel, "", 9},
		"a reply":                        {[]*Message{prompt, calls, first, second, reply}, time.Minute, ActsPerson, "", 20},
		"a reply, and a row behind it":   {[]*Message{prompt, reply, row}, time.Minute, ActsPerson, "", 20},
		"a reply, some hours ago":        {[]*Message{prompt, reply}, 3 * time.Hour, ActsNobody, "", 20},
		"a reply of last week":           {[]*Message{prompt, reply}, 7 * 24 * time.Hour, "", "", 0},
		"a reply that says not why":      {[]*Message{prompt, message(20, Assistant, Model, "")}, time.Minute, "", "", 0},
		"a failed reply":                 {[]*Message{prompt, failed}, time.Minute, "", "", 0},
		"a call of an interrupted reply": {[]*Message{interrupted}, time.Minute, "", "", 0},
		"a prompt behind a reply":        {[]*Message{reply, message(30, User, Person, "")}, time.Minute, ActsModel, "", 30},
	} {
		var newest []*Message
		for i := len(c.newest) - 1; i >= 0; i-- {
			newest = append(newest, c.newest[i])
		}
		got := DoingAt(newest, at.Add(c.after))
		want := Doing{}
		if c.want != "" {
			want = Doing{Actor: c.want, Tool: c.tool, Since: At(at.Add(time.Duration(c.since) * time.Second)), Until: got.Until}
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
