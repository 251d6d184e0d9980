package contextmgr

import (
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"

	"github.com/google/go-cmp/cmp"
)

// numbered sets row ids and names as on a path.
func numbered(msgs ...session.Message) []session.Message {
	for i := range msgs {
		msgs[i].RowID, msgs[i].ID = int64(i+1), session.MessageRef{Session: "20260101_001", Seq: int64(i + 1)}
	}
	return msgs
}

func failed(m session.Message, f session.Finish) session.Message {
	m.Finish = f
	return m
}

func with(m session.Message, parts ...session.Part) session.Message {
	m.Parts = append(m.Parts, parts...)
	return m
}

func result(id, s string) session.Part {
	return session.Part{Kind: session.PartToolResult, CallID: id, ToolName: "bash", Text: s}
}

func TestRepair(t *testing.T) {
	closed := "[tool] tool_result(%" + closedText + ")"
	for _, c := range []struct {
		name    string
		msgs    []session.Message
		closed  map[int64][]string
		close   bool
		want    []string
		pending []string
		late    []string
		losses  int
	}{
		{
			name: "a whole exchange is left as it is",
			msgs: numbered(text(session.User, "u"), calling("a"), answering("a", "r"), text(session.Assistant, "t")),
			want: []string{
				"[user] text(u)", `[assistant] tool_call(a{"command":"ls"})`, "[tool] tool_result(ar)",
				"[assistant] text(t)",
			},
		},
		{
			name: "results of one message are parted where calls lie between",
			msgs: numbered(calling("a"), text(session.User, "u"), calling("b"), with(answering("a", "1"), result("b", "2"))),
			want: []string{
				`[assistant] tool_call(a{"command":"ls"})`, "[tool] tool_result(a1)", "[user] text(u)",
				`[assistant] tool_call(b{"command":"ls"})`, "[tool] tool_result(b2)",
			},
		},
		{
			name: "an orphan is cut out of a message that holds a good result",
			msgs: numbered(calling("a"), with(answering("x", "0"), result("a", "1"))), losses: 1,
			want: []string{`[assistant] tool_call(a{"command":"ls"})`, "[tool] tool_result(a1)"},
		},
		{
			name: "an image beside a result stays with it",
			msgs: numbered(calling("a", "b"), with(answering("b", "2"), session.Part{Kind: session.PartImage},
				result("a", "1"))),
			want: []string{`[assistant] tool_call(a{"command":"ls"}) tool_call(b{"command":"ls"})`, "[tool] tool_result(a1)", "[tool] tool_result(b2) image()"},
		},
		{
			name: "without ids results match by name, then order",
			msgs: numbered(with(text(session.Assistant, ""), session.Part{Kind: session.PartToolCall, ToolName: "bash"}),
				answering("", "r")),
			want: []string{"[assistant] text() tool_call()", "[tool] tool_result(r)"},
		},
		{
			name: "ids that were made anew in each append match by name, then order",
			msgs: numbered(calling("made_bash_1", "made_bash_2"), answering("made_bash_1", "1"), answering("made_bash_1", "2")),
			want: []string{`[assistant] tool_call(made_bash_1{"command":"ls"}) tool_call(made_bash_2{"command":"ls"})`, "[tool] tool_result(made_bash_11)", "[tool] tool_result(made_bash_22)"},
		},
		{
			name: "calls of one reply that share an id are answered in turn",
			msgs: numbered(calling("x", "x"), answering("x", "1"), answering("x", "2")),
			want: []string{`[assistant] tool_call(x{"command":"ls"}) tool_call(x{"command":"ls"})`, "[tool] tool_result(x1)", "[tool] tool_result(x2)"},
		},
		{
			name: "a result without an id finds a call that has one, in the newest reply",
			msgs: numbered(calling("a"), text(session.User, "u"), calling("b", "c"),
				with(answering("made_bash_1", "1"), session.Part{Kind: session.PartImage, CallID: "made_bash_1"}),
				answering("", "2")),
			want: []string{`[assistant] tool_call(a{"command":"ls"})`, strings.Replace(closed, "%", "a", 1), "[user] text(u)", `[assistant] tool_call(b{"command":"ls"}) tool_call(c{"command":"ls"})`, "[tool] tool_result(b1) image(b)", "[tool] tool_result(c2)"},
		},
		{
			name: "not one of another tool, nor by an id that the wire said",
			msgs: numbered(with(session.Message{Kind: session.KindMessage, Role: session.Assistant, InContext: true},
				session.Part{Kind: session.PartToolCall, CallID: "a", ToolName: "grep"}), answering("made_bash_1", "1"),
				answering("x", "2")), losses: 2, pending: []string{"a"},
			want: []string{"[assistant] tool_call(a)"},
		},
		{
			name: "a provider's own call and result stay where they are",
			msgs: numbered(with(calling("s"), result("s", "found"), session.TextPart("so")), text(session.User, "u")),
			want: []string{`[assistant] tool_call(s{"command":"ls"}) tool_result(sfound) text(so)`, "[user] text(u)"},
		},
		{
			name: "a failed reply keeps its text and loses its calls",
			msgs: numbered(failed(with(text(session.Assistant, "half"), calling("a").Parts...), session.FinishAborted),
				answering("a", "r"), text(session.User, "u")), losses: 2,
			want: []string{"[assistant] text(half)", "[user] text(u)"},
		},
		{
			name: "the last reply's calls wait",
			msgs: numbered(calling("a", "b"), answering("b", "2")), pending: []string{"a"},
			want: []string{`[assistant] tool_call(a{"command":"ls"}) tool_call(b{"command":"ls"})`, "[tool] tool_result(b2)"},
		},
		{
			name: "what was closed stays closed",
			msgs: numbered(calling("a")), closed: map[int64][]string{1: {"a"}},
			want: []string{`[assistant] tool_call(a{"command":"ls"})`, strings.Replace(closed, "%", "a", 1)},
		},
		{
			name: "a late result replaces what was closed",
			msgs: numbered(calling("a"), text(session.User, "u"), answering("a", "r")), closed: map[int64][]string{1: {"a"}},
			late: []string{"a"},
			want: []string{`[assistant] tool_call(a{"command":"ls"})`, "[tool] tool_result(ar)", "[user] text(u)"},
		},
		{
			name: "a call before a failed reply does not wait",
			msgs: numbered(calling("a"), failed(text(session.Assistant, "x"), session.FinishError)),
			want: []string{
				`[assistant] tool_call(a{"command":"ls"})`, strings.Replace(closed, "%", "a", 1),
				"[assistant] text(x)",
			},
		},
		{
			name: "empty messages are left out",
			msgs: numbered(text(session.User, "u"), session.Message{
				Kind: session.KindMessage, Role: session.Assistant,
				InContext: true,
			}), losses: 1,
			want: []string{"[user] text(u)"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Repair(c.msgs, c.closed, c.close)
			var got []string
			for i := range r.Items {
				got = append(got, flat(&r.Items[i].Message))
			}
			testkit.Equal(t, c.want, got)
			if !cmp.Equal(r.Pending, c.pending) || !cmp.Equal(r.Late, c.late) || len(r.Losses) != c.losses {
				t.Errorf("pending %v, late %v, losses %v", r.Pending, r.Late, r.Losses)
			}
		})
	}
}

func TestCutNeverSeparatesCallsFromResults(t *testing.T) {
	entry := func(role session.Role, calls, results []string) Entry {
		return Entry{Kind: session.KindMessage, Role: role, Tokens: 10, InContext: true, Calls: calls, Results: results}
	}
	user, model := entry(session.User, nil, nil), entry(session.Assistant, nil, nil)
	reasoning := model
	reasoning.Reasoning = true
	for _, c := range []struct {
		name string
		path []Entry
		rule CutRule
		want Cut
	}{
		{"a call from its late result", []Entry{
			user, entry(session.Assistant, []string{"a"}, nil), user, model, entry(session.Tool, nil, []string{"a"}), user,
		}, CutRule{KeepTokens: 35}, Cut{5, -1}},
		{
			"reasoning from what it led to",
			[]Entry{
				user, model, reasoning, entry(session.Assistant, []string{"a"}, nil),
				entry(session.Tool, nil, []string{"a"}), user,
			},
			CutRule{KeepTokens: 25},
			Cut{5, -1},
		},
		{
			"but may lie before reasoning",
			[]Entry{
				user, model, reasoning, entry(session.Assistant, []string{"a"}, nil),
				entry(session.Tool, nil, []string{"a"}), user,
			},
			CutRule{KeepTokens: 35},
			Cut{2, 0},
		},
		{
			"more messages are kept where the budget allows",
			[]Entry{user, model, user, model, user, model},
			CutRule{KeepTokens: 10, KeepMessages: 4, KeepMost: 100},
			Cut{2, -1},
		},
		{
			"not where it does not",
			[]Entry{user, model, user, model, user, model},
			CutRule{KeepTokens: 10, KeepMessages: 4, KeepMost: 20},
			Cut{4, -1},
		},
		{"a result is kept with its call for the number of messages", []Entry{
			user, entry(session.Assistant, []string{"a"}, nil), entry(session.Tool, nil, []string{"a"}),
			entry(session.Assistant, []string{"b"}, nil),
			entry(session.Tool, nil, []string{"b"}), model, user,
		}, CutRule{KeepTokens: 10, KeepMessages: 5, KeepMost: 60}, Cut{1, 0}},
		{"but not where it does not fit", []Entry{
			user, entry(session.Assistant, []string{"a"}, nil), entry(session.Tool, nil, []string{"a"}),
			entry(session.Assistant, []string{"b"}, nil),
			entry(session.Tool, nil, []string{"b"}), model, user,
		}, CutRule{KeepTokens: 10, KeepMessages: 5, KeepMost: 59}, Cut{3, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := FindCut(c.path, c.rule); got != c.want {
				t.Errorf("cut %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestPlanKeepsLessUntilItFits(t *testing.T) {
	var path []Entry
	for range 20 {
		path = append(path, Entry{Kind: session.KindMessage, Role: session.User, Tokens: 100, InContext: true})
	}
	rule := CutRule{KeepTokens: 1000, KeepMessages: 15, KeepMost: 2000}
	if p := MakePlan(path, rule, PlanRoom{}); p.KeptTokens != 1500 {
		t.Errorf("without a limit %d are kept", p.KeptTokens)
	}
	if p := MakePlan(path, rule, PlanRoom{Threshold: 1300, Fixed: 100, Summary: 200}); p.KeptTokens != 1000 {
		t.Errorf("the number of messages did not yield first: %d", p.KeptTokens)
	}
	if p := MakePlan(path, rule, PlanRoom{Threshold: 700, Fixed: 100, Summary: 200}); p.KeptTokens != 300 {
		t.Errorf("%d are kept beside 300 of 700", p.KeptTokens)
	}
	if p := MakePlan(path, rule, PlanRoom{Threshold: 10}); p.KeptTokens != 100 || p.NoGain != "" {
		t.Errorf("the last message is not kept: %+v", p)
	}
}
