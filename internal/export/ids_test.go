package export_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/export"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

const oddIDs = `{"type":"session","version":3,"id":"odd","timestamp":"2026-01-02T09:00:00.000Z","cwd":"/home/dev"}
{"type":"message","id":"e01","parentId":null,"timestamp":"2026-01-02T09:01:00.000Z","message":{"role":"user","content":"one","timestamp":1767344460000}}
{"type":"message","id":"zz","parentId":"e01","timestamp":"2026-01-02T09:02:00.000Z","message":{"role":"user","content":"two","timestamp":1767344520000}}
{"type":"message","id":"0000abcd","parentId":"zz","timestamp":"2026-01-02T09:03:00.000Z","message":{"role":"user","content":"three","timestamp":1767344580000}}
{"type":"label","id":"l1","parentId":"0000abcd","timestamp":"2026-01-02T09:04:00.000Z","targetId":"e01","label":"here"}
{"type":"label","id":"l2","parentId":"l1","timestamp":"2026-01-02T09:04:01.000Z","targetId":"0000abcd","label":"there"}
{"type":"label","id":"l3","parentId":"l2","timestamp":"2026-01-02T09:04:02.000Z","targetId":"gone","label":"nowhere"}
{"type":"compaction","id":"c-1","parentId":"l3","timestamp":"2026-01-02T09:05:00.000Z","summary":"They counted.","firstKeptEntryId":"zz","tokensBefore":100}
{"type":"branch_summary","id":"b1","parentId":"c-1","timestamp":"2026-01-02T09:06:00.000Z","fromId":"zz","summary":"They strayed."}
{"type":"novel","id":"n1","parentId":"b1","timestamp":"2026-01-02T09:07:00.000Z","targetId":"zz","x":1}
{"type":"context_edit","id":"x1","parentId":"n1","timestamp":"2026-01-02T09:08:00.000Z","targetId":"e01"}
{"type":"message","id":"0000ABCD","parentId":"x1","timestamp":"2026-01-02T09:09:00.000Z","message":{"role":"branchSummary","summary":"s","fromId":"e01","timestamp":1767344940000}}
`

// Ids that pi would not have made get others in its file, wherever they are named.
func TestOddIDsOfPiAreRenamedWhereverTheyAreNamed(t *testing.T) {
	s, other := open(t), open(t)
	dir := t.TempDir()
	read := func(s *store.Store, name, text string) session.Session {
		t.Helper()
		path := filepath.Join(dir, name)
		testkit.Check(t, os.WriteFile(path, []byte(text), 0o600))
		importPi(t, s, path)
		return sessions(t, s)[0]
	}
	before := read(s, "odd.jsonl", oddIDs)
	file, report := write(t, s, export.Pi, before.ID)
	counts, err := historytest.CheckPi(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	if counts.Entries != 11 || counts.Roots != 1 || counts.OnLeaf != 11 || counts.Unknown != 1 {
		t.Errorf("it holds %+v\n%s", counts, file)
	}
	if report.LeftOut["labels and edits of entries that are not in the file"] != 1 {
		t.Errorf("left out %v", report.LeftOut)
	}
	for _, id := range []string{"e01", "zz", "l1", "l2", "c-1", "b1", "n1", "x1", "0000ABCD"} {
		if strings.Contains(string(file), `"`+id+`"`) {
			t.Errorf("%s is still named\n%s", id, file)
		}
	}
	after := read(other, "again.jsonl", string(file))
	if a, b := told(t, s, before), told(t, other, after); !slices.Equal(a, b) {
		t.Errorf("it came back as\n%s\nnot\n%s", strings.Join(b, "\n"), strings.Join(a, "\n"))
	}
	if again, _ := write(t, other, export.Pi, after.ID); string(again) != string(file) {
		t.Errorf("written once more it is\n%s\nnot\n%s", again, file)
	}
}

// told says what each message of a session's path says, its label, and which are hidden by the
// overlay.
func told(t *testing.T, s *store.Store, sess session.Session) []string {
	t.Helper()
	ctx := context.Background()
	labels := testkit.Must(s.Labels(ctx, sess.ID))(t)
	effective := testkit.Must(s.Effective(ctx, sess))(t)
	if effective == nil || effective.ThroughID == nil {
		t.Fatalf("no overlay: %+v", effective)
	}
	var all []string
	for _, m := range pathOf(t, s, sess) {
		line := string(m.Role) + " " + m.Text() + " " + labels[m.RowID]
		if m.RowID <= *effective.ThroughID {
			line += " hidden"
		}
		all = append(all, line)
	}
	return all
}
