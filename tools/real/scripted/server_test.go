package scripted

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Each form has a request with a prompt, a tool, and a result of that tool if there is one.
var forms = []struct {
	name, path string
	body       func(prompt string, result bool, streamed bool) string
	call       string // in the answer
}{
	{
		"chat", "/v1/chat/completions",
		func(prompt string, result, streamed bool) string {
			more := ""
			if result {
				more = `,{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{}"}}]},` +
					`{"role":"tool","tool_call_id":"c1","content":"low"}`
			}
			return fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"user","content":%q}%s],
				"tools":[{"type":"function","function":{"name":"bash","parameters":`+shellSchema+`}}]}`, streamed, prompt, more)
		},
		`\"command\":\"printf low\"`,
	},
	{
		"responses", "/v1/responses",
		func(prompt string, result, streamed bool) string {
			more := ""
			if result {
				more = `,{"type":"function_call","call_id":"c1","name":"shell","arguments":"{}"},` +
					`{"type":"function_call_output","call_id":"c1","output":"low"}`
			}
			return fmt.Sprintf(`{"model":"m","stream":%t,"input":[{"type":"message","role":"user",
				"content":[{"type":"input_text","text":%q}]}%s],"tools":[{"type":"function","name":"shell",
				"parameters":`+shellSchema+`}]}`, streamed, prompt, more)
		},
		`\"command\":\"printf low\"`,
	},
	{
		"messages", "/v1/messages",
		func(prompt string, result, streamed bool) string {
			more := ""
			if result {
				more = `,{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{}}]},` +
					`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"low"}]}`
			}
			return fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"user","content":%q}%s],
				"tools":[{"name":"Bash","input_schema":`+shellSchema+`}]}`, streamed, prompt, more)
		},
		`"Bash"`,
	},
	{
		"gemini", "/v1beta/models/m:generateContent",
		func(prompt string, result, _ bool) string {
			more := ""
			if result {
				more = `,{"role":"model","parts":[{"functionCall":{"name":"run_shell_command","args":{}}}]},` +
					`{"role":"user","parts":[{"functionResponse":{"name":"run_shell_command","response":{"output":"low"}}}]}`
			}
			return fmt.Sprintf(`{"contents":[{"role":"user","parts":[{"text":%q}]}%s],"tools":[{"functionDeclarations":
				[{"name":"run_shell_command","parametersJsonSchema":`+shellSchema+`}]}]}`, prompt, more)
		},
		`"command":"printf low"`,
	},
}

const shellSchema = `{"type":"object","properties":{"command":{"type":"string"},"mode":{"type":"string","enum":["fast","slow"]}},
	"required":["command","mode"]}`

func ask(t *testing.T, s http.Handler, path, body string) (string, int) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	text, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), w.Code
}

func TestOrderCallsTheToolOfTheRequestOnce(t *testing.T) {
	for _, f := range forms {
		for _, streamed := range []bool{false, true} {
			t.Run(fmt.Sprint(f.name, " streamed ", streamed), func(t *testing.T) {
				s, path := &Server{}, f.path
				if f.name == "gemini" && streamed {
					path = "/v1beta/models/m:streamGenerateContent"
				}
				const prompt = "How high is the water? (shell: printf low)"
				answer, code := ask(t, s, path, f.body(prompt, false, streamed))
				if code != 200 || !strings.Contains(answer, f.call) || strings.Contains(answer, "data: ") != streamed {
					t.Errorf("the first answer is %d %s", code, answer)
				}
				answer, _ = ask(t, s, path, f.body(prompt, true, streamed))
				if !strings.Contains(answer, "Reply 2:") {
					t.Errorf("the second answer is %s", answer)
				}
				log := s.Log()
				if len(log) != 2 || log[0].Calls[0].Arguments["mode"] != "fast" || log[0].Kind != Turn ||
					log[0].Usage == log[1].Usage {
					t.Errorf("the log is %+v", log)
				}
			})
		}
	}
}

func TestRequestsThatAreNoTurns(t *testing.T) {
	tests := []struct {
		name, path, body string
		kind             Kind
		answer           string
	}{
		{
			"a compaction", "/v1/messages", `{"messages":[{"role":"user","content":"Plan it. (shell: ls)"},
				{"role":"assistant","content":"Yes."},{"role":"user","content":"Create a detailed summary in <summary> tags."}],
				"tools":[{"name":"Bash","input_schema":` + shellSchema + `}]}`,
			Summary, "\\u003csummary>Notes 1", // encoded below
		},
		{
			"a conversation as one text", "/v1/chat/completions", `{"messages":[{"role":"user","content":"<conversation>[User]: ` +
				`Plan it. (shell: ls)` + strings.Repeat(" And so on.", 200) + `</conversation> Summarize it."}]}`,
			Summary, "Notes 1",
		},
		{
			"an answer by a schema", "/v1beta/models/m:generateContent",
			`{"contents":[{"role":"user","parts":[{"text":"Who speaks? (shell: ls)"}]}],"generationConfig":{"responseMimeType":
				"application/json","responseJsonSchema":{"type":"object","properties":{"next":{"type":"string","enum":["user"]}},
				"required":["next"]}}}`,
			Aside, `next`,
		},
		{
			"a title", "/v1/chat/completions", `{"messages":[{"role":"system","content":"You write a title."},
				{"role":"user","content":"Plan it. (shell: ls)"}]}`,
			Aside, "Harbour 1",
		},
		{"a list of models", "/v1/models", ``, Other, `"data":[]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &Server{}
			answer, _ := ask(t, s, tt.path, tt.body)
			answer = strings.ReplaceAll(answer, "<", `\u003c`)
			if log := s.Log(); log[0].Kind != tt.kind || !strings.Contains(answer, tt.answer) {
				t.Errorf("the answer is of kind %s: %s", log[0].Kind, answer)
			}
		})
	}
}

func TestProgramThatNeverStopsIsStopped(t *testing.T) {
	s := &Server{}
	body := forms[0].body("Again. (shell: ls)", false, false)
	for n := range mostRepeats + 1 {
		answer, code := ask(t, s, forms[0].path, body)
		if (code == 200) != (n < mostRepeats) {
			t.Fatalf("request %d is answered by %d %s", n+1, code, answer)
		}
	}
	for n := range mostRequests {
		_, _ = ask(t, s, forms[0].path, forms[0].body(fmt.Sprintf("Prompt %d.", n), false, false))
	}
	if _, code := ask(t, s, forms[0].path, forms[0].body("One more.", false, false)); code != 400 {
		t.Errorf("after %d requests the answer is %d", mostRequests, code)
	}
	s.Begin()
	if answer, code := ask(t, s, forms[0].path, body); code != 200 {
		t.Errorf("another program is answered by %d %s", code, answer)
	}
}

func TestSearchFindsADeferredTool(t *testing.T) {
	s := &Server{}
	request := func(tools, turns string) string {
		return `{"messages":[{"role":"user","content":"Which port? (search: staging)"}` + turns + `],"tools":[` + tools + `]}`
	}
	const finds = `{"name":"ToolSearch","input_schema":{"type":"object","properties":{"query":{"type":"string"}}}}`
	const found = finds + `,{"name":"mcp__sessiond__search","input_schema":{"type":"object","properties":{"query":{"type":"string"}}}}`
	step := func(name string) string {
		return `,{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"` + name + `","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]}`
	}
	for i, want := range []struct{ body, call string }{
		{request(finds, ""), "ToolSearch"},
		{request(found, step("ToolSearch")), "mcp__sessiond__search"},
		{request(found, step("ToolSearch")+step("mcp__sessiond__search")), ""},
		{request(found, ""), "mcp__sessiond__search"},
	} {
		_, _ = ask(t, s, "/v1/messages", want.body)
		x, got := s.Log()[i], ""
		if len(x.Calls) > 0 {
			got = x.Calls[0].Name
		}
		if got != want.call {
			t.Errorf("request %d calls %q, want %q", i+1, got, want.call)
		}
	}
}

// A transcript has sessiond's tools and texts whole, and the beginnings of others.
func TestTranscriptShowsWhatSessiondAdds(t *testing.T) {
	long := strings.Repeat("word ", 60)
	body := `{"model":"m","tools":[{"type":"function","function":{"name":"bash"}},` +
		`{"type":"function","function":{"name":"sessiond_search"}}],"messages":[{"role":"system","content":"` + long + `"},` +
		`{"role":"user","content":"Where? <from_sessiond>On port 6432.</from_sessiond>"}]}`
	got := Transcript(&Exchange{Path: "/v1/chat/completions", Body: body, Text: "There."})
	want := "tools: 2, among them sessiond_search\nsystem: " + long[:longestOther] + "…\nuser: Where?\n" +
		"user: <from_sessiond>On port 6432.\n</from_sessiond>\nanswer: There.\n"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
