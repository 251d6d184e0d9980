package openclaw_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sessiond/internal/history/openclaw"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

// Whatever a transcript holds, its records add up, and importing it in pieces gives the same
// entries under the same parents as importing it whole. A second import writes nothing.
func TestOpenClawPiecesGiveTheWhole(t *testing.T) {
	h := newHouse(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		lines := drawLines(rt)
		dir := testkit.Must(os.MkdirTemp(h.TempDir(), ""))(rt)
		head := func(id string) string {
			return strings.Replace(header, `"one"`, fmt.Sprintf("%q", fmt.Sprint(id, n)), 1)
		}
		whole := h.write(filepath.Join(dir, "whole.jsonl"), append([]string{head("whole")}, lines...)...)
		all := h.run(whole)
		if all.Records.Read != len(lines)+1 {
			rt.Fatalf("%d records of %d lines: %+v", all.Records.Read, len(lines)+1, all)
		}
		if again := h.run(whole); again.Records.Read != 0 {
			rt.Errorf("again %+v", again)
		}
		pieces := h.write(filepath.Join(dir, "pieces.jsonl"), head("pieces"))
		sum := h.run(pieces)
		for piece := range slices.Chunk(lines, 3) {
			h.Append(pieces, strings.Join(piece, "\n")+"\n")
			sum.Add(h.run(pieces))
		}
		w, p := h.Session(fmt.Sprint("main/whole", n)), h.Session(fmt.Sprint("main/pieces", n))
		if got, want := h.tree(p.ID), h.tree(w.ID); got != want {
			rt.Errorf("in pieces\n%s\nwhole\n%s", got, want)
		}
		if fmt.Sprint(h.Keys(w)) != fmt.Sprint(h.Keys(p)) {
			rt.Errorf("path in pieces %v, whole %v", h.Keys(p), h.Keys(w))
		}
		if w.MessageCount != int64(all.Records.Imported+all.Records.Raw-1) || sum.Records.Imported != all.Records.Imported {
			rt.Errorf("%d entries, whole %+v, in pieces %+v", w.MessageCount, all.Records, sum.Records)
		}
		// A copy of it under another name, read by a source that knows nothing, adds nothing.
		backup := filepath.Join(dir, fmt.Sprintf("whole%d.jsonl.bak.2026-01-05T00-00-00.000Z", n))
		h.write(backup, strings.TrimSuffix(historytest.Read(h, whole), "\n"))
		h.Source = openclaw.New(historytest.NoEnv)
		copied := h.run(backup)
		if copied.Records.Imported+copied.Records.Raw != 0 {
			rt.Errorf("a copy gave %+v", copied.Records)
		}
		if after := h.Session(fmt.Sprint("main/whole", n)); fmt.Sprint(h.Keys(after)) != fmt.Sprint(h.Keys(w)) {
			rt.Errorf("a copy moved the head: %v, before %v", h.Keys(after), h.Keys(w))
		}
	})
}

// tree returns what hangs where.
func (h *house) tree(id session.ID) string {
	keys := map[int64]string{}
	var all []string
	for _, m := range h.Entries(id) {
		keys[m.RowID] = m.ExternalID
		parent := "-"
		if m.ParentID != nil {
			parent = keys[*m.ParentID]
		}
		all = append(all, m.ExternalID+" under "+parent)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// drawLines draws lines of every type that name one another, and some that are none.
func drawLines(rt *rapid.T) []string {
	var lines []string
	for range rapid.IntRange(0, 10).Draw(rt, "lines") {
		id := fmt.Sprint(rapid.IntRange(0, 8).Draw(rt, "id"))
		parent := fmt.Sprintf("%q", fmt.Sprint(rapid.IntRange(0, 8).Draw(rt, "parent")))
		if rapid.IntRange(0, 5).Draw(rt, "root") == 0 {
			parent = "null"
		}
		link := `"parentId":` + parent + ","
		if rapid.IntRange(0, 5).Draw(rt, "no link") == 0 {
			link = ""
		}
		switch rapid.IntRange(0, 9).Draw(rt, "kind") {
		case 0:
			lines = append(lines, "{broken "+id)
		case 1:
			lines = append(lines, "")
		case 2:
			lines = append(lines, fmt.Sprintf(`{"type":"label","id":"L%s",%s"targetId":%s,"label":"x"}`, id, link, parent))
		case 3:
			lines = append(lines, fmt.Sprintf(`{"type":"compaction","id":"C%s",%s"summary":"s","firstKeptEntryId":"%s"}`, id, link, id))
		case 4:
			lines = append(lines, fmt.Sprintf(`{"type":"reset","id":"%s",%s"firstKeptEntryId":%s}`, id, link, parent))
		case 5:
			lines = append(lines, fmt.Sprintf(`{"type":"leaf","id":"F%s",%s"targetId":%s,"appendParentId":"%s"}`, id, link, parent, id))
		case 6:
			lines = append(lines, fmt.Sprintf(`{"type":"later","id":"%s",%s"x":%s}`, id, link, id))
		case 7:
			lines = append(lines, fmt.Sprintf(`{"type":"message","id":"%s",%s"appendMode":"side","message":{"role":"user","content":"side %s"}}`, id, link, id))
		default:
			lines = append(lines, fmt.Sprintf(`{"type":"message","id":"%s",%s"message":{"role":"user","content":"text %d"}}`, id, link, rapid.IntRange(0, 2).Draw(rt, "text")))
		}
	}
	return lines
}

func TestOpenClawFileThatBecomesShorterMeanwhile(t *testing.T) {
	words := strings.Repeat("word ", 100)
	first := `{"type":"session","id":"one","timestamp":"2026-01-02T09:00:00.000Z","cwd":"/home/dev"}`
	historytest.ShorterMeanwhile(t, openclaw.New(historytest.NoEnv), "one.jsonl", first, func(i int) string {
		return fmt.Sprintf(`{"type":"message","timestamp":"2026-01-02T09:00:00.000Z","message":{"role":"user","content":"%d %s","timestamp":1767344460000}}`, i, words[:len(words)-i%70])
	})
}
