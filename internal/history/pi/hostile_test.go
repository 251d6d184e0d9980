package pi_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/testkit/historytest"
)

// A file of any length takes the memory of a batch, not of the file.
func TestPiMemoryIsThatOfABatch(t *testing.T) {
	effort.OnlyLong(t, "it measures memory")
	path := filepath.Join(t.TempDir(), "long.jsonl")
	file := testkit.Must(os.Create(path))(t)
	out := bufio.NewWriter(file)
	fmt.Fprintln(out, header)
	const lines = 20_000
	filler := strings.Repeat("many words of a long conversation ", 60)
	parent := ""
	for i := range lines { // about 43 MB
		id := fmt.Sprintf("%08x", i)
		fmt.Fprintln(out, user(id, parent, filler))
		parent = id
	}
	testkit.Check(t, out.Flush())
	info := testkit.Must(file.Stat())(t)
	defer file.Close()

	c := historytest.Collector{Watch: true}
	testkit.Must(pi.New(historytest.NoEnv).Read(t.Context(), history.Found{Path: path, Size: info.Size()}, nil,
		historytest.Nobody{}, c.Emit))(t)
	if c.Messages != lines || c.Records.Read != lines+1 || c.Largest > history.MaxBatch {
		t.Errorf("%d messages, %d records, batches of %d", c.Messages, c.Records.Read, c.Largest)
	}
	if limit := uint64(24 << 20); c.Peak > limit {
		t.Errorf("%d MB of heap for a file of %d MB", c.Peak>>20, info.Size()>>20)
	}
}

func TestPiLineOverABatchIsStored(t *testing.T) {
	h := newHouse(t)
	h.Import(h.Write("wide.jsonl", header, user("1", "", strings.Repeat("wide\n", 1<<20)), user("2", "1", "after")))
	rows := h.Entries(h.Session("one").ID)
	if len(rows) != 2 || len(rows[0].Text()) != 5<<20 || rows[1].Text() != "after" {
		t.Errorf("%d rows", len(rows))
	}
}

func TestPiBytesThatTextCannotHold(t *testing.T) {
	h := newHouse(t)
	path := h.Write("a.jsonl", header,
		user("1", "", "before"),
		strings.Replace(user("2", "1", "X"), `"X"`, "\"bad \xff\xfe bytes\"", 1), // invalid UTF-8
		"nul \x00 in the line",
		strings.Replace(user("3", "2", "X"), `"X"`, `"\ud800 alone and \u0000"`, 1),
		`{"type":"custom","id":"4","parentId":"3","timestamp":"2026-01-02T09:03:00.000Z","data":`+strings.Repeat("[", 3000)+strings.Repeat("]", 3000)+`}`,
		`{"type":"custom","id":"5","parentId":"4","timestamp":"2026-01-02T09:03:00.000Z","data":`+strings.Repeat("[", 20000)+strings.Repeat("]", 20000)+`}`,
		user("6", "4", "after"),
	)
	done := h.Import(path)
	s := h.Session("one")
	rows := h.Entries(s.ID)
	if len(rows) != 7 || done.Records.Imported != 5 || done.Records.Raw != 3 {
		t.Fatalf("%d rows, %+v", len(rows), done.Records)
	}
	if !strings.Contains(rows[1].Text(), "bad ") || !strings.Contains(string(rows[1].Extra), `"bytes"`) {
		t.Errorf("invalid UTF-8 reads %q, extra %s", rows[1].Text(), rows[1].Extra)
	}
	if got := historytest.Texts(h.Path(s)); !strings.HasPrefix(got, "before bad ") || !strings.HasSuffix(got, "after") {
		t.Errorf("path %q", got)
	}
	var lines []int
	for _, problem := range done.Errors {
		lines = append(lines, problem.Line)
	}
	if fmt.Sprint(lines) != "[4 6 7]" {
		t.Errorf("problems in lines %v", lines)
	}
}

// A long chain of parents that come historytest.Later, and many compactions, cost no more than the file.
func TestPiHostileLinksEnd(t *testing.T) {
	var lines []string
	const n = 20_000
	for i := range n {
		lines = append(lines, user(fmt.Sprint(i), fmt.Sprint((i+1)%n), "x")) // one large cycle
	}
	h := newHouse(t)
	path := h.Write("a.jsonl", append([]string{header}, lines...)...)
	c := historytest.Collector{}
	testkit.Must(h.Source.Read(t.Context(), history.Found{Path: path}, nil, historytest.Nobody{}, c.Emit))(t)
	if c.Messages != n {
		t.Errorf("%d messages", c.Messages)
	}
}

func TestPiFinds(t *testing.T) {
	root := t.TempDir()
	agent := filepath.Join(root, "agent")
	elsewhere := filepath.Join(root, "elsewhere")
	for _, dir := range []string{"sessions/--home-dev--", "sessions/--closed--", "prompts"} {
		testkit.Check(t, os.MkdirAll(filepath.Join(agent, dir), 0o700))
	}
	h := newHouse(t)
	for name, id := range map[string]string{
		"agent/sessions/--home-dev--/2026-01-02_b.jsonl": "b",
		"agent/sessions/--home-dev--/2026-01-01_a.jsonl": "a",
		"agent/2026-01-03_misplaced.jsonl":               "misplaced",
	} {
		h.Rewrite(filepath.Join(root, name), strings.Replace(header, "one", id, 1), user("1", "", "x"))
	}
	for _, secret := range []string{"auth.json", "models.json", "settings.json", "oauth.json"} {
		testkit.Check(t, os.WriteFile(filepath.Join(agent, secret), []byte("{}"), 0o000))
	}
	flat := filepath.Join(root, "flat")
	for _, dir := range []string{elsewhere, flat} {
		testkit.Check(t, os.Mkdir(dir, 0o700))
	}
	h.Rewrite(filepath.Join(flat, "2026-01-05_flat.jsonl"), strings.Replace(header, "one", "flat", 1), user("1", "", "x"))
	h.Rewrite(filepath.Join(agent, "prompts", "foreign.jsonl"), "{}")
	h.Rewrite(filepath.Join(elsewhere, "2026-01-04_linked.jsonl"), strings.Replace(header, "one", "linked", 1),
		user("1", "", "x"))
	testkit.Check(t, os.Symlink(elsewhere, filepath.Join(agent, "sessions", "--linked--")))
	testkit.Check(t, os.Symlink(filepath.Join(agent, "sessions"), filepath.Join(agent, "sessions", "--round--")))
	usual := pi.New(func(name string) string {
		return map[string]string{"PI_CODING_AGENT_DIR": "~/agent", "HOME": root, "PI_CODING_AGENT_SESSION_DIR": flat}[name]
	})
	sessions := filepath.Join(agent, "sessions")
	for _, test := range []struct {
		name  string
		roots []string
		want  string
	}{
		{"usual place", nil, "2026-01-01_a 2026-01-02_b 2026-01-03_misplaced 2026-01-04_linked 2026-01-05_flat"},
		{"sessions folder", []string{sessions}, "2026-01-01_a 2026-01-02_b 2026-01-04_linked"},
		{"one project", []string{filepath.Join(sessions, "--home-dev--")}, "2026-01-01_a 2026-01-02_b"},
		{"flat folder", []string{elsewhere}, "2026-01-04_linked"},
		{"one file", []string{filepath.Join(agent, "2026-01-03_misplaced.jsonl")}, "2026-01-03_misplaced"},
		{"the same twice", []string{elsewhere, filepath.Join(sessions, "--linked--")}, "2026-01-04_linked"},
	} {
		t.Run(test.name, func(t *testing.T) {
			found, problems, err := usual.Find(t.Context(), test.roots)
			if err != nil || len(problems) > 0 {
				t.Fatal(err, problems)
			}
			var names []string
			for _, f := range found {
				names = append(names, strings.TrimSuffix(filepath.Base(f.Path), ".jsonl"))
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("found %s, want %s", got, test.want)
			}
		})
	}
}

func TestPiUnreadableThingsAreToldAndTheRestGoesOn(t *testing.T) {
	h := newHouse(t)
	dir := t.TempDir()
	good := filepath.Join(dir, "2026_good.jsonl")
	h.Rewrite(good, header, user("1", "", "x"))
	dangling := filepath.Join(dir, "2026_dangling.jsonl")
	testkit.Check(t, os.Symlink(filepath.Join(dir, "gone"), dangling))
	want := 2 // the link, and the root that is not there
	if os.Getuid() != 0 {
		closed := filepath.Join(dir, "2026_closed.jsonl")
		h.Rewrite(closed, header)
		testkit.Check(t, os.Chmod(closed, 0))
		want++
	}
	done := h.Import(dir, filepath.Join(dir, "nowhere"))
	if len(done.Errors) != want || done.Sessions.New != 1 {
		t.Errorf("%+v", done)
	}
	if _, problems, err := pi.New(historytest.NoEnv).Find(t.Context(), nil); err != nil || len(problems) != 0 {
		t.Errorf("a host without pi: %v %v", problems, err)
	}
}

func TestPiSessionSurvivesTheEndOfItsFile(t *testing.T) {
	h := newHouse(t)
	path := h.Write("a.jsonl", header, user("1", "", "one"), user("2", "1", "two"))
	h.Import(path)
	h.Rewrite(path, header, user("1", "", "one")) // cut short
	if done := h.Import(path); done.Records.Imported != 0 || done.Sessions.Unchanged != 1 {
		t.Errorf("%+v", done)
	}
	if got := historytest.Texts(h.Path(h.Session("one"))); got != "one two" {
		t.Errorf("path %q", got)
	}
}

// FuzzRead: whatever a file holds, reading ends, the records add up, and every message can
// be stored.
func FuzzRead(f *testing.F) {
	f.Add([]byte(header + "\n" + user("1", "", "one") + "\n" + `{"type":"compaction","id":"2","parentId":"1","summary":"s","firstKeptEntryId":"1"}`))
	f.Add([]byte(`{"type":"session","id":"x"}` + "\n" + `{"type":"message","message":{"role":"assistant","content":[{"type":"toolCall","arguments":{}}],"usage":{"input":-1,"cost":{"total":1e400}}}}`))
	f.Add([]byte(header + "\n" + `{"type":"message","id":"1","message":{"role":"toolResult","content":[{"type":"image","data":"aGk="},{"type":"text","text":"\ud800"}]}}` + "\n{"))
	f.Add([]byte(header + "\n" + `{"type":"leaf","id":"1","targetId":"1"}{"type":"label","id":"2","targetId":"9"}` + "\n" + `{"id":"1","type":"leaf"}`))
	historytest.FuzzFile(f, "f.jsonl", pi.New(historytest.NoEnv))
}

// How fast a file is read, without the store: MB/s of transcript.
func BenchmarkRead(b *testing.B) {
	historytest.BenchmarkRead(b, pi.New(historytest.NoEnv), historytest.Sample(b, "pi", "before-compaction.jsonl"))
}
