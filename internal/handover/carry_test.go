package handover_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/contextmgr"
	"sessiond/internal/handover"
	"sessiond/internal/redact"
	"sessiond/internal/session"
)

func call(id, tool string) session.Part {
	return session.Part{Kind: session.PartToolCall, CallID: id, ToolName: tool, Arguments: `{"a":1}`}
}

func result(id, text string) session.Part {
	return session.Part{Kind: session.PartToolResult, CallID: id, Text: text}
}

// said writes carried messages in brief: user: hello | assistant: →Bash#1.
func said(all []session.Message) (lines []string) {
	for i := range all {
		var parts []string
		for _, p := range all[i].Parts {
			switch p.Kind {
			case session.PartToolCall:
				parts = append(parts, "→"+p.ToolName+"#"+p.CallID)
			case session.PartToolResult:
				parts = append(parts, "←"+p.CallID+" "+p.Text)
			case session.PartImage:
				parts = append(parts, "image")
			default:
				parts = append(parts, p.Text)
			}
		}
		lines = append(lines, string(all[i].Role)+": "+strings.Join(parts, " | "))
	}
	return lines
}

func TestCarryLeavesTheProgramsMachineryBehind(t *testing.T) {
	picture := session.Part{Kind: session.PartImage, Blob: &session.Blob{MediaType: "image/png", Data: []byte("x")}}
	by := func(role session.Role) func(parts ...session.Part) session.Message {
		return func(parts ...session.Part) session.Message {
			return session.Message{
				Role: role, Origin: role.DefaultOrigin(), Kind: session.KindMessage, Display: true, Parts: parts,
			}
		}
	}
	person, model := by(session.User), by(session.Assistant)
	hidden := person(session.TextPart("a list of skills"))
	hidden.Origin, hidden.Display = session.Program, false
	tests := []struct {
		name string
		kind string
		in   session.Message
		want []string
		left map[string]int
	}{
		{
			"system prompts", "",
			session.Message{Role: session.System, Parts: []session.Part{session.TextPart("be nice")}},
			nil,
			map[string]int{handover.LeftSystem: 1},
		},
		{"hidden texts of the program", "", hidden, nil, map[string]int{handover.LeftProgram: 1}},
		{"the caller's first blocks", contextmgr.ItemInitial, hidden, nil, map[string]int{handover.LeftProgram: 1}},
		{"a summary stays", contextmgr.ItemSummary, hidden, []string{"user: a list of skills"}, nil},
		{
			"thoughts, and data of the provider", "",
			model(session.Part{Kind: session.PartReasoning, Text: "hm"}, session.Part{Kind: session.PartData},
				session.TextPart("yes")),
			[]string{"assistant: yes"},
			map[string]int{handover.LeftReasoning: 1, handover.LeftData: 1},
		},
		{
			"reminders within a text, and what sessiond put there", "",
			person(session.TextPart("look\n<system-reminder>\nbe brief\n</system-reminder>" + session.Echo("found"))),
			[]string{"user: look"},
			nil,
		},
		{
			"a tag that a person asks about", "", person(session.TextPart("what is <system-reminder>?")),
			[]string{"user: what is <system-reminder>?"},
			nil,
		},
		{
			"a command as it was typed", "", person(session.TextPart(
				"<command-name>/review</command-name>\n<command-args>the parser</command-args>")),
			[]string{"user: /review the parser"},
			nil,
		},
		{"a picture alone", "", person(picture), []string{"user: image"}, nil},
		{
			"audio leaves a note", "", person(session.Part{Kind: session.PartAudio}),
			[]string{"user: [a file of the conversation is not included here]"},
			map[string]int{handover.LeftMedia: 1},
		},
		{
			"a tool that the provider ran", "", model(call("srv", "web.search"), result("srv", "found"), session.TextPart("so")),
			[]string{"assistant: →web_search#srv", "tool: ←srv found", "assistant: so"},
			nil,
		},
		{
			"ids and names that not every provider takes", "", model(call("call|1", "a tool")),
			[]string{"assistant: →a_tool#call1"},
			nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c handover.Carrier
			kind := tt.kind
			if kind == "" {
				kind = contextmgr.ItemMessage
			}
			got := said(c.Carry(&tt.in, kind))
			if !slices.Equal(got, tt.want) {
				t.Errorf("carried %q, want %q", got, tt.want)
			}
			if d := cmp.Diff(tt.left, c.Left); d != "" {
				t.Errorf("left behind (-want +got):\n%s", d)
			}
		})
	}
}

// Calls that use one id twice, or none, keep their own results.
func TestCarryPairsCallsAndResults(t *testing.T) {
	var c handover.Carrier
	var got []string
	for _, m := range []session.Message{
		{Role: session.Assistant, Origin: session.Model, Parts: []session.Part{call("1", "Bash")}},
		{Role: session.Tool, Origin: session.ByTool, Parts: []session.Part{result("1", "first")}},
		{Role: session.Assistant, Origin: session.Model, Parts: []session.Part{call("1", "Bash")}},
		{Role: session.Tool, Origin: session.ByTool, Parts: []session.Part{result("1", "second")}},
	} {
		got = append(got, said(c.Carry(&m, contextmgr.ItemMessage))...)
	}
	want := []string{"assistant: →Bash#1", "tool: ←1 first", "assistant: →Bash#1_2", "tool: ←1_2 second"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestCarryMasksSecrets(t *testing.T) {
	const secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	c := handover.Carrier{Mask: &redact.Masker{}}
	m := session.Message{Role: session.Assistant, Origin: session.Model, Display: true, Parts: []session.Part{
		session.TextPart("the token is " + secret),
		{Kind: session.PartToolCall, CallID: "1", ToolName: "Bash", Arguments: `{"command":"curl ` + secret + `"}`},
	}}
	text := string(session.JSONOf(c.Carry(&m, contextmgr.ItemMessage)))
	if strings.Contains(text, secret) || c.Mask.Masked != 2 {
		t.Errorf("%d masked: %s", c.Mask.Masked, text)
	}
}

func TestNoteSaysWhereTheWorkStands(t *testing.T) {
	plan := call("1", "TodoWrite")
	plan.Arguments = `{"todos":[{"content":"Dig","status":"completed"},{"content":"Sow","status":"in_progress"},` +
		`{"content":"Water","status":"pending"}]}`
	todos, ok := handover.TodosOf(&plan)
	if !ok || len(todos) != 3 {
		t.Fatalf("%v %v", todos, ok)
	}
	n := handover.Note{
		From: "Claude Code", To: "Codex", Session: "20260501_001", Earlier: 40, Kept: 5, Todos: todos,
		Rules: []string{"CLAUDE.md"},
		Place: handover.Place{
			Directory: "/garden", Branch: "beds", Head: "1a2b3c4 Dig", Changed: []string{" M beds.go"}, More: 2,
		},
	}
	text := n.Text()
	for _, want := range []string{
		"began in Claude Code (session 20260501_001", "here, in Codex", "A summary of the older 40 messages follows",
		"Branch: beds, at 1a2b3c4 Dig", " M beds.go", "… and 2 more", "- Sow (in progress)", "- Water", "CLAUDE.md",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the note lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "Dig\n- ") || !session.IsHandoverNote(text) {
		t.Errorf("%s", text)
	}
}

// Claude Code makes each step by a call of its own, whose result has the number; a later plan replaces them.
func TestPlanOfSingleTasks(t *testing.T) {
	task := func(id, tool, arguments string) session.Message {
		p := call(id, tool)
		p.Arguments = arguments
		return session.Message{Role: session.Assistant, Parts: []session.Part{p}}
	}
	answered := func(id, text string) session.Message {
		return session.Message{Role: session.Tool, Parts: []session.Part{result(id, text)}}
	}
	var plan handover.Plan
	add := func(messages ...session.Message) {
		for i := range messages {
			plan.Add(&messages[i])
		}
	}
	add(task("1", "TaskCreate", `{"subject":"Dig","description":"the beds"}`), answered("1", "Task #4 created successfully: Dig"),
		task("2", "TaskCreate", `{"subject":"Sow"}`), answered("2", "Task #5 created successfully: Sow"),
		task("3", "TaskCreate", `{"subject":"Refused"}`), answered("3", "permission denied"),
		task("4", "TaskUpdate", `{"taskId":"4","status":"completed"}`),
		task("5", "TaskUpdate", `{"taskId":"5","status":"in_progress"}`),
		task("6", "TaskUpdate", `{"taskId":"1","status":"completed"}`), task("7", "TaskUpdate", `[]`))
	if d := cmp.Diff([]handover.Todo{{Text: "Dig", Done: true}, {Text: "Sow", Now: true}}, plan.Todos); d != "" {
		t.Error(d)
	}
	add(task("8", "TodoWrite", `{"todos":[{"content":"Water","status":"pending"}]}`))
	add(task("9", "TaskCreate", `{"subject":"Reap"}`), answered("9", "Task #6 created successfully: Reap"))
	if d := cmp.Diff([]handover.Todo{{Text: "Reap"}}, plan.Todos); d != "" {
		t.Error(d)
	}
}

// Requests are shortened together, and the newest stay where even their beginnings are too much.
func TestRequestsFitTheirShare(t *testing.T) {
	long := strings.Repeat("dig ", 200)
	var prompts []session.Message
	for n, text := range []string{
		"  Sow the\n\nbeans.  ", long, "<system-reminder>\nbe brief\n</system-reminder>", "Water them.",
	} {
		prompts = append(prompts, session.Message{
			ID: session.MessageRef{Session: "a", Seq: int64(n + 1)}, Role: session.User, Origin: session.Person,
			Kind: session.KindMessage, Display: true, Parts: []session.Part{session.TextPart(text)},
		})
	}
	prompts = append(prompts, session.Message{Role: session.User, Origin: session.Program, Parts: []session.Part{
		session.TextPart("a list of skills"),
	}})
	all := handover.RequestsOf(prompts)
	count := func(text string) int64 { return int64(len(text)) }
	for _, c := range []struct {
		limit int64
		want  []string
	}{
		{2000, []string{"Sow the beans.", strings.TrimSpace(long), "Water them."}},
		{600, []string{"Sow the beans.", strings.TrimSpace(long)[:500] + " …", "Water them."}},
		{60, []string{"Water them."}},
		{0, nil},
	} {
		var got []string
		for _, r := range handover.FitRequests(all, c.limit, count) {
			got = append(got, r.Text)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("limit %d (-want +got):\n%s", c.limit, d)
		}
	}
	n := handover.Note{From: "pi", To: "Codex", Earlier: 3, Kept: 2, Asked: all}
	text := n.Text()
	if !strings.Contains(text, "by their numbers") || !strings.Contains(text, "\n- #1 Sow the beans.\n") {
		t.Errorf("%s", text)
	}
}

// A rule is missing if no text has its beginning, however it is broken into lines.
func TestMissingRulesAreCounted(t *testing.T) {
	texts := []string{"- Never prune\nthe roses. (#1)", "water"}
	rules := []string{"Never prune the roses.", "Never water at noon.", strings.Repeat("Always sow in March ", 9)}
	if n := handover.CountMissing(rules, append(texts, rules[2]+"and then rest")); n != 1 {
		t.Errorf("%d rules are missing, want 1", n)
	}
}
