package pi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"

	"pgregory.net/rapid"
)

const header = historytest.PiHeader

func user(id, parent, text string) string { return historytest.PiUser(id, parent, text) }

func TestPiAppendedFileAddsOnlyTheNew(t *testing.T) {
	h := newHouse(t)
	path := h.Write("a.jsonl", header, user("1", "", "one"), user("2", "1", "two"))
	h.Import(path)
	h.Append(path, user("3", "2", "three")+"\n"+user("4", "1", "four")+"\n")
	done := h.Import(path)
	if done.Records.Read != 2 || done.Records.Imported != 2 || done.Sessions != (history.Sessions{Updated: 1}) {
		t.Errorf("%+v", done)
	}
	s := h.Session("one")
	if got := historytest.Texts(h.Entries(s.ID)); got != "one two three four" {
		t.Errorf("entries %q", got)
	}
	if got := historytest.Texts(h.Path(s)); got != "one four" {
		t.Errorf("the head's path %q: the last line is the leaf", got)
	}
}

func TestPiTornLastLineWaits(t *testing.T) {
	h := newHouse(t)
	path := h.Write("a.jsonl", header, user("1", "", "one"))
	whole := user("2", "1", "two")
	h.Append(path, whole[:len(whole)-3])
	if done := h.Import(path); done.Records.Waiting != 1 || done.Records.Imported != 2 {
		t.Fatalf("%+v", done.Records)
	}
	h.Append(path, whole[len(whole)-3:]) // without a line feed: a line that parses is whole
	if done := h.Import(path); done.Records.Imported != 1 || done.Records.Read != 1 {
		t.Fatalf("%+v", done.Records)
	}
	h.Append(path, user("3", "2", "three")) // glued on, as an old pi did
	if done := h.Import(path); done.Records.Imported != 1 {
		t.Fatalf("%+v", done.Records)
	}
	if got := historytest.Texts(h.Entries(h.Session("one").ID)); got != "one two three" {
		t.Errorf("entries %q", got)
	}
}

func TestPiGluedLinesComeApart(t *testing.T) {
	h := newHouse(t)
	path := h.Write("a.jsonl", header, user("1", "", `tricky }{"type": text`)+user("2", "1", "two"),
		user("3", "2", "three")+`{"type":broken`)
	done := h.Import(path)
	if got := historytest.Texts(h.Entries(h.Session("one").ID)); !strings.HasPrefix(got, `tricky }{"type": text two`) ||
		done.Records.Raw != 1 {
		t.Errorf("entries %q, %+v", got, done.Records)
	}
	if len(done.Errors) != 1 || done.Errors[0].Line != 3 || done.Errors[0].Path != path {
		t.Errorf("errors %+v", done.Errors)
	}
}

func TestPiRepeatedLines(t *testing.T) {
	h := newHouse(t)
	path := h.Write("a.jsonl",
		header, user("1", "", "one"), user("2", "1", "two"),
		header, user("1", "", "one"), user("2", "1", "two"), // a repeated beginning
		user("2", "1", "two, said otherwise"), "", user("3", "2", "three"))
	done := h.Import(path)
	want := map[string]int{"repeated header": 1, history.SkipDuplicate: 2, history.SkipBlank: 1}
	for reason, n := range want {
		if done.Records.Skipped[reason] != n {
			t.Errorf("skipped %v, want %v", done.Records.Skipped, want)
		}
	}
	s := h.Session("one")
	if got := historytest.Texts(h.Path(s)); got != "one two, said otherwise three" {
		t.Errorf("path %q: the later of two entries with one id is linked", got)
	}
	if len(h.Entries(s.ID)) != 4 {
		t.Errorf("%d entries, want both that have the id 2", len(h.Entries(s.ID)))
	}
}

func TestPiParentThatComesLater(t *testing.T) {
	h := newHouse(t)
	h.Import(h.Write("a.jsonl", header, user("2", "1", "two"), user("3", "2", "three"), user("1", "", "one"),
		user("4", "3", "four")))
	if got := historytest.Texts(h.Path(h.Session("one"))); got != "one two three four" {
		t.Errorf("path %q", got)
	}
}

// upgrade writes a version 1 file anew as pi does when it opens one.
func upgrade(t *testing.T, path string, to int) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(historytest.Read(t, path)), "\n")
	ids := make([]string, len(lines))
	var out []string
	for i, line := range lines {
		var o map[string]any
		testkit.Check(t, json.Unmarshal([]byte(line), &o))
		ids[i] = fmt.Sprintf("%08x", 0xbeef0000+i*7)
		if i == 0 {
			o["version"] = to
		} else {
			o["id"], o["parentId"] = ids[i], nil
			if i > 1 {
				o["parentId"] = ids[i-1]
			}
			if kept, ok := o["firstKeptEntryIndex"].(float64); ok {
				o["firstKeptEntryId"] = ids[int(kept)]
				delete(o, "firstKeptEntryIndex")
			}
		}
		text, err := json.Marshal(o) // other order of fields, other spelling of numbers
		testkit.Check(t, err)
		out = append(out, string(text))
	}
	return strings.Join(out, "\n") + "\n"
}

func TestPiUpgradeInPlaceDoesNotDouble(t *testing.T) {
	for _, name := range [][]string{{"made", "v1-compaction.jsonl"}, {"before-compaction.jsonl"}} {
		t.Run(name[len(name)-1], func(t *testing.T) {
			h := newHouse(t)
			old := sample(t, name...)
			path := filepath.Join(t.TempDir(), "s.jsonl")
			h.Rewrite(path, strings.TrimSuffix(historytest.Read(t, old), "\n"))
			h.Import(path)
			var before session.Session
			all, _, err := h.Store.Sessions(t.Context(), store.Filter{}, store.Page{})
			testkit.Check(t, err)
			before = all[0]
			calls := len(h.Calls(before.ID))

			h.Rewrite(path, strings.TrimSuffix(upgrade(t, path, 3), "\n"))
			done := h.Import(path)
			if done.Sessions != (history.Sessions{Unchanged: 1}) || done.Records.Imported != 0 {
				t.Errorf("%+v", done)
			}
			// pi goes on in the upgraded file: the new entry's parent has a new id.
			leaf := lastID(t, path)
			h.Append(path, user("fresh", leaf, "onward")+"\n")
			done = h.Import(path)
			if done.Records.Imported != 1 || done.Records.Read != 1 {
				t.Errorf("%+v", done.Records)
			}
			h.Append(path, user("fresher", "fresh", "further")+"\n")
			h.Import(path)
			after := h.Session(before.SourceID)
			if after.MessageCount != before.MessageCount+2 || after.CompactionCount != before.CompactionCount ||
				len(h.Calls(after.ID)) != calls {
				t.Errorf("messages %d → %d, compactions %d → %d, calls %d → %d", before.MessageCount, after.MessageCount,
					before.CompactionCount, after.CompactionCount, calls, len(h.Calls(after.ID)))
			}
			if path := h.Path(after); int64(len(path)) != after.MessageCount || path[len(path)-1].Text() != "further" {
				t.Errorf("the path has %d of %d entries", len(path), after.MessageCount)
			}
			// And the old file, found again somewhere else, is an older copy.
			if done := h.Import(old); done.Records.Imported != 0 || done.Sessions.Unchanged != 1 {
				t.Errorf("the old file gave %+v", done)
			}
		})
	}
}

func TestPiOldCopyAfterTheUpgradeIsSkipped(t *testing.T) {
	h := newHouse(t)
	old := sample(t, "made", "v1-compaction.jsonl")
	path := h.Write("new.jsonl", strings.TrimSuffix(upgrade(t, old, 2), "\n"))
	h.Import(path)
	done := h.Import(old)
	if done.Records.Skipped["older copy of the session"] != 6 || done.Records.Imported != 0 {
		t.Errorf("%+v", done.Records)
	}
	if s := h.Session("019b0000-0000-4000-8000-0000000001a1"); s.MessageCount != 6 || len(h.Calls(s.ID)) != 2 {
		t.Errorf("%d messages, %d calls", s.MessageCount, len(h.Calls(s.ID)))
	}
}

func TestPiChangedVersion1FileBranches(t *testing.T) {
	h := newHouse(t)
	line := func(text string) string {
		return `{"type":"message","timestamp":"2025-11-20T09:00:00.000Z","message":{"role":"user","content":"` + text + `"}}`
	}
	head := `{"type":"session","id":"old","timestamp":"2025-11-20T09:00:00.000Z","cwd":"/x"}`
	path := h.Write("a.jsonl", head, line("one"), line("two"))
	h.Import(path)
	h.Rewrite(path, head, line("one"), line("second"), line("three"))
	h.Import(path)
	s := h.Session("old")
	if got := historytest.Texts(h.Entries(s.ID)); got != "one two second three" {
		t.Errorf("entries %q", got)
	}
	if got := historytest.Texts(h.Path(s)); got != "one second three" {
		t.Errorf("path %q", got)
	}
}

func lastID(t *testing.T, path string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(historytest.Read(t, path)), "\n")
	var o struct{ ID string }
	testkit.Check(t, json.Unmarshal([]byte(lines[len(lines)-1]), &o))
	return o.ID
}

// A record that the leaf's path does not hold has no part in pi's context, even if what it
// summarised is on the path.
func TestPiCompactionOfABranchThatWasLeft(t *testing.T) {
	record := `{"type":"compaction","id":"4","parentId":"3","timestamp":"2026-01-02T09:02:00.000Z","summary":"S","firstKeptEntryId":"3","tokensBefore":9}`
	for _, test := range []struct{ name, parent, want string }{
		{"onward", "4", "summary user user"},
		{"from before the record", "3", "user user user user"},
		{"from before what it hid", "1", "user user"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			h.Import(h.Write("a.jsonl", header, user("1", "", "one"), user("2", "1", "two"), user("3", "2", "three"), record,
				user("5", test.parent, "five")))
			if got := strings.Join(h.context(h.Session("one")), " "); got != test.want {
				t.Errorf("context %q, want %q", got, test.want)
			}
		})
	}
}

func TestPiTitleFollowsTheFile(t *testing.T) {
	h := newHouse(t)
	path := h.Write("a.jsonl", header, user("1", "", "  first line\nsecond"))
	h.Import(path)
	if s := h.Session("one"); s.Title != "first line" || s.TitleSource != "first_message" {
		t.Errorf("title %q from %q", s.Title, s.TitleSource)
	}
	h.Append(path, `{"type":"session_info","id":"2","parentId":"1","timestamp":"2026-01-02T09:02:00.000Z","name":"Named"}`+"\n")
	h.Import(path)
	if s := h.Session("one"); s.Title != "Named" || s.TitleSource != "source" {
		t.Errorf("title %q from %q", s.Title, s.TitleSource)
	}
	h.Append(path, `{"type":"session_info","id":"3","parentId":"2","timestamp":"2026-01-02T09:03:00.000Z","name":""}`+"\n")
	h.Import(path)
	if s := h.Session("one"); s.Title != "first line" {
		t.Errorf("title %q after the name was cleared", s.Title)
	}
}

func TestPiCommandIsNoTitle(t *testing.T) {
	for want, said := range map[string][]string{
		"":                    {"/mode"},
		"/etc/hosts is wrong": {"/mode", "/model", "/etc/hosts is wrong", "mend it"},
		"review the diff":     {"/review the diff", "mend what it found"},
	} {
		h := newHouse(t)
		lines := []string{header}
		for i, text := range said {
			lines = append(lines, user(strconv.Itoa(i+1), strings.TrimPrefix(strconv.Itoa(i), "0"), text))
		}
		h.Import(h.Write("a.jsonl", lines...))
		if s := h.Session("one"); s.Title != want {
			t.Errorf("%q: title %q, want %q", said, s.Title, want)
		}
	}
}

func TestPiGoogleInputBefore063IsWithoutItsCache(t *testing.T) {
	h := newHouse(t)
	reply := `{"type":"message","id":"2","parentId":"1","timestamp":"2026-01-02T09:02:00.000Z","message":{"role":"assistant","content":[],"provider":"google","model":"g","stopReason":"stop","usage":{"input":1000,"output":50,"cacheRead":800,"cacheWrite":0,"totalTokens":%d}}}`
	h.Import(h.Write("a.jsonl", header, user("1", "", "x"), fmt.Sprintf(reply, 1050)))
	h.Import(h.Write("b.jsonl", strings.Replace(header, "one", "two", 1), user("1", "", "x"), fmt.Sprintf(reply, 1850)))
	if old := h.Calls(h.Session("one").ID)[0]; old.InputTokens != 200 || old.CacheReadTokens != 800 {
		t.Errorf("old: %+v", old)
	}
	if fresh := h.Calls(h.Session("two").ID)[0]; fresh.InputTokens != 1000 || fresh.CostNanoUSD != nil {
		t.Errorf("new: %+v; a cost that is not told is unknown", fresh)
	}
}

func TestPiPurposesOfUsage(t *testing.T) {
	h := newHouse(t)
	h.Import(sample(t, "v3", "--home-dev-demo--", "*e142.jsonl"))
	sum := map[session.Purpose]string{}
	for _, c := range h.Calls(h.Session("01a1fd0d-de16-7472-878d-5ea5e96ee142").ID) {
		if c.PriceSource != "reported" || c.MessageID == nil {
			t.Errorf("%+v", c)
		}
		if c.Purpose != session.PurposeChat {
			sum[c.Purpose] += fmt.Sprintf("%d/%d/%d %.5f %s;", c.InputTokens, c.OutputTokens, c.CacheReadTokens, *c.CostUSD,
				c.Model)
		}
	}
	want := map[session.Purpose]string{
		session.PurposeOther:         "0/0/3000 0.00090 claude-sonnet-4-5;",
		session.PurposeSummary:       "3200/210/0 0.01275 claude-sonnet-4-5;",
		session.PurposeBranchSummary: "900/60/0 0.00360 claude-sonnet-4-5;",
	}
	for purpose, text := range want {
		if sum[purpose] != text {
			t.Errorf("%s: %q, want %q", purpose, sum[purpose], text)
		}
	}
}

// Whatever a file holds, its records add up, and importing it in pieces gives the same
// entries as importing it whole.
func TestPiPiecesGiveTheWhole(t *testing.T) {
	h := newHouse(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		head := func(which string) string { return strings.Replace(header, "one", fmt.Sprintf("%s-%d", which, n), 1) }
		var lines []string
		for i := range rapid.IntRange(0, 9).Draw(rt, "lines") {
			id := fmt.Sprint(rapid.IntRange(0, 8).Draw(rt, "id"))
			parent := ""
			if i > 0 {
				parent = fmt.Sprint(rapid.IntRange(0, 8).Draw(rt, "parent"))
			}
			switch rapid.IntRange(0, 5).Draw(rt, "kind") {
			case 0:
				lines = append(lines, "{broken")
			case 1:
				lines = append(lines, "")
			case 2:
				lines = append(lines, `{"type":"label","id":"L`+id+`","parentId":null,"targetId":"`+parent+`","label":"x"}`)
			case 3:
				lines = append(lines,
					`{"type":"compaction","id":"C`+id+`","parentId":"`+parent+`","summary":"s","firstKeptEntryId":"`+id+`"}`)
			default:
				lines = append(lines, user(id, parent, fmt.Sprint("text ", rapid.IntRange(0, 2).Draw(rt, "text"))))
			}
		}
		dir := testkit.Must(os.MkdirTemp(h.TempDir(), ""))(rt)
		whole := filepath.Join(dir, "whole.jsonl")
		h.Rewrite(whole, append([]string{head("whole")}, lines...)...)
		all := h.Import(whole)
		if all.Records.Read != len(lines)+1 {
			rt.Fatalf("%d records of %d lines: %+v", all.Records.Read, len(lines)+1, all)
		}
		pieces := filepath.Join(dir, "pieces.jsonl")
		h.Rewrite(pieces, head("pieces"))
		sum := h.Import(pieces)
		for piece := range slices.Chunk(lines, 3) {
			h.Append(pieces, strings.Join(piece, "\n")+"\n")
			sum.Add(h.Import(pieces))
		}
		if sum.Records.Read != all.Records.Read || sum.Records.Imported != all.Records.Imported ||
			sum.Records.Raw != all.Records.Raw {
			rt.Errorf("pieces %+v, whole %+v", sum.Records, all.Records)
		}
		w, p := h.Session(fmt.Sprintf("whole-%d", n)), h.Session(fmt.Sprintf("pieces-%d", n))
		if w.MessageCount != p.MessageCount || w.MessageCount != int64(all.Records.Imported+all.Records.Raw-1) {
			rt.Errorf("%d entries whole, %d in pieces, %+v", w.MessageCount, p.MessageCount, all.Records)
		}
	})
}

func TestPiFileThatBecomesShorterMeanwhile(t *testing.T) {
	words := strings.Repeat("word ", 100)
	t.Run("version 3", func(t *testing.T) {
		historytest.ShorterMeanwhile(t, pi.New(historytest.NoEnv), "f.jsonl", header, func(i int) string {
			parent := ""
			if i > 0 {
				parent = fmt.Sprintf("%08x", i-1)
			}
			return user(fmt.Sprintf("%08x", i), parent, words)
		})
	})
	t.Run("version 1", func(t *testing.T) {
		first := `{"type":"session","id":"one","timestamp":"2026-01-02T09:00:00.000Z","cwd":"/home/dev"}`
		historytest.ShorterMeanwhile(t, pi.New(historytest.NoEnv), "f.jsonl", first, func(i int) string {
			return fmt.Sprintf(`{"type":"message","timestamp":"2026-01-02T09:00:00.000Z","message":{"role":"user","content":"%d %s","timestamp":1767344460000}}`, i, words[:len(words)-i%70])
		})
	})
}

func TestPiFileWithAByteOrderMark(t *testing.T) {
	historytest.MarkedFile(t, pi.New(historytest.NoEnv), "one.jsonl", head("one", ""), user("1", "", "one"),
		user("2", "1", "two"), user("3", "2", "three"))
}

// A fork that came first is linked when its origin comes, though its file does not change.
func TestPiForkIsLinkedWhenItsOriginComes(t *testing.T) {
	h := newHouse(t)
	lines := []string{user("1", "", "one"), user("2", "1", "two")}
	dir := t.TempDir()
	origin, fork := filepath.Join(dir, "2026_origin.jsonl"), filepath.Join(dir, "2027_fork.jsonl")
	h.Rewrite(fork, append([]string{head("fork", origin)}, lines...)...)
	h.Import(fork)
	h.unchanged(fork) // it waits, and costs a look-up
	h.Rewrite(origin, append([]string{head("origin", "")}, lines...)...)
	h.Import(origin)
	if done := h.Import(fork); done.Records.Imported != 0 || len(done.Errors) > 0 {
		t.Errorf("%+v", done)
	}
	f := h.Session("fork")
	if f.ParentID != h.Session("origin").ID || f.ParentKind != session.ParentFork || f.MessageCount != 2 {
		t.Errorf("%+v", f)
	}
	h.unchanged(fork)
}

// without is a store from which a session is gone, as if an older backup had been put in its place.
type without struct {
	historytest.Nobody
	h    *house
	gone session.ID
}

func (w without) SessionBySource(ctx context.Context, source session.Source, id string) (session.Session, error) {
	return w.unlessGone(w.h.Store.SessionBySource(ctx, source, id))
}

func (w without) Session(ctx context.Context, id session.ID) (session.Session, error) {
	return w.unlessGone(w.h.Store.Session(ctx, id))
}

func (w without) unlessGone(found session.Session, err error) (session.Session, error) {
	if err == nil && found.ID == w.gone {
		err = session.Errorf(session.NotFound, "it is gone")
	}
	return found, err
}

// A fork whose origin is not here any more is read from its beginning, with what it had shared.
func TestPiForkOfAForgottenSessionIsReadAnew(t *testing.T) {
	h := newHouse(t)
	lines := []string{user("1", "", "one"), user("2", "1", "two")}
	origin := h.Write("2025_origin.jsonl", append([]string{head("origin", "")}, lines...)...)
	fork := h.Write("2026_fork.jsonl", append([]string{head("fork", origin)}, append(lines, user("3", "2", "own"))...)...)
	h.Import(origin, fork)
	if s := h.Session("fork"); s.MessageCount != 1 || h.Talk(s) != "user: one\nuser: two\nuser: own" {
		t.Fatalf("%+v %q", s, h.Talk(s))
	}
	h.Append(fork, user("4", "3", "more")+"\n")
	cursor, err := h.Store.ImportCursor(t.Context(), session.SourcePi, fork)
	if err != nil || cursor == nil {
		t.Fatal(cursor, err)
	}
	info := testkit.Must(os.Stat(fork))(t)
	var keys []string
	found := history.Found{Path: fork, Size: info.Size(), ModifiedAt: info.ModTime()}
	problems, err := h.Source.Read(t.Context(), found, cursor, without{h: h, gone: h.Session("origin").ID},
		func(b history.Batch) error {
			for i := range b.Messages {
				if m := &b.Messages[i]; m.ParentSession != "" {
					t.Errorf("%s still hangs on %s", m.ExternalID, m.ParentSession)
				}
				keys = append(keys, b.Messages[i].ExternalID)
			}
			return nil
		})
	if err != nil || len(problems) > 0 || len(keys) != 4 {
		t.Errorf("%v %v %v", keys, problems, err)
	}
}
