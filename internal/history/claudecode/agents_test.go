package claudecode_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/session"
)

// task is a call that starts a sub-agent or a workflow.
func task(id, name, prompt string) string {
	return `{"type":"tool_use","id":"` + id + `","name":"` + name + `","input":{"prompt":` + quote(prompt) + `}}`
}

// shown is the result of a call, with what the program shows of it.
func shown(uuid, parent, call, text, display string) string {
	return strings.Replace(result(uuid, parent, call, text), `"isSidechain"`, `"toolUseResult":`+display+`,"isSidechain"`,
		1)
}

// aside is a row of a sub-agent.
func aside(row, agent string) string {
	return strings.Replace(row, `"isSidechain":false`, `"isSidechain":true,"agentId":"`+agent+`"`, 1)
}

// startedBy claims which message and call of the trunk started a session.
func (h *house) startedBy(source, call string) {
	h.Helper()
	trunk := h.Session(id)
	link, err := h.Store.Link(h.Context(), h.Session(source))
	if err != nil || link == nil || link.Parent != trunk.ID || link.Kind != session.ParentChild || link.Call != call ||
		link.Message == nil {
		h.Errorf("%s: %+v %v", source, link, err)
		return
	}
	for _, m := range h.Entries(trunk.ID) {
		if m.ID == *link.Message && (len(m.Calls()) == 0 || m.Calls()[len(m.Calls())-1].CallID != call) {
			h.Errorf("%s hangs on %q", source, m.Text())
		}
	}
}

// A sub-agent is linked to the call that started it, whichever of the files comes first, and also if the call
// comes in before its result.
func TestSubAgentIsLinkedToItsCall(t *testing.T) {
	for _, test := range []struct {
		name, tool, result, display, file string
	}{
		{"by what is shown of its result", "Task", "done", `{"status":"completed","agentId":"x"}`, "subagents/agent-x.jsonl"},
		{
			"by a result too large to keep", "Agent", "done",
			`{"agentId":"x","content":` + quote(strings.Repeat("long ", 20_000)) + `}`, "subagents/agent-x.jsonl",
		},
		{"by the text of its result", "Task", "done\nagentId: x (to resume it)", `"done"`, "subagents/agent-x.jsonl"},
		{"beside its trunk", "Task", "done", `{"agentId":"x"}`, "../agent-x.jsonl"},
		{
			"of a workflow", "Workflow", "launched", `{"status":"async_launched","taskId":"t","runId":"wf_1"}`,
			"subagents/workflows/wf_1/agent-x.jsonl",
		},
	} {
		for _, order := range []string{
			"trunk, agent", "agent, trunk", "half a trunk, agent, trunk",
			"agent, half a trunk, agent, trunk",
		} {
			t.Run(test.name+"/"+order, func(t *testing.T) {
				h, dir := newHouse(t), t.TempDir()
				trunk, agent := filepath.Join(dir, id+".jsonl"), filepath.Join(dir, id, test.file)
				half := []string{
					user("1", "", "go"), says("2", "1", "m1", call("b"), "tool_use"), result("3", "2", "b", "x"),
					says("4", "3", "m2", task("t", test.tool, "look"), "tool_use"),
				}
				for _, step := range strings.Split(order, ", ") {
					switch step {
					case "agent":
						h.Rewrite(agent, aside(user("c1", "", "look"), "x"), aside(says("c2", "c1", "m9", text("seen"), "end_turn"), "x"))
						h.Import(agent)
					case "trunk":
						h.Rewrite(trunk, append(half, shown("5", "4", "t", test.result, test.display),
							says("6", "5", "m3", text("so"), "end_turn"))...)
						h.Import(trunk)
					default:
						h.Rewrite(trunk, half...)
						h.Import(trunk)
					}
				}
				h.Import(agent)
				h.startedBy(id+"#agent-x", "t")
				rows := h.Rows()
				if h.Import(trunk, agent); h.Rows() != rows {
					t.Error("reading them again changed something")
				}
				h.Examine()
			})
		}
	}
}

// progress is a row of the trunk that repeats what a sub-agent says.
func progress(uuid, parent, call, agent, said string) string {
	return `{"parentUuid":` + link(parent) + `,"isSidechain":false,"sessionId":"` + id + `","version":"2.1.34","type":"progress","data":{"type":"agent_progress","agentId":"` + agent + `","prompt":"look","message":` + said +
		`},"toolUseID":"agent_m9","parentToolUseID":"` + call + `","uuid":"` + uuid +
		`","timestamp":"2026-02-08T05:00:02.000Z"}`
}

// A sub-agent that only rows of progress tell of, or that lies within the file of its trunk, is linked, too.
func TestSubAgentInItsTrunkIsLinkedToItsCall(t *testing.T) {
	begun := []string{user("1", "", "go"), says("2", "1", "m1", task("t", "Task", "look"), "tool_use")}
	for _, test := range []struct{ name, row, source string }{
		{"progress", progress("p1", "2", "t", "x", `{"type":"assistant","uuid":"c2","timestamp":"2026-02-08T05:00:02.000Z","message":{"id":"m9","role":"assistant","content":[`+text("seen")+`]}}`), "#agent-x"},
		{
			"within the file", strings.Replace(user("c1", "", "look"), `"isSidechain":false`, `"isSidechain":true`, 1),
			"#side-c1",
		},
		{"within the file, by its name", aside(user("c1", "", "look"), "x"), "#agent-x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			path := h.Write(id+".jsonl", append(begun, test.row, result("3", "2", "t", "done"))...)
			h.Import(path)
			h.startedBy(id+test.source, "t")
			h.Unchanged(path)
			h.Examine()
		})
	}
}

// What rows of progress repeat of a sub-agent comes once, though it has a file of its own, which is here or comes
// later, in any folder of agents.
func TestProgressAndFileOfASubAgentComeOnce(t *testing.T) {
	const inner = `{"type":"assistant","uuid":"c2","timestamp":"2026-02-08T05:00:02.000Z","message":{"id":"m9","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{"type":"text","text":"seen"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":7}}}`
	for _, test := range []struct {
		name, trunk, file string
		late              bool // the file comes after the rows of progress
	}{
		{"the file is here", id + ".jsonl", id + "/subagents/agent-x.jsonl", false},
		{"the file comes later", id + ".jsonl", id + "/subagents/agent-x.jsonl", true},
		{"of a workflow", id + ".jsonl", id + "/subagents/workflows/wf_1/agent-x.jsonl", false},
		{"of a workflow, later", id + ".jsonl", id + "/subagents/workflows/wf_1/agent-x.jsonl", true},
		{"beside the trunk, later", id + ".jsonl", "agent-x.jsonl", true},
		{"in another folder", id + ".jsonl", "other/" + id + "/subagents/agent-x.jsonl", false},
		{"in another folder, later", id + ".jsonl", "other/" + id + "/subagents/agent-x.jsonl", true},
		{"of an agent of an agent", id + "/subagents/agent-a.jsonl", id + "/subagents/agent-x.jsonl", false},
		{"of an agent of an agent, later", id + "/subagents/agent-a.jsonl", id + "/subagents/agent-x.jsonl", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, dir := newHouse(t), t.TempDir()
			trunk, agent := filepath.Join(dir, test.trunk), filepath.Join(dir, test.file)
			write := func() {
				h.Rewrite(agent, aside(user("c1", "", "look"), "x"), aside(says("c2", "c1", "m9", text("seen"), "end_turn"), "x"),
					aside(user("c3", "c2", "more"), "x"))
			}
			h.Rewrite(filepath.Join(dir, id+".jsonl"), user("u", "", "go"))
			h.Rewrite(trunk, user("1", "", "go"), says("2", "1", "m1", task("t", "Task", "look"), "tool_use"),
				progress("p1", "2", "t", "x", inner), result("3", "2", "t", "done"))
			if test.late {
				h.Import(trunk)
				write()
				h.Import(agent)
			} else {
				write()
				h.Import(agent)
			}
			for range 2 {
				h.Import(dir)
				h.Append(trunk, progress("p2", "p1", "t", "x", inner)+"\n"+user("4", "3", "on")+"\n")
			}
			for _, s := range h.Sessions() {
				if strings.HasSuffix(s.SourceID, "x") && s.SourceID != id+"#agent-x" {
					t.Errorf("it is here again: %s", s.SourceID)
				}
			}
			s := h.Session(id + "#agent-x")
			if s.MessageCount != 3 || s.OutputTokens != 7 || len(h.Calls(s.ID)) != 1 {
				t.Errorf("%+v", s)
			}
			if got := h.Talk(s); got != "user: look\nassistant: seen\nuser: more" &&
				(!test.late || got != "assistant: seen\nuser: more") {
				t.Errorf("path\n%s", got)
			}
			h.Examine()
		})
	}
}

// A fork repeats the rows of sub-agents that its origin started: they come once, wherever the sub-agent's rows are.
func TestForkRepeatsNoSubAgents(t *testing.T) {
	const inner = `{"type":"assistant","uuid":"c2","timestamp":"2026-02-08T05:00:02.000Z","message":{"id":"m9","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{"type":"text","text":"seen"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":7}}}`
	const fork = "0a000000-0000-4000-8000-00000000000f"
	for _, test := range []struct {
		name, row string
		file      bool
	}{
		{"progress", progress("p1", "2", "t", "x", inner), false},
		{"progress, and a file", progress("p1", "2", "t", "x", inner), true},
		{"within the file", strings.Replace(user("c1", "", "look"), `"isSidechain":false`, `"isSidechain":true`, 1), false},
		{"within the file, by its name", aside(user("c1", "", "look"), "x"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, dir := newHouse(t), t.TempDir()
			rows := []string{
				user("1", "", "go"), says("2", "1", "m1", task("t", "Task", "look"), "tool_use"), test.row,
				result("3", "2", "t", "done"), says("4", "3", "m2", text("so"), "end_turn"),
			}
			h.Rewrite(filepath.Join(dir, id+".jsonl"), rows...)
			if test.file {
				h.Rewrite(filepath.Join(dir, id, "subagents", "agent-x.jsonl"), aside(user("c1", "", "look"), "x"),
					aside(says("c2", "c1", "m9", text("seen"), "end_turn"), "x"))
			}
			h.Import(filepath.Join(dir, id+".jsonl"))
			forked := filepath.Join(dir, fork+".jsonl")
			for i := range rows {
				rows[i] = strings.ReplaceAll(rows[i], id, fork)
			}
			h.Rewrite(forked, append(rows, user("5", "4", "more"), says("6", "5", "m3", text("sure"), "end_turn"))...)
			h.Import(dir)
			if got := h.Talk(h.Session(fork)); got != "user: go\nassistant: (Task)\ntool: done\nassistant: so\nuser: more\n"+
				"assistant: sure" {
				t.Error(got)
			}
			if n := len(h.Sessions()); n != 3 {
				t.Errorf("%d sessions: the sub-agent is here again", n)
			}
			h.Unchanged(forked)
			h.Examine()
		})
	}
}

// A person's words that begin like the program's are a person's.
func TestWordsThatBeginWithATagAreThePersons(t *testing.T) {
	h := newHouse(t)
	said := []string{
		"<system-reminder> what does this tag mean?", "<system-reminder>r</system-reminder>\nand now the diff",
		"Caveat: the build is broken on arm",
		"<goal> tags are odd", "<command-name> is shown twice", "[Request interrupted by user] but go on with B",
	}
	notices := []string{
		"<system-reminder>r</system-reminder>", "<tick>1</tick>", strings.Repeat("<tick></tick>\n", 100_000),
		"Caveat: The messages below were generated by the user while running local commands. DO NOT respond",
	}
	var lines []string
	before := ""
	for i, text := range append(slices.Clone(said), notices...) {
		uuid := fmt.Sprint("u", i)
		lines = append(lines, user(uuid, before, text))
		before = uuid
	}
	meta := strings.Replace(user("meta", before, "typed elsewhere"), "{", `{"isMeta":true,"origin":{"kind":"human"},`, 1)
	channel := strings.Replace(user("channel", "meta", "from the phone"), "{", `{"origin":{"kind":"channel"},`, 1)
	h.Import(h.Write(id+".jsonl", append(lines, meta, channel)...))
	if s := h.Session(id); s.SaidCount != int64(len(said)+2) {
		t.Errorf("%d messages are said, want %d", s.SaidCount, len(said)+2)
	}
}
