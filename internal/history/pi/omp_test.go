package pi_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
	"sessiond/internal/testkit/historytest"
)

func newOmp(t *testing.T) *house {
	t.Helper()
	return &house{historytest.New(t, pi.NewOmp(historytest.NoEnv))}
}

// slot is the first line of omp's files, which keeps its length.
func slot(title string) string {
	return `{"type":"title","v":1,"title":"` + title + `","updatedAt":"2026-08-20T15:12:20.989Z","pad":"` +
		strings.Repeat(" ", 60-len(title)) + `"}`
}

func TestOmpSampleAddsUp(t *testing.T) {
	file := historytest.Sample(t, "omp", "title-slot-17.4.0.jsonl")
	h := newOmp(t)
	path := h.Copy(file)
	done := h.Import(path)
	if diff := cmp.Diff(history.Records{Read: 6, Imported: 6, Skipped: map[string]int{}}, done.Records); diff != "" ||
		done.Sessions.New != 1 || len(done.Errors) > 0 {
		t.Errorf("%+v\n%s", done, diff)
	}
	s := h.Session("01a01fba-0000-7000-a150-000000000621")
	if s.Title != "Capture the current OMP session envelope." || s.TitleSource != "first_message" ||
		s.Source != session.SourceOmp {
		t.Errorf("%q from %s, of %s", s.Title, s.TitleSource, s.Source)
	}
	if !strings.Contains(string(s.Metadata), `"foreign_session_import":{"source":"codex","sourceId":"01a01fb8-`) {
		t.Errorf("%s", s.Metadata)
	}
	if got := h.Keys(s); !slices.Equal(got, []string{"codex-1", "codex-2", "00000621"}) { // the exit is beside it
		t.Errorf("%v", got)
	}
	if n := len(h.Entries(s.ID)); n != 4 {
		t.Errorf("%d entries", n)
	}
	if calls := h.Calls(s.ID); len(calls) != 0 { // Codex's own history has them
		t.Errorf("%+v", calls)
	}
	h.unchanged(path)
	h.Examine()

	lines := strings.SplitAfter(historytest.Read(t, file), "\n")
	halves := newOmp(t)
	growing := halves.Write("growing.jsonl")
	halves.Append(growing, strings.Join(lines[:5], ""))
	halves.Import(growing)
	halves.Append(growing, lines[5])
	if done := halves.Import(growing); done.Records.Read != 1 || done.Records.Imported != 1 {
		t.Errorf("the rest: %+v", done)
	}
	if diff := cmp.Diff(h.Told(), halves.Told()); diff != "" {
		t.Errorf("-whole +halves\n%s", diff)
	}
}

// The title before the header is rewritten in place: the file is continued, not read anew.
func TestOmpTitleIsRewrittenInPlace(t *testing.T) {
	h := newOmp(t)
	lines := []string{slot(""), head("omp", ""), user("any text/1", "", "What now?"), user("2", "any text/1", "And now?")}
	path := h.Write("a.jsonl", lines...)
	h.Import(path)
	title := func(want, from string) {
		t.Helper()
		if s := h.Session("omp"); s.Title != want || s.TitleSource != from || s.MessageCount != int64(len(lines)-2) {
			t.Errorf("%q from %s, %d messages", s.Title, s.TitleSource, s.MessageCount)
		}
	}
	title("What now?", "first_message")
	lines[0] = slot("The plan")
	h.Rewrite(path, append(lines, user("3", "2", "Then?"))...)
	lines = append(lines, user("3", "2", "Then?"))
	if done := h.Import(path); done.Records.Read != 1 || done.Records.Imported != 1 || len(done.Errors) > 0 {
		t.Errorf("%+v", done)
	}
	title("The plan", "source")
	lines[0] = `{"type":"title","v":1,"title":"Another, and the line got longer than its slot was","updatedAt":"2026-08-20T15:12:20.989Z"}`
	h.Rewrite(path, lines...)
	if done := h.Import(path); done.Records.Imported+done.Records.Raw > 0 || len(done.Errors) > 0 {
		t.Errorf("%+v", done)
	}
	title("Another, and the line got longer than its slot was", "source")
	whole := newOmp(t)
	whole.Import(path)
	if diff := cmp.Diff(whole.Told(), h.Told()); diff != "" {
		t.Errorf("-whole +halves\n%s", diff)
	}
}

// What omp took over from another program's session was counted there; what follows counts here.
func TestOmpCountsNoCallOfAnotherProgram(t *testing.T) {
	reply := func(id, parent, text string) string {
		return strings.Replace(user(id, parent, text), `"role":"user"`, `"role":"assistant","provider":"p","model":"m","usage":{"input":7,"output":1}`, 1)
	}
	h := newOmp(t)
	h.Import(h.Write("a.jsonl", slot(""), head("omp", ""), user("claude-1", "", "hello"),
		reply("claude-2", "claude-1", "there"),
		`{"type":"custom","customType":"foreign_session_import","data":{"source":"claude-code","sourceId":"x"},"id":"m","parentId":"claude-2","timestamp":"2026-01-01T10:00:00.000Z"}`,
		user("3", "m", "go on"), reply("4", "3", "here")))
	s := h.Session("omp")
	calls := h.Calls(s.ID)
	if len(calls) != 1 || s.MessageCount != 5 {
		t.Fatalf("%d calls, %d messages", len(calls), s.MessageCount)
	}
	last := h.Entries(s.ID)[4]
	if calls[0].MessageID == nil || *calls[0].MessageID != last.RowID || last.ExternalID != "4" {
		t.Errorf("%+v", calls[0])
	}
}

// Both programs read $PI_CODING_AGENT_DIR: each takes its own files there. Elsewhere pi names omp.
func TestPiAndOmpShareAFolder(t *testing.T) {
	dir := t.TempDir()
	env := func(name string) string { return map[string]string{"PI_CODING_AGENT_DIR": dir}[name] }
	h := newHouse(t)
	h.Rewrite(filepath.Join(dir, "sessions", "p", "1.jsonl"), head("pi", ""), user("1", "", "a"))
	omp := filepath.Join(dir, "sessions", "p", "2.jsonl")
	h.Rewrite(omp, slot(""), head("omp", ""), user("1", "", "a"))
	for source, want := range map[history.Source]string{pi.New(env): "1.jsonl", pi.NewOmp(env): "2.jsonl"} {
		for _, roots := range [][]string{nil, {dir}} {
			found, problems, err := source.Find(t.Context(), roots)
			if err != nil || len(problems) > 0 || len(found) != 1 || filepath.Base(found[0].Path) != want {
				t.Errorf("%s: %+v %v %v", source.Name(), found, problems, err)
			}
		}
	}
	if done := h.Import(omp); len(done.Errors) != 1 || !strings.Contains(done.Errors[0].Error, "sessiond import omp") {
		t.Errorf("%+v", done.Errors)
	}
}
