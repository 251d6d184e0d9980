package pi_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

const copyOf = "copied from the session it was forked from"

// head is a header; origin is the file that the session was forked from, "" for none.
func head(id, origin string) string {
	from := ""
	if origin != "" {
		from = `,"parentSession":` + string(session.JSONOf(origin))
	}
	return fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-01-02T12:00:00.000Z","cwd":"/home/dev"%s}`, id, from)
}

func compacted(id, parent, kept string, minute int) string {
	return fmt.Sprintf(`{"type":"compaction","id":%q,"parentId":%q,"timestamp":"2026-01-02T09:%02d:00.000Z","summary":"S%s","firstKeptEntryId":%q}`, id, parent, minute, id, kept)
}

func label(id, parent, target, text string) string {
	return fmt.Sprintf(`{"type":"label","id":%q,"parentId":%q,"timestamp":"2026-01-02T09:03:00.000Z","targetId":%q,"label":%q}`, id, parent, target, text)
}

// shape returns what a session shows: its path, its context, and its labels.
func (h *house) shape(s session.Session) string {
	h.Helper()
	labels := historytest.Labels(h, h.Store, s.ID)
	var out, marked []string
	path := h.Path(s)
	for i := range path {
		m := &path[i]
		if m.Kind != session.KindMarker || !strings.HasPrefix(m.ExternalID, "L") { // a path may leave out labels
			out = append(out, m.ExternalID+" "+m.Text())
		}
		if text, ok := labels[m.RowID]; ok {
			marked = append(marked, m.ExternalID+"="+text)
		}
	}
	return fmt.Sprint(out, marked, h.context(s), h.inForce(s))
}

// inForce names the record of the overlay that a session's context begins with.
func (h *house) inForce(s session.Session) string {
	h.Helper()
	effective := testkit.Must(h.Store.Effective(h.Context(), s))(h)
	if effective == nil {
		return ""
	}
	return strings.TrimPrefix(effective.Summary, "S")
}

// reaches reports whether an entry stands on the path that ends with leaf.
func reaches(above map[string]string, leaf, entry string) bool {
	for at, ok := leaf, true; ok; at, ok = above[at] {
		if at == entry {
			return true
		}
	}
	return false
}

func TestPiForkCopiesNothing(t *testing.T) {
	h := newHouse(t)
	one := []string{user("1", "", "one"), user("2", "1", "two"), user("3", "2", "three")}
	origin := h.Write("2026_origin.jsonl", append([]string{head("origin", "")}, one...)...)
	h.Import(origin)
	fork := h.Write("2027_fork.jsonl", append([]string{head("fork", origin)}, one[:2]...)...)
	if done := h.Import(fork); done.Sessions != (history.Sessions{New: 1}) || done.Records.Imported != 1 ||
		done.Records.Skipped[copyOf] != 2 {
		t.Errorf("%+v", done)
	}
	o, f := h.Session("origin"), h.Session("fork")
	if f.ParentID != o.ID || f.ParentKind != session.ParentFork || f.MessageCount != 0 ||
		historytest.Texts(h.Path(f)) != "one two" {
		t.Errorf("%+v", f)
	}
	if want := "2026-01-02T12:00:00.000Z"; f.CreatedAt.UTC().Format("2006-01-02T15:04:05.000Z") != want {
		t.Errorf("made at %v, not when it was forked", f.CreatedAt)
	}

	h.Append(fork, user("3b", "2", "otherwise")+"\n")
	if done := h.Import(fork); done.Records.Imported != 1 || done.Records.Read != 1 ||
		done.Sessions != (history.Sessions{Updated: 1}) {
		t.Errorf("what it grew by: %+v", done)
	}
	h.Append(fork, user("4b", "1", "from an older entry of its origin")+"\n")
	h.Import(fork)
	h.Append(origin, user("4", "3", "four")+"\n")
	h.Import(origin)
	if f = h.Session("fork"); f.MessageCount != 2 ||
		historytest.Texts(h.Path(f)) != "one from an older entry of its origin" {
		t.Errorf("%d messages, path %q", f.MessageCount, historytest.Texts(h.Path(f)))
	}
	if got := historytest.Texts(h.Path(h.Session("origin"))); got != "one two three four" {
		t.Errorf("the origin's path %q", got)
	}
	h.unchanged(fork)
	h.unchanged(origin)

	// An older copy of the fork, which has nothing of its own, does not move its head.
	old := h.Write("old.jsonl", append([]string{head("fork", origin)}, one[:2]...)...)
	if done := h.Import(old); done.Sessions != (history.Sessions{Unchanged: 1}) || done.Records.Imported != 0 {
		t.Errorf("%+v", done)
	}
	if got := historytest.Texts(h.Path(h.Session("fork"))); got != "one from an older entry of its origin" {
		t.Errorf("path %q", got)
	}
}

func TestPiForkOfAForkHangsOnWhatHasTheEntry(t *testing.T) {
	h := newHouse(t)
	lines := []string{user("1", "", "one"), user("2", "1", "two"), user("3", "2", "three"), user("4", "3", "four")}
	origin := h.Write("1.jsonl", append([]string{head("origin", "")}, lines[:2]...)...)
	fork := h.Write("2.jsonl", append([]string{head("fork", origin)}, lines[:3]...)...)
	again := h.Write("3.jsonl", append([]string{head("again", fork)}, lines...)...)
	h.Import(origin, fork, again)
	for id, n := range map[string]int64{"origin": 2, "fork": 1, "again": 1} {
		if s := h.Session(id); s.MessageCount != n {
			t.Errorf("%s has %d messages, want %d", id, s.MessageCount, n)
		}
	}
	if got := historytest.Texts(h.Path(h.Session("again"))); got != "one two three four" {
		t.Errorf("path %q", got)
	}
	h.unchanged(again)
}

func TestPiForkKeepsWhatItsOriginDoesNotHave(t *testing.T) {
	one, two, three := user("1", "", "one"), user("2", "1", "two"), user("3", "2", "three")
	for _, test := range []struct {
		name   string
		origin []string
		fork   []string
		copied int
	}{
		{
			"said otherwise, and what comes after",
			[]string{one, user("2", "1", "said otherwise"), three},
			[]string{one, two, three},
			1,
		},
		{"hung elsewhere", []string{one, two, user("3", "1", "three")}, []string{one, two, three}, 2},
		{"not there", []string{one}, []string{one, two, three}, 1},
		{"all of it", []string{user("x", "", "other")}, []string{one, two, three}, 0},
		{
			"a label between is left out",
			[]string{one, label("L", "1", "1", "x"), user("2", "L", "two"), three},
			[]string{one, two, three},
			3,
		},
		{"a parent that comes later", []string{one, two, three}, []string{three, two, one}, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			origin := h.Write("1.jsonl", append([]string{head("origin", "")}, test.origin...)...)
			h.Import(origin)
			fork := h.Write("2.jsonl", append([]string{head("fork", origin)}, append(test.fork, user("own", "3", "own"))...)...)
			done := h.Import(fork)
			if done.Records.Skipped[copyOf] != test.copied || len(done.Errors) > 0 {
				t.Errorf("%+v", done)
			}
			var path []session.Message
			for _, m := range h.Path(h.Session("fork")) {
				if m.Kind == session.KindMessage {
					path = append(path, m)
				}
			}
			if got := historytest.Texts(path); got != "one two three own" {
				t.Errorf("path %q", got)
			}
			h.unchanged(fork)
		})
	}
}

func TestPiForkBeforeItsOriginKeepsItsCopies(t *testing.T) {
	h := newHouse(t)
	lines := []string{user("1", "", "one"), user("2", "1", "two")}
	dir := t.TempDir()
	origin, fork := filepath.Join(dir, "2026_origin.jsonl"), filepath.Join(dir, "2027_fork.jsonl")
	h.Rewrite(fork, append([]string{head("fork", origin)}, lines...)...)
	h.Import(fork)
	h.Rewrite(origin, append([]string{head("origin", fork)}, lines...)...) // and names the fork as its own origin
	h.Import(origin)
	if o := h.Session("origin"); o.ParentID != h.Session("fork").ID || o.MessageCount != 0 {
		t.Errorf("%+v", o)
	}
	h.Append(fork, user("3", "2", "three")+"\n")
	if done := h.Import(fork); done.Records.Imported != 1 || len(done.Errors) > 0 {
		t.Errorf("%+v", done)
	}
	if f := h.Session("fork"); f.ParentID != "" || historytest.Texts(h.Path(f)) != "one two three" {
		t.Errorf("files that name one another: %q %q", f.ParentID, historytest.Texts(h.Path(f)))
	}

	late := filepath.Join(dir, "2028_late.jsonl")
	h.Rewrite(late, append([]string{head("late", filepath.Join(dir, "2025_root.jsonl"))}, lines...)...)
	h.Import(late)
	root := filepath.Join(dir, "2025_root.jsonl")
	h.Rewrite(root, append([]string{head("root", "")}, lines...)...)
	h.Import(root)
	h.Append(late, user("3", "2", "three")+"\n")
	h.Import(late)
	l := h.Session("late")
	if l.ParentID != h.Session("root").ID || l.ParentKind != session.ParentFork || l.MessageCount != 3 {
		t.Errorf("linked when it was read again: %+v", l)
	}
	for _, m := range h.Path(l) {
		if m.SessionID != l.ID {
			t.Errorf("entry %s of its path is of another session", m.ExternalID)
		}
	}
	h.unchanged(late)
}

func TestPiForkHasTheOverlaysOfItsOwnFile(t *testing.T) {
	one, two, three := user("1", "", "one"), user("2", "1", "two"), user("3", "2", "three")
	record, four := compacted("C", "3", "3", 2), user("4", "C", "four")
	for _, test := range []struct {
		name   string
		origin []string
		fork   []string
		want   string
		own    int64
	}{
		{
			"inherited",
			[]string{one, two, three, record, four},
			[]string{one, two, three, record, four},
			"summary user user",
			0,
		},
		{"forked before it", []string{one, two, three, record, four}, []string{one, two, three}, "user user user", 0},
		{
			"left by the origin",
			[]string{one, two, three, record, four, user("5", "3", "five")},
			[]string{one, two, three, record, four},
			"summary user user", 1,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			origin := h.Write("1.jsonl", append([]string{head("origin", "")}, test.origin...)...)
			h.Import(origin)
			fork := h.Write("2.jsonl", append([]string{head("fork", origin)}, test.fork...)...)
			h.Import(fork)
			f := h.Session("fork")
			if got := strings.Join(h.context(f), " "); got != test.want || f.CompactionCount != test.own || f.MessageCount != 0 {
				t.Errorf("context %q, want %q; %d overlays of its own", got, test.want, f.CompactionCount)
			}
			h.unchanged(fork)
		})
	}
}

// pi returns the entries of version 1 ids when it opens the file; a fork of that has them, too.
func TestPiForkOfAnUpgradedFile(t *testing.T) {
	h := newHouse(t)
	old := sample(t, "before-compaction.jsonl")
	path := filepath.Join(t.TempDir(), "s.jsonl")
	h.Rewrite(path, strings.TrimSuffix(historytest.Read(t, old), "\n"))
	h.Import(path)
	lines := strings.Split(strings.TrimSuffix(upgrade(t, path, 3), "\n"), "\n")
	h.Rewrite(path, lines...)
	h.Import(path)
	fork := filepath.Join(t.TempDir(), "fork.jsonl")
	h.Rewrite(fork, append([]string{head("fork", path)}, lines[1:]...)...)
	done := h.Import(fork)
	if done.Records.Skipped[copyOf] != 1002 || done.Records.Imported != 1 {
		t.Errorf("%+v", done.Records)
	}
	h.Append(fork, user("own", lastID(t, fork), "own")+"\n")
	h.Import(fork)
	f := h.Session("fork")
	if p := h.Path(f); len(p) != 1003 || f.MessageCount != 1 || p[1002].Text() != "own" {
		t.Errorf("%d on the path, %d of its own", len(p), f.MessageCount)
	}
	if got := h.context(f); got[0] != "summary" {
		t.Errorf("context %v", got[:1])
	}
	h.unchanged(fork)
}

// Whatever a fork shares with its origin, it shows what it would show alone.
func TestPiForkShowsWhatItsFileSays(t *testing.T) {
	h := newHouse(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		var lines []string
		above := map[string]string{}
		for i := range rapid.IntRange(1, 9).Draw(rt, "lines") {
			id, parent := fmt.Sprint(i), fmt.Sprint(rapid.IntRange(max(0, i-3), max(0, i-1)).Draw(rt, "parent"))
			above[id] = parent
			switch kind := rapid.IntRange(0, 6).Draw(rt, "kind"); {
			case i == 0:
				delete(above, id)
				lines = append(lines, user(id, "", "root"))
			case kind == 0:
				lines = append(lines, compacted(id, parent, fmt.Sprint(rapid.IntRange(0, i).Draw(rt, "kept")), i))
			case kind == 1:
				lines = append(lines, label(id, parent, parent, fmt.Sprint("label ", i)))
			default:
				lines = append(lines, user(id, parent, fmt.Sprint("text ", i)))
			}
		}
		copied := rapid.IntRange(0, len(lines)).Draw(rt, "copied")
		forked := slices.Clone(lines[:copied])
		last := max(copied-1, 0)
		leaf := ""
		for i := range rapid.IntRange(1, 3).Draw(rt, "own") {
			leaf = fmt.Sprint("own", i)
			above[leaf] = fmt.Sprint(rapid.IntRange(0, last).Draw(rt, "branch"))
			forked = append(forked, user(leaf, above[leaf], "own"))
		}
		name := func(what string) string { return fmt.Sprintf("%s-%d", what, n) }
		origin := h.Write(name("origin")+".jsonl", append([]string{head(name("origin"), "")}, lines...)...)
		h.Import(origin)
		first := len(forked) // how much of it is there when it is read first
		if rapid.Bool().Draw(rt, "grows") {
			first = copied + 1
		}
		shows := func(id, from string) (string, history.Records) {
			path := h.Write(id+".jsonl", append([]string{head(id, from)}, forked[:first]...)...)
			done := h.Import(path)
			for _, line := range forked[first:] {
				h.Append(path, line+"\n")
				done.Add(h.Import(path))
			}
			return h.shape(h.Session(id)), done.Records
		}
		got, done := shows(name("fork"), origin)
		want, _ := shows(name("alone"), "")
		if record := h.inForce(h.Session(name("alone"))); record != "" && !reaches(above, leaf, record) {
			return // read before the path left it: sessiond keeps it there, the fork never had it
		}
		if got != want || done.Skipped[copyOf] != copied {
			rt.Errorf("%d of %d copies; shows %s\nalone %s", done.Skipped[copyOf], copied, got, want)
		}
	})
}
