package historytest

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
)

// EachConversation runs a test for each sample of a program, a *.jsonl file.
func EachConversation(t *testing.T, program string, test func(t *testing.T, file string)) {
	t.Helper()
	files := testkit.Must(filepath.Glob(filepath.Join(samples.Dir(t), program, "*.jsonl")))(t)
	if len(files) == 0 {
		t.Fatal("there are no samples of " + program)
	}
	for _, file := range files {
		if strings.Contains(file, "key-sweep") {
			continue // no conversation: its rows name one another in any order
		}
		t.Run(filepath.Base(file), func(t *testing.T) { test(t, file) })
	}
}

// Unchanged imports a file again, with and without the help of size and time, and finds nothing new: it
// returns what became of the sessions each time. A copy in another folder is read from its beginning;
// beside it lie copies of the files that it needs.
func (h *House) Unchanged(path string, beside ...string) (again, copied history.Sessions) {
	h.Helper()
	before := h.Rows()
	done := h.Import(path)
	if again = done.Sessions; again.New+again.Updated != 0 || done.Records.Read != 0 {
		h.Errorf("a second import gave %+v", done)
	}
	folder := h.TempDir()
	for _, file := range append(beside, path) {
		to := filepath.Join(folder, filepath.Base(file))
		h.Rewrite(to)
		h.Append(to, Read(h, file))
	}
	done = h.Import(filepath.Join(folder, filepath.Base(path)))
	if copied = done.Sessions; copied.New+copied.Updated != 0 || done.Records.Imported+done.Records.Raw != 0 {
		h.Errorf("a copy gave %+v", done)
	}
	if after := h.Rows(); after != before {
		h.Errorf("the copy wrote: %d rows → %d", before, after)
	}
	return again, copied
}

// Dump writes the sessions with some ids, and their messages.
func (h *House) Dump(sourceIDs ...string) string {
	h.Helper()
	var b strings.Builder
	for _, id := range sourceIDs {
		s, err := h.Store.SessionBySource(h.Context(), h.Source.Name(), id)
		if err != nil {
			continue
		}
		s.UpdatedAt = session.Time{}
		fmt.Fprintf(&b, "%s %d calls\n", session.JSONOf(s), len(h.Calls(s.ID)))
		for _, m := range h.Entries(s.ID) {
			fmt.Fprintf(&b, "  %s %s\n", m.ExternalID, m.Extra)
		}
	}
	return b.String()
}

// Said returns the texts of a session's messages, but for those that were kept raw.
func (h *House) Said(sourceID string) string {
	h.Helper()
	var talk []session.Message
	for _, m := range h.Entries(h.Session(sourceID).ID) {
		if m.Kind != session.KindUnknown {
			talk = append(talk, m)
		}
	}
	return Texts(talk)
}

// Wrong is what an import of a damaged file reports.
type Wrong struct {
	Error string // the only problem: nothing of the file is imported; "": it is imported
	Raw   int
	At    int // line of the first problem, 0: not checked
	Skips map[string]int
}

// Reports compares an import with what a damaged file must give. ok is false if nothing of it is imported.
func (h *House) Reports(done history.Accounting, path string, want Wrong) (ok bool) {
	h.Helper()
	if want.Error != "" {
		if len(done.Errors) != 1 || !strings.Contains(done.Errors[0].Error, want.Error) || done.Errors[0].Path != path {
			h.Fatalf("%+v", done)
		}
		return false
	}
	if done.Records.Raw != want.Raw {
		h.Errorf("%+v", done)
	}
	for reason, n := range want.Skips {
		if done.Records.Skipped[reason] != n {
			h.Errorf("skipped %v", done.Records.Skipped)
		}
	}
	if want.At > 0 && (len(done.Errors) == 0 || done.Errors[0].Line != want.At || done.Errors[0].Path != path) {
		h.Errorf("problems %+v", done.Errors)
	}
	return true
}

// PiHeader begins a session of pi, version 3, or of OpenClaw.
const PiHeader = `{"type":"session","version":3,"id":"one","timestamp":"2026-01-02T09:00:00.000Z","cwd":"/home/dev"}`

// PiUser is a line of such a session: a person's prompt, as a child of parent ("" for a root).
func PiUser(id, parent, text string) string {
	link := "null"
	if parent != "" {
		link = string(session.JSONOf(parent))
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-02T09:01:00.000Z","message":{"role":"user","content":%s,"timestamp":1767344460000}}`,
		id, link, session.JSONOf(text))
}

// Collector is a reader's other side without a store: it keeps nothing but counts.
type Collector struct {
	Records  history.Records
	Messages int
	Bytes    int // of their contents
	Largest  int
	Peak     uint64 // bytes of live heap when a batch came
	Watch    bool
}

// Emit counts a batch.
func (c *Collector) Emit(b history.Batch) error {
	c.Records.Read += b.Records.Read
	c.Records.Imported += b.Records.Imported
	c.Messages += len(b.Messages)
	c.Largest = max(c.Largest, len(b.Messages))
	for i := range b.Messages {
		c.Bytes += store.SizeOf(&b.Messages[i].Message)
	}
	if c.Watch {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		c.Peak = max(c.Peak, m.HeapAlloc)
	}
	return nil
}
