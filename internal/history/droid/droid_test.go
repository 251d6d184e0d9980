package droid_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/droid"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func source(now func() time.Time) history.Source { return droid.New(historytest.NoEnv, now) }

func TestClaimsHold(t *testing.T) {
	claims := historytest.Claims{New: source, Contexts: 1, Lines: true, Make: func(t *testing.T, folder string) {
		historytest.CopySample(t, folder, "droid", "real-2026-01", "sessions")
	}}
	claims.Hold(t)
	claims.Contexts, claims.Lines, claims.Make = 5, false, func(t *testing.T, folder string) {
		historytest.CopySample(t, folder, "droid", "constructed", ".factory", "sessions")
		torn := filepath.Join(folder, "-home-dev1-demo", id(1)+".jsonl") // its last line would wait
		whole, _, _ := strings.Cut(historytest.Read(t, torn), `{"type":"message","id":"p10"`)
		testkit.Check(t, os.WriteFile(torn, []byte(whole), 0o600))
	}
	t.Run("constructed", claims.Hold)
}

// id names a session of the constructed sample.
func id(n int) string { return fmt.Sprintf("aaaaaaaa-0000-4000-8000-%012d", n) }

func TestSamplesAddUp(t *testing.T) {
	h, done := historytest.ImportSample(t, source(historytest.Later), "droid", "real-2026-01")
	h.Gave(done, 1, "")
	testkit.Equal(t, historytest.Counts{
		Users: 1, Replies: 5, Calls: 5, Results: 5, Ledger: 1, Input: 6743, Output: 1450, CacheRead: 42496,
	}, h.CountsOf("052cb8d0-4616-488a-99fe-bfbbbe9429b3"))
	s := h.Session("052cb8d0-4616-488a-99fe-bfbbbe9429b3")
	if s.Title != `Update the first comment in @index.ts to "DROID3"` || s.Directory != "/home/dev1/projects/testing-git" {
		t.Errorf("%+v", s)
	}

	h, done = historytest.ImportSample(t, source(historytest.Later), "droid", "constructed", ".factory", "sessions")
	h.Gave(done, 5, "")
	for n, want := range map[int]historytest.Counts{
		1: {
			Users: 2, Replies: 4, Calls: 4, Results: 3, Failed: 1, Ledger: 1,
			Input: 4000, Output: 900, CacheRead: 20000, CacheWrite: 1500,
		},
		2: {Replies: 1, Ledger: 1, Input: 300, Output: 40, CacheRead: 100},
		3: {Users: 2, Replies: 3, Calls: 2, Results: 2, Ledger: 1, Input: 200, Output: 20, CacheRead: 3000},
		4: {Users: 1, Replies: 1},
		5: {Users: 3, Replies: 5, Calls: 4, Results: 3, Failed: 1, Ledger: 1, Input: 100, Output: 10, CacheRead: 1000},
	} {
		testkit.Equal(t, want, h.CountsOf(id(n)))
	}
	lead, fork, agent, compacted := h.Session(id(1)), h.Session(id(3)), h.Session(id(2)), h.Session(id(5))
	if agent.ParentID != lead.ID || fork.ParentID != lead.ID || fork.ArchivedAt == nil {
		t.Errorf("agent %+v, fork %+v", agent, fork)
	}
	if own := h.Entries(fork.ID); len(own) != 2 {
		t.Errorf("the fork has %d messages of its own", len(own))
	}
	overlay, rest := h.Seen(compacted)
	if overlay == nil || overlay.Summary != "fetch is fixed; the test fails." || historytest.Texts(rest) !=
		"Why does it fail? A missing import." {
		t.Errorf("after /compact: %+v, then %q", overlay, historytest.Texts(rest))
	}
	if overlay, rest = h.Seen(lead); overlay == nil || !strings.HasPrefix(historytest.Texts(rest), "Apply it and test.") {
		t.Errorf("after a compaction: %+v, then %q", overlay, historytest.Texts(rest))
	}
}

const start = `{"type":"session_start","id":"s","title":"New Session","version":2,"cwd":"/w"}`

// from is a first line that names a parent.
func from(parent string) string {
	return strings.Replace(start, `"id"`, fmt.Sprintf(`"parent":%q,"id"`, parent), 1)
}

func said(id, role, text string) string {
	return fmt.Sprintf(`{"type":"message","id":%q,"timestamp":"2026-09-29T03:00:01.001Z",`+
		`"message":{"role":%q,"content":%q}}`, id, role, text)
}

func TestWrongSessions(t *testing.T) {
	for what, test := range map[string]struct {
		lines    []string
		sessions int
		says     string
	}{
		"no start":              {[]string{said("1", "user", "a")}, 0, "no session_start"},
		"the output of exec":    {[]string{`{"type":"system","subtype":"init"}`, `{"type":"message"}`}, 0, "no session_start"},
		"a start alone":         {[]string{start}, 0, ""},
		"a torn line":           {[]string{start, said("1", "user", "a"), `{"type":"mess`}, 1, "no JSON object"},
		"an unknown kind":       {[]string{start, said("1", "user", "a"), `{"type":"dream"}`}, 1, ""},
		"an id twice":           {[]string{start, said("1", "user", "a"), said("1", "user", "b")}, 1, ""},
		"its own parent":        {[]string{from("s"), said("1", "user", "a")}, 1, ""},
		"a parent that is gone": {[]string{from("x"), said("1", "user", "a")}, 1, ""},
		"a content of a number": {
			[]string{start, said("1", "user", "a"), strings.Replace(said("2", "user", ""), `""`, "7", 1)}, 1, "",
		},
	} {
		t.Run(what, func(t *testing.T) {
			h := historytest.New(t, source(historytest.Later))
			h.Gave(h.Import(h.Write("s.jsonl", test.lines...)), test.sessions, test.says)
		})
	}
}

// A message that is written again says what it says last.
func TestLastVersionOfAMessageCounts(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	h.Import(h.Write("s.jsonl", start, said("1", "user", "a"), said("2", "assistant", "half"),
		said("2", "assistant", "whole")))
	if got := h.Talk(h.Session("s")); got != "user: a\nassistant: whole" {
		t.Errorf("%s", got)
	}
}

func settings(input int) string {
	return fmt.Sprintf(`{"model":"m","tokenUsage":{"inputTokens":%d,"outputTokens":5}}`, input)
}

// Settings are written after the lines, and without them: the sum grows, and never counts twice.
func TestUsageGrowsWithItsSettings(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	path := h.Write("s.jsonl", start, said("1", "user", "a"), said("2", "assistant", "b"))
	beside := strings.TrimSuffix(path, ".jsonl") + ".settings.json"
	folder := strings.TrimSuffix(path, "/s.jsonl")
	h.Import(folder)
	for _, input := range []int{3, 70, 70, 8} { // the last one was written by a machine that had less
		h.Rewrite(beside, settings(input))
		h.Import(folder)
	}
	testkit.Equal(t, historytest.Counts{Users: 1, Replies: 1, Ledger: 1, Input: 70, Output: 5}, h.CountsOf("s"))
	h.Rewrite(beside, `{"tokenUsage":`)
	h.Gave(h.Import(folder), 1, "cut off")
}

// What a session made by /compact inherited is unknown without the settings of its parent: no row is better than a
// wrong one.
func TestInheritedUsageIsNotCounted(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	path := h.Write("s.jsonl", from("p"),
		`{"type":"compaction_state","id":"c","timestamp":"2026-09-29T03:00:00Z","summaryText":"it was so"}`,
		said("1", "user", "a"), said("2", "assistant", "b"))
	folder := strings.TrimSuffix(path, "/s.jsonl")
	h.Rewrite(folder+"/s.settings.json", settings(9000))
	h.Import(folder)
	testkit.Equal(t, historytest.Counts{Users: 1, Replies: 1}, h.CountsOf("s"))
	h.Rewrite(folder+"/p.settings.json", settings(8999))
	h.Rewrite(folder+"/s.settings.json", settings(9001))
	h.Import(folder)
	testkit.Equal(t, historytest.Counts{Users: 1, Replies: 1, Ledger: 1, Input: 2}, h.CountsOf("s"))
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(start + "\n" + said("1", "user", "a")))
	historytest.FuzzRead(f, source(historytest.Later))
}
