package export_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect"
	"sessiond/internal/export"
	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// The types of ATIF-v1.7, which allow no other fields.
type (
	trajectory struct {
		SchemaVersion string  `json:"schema_version"`
		SessionID     string  `json:"session_id"`
		TrajectoryID  string  `json:"trajectory_id"`
		Agent         agentOf `json:"agent"`
		Steps         []stepOf
		FinalMetrics  struct {
			Prompt     int64   `json:"total_prompt_tokens"`
			Completion int64   `json:"total_completion_tokens"`
			Cached     int64   `json:"total_cached_tokens"`
			Cost       float64 `json:"total_cost_usd"`
			Steps      int     `json:"total_steps"`
		} `json:"final_metrics"`
		Extra     map[string]any `json:"extra"`
		Subagents []trajectory   `json:"subagent_trajectories"`
	}
	agentOf struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Model   string `json:"model_name"`
	}
	stepOf struct {
		ID        int            `json:"step_id"`
		Timestamp string         `json:"timestamp"`
		Source    string         `json:"source"`
		Message   string         `json:"message"`
		Model     string         `json:"model_name"`
		Reasoning string         `json:"reasoning_content"`
		Calls     []callOf       `json:"tool_calls"`
		Observed  *observationOf `json:"observation"`
		Metrics   *struct {
			Prompt     int64   `json:"prompt_tokens"`
			Completion int64   `json:"completion_tokens"`
			Cached     int64   `json:"cached_tokens"`
			Cost       float64 `json:"cost_usd"`
		} `json:"metrics"`
		Copied bool           `json:"is_copied_context"`
		Extra  map[string]any `json:"extra"`
	}
	callOf struct {
		ID        string         `json:"tool_call_id"`
		Function  string         `json:"function_name"`
		Arguments map[string]any `json:"arguments"`
	}
	observationOf struct {
		Results []struct {
			Call    string `json:"source_call_id"`
			Content string `json:"content"`
			Refs    []struct {
				Trajectory string `json:"trajectory_id"`
				Session    string `json:"session_id"`
			} `json:"subagent_trajectory_ref"`
			Extra map[string]any `json:"extra"`
		} `json:"results"`
	}
)

// validTrajectory checks the rules of Harbor's RFC 0001: ids of steps count from 1, results name calls of their own
// step, only an agent's steps have a model, calls, reasoning and metrics, and references lead to a trajectory within.
func validTrajectory(t *testing.T, tr *trajectory) {
	t.Helper()
	if tr.SchemaVersion != "ATIF-v1.7" || tr.Agent.Name == "" || tr.Agent.Version == "" || len(tr.Steps) == 0 ||
		tr.FinalMetrics.Steps != len(tr.Steps) && tr.FinalMetrics.Steps != 0 {
		t.Errorf("trajectory %s of %+v: %d steps, of %d", tr.SchemaVersion, tr.Agent, len(tr.Steps), tr.FinalMetrics.Steps)
	}
	embedded := map[string]bool{}
	for i := range tr.Subagents {
		sub := &tr.Subagents[i]
		if sub.TrajectoryID == "" || embedded[sub.TrajectoryID] {
			t.Errorf("sub-agent %q has no id of its own", sub.TrajectoryID)
		}
		embedded[sub.TrajectoryID] = true
		validTrajectory(t, sub)
	}
	for i := range tr.Steps {
		s := &tr.Steps[i]
		_, err := time.Parse(time.RFC3339, s.Timestamp)
		sources := []string{"system", "user", "agent"}
		if s.ID != i+1 || err != nil && s.Timestamp != "" || !slices.Contains(sources, s.Source) {
			t.Errorf("step %d: %+v", i, s)
		}
		if s.Source != "agent" && (s.Model != "" || s.Reasoning != "" || s.Calls != nil || s.Metrics != nil) {
			t.Errorf("step %d of %s has fields of an agent", s.ID, s.Source)
		}
		for _, c := range s.Calls {
			if c.ID == "" || c.Function == "" || c.Arguments == nil {
				t.Errorf("step %d: call %+v", s.ID, c)
			}
		}
		if s.Observed == nil {
			continue
		}
		for _, r := range s.Observed.Results {
			if r.Call != "" && !slices.ContainsFunc(s.Calls, func(c callOf) bool { return c.ID == r.Call }) {
				t.Errorf("step %d: a result of %q, which it does not call", s.ID, r.Call)
			}
			for _, ref := range r.Refs {
				if !embedded[ref.Trajectory] {
					t.Errorf("step %d: the trajectory %q is not there", s.ID, ref.Trajectory)
				}
			}
		}
	}
}

// exportATIF exports a session and checks it.
func exportATIF(t *testing.T, s *store.Store, id session.ID, opt export.Options,
) (tr trajectory, report export.Report) {
	t.Helper()
	var out bytes.Buffer
	report = testkit.Must(export.Write(t.Context(), &out, s, export.ATIF, []session.ID{id}, opt))(t)
	err := json.Unmarshal(out.Bytes(), &tr, json.RejectUnknownMembers(true), json.MatchCaseInsensitiveNames(true))
	if err != nil {
		t.Fatalf("%v in %s", err, out.Bytes())
	}
	validTrajectory(t, &tr)
	return tr, report
}

func TestATIF(t *testing.T) {
	s := open(t)
	say := func(id session.ID, call *session.Call, messages string) {
		var raw []jsontext.Value
		testkit.Check(t, json.Unmarshal([]byte(messages), &raw))
		decoded := testkit.Must(dialect.Decode(dialect.Anthropic, raw))(t)
		testkit.Must(s.Append(t.Context(), store.Append{Session: id, Messages: decoded.Messages, Call: call}))(t)
	}
	id := testkit.Must(s.CreateSession(t.Context(), store.NewSession{Title: "Tides", Model: "claude-opus-4-8"}))(t).ID
	if tr, _ := exportATIF(t, s, id, export.Options{}); len(tr.Steps) != 1 || tr.Steps[0].Source != "system" {
		t.Errorf("an empty session has the steps %+v", tr.Steps)
	}
	say(id, nil, `[{"role":"user","content":[{"type":"text","text":"How high? password=hunter2hunter2"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]}]`)
	say(id, &session.Call{InputTokens: 100, CacheReadTokens: 20, OutputTokens: 7, CostNanoUSD: new(int64(5e6))},
		`[{"role":"assistant","model":"claude-opus-4-8","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"I look."},
			{"type":"tool_use","id":"c1","name":"Task","input":{"of":"tide"}},{"type":"tool_use","id":"c2","name":"Read","input":{}}]}]`)
	say(id, nil, `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"none","is_error":true},
		{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"three"},{"type":"text","text":"metres"}]}]}]`)
	say(id, nil, `[{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[]},{"type":"text","text":"Three."}]},
		{"role":"user","content":"Thanks."}]`)
	said := session.MessageRef{Session: id, Seq: 2}
	start := func(call string) session.ID {
		return testkit.Must(s.CreateSession(t.Context(), store.NewSession{
			ParentID: id, Started: &said, StartedCall: call, Kind: "subagent",
		}))(t).ID
	}
	child := start("c1")
	say(child, nil, `[{"role":"user","content":"Find it."},{"role":"assistant","content":"Three metres."}]`)
	start("c2")

	tr, report := exportATIF(t, s, id, export.Options{Mask: &redact.Masker{}})
	var got []string
	for _, step := range tr.Steps {
		line := fmt.Sprintf("%d %s %q", step.ID, step.Source, step.Message)
		for _, c := range step.Calls {
			line += " " + c.Function + "(" + c.ID + ")"
		}
		if step.Observed != nil {
			for _, r := range step.Observed.Results {
				line += fmt.Sprintf(" =%s:%s", r.Call, r.Content)
				for _, ref := range r.Refs {
					line += "→" + ref.Trajectory
				}
			}
		}
		got = append(got, line)
	}
	want := []string{
		`1 user "How high? password=[secret]"`,
		`2 agent "I look." Task(c1) Read(c2) =c2:none→` + string(tr.Subagents[1].TrajectoryID) + ` =c1:three→` + string(child) + ` =c1:metres`,
		`3 agent "Three." web_search(s1) =s1:`,
		`4 user "Thanks."`,
	}
	got[0] = strings.NewReplacer(got[0][strings.Index(got[0], "password=")+9:len(got[0])-1], "[secret]").Replace(got[0])
	testkit.Equal(t, want, got)
	if m := tr.Steps[1].Metrics; m == nil || m.Prompt != 120 || m.Cached != 20 || m.Completion != 7 || m.Cost != 0.005 ||
		tr.Steps[1].Reasoning != "hm" || tr.Steps[1].Model != "claude-opus-4-8" {
		t.Errorf("step 2: %+v with %+v", tr.Steps[1], m)
	}
	if f := tr.FinalMetrics; f.Prompt != 120 || f.Completion != 7 || f.Cost != 0.005 {
		t.Errorf("final metrics %+v", f)
	}
	if report.LeftOut["image parts"] != 1 || len(tr.Subagents) != 2 || strings.Contains(fmt.Sprint(tr), "hunter2") {
		t.Errorf("report %+v, trajectory %+v", report, tr)
	}

	fork := testkit.Must(s.Fork(t.Context(), store.Fork{Session: id}))(t)
	say(fork.ID, nil, `[{"role":"assistant","content":"More."}]`)
	tr, _ = exportATIF(t, s, fork.ID, export.Options{})
	if len(tr.Steps) != 5 || !tr.Steps[0].Copied || tr.Steps[4].Copied {
		t.Errorf("a fork has the steps %+v", tr.Steps)
	}
}

// Whatever a conversation is, its trajectory is valid.
func TestATIFOfLongAndOddConversations(t *testing.T) {
	s := open(t)
	id, said, result := longTalk(t, s)
	tr, _ := exportATIF(t, s, id, export.Options{})
	if tr.Steps[0].Message != said || tr.Steps[1].Observed.Results[0].Content != result {
		t.Error("a long text is not whole")
	}
	call := func(id string) session.Part {
		return session.Part{Kind: session.PartToolCall, CallID: id, ToolName: "f", Arguments: "{"}
	}
	answer := func(id string) session.Part {
		return session.Part{Kind: session.PartToolResult, CallID: id, ToolName: "f", Text: "7"}
	}
	odd := testkit.Must(s.CreateSession(t.Context(), store.NewSession{}))(t).ID
	var msgs []session.Message
	for _, m := range []session.Message{
		{Role: session.Tool, Parts: []session.Part{answer("nobody")}},
		{Role: session.Assistant, Parts: []session.Part{call("a"), call("a"), call("made_f_1")}},
		{Role: session.Assistant, Parts: []session.Part{call("b")}},
		{Role: session.Tool, Parts: []session.Part{answer("a"), answer("made_f_1"), answer("b"), answer("a"), answer("a")}},
		{Kind: session.KindMarker},
		{Role: session.User, Origin: session.Program, Parts: []session.Part{session.TextPart("tick")}},
		{Role: session.Assistant, Parts: []session.Part{call("c")}},
		{Role: session.User, Origin: session.Person},
		{Role: session.Tool, Parts: []session.Part{answer("c")}},
	} {
		m.Display, m.InContext = true, true
		msgs = append(msgs, m)
	}
	testkit.Must(s.Append(t.Context(), store.Append{Session: odd, Messages: msgs}))(t)
	tr, _ = exportATIF(t, s, odd, export.Options{})
	if len(tr.Steps) != 7 || tr.Steps[3].Source != "system" || tr.Steps[0].Observed == nil ||
		tr.Steps[6].Observed == nil {
		t.Errorf("%d steps: %+v", len(tr.Steps), tr.Steps)
	}
}
