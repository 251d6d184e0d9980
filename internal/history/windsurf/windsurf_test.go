package windsurf_test

import (
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/windsurf"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func source(now func() time.Time) history.Source { return windsurf.New(historytest.NoEnv, now) }

func TestClaimsHold(t *testing.T) {
	claims := historytest.Claims{New: source, Contexts: 1, Lines: true, Make: func(t *testing.T, folder string) {
		historytest.CopySample(t, folder, "windsurf-devin", "real", "dot-windsurf")
	}}
	claims.Hold(t)
}

func TestSamplesAddUp(t *testing.T) {
	h, done := historytest.ImportSample(t, source(historytest.Later), "windsurf-devin", "real", "dot-windsurf")
	h.Gave(done, 1, "")
	s := h.Session("4b7c0000-0000-4000-8000-0000000000d1")
	want := historytest.Counts{Users: 4, Replies: 23, Calls: 18, Results: 18, Failed: 1}
	testkit.Equal(t, want, h.CountsOf(s.SourceID))
	if s.Directory != "/Users/dev1/Desktop/testing-gitflows-git-ai" || s.Title != "Write a song in @[xyz.md]" ||
		s.Model != "" {
		t.Errorf("%q %q %q", s.Directory, s.Title, s.Model)
	}
	touched := 0
	testkit.Check(t, h.Store.Reader().Get(&touched,
		`SELECT COUNT(DISTINCT path) FROM touched_files WHERE path LIKE '%/xyz.md'`))
	if touched != 1 {
		t.Errorf("%d files named xyz.md are known", touched)
	}
	if m := h.Path(s)[0]; !strings.Contains(string(m.Extra), "not recorded") {
		t.Errorf("the time of a message is not marked: %s", m.Extra)
	}
}

const (
	asked = `{"status":"done","type":"user_input","user_input":{"user_response":"one"}}`
	ran   = `{"status":"done","type":"run_command","run_command":{"command":"ls","cwd":"/w","exit_code":2,"output":"no"}}`
)

func TestWrongTranscripts(t *testing.T) {
	for what, test := range map[string]struct {
		lines    []string
		sessions int
		says     string
	}{
		"of another program":  {[]string{`{"type":"user","message":"hi"}`}, 0, "no transcript of Windsurf"},
		"a torn line":         {[]string{asked, `{"type":"planner`}, 1, "no JSON object"},
		"a step without text": {[]string{asked, `{"type":"planner_response","planner_response":{}}`}, 1, ""},
		"an unknown tool":     {[]string{asked, `{"type":"dream","dream":{"of":"sheep"}}`}, 1, ""},
		"a step that is none": {[]string{asked, `{"type":"dream","dream":7}`}, 1, "no step"},
		"calls alone":         {[]string{ran}, 1, ""},
	} {
		t.Run(what, func(t *testing.T) {
			h := historytest.New(t, source(historytest.Later))
			h.Gave(h.Import(h.Write("t1.jsonl", test.lines...)), test.sessions, test.says)
		})
	}
}

// The file is written anew after each reply: what stood there stays, what is new comes behind it.
func TestTranscriptGoesOn(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	path := h.Write("t1.jsonl", asked)
	h.Import(path)
	h.Rewrite(path, asked, ran, strings.Replace(asked, "one", "two", 1))
	h.Import(path)
	testkit.Equal(t, historytest.Counts{Users: 2, Replies: 1, Calls: 1, Results: 1, Failed: 1}, h.CountsOf("t1"))
	if s := h.Session("t1"); s.Directory != "/w" {
		t.Errorf("%+v", s)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(asked + "\n" + ran))
	historytest.FuzzRead(f, source(historytest.Later))
}
