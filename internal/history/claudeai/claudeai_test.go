package claudeai_test

import (
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/claudeai"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func source(now func() time.Time) history.Source { return claudeai.New(now) }

func TestClaimsHold(t *testing.T) {
	claims := historytest.Claims{New: source, Contexts: 4, Make: func(t *testing.T, folder string) {
		historytest.CopySample(t, folder, "claude-ai-export", "v1-single")
	}}
	claims.Hold(t)
}

const (
	primes = "c0000000-0000-4000-8000-000000000001"
	report = "c0000000-0000-4000-8000-000000000002"
	old    = "c0000000-0000-4000-8000-000000000004"
	design = "e0000000-0000-4000-8000-000000000001"
)

func TestSamplesAddUp(t *testing.T) {
	for _, name := range []string{"v1-single", "v1-single.zip", "v2-split"} {
		h := historytest.New(t, source(historytest.Later))
		done := h.Import(historytest.Sample(t, "claude-ai-export", name))
		if len(done.Errors) > 0 || done.Records.Raw > 0 {
			t.Errorf("%s: %+v", name, done)
		}
		testkit.Equal(t, historytest.Counts{Users: 2, Replies: 2, Calls: 2, Results: 2, Aside: 3}, h.CountsOf(primes))
		testkit.Equal(t, historytest.Counts{Users: 2, Replies: 1, Calls: 2, Results: 1, Failed: 1}, h.CountsOf(report))
		testkit.Equal(t, historytest.Counts{Users: 1, Replies: 1}, h.CountsOf(old))
		if s := h.Session(primes); s.Title != "Prime sum script" || s.Model != "" {
			t.Errorf("%+v", s)
		}
		var keys []string
		for _, m := range h.Path(h.Session(primes)) {
			keys = append(keys, m.ExternalID)
		}
		if got := strings.Join(keys, " "); got != "m-03 m-04 m-05 m-07" {
			t.Errorf("%s: the path is %s", name, got)
		}
		all := historytest.Texts(h.Entries(h.Session(primes).ID))
		if !strings.Contains(all, "2,3,5,7,11") || strings.Contains(all, "not supported") {
			t.Errorf("%s", all)
		}
		h.Examine()
	}
}

// The second generation repeats the first, and has a design chat besides.
func TestGenerationsAreAUnion(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	h.Import(historytest.Sample(t, "claude-ai-export", "v1-single"))
	done := h.Import(historytest.Sample(t, "claude-ai-export", "v2-split"))
	if done.Sessions.New != 1 || len(done.Errors) > 0 {
		t.Errorf("%+v", done)
	}
	testkit.Equal(t, historytest.Counts{Users: 1, Replies: 1, Calls: 1, Results: 1}, h.CountsOf(design))
}

const message = `{"uuid":"1","sender":"human","content":[{"type":"text","text":"one"}],"created_at":"2026-03-29T07:00:01Z"}`

func TestWrongExports(t *testing.T) {
	for what, test := range map[string]struct {
		text, says string
		sessions   int
	}{
		"ChatGPT":       {`[{"id":"1","mapping":{}}]`, "import chatgpt", 0},
		"another list":  {`[{"hello":1}]`, "no export of Claude.ai", 0},
		"text":          {"hello", "no export of Claude.ai", 0},
		"an index":      {`[{"uuid":"1","name":"x"}]`, "", 0},
		"cut off":       {`[{"uuid":"1","chat_messages":[` + message + `]},{"uuid":"2","chat_me`, "ends in the middle", 1},
		"one":           {`{"uuid":"1","chat_messages":[` + message + `]}`, "", 1},
		"a circle":      {`[{"uuid":"1","chat_messages":[` + strings.Replace(message, `"uuid":"1"`, `"uuid":"1","parent_message_uuid":"1"`, 1) + `]}]`, "", 1},
		"an orphan":     {`[{"uuid":"1","chat_messages":[` + strings.Replace(message, `"uuid":"1"`, `"uuid":"1","parent_message_uuid":"gone"`, 1) + `]}]`, "", 1},
		"odd values":    {`[3,{"uuid":"1","name":7,"chat_messages":[7,` + message + `,{"sender":"robot","content":7,"attachments":7},{"uuid":"3","sender":"assistant","content":[{"type":"dream"},7,{"type":"tool_use"},{"type":"tool_result"}]}]}]`, "", 1},
		"no conversion": {`[{"uuid":"1","chat_messages":[]}]`, "", 0},
	} {
		t.Run(what, func(t *testing.T) {
			h := historytest.New(t, source(historytest.Later))
			path := h.Write("conversations.json")
			h.Append(path, test.text)
			done := h.Import(path)
			h.Gave(done, test.sessions, test.says)
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`[{"uuid":"1","chat_messages":[` + message + `]}]`))
	historytest.FuzzRead(f, source(historytest.Later))
}
