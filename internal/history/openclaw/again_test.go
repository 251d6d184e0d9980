package openclaw_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"sessiond/internal/history"
	"sessiond/internal/history/openclaw"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
	"sessiond/internal/testkit/samples"
)

const header = historytest.PiHeader

func user(id, parent, text string) string { return historytest.PiUser(id, parent, text) }

// reply is what a model answered, with usage.
func reply(id, parent, text string) string {
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%q,"timestamp":"2026-01-02T09:02:00.000Z","message":{"role":"assistant","content":[{"type":"text","text":%s}],"provider":"anthropic","model":"claude-sonnet-4-5","stopReason":"stop","usage":{"input":10,"output":5,"cacheRead":0,"cacheWrite":0,"totalTokens":15,"cost":{"total":0.001}},"timestamp":1767344520000}}`,
		id, parent, session.JSONOf(text))
}

// sessions returns the sessions folder of an agent in a new state folder.
func (h *house) sessions() string {
	return filepath.Join(h.TempDir(), ".openclaw", "agents", "main", "sessions")
}

func (h *house) text(s session.Session) string {
	var all []string
	for _, m := range h.Path(s) {
		all = append(all, m.Text())
	}
	return strings.Join(all, " ")
}

func TestOpenClawAppendedTranscriptAddsOnlyTheNew(t *testing.T) {
	h := newHouse(t)
	dir := h.sessions()
	path := h.write(filepath.Join(dir, "one.jsonl"), header, user("1", "", "one"), user("2", "1", "two"))
	h.run(dir)
	whole := user("3", "2", "three")
	h.Append(path, whole[:40])
	if done := h.run(dir); done.Records.Waiting != 1 || done.Records.Imported != 0 {
		t.Errorf("%+v", done)
	}
	h.Append(path, whole[40:]+"\n"+user("4", "3", "four")+"\n")
	if done := h.run(dir); done.Records.Read != 2 || done.Records.Imported != 2 ||
		done.Sessions != (history.Sessions{Updated: 1}) {
		t.Errorf("%+v", done)
	}
	if got := h.text(h.Session("main/one")); got != "one two three four" {
		t.Errorf("path %q", got)
	}
}

// Whatever name a transcript gets, it is the same session with the same entries.
func TestOpenClawMovedTranscriptIsNotDoubled(t *testing.T) {
	pack := func(h *house, path string) {
		t.Helper()
		encoder := testkit.Must(zstd.NewWriter(nil))(t)
		testkit.Check(t, os.WriteFile(path+".zst", encoder.EncodeAll([]byte(historytest.Read(h, path)), nil), 0o600))
		testkit.Check(t, os.Remove(path))
	}
	for _, test := range []struct {
		name string
		move func(h *house, path string)
	}{
		{"put away by a reset", func(h *house, path string) {
			testkit.Check(t, os.Rename(path, path+".reset.2026-01-03T04-00-00.000Z"))
		}},
		{"compressed", pack},
		{"named by its time", func(h *house, path string) {
			testkit.Check(t, os.Rename(path, filepath.Join(filepath.Dir(path), "2026-01-02T09-00-00-000Z_one.jsonl")))
		}},
		{"moved to a database", func(h *house, path string) {
			var script strings.Builder
			script.WriteString(`CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT, created_at INTEGER);
				CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER, PRIMARY KEY (session_id, seq));
				INSERT INTO session_windows VALUES ('one', 'agent:main:main', 1767344400000);`)
			for i, line := range strings.Split(strings.TrimSpace(historytest.Read(h, path)), "\n") {
				fmt.Fprintf(&script, "INSERT INTO transcript_events VALUES ('one', %d, '%s', 1767344400000);\n", i, line)
			}
			agent := filepath.Join(filepath.Dir(filepath.Dir(path)), "agent")
			testkit.Check(t, os.MkdirAll(agent, 0o700))
			h.database(filepath.Join(agent, "openclaw-agent.sqlite"), script.String())
			archive := filepath.Join(filepath.Dir(path), "session-sqlite-import-archive")
			testkit.Check(t, os.Mkdir(archive, 0o700))
			testkit.Check(t, os.Rename(path, filepath.Join(archive, "one.jsonl")))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			dir := h.sessions()
			path := h.write(filepath.Join(dir, "one.jsonl"), header, user("1", "", "one"), reply("2", "1", "two"),
				user("3", "2", "three"))
			h.run(filepath.Dir(dir))
			test.move(h, path)
			done := h.run(filepath.Dir(dir))
			if done.Sessions.New != 0 || done.Records.Raw != 0 || len(done.Errors) > 0 {
				t.Errorf("%+v", done)
			}
			s := h.Session("main/one")
			if len(h.all()) != 1 || s.MessageCount != 3 || len(h.Calls(s.ID)) != 1 || h.text(s) != "one two three" {
				t.Errorf("%d sessions, %+v", len(h.all()), s)
			}
			if again := h.run(filepath.Dir(dir)); again.Records.Imported != 0 || again.Sessions.Updated != 0 {
				t.Errorf("again: %+v", again)
			}
		})
	}
}

// upgrade writes a version 1 file anew as a later version does when it opens one.
func upgrade(t *testing.T, text string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	var out []string
	for i, line := range lines {
		var o map[string]any
		testkit.Check(t, json.Unmarshal([]byte(line), &o))
		name := func(i int) string { return fmt.Sprintf("%08x", 0xbeef0000+i*7) }
		if o["version"] = 3; i > 0 {
			delete(o, "version")
			o["id"], o["parentId"] = name(i), nil
			if i > 1 {
				o["parentId"] = name(i - 1)
			}
			if kept, ok := o["firstKeptEntryIndex"].(float64); ok {
				o["firstKeptEntryId"] = name(int(kept))
				delete(o, "firstKeptEntryIndex")
			}
		}
		raw := testkit.Must(json.Marshal(o))(t)
		out = append(out, string(raw))
	}
	return strings.Join(out, "\n")
}

func TestOpenClawUpgradedTranscriptIsNotDoubled(t *testing.T) {
	h := newHouse(t)
	dir := h.state("constructed")
	h.run(dir)
	before := h.Session(old)
	path := filepath.Join(dir, "agents", "main", "sessions", "aaaaaaaa-1111-4222-8333-666666666666.jsonl")
	h.write(path, upgrade(t, historytest.Read(h, path)))
	if done := h.run(dir); done.Records.Imported != 0 || done.Sessions.Updated+done.Sessions.New != 0 {
		t.Errorf("%+v", done)
	}
	h.Append(path, user("fresh", "beef001c", "onward")+"\n")
	if done := h.run(dir); done.Records.Imported != 1 {
		t.Errorf("%+v", done)
	}
	after := h.Session(old)
	if after.MessageCount != before.MessageCount+1 || after.CompactionCount != 1 || len(h.Calls(after.ID)) != 1 {
		t.Errorf("%+v", after)
	}
	if got := h.context(after); !slices.Equal(got, []string{"summary", "v1:2", "fresh"}) {
		t.Errorf("context %v", got)
	}
}

// After a transcript was cut off, what was imported stays; and where only the cut one is
// left, its copy from before adds the old part beside the path.
func TestOpenClawCutTranscript(t *testing.T) {
	full := []string{
		header, user("1", "", "one"), reply("2", "1", "two"), user("3", "2", "three"),
		`{"type":"compaction","id":"4","parentId":"3","timestamp":"2026-01-02T09:03:00.000Z","summary":"So far.","firstKeptEntryId":"3","tokensBefore":9}`,
	}
	cut := []string{header, full[4], user("3", "4", "three"), user("5", "3", "five")}
	t.Run("imported before", func(t *testing.T) {
		h := newHouse(t)
		dir := h.sessions()
		path := h.write(filepath.Join(dir, "one.jsonl"), full...)
		h.run(dir)
		h.write(path, cut...)
		done := h.run(dir)
		if done.Records.Imported != 1 || done.Records.Skipped[history.SkipKnown] != 3 {
			t.Errorf("%+v", done)
		}
		s := h.Session("main/one")
		if s.MessageCount != 5 || !slices.Equal(h.Keys(s), []string{"1", "2", "3", "5"}) {
			t.Errorf("%d entries, path %v", s.MessageCount, h.Keys(s))
		}
	})
	t.Run("found after", func(t *testing.T) {
		h := newHouse(t)
		dir := h.sessions()
		h.write(filepath.Join(dir, "one.jsonl"), cut...)
		h.write(filepath.Join(dir, "one.jsonl.bak.2026-01-02T09-04-00.000Z"), full[1:]...)
		done := h.run(dir)
		if done.Records.Skipped["backup of known entry"] != 2 ||
			done.Sessions != (history.Sessions{New: 1, Updated: 0}) && done.Sessions.New != 1 {
			t.Errorf("%+v", done)
		}
		s := h.Session("main/one")
		if got := h.context(s); !slices.Equal(got, []string{"summary", "3", "5"}) {
			t.Errorf("context %v", got)
		}
		if s.MessageCount != 5 || h.Keys(s)[0] != "4" || len(h.Calls(s.ID)) != 1 {
			t.Errorf("%d entries, path %v", s.MessageCount, h.Keys(s))
		}
		if again := h.run(dir); again.Records.Read != 0 {
			t.Errorf("again %+v", again)
		}
	})
}

func TestOpenClawCheckpointIsABranchBesideThePath(t *testing.T) {
	h := newHouse(t)
	h.run(filepath.Join(h.state("deja-vu"), "agents", "main", "sessions"))
	s := h.Session("main/a1b2c3d4-e5f6-4a7b-8c9d-0e1f2a3b4c5d")
	if len(h.all()) != 1 || s.MessageCount != 4 || s.Key != "agent:main:main" ||
		!slices.Equal(h.Keys(s), []string{"mc1", "u1", "a1"}) {
		t.Errorf("%+v %v", s, h.Keys(s))
	}
	if m := h.entry("main/a1b2c3d4-e5f6-4a7b-8c9d-0e1f2a3b4c5d", "x1"); m.ParentID != nil ||
		m.Text() != "checkpoint content must not be indexed" {
		t.Errorf("%+v", m)
	}
}

func TestOpenClawDatabaseOfTheSamples(t *testing.T) {
	h := newHouse(t)
	dir := h.state("deja-vu")
	db := filepath.Join(dir, "agent", "openclaw-agent.sqlite")
	done := h.run(db)
	// 7 events and 2 rows of sessions.
	if done.Records.Read != 9 || done.Records.Imported != 9 || done.Sessions.New != 2 {
		t.Errorf("%+v", done)
	}
	first, second := h.Session("main/a1b2c3d4-e5f6-4a7b-8c9d-0e1f2a3b4c5d"),
		h.Session("main/b2c3d4e5-f6a7-4b8c-9d0e-1f2a3b4c5d6e")
	if second.Title != "after the reset: the pool timeout was the pgbouncer default" ||
		second.Directory != "/Users/me/work/api" || second.Model != "claude-sonnet-5" {
		t.Errorf("%+v", second)
	}
	if first.Key != second.Key || first.Generation+second.Generation != 3 {
		t.Errorf("generations %d and %d of %s", first.Generation, second.Generation, first.Key)
	}
	if again := h.run(db); again.Records.Read != 0 || again.Sessions.Unchanged != 2 {
		t.Errorf("again %+v", again)
	}
	h.Change(db, `INSERT INTO transcript_events VALUES ('b2c3d4e5-f6a7-4b8c-9d0e-1f2a3b4c5d6e', 3, '`+user("m3", "m2", "thanks")+`', 1784813700000)`)
	done = h.run(db)
	if done.Records.Imported != 1 || done.Sessions.Updated != 1 || done.Sessions.Unchanged != 1 {
		t.Errorf("%+v", done)
	}
	if got := h.Keys(h.Session("main/b2c3d4e5-f6a7-4b8c-9d0e-1f2a3b4c5d6e")); !slices.Equal(got,
		[]string{"m1", "m2", "m3"}) {
		t.Errorf("path %v", got)
	}
}

func TestOpenClawFirstLayoutOfDatabases(t *testing.T) {
	h := newHouse(t)
	db := filepath.Join(h.TempDir(), "agents", "main", "agent", "openclaw-agent.sqlite")
	testkit.Check(t, os.MkdirAll(filepath.Dir(db), 0o700))
	h.database(db, `CREATE TABLE sessions (session_id TEXT PRIMARY KEY, session_key TEXT, created_at INTEGER, started_at INTEGER);
		CREATE TABLE session_entries (session_key TEXT PRIMARY KEY, session_id TEXT, entry_json TEXT, updated_at INTEGER);
		CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER, PRIMARY KEY (session_id, seq));
		CREATE TABLE session_pending_inputs (message_json TEXT);
		INSERT INTO session_pending_inputs VALUES ('{}');
		INSERT INTO sessions VALUES ('one', 'Agent:Main:Telegram:group:-5', 1767344400000, NULL);
		INSERT INTO session_entries VALUES ('agent:main:main', 'two', '{"sessionId":"two","updatedAt":1767344400000}', 1767344400000);
		INSERT INTO session_entries VALUES ('agent:main:telegram:group:-5', 'one', '{"sessionId":"one","updatedAt":1,"displayName":"Garden","authProfileOverride":"secret"}', 1);
		INSERT INTO transcript_events VALUES ('one', 0, '`+header+`', 1), ('one', 1, '`+user("1", "", "hello")+`', 1);`)
	done := h.run(db)
	s := h.Session("main/one")
	if empty := h.Session("main/two"); empty.Key != "agent:main:main" || empty.MessageCount != 0 {
		t.Errorf("a key without a transcript: %+v", empty)
	}
	if done.Records.Imported != 4 || done.Records.Skipped["pending"] != 1 || s.Key != "agent:main:telegram:group:-5" ||
		s.Generation != 1 || s.Title != "Garden" {
		t.Errorf("%+v %+v", done, s)
	}
	if strings.Contains(string(s.Metadata), "secret") {
		t.Errorf("metadata hold an authorisation: %s", s.Metadata)
	}
}

// The index is written after each turn: what it says anew is taken, what is gone from it stays.
func TestOpenClawIndexIsFollowed(t *testing.T) {
	for name, readFirst := range map[string]bool{"together": false, "the transcript before the index": true} {
		t.Run(name, func(t *testing.T) { indexIsFollowed(t, readFirst) })
	}
}

func indexIsFollowed(t *testing.T, readFirst bool) {
	h := newHouse(t)
	dir := h.sessions()
	h.write(filepath.Join(dir, "one.jsonl"), header, user("1", "", "one"))
	h.run(dir)
	if s := h.Session("main/one"); s.Key != "" || s.Title != "one" {
		t.Errorf("%+v", s)
	}
	index := h.write(filepath.Join(dir, "sessions.json"), `{"agent:main:main":{"sessionId":"one","updatedAt":1767344460000,"label":"First"}}`)
	h.run(dir)
	if s := h.Session("main/one"); s.Key != "agent:main:main" || s.Generation != 1 || s.Title != "First" ||
		s.EndedAt != nil {
		t.Errorf("%+v", s)
	}
	two := h.write(filepath.Join(dir, "two.jsonl"), strings.NewReplacer(`"one"`, `"two"`, "2026-01-02",
		"2026-01-03").Replace(header), user("1", "", "next"))
	h.write(index, `{"agent:main:main":{"sessionId":"two","updatedAt":1767430860000,"usageFamilySessionIds":["one","two"]}}`)
	if readFirst {
		h.run(two)
	}
	h.run(dir)
	first, second := h.Session("main/one"), h.Session("main/two")
	if second.Key != "agent:main:main" || second.Generation != 2 || second.EndedAt != nil {
		t.Errorf("%+v", second)
	}
	if first.Generation != 1 || first.EndedAt == nil || first.EndedAt.SQL() != "2026-01-03 09:00:00.000" {
		t.Errorf("generation %d ended %v", first.Generation, first.EndedAt)
	}
	if again := h.run(dir); again.Records.Read != 0 {
		t.Errorf("again %+v", again)
	}
}

func TestOpenClawDeletedSessionIsImportedWhenItIsAskedFor(t *testing.T) {
	h := newHouse(t)
	dir := h.sessions()
	path := h.write(filepath.Join(dir, "one.jsonl.deleted.2026-01-03T04-00-00.000Z"), header, user("1", "", "forget this"))
	h.write(filepath.Join(dir, "two.jsonl.deleted.2026-01-03T04-00-00.000Z"), strings.Replace(header, `"one"`, `"two"`, 1),
		user("1", "", "[cron:morning daily digest] Weather?"))
	done := h.run(dir)
	if done.Records.Skipped["deleted by the user"] != 2 || done.Sessions.New != 1 {
		t.Errorf("%+v", done)
	}
	if s := h.Session("main/two"); s.Key != "agent:main:cron:morning" || s.Kind != "cron" || s.Title != "Weather?" {
		t.Errorf("%+v", s)
	}
	if again := h.run(dir); again.Records.Read != 0 {
		t.Errorf("again %+v", again)
	}
	// Who follows the folder meets the file alone, and did not ask.
	follows := openclaw.New(historytest.NoEnv)
	for _, root := range []string{dir, path} {
		if done, err := h.Importer.Run(t.Context(), follows, []string{root}); err != nil || done.Records.Read != 0 {
			t.Errorf("%+v %v", done, err)
		}
	}
	if asked := h.run(path); asked.Sessions.New != 1 || h.text(h.Session("main/one")) != "forget this" {
		t.Errorf("%+v", asked)
	}
}

func TestOpenClawForkOfAForkSharesBothPaths(t *testing.T) {
	h := newHouse(t)
	dir := h.sessions()
	named := func(id, parent, at string) string {
		return fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-01-02T09:%s:00.000Z","cwd":"/home/dev","parentSession":"/gone/elsewhere/%s.jsonl"}`, id, at, parent)
	}
	h.write(filepath.Join(dir, "one.jsonl"), header, user("1", "", "one"), reply("2", "1", "two"), user("3", "2", "three"))
	second := h.write(filepath.Join(dir, "two.jsonl"), named("two", "one", "10"), user("1", "", "one"),
		reply("2", "1", "two"), user("b1", "2", "other"))
	h.write(filepath.Join(dir, "three.jsonl"), named("three", "two", "20"), user("1", "", "one"), reply("2", "1", "two"),
		user("b1", "2", "other"), user("c1", "b1", "last"),
		`{"type":"compaction","id":"c2","parentId":"c1","timestamp":"2026-01-02T09:30:00.000Z","summary":"S","firstKeptEntryId":"b1"}`,
		`{"type":"label","id":"c3","parentId":"c2","timestamp":"2026-01-02T09:30:01.000Z","targetId":"2","label":"here"}`)
	done := h.run(dir)
	if done.Records.Skipped["copied from the session it was forked from"] != 5 {
		t.Errorf("%+v", done)
	}
	third := h.Session("main/three")
	if !slices.Equal(h.Keys(third), []string{"1", "2", "b1", "c1", "c2", "c3"}) || third.MessageCount != 3 ||
		third.ParentKind != "fork" {
		t.Errorf("path %v of %+v", h.Keys(third), third)
	}
	if got := h.context(third); !slices.Equal(got, []string{"summary", "b1", "c1"}) {
		t.Errorf("context %v", got)
	}
	if third.OutputTokens != 0 || h.Session("main/one").OutputTokens != 5 {
		t.Error("a call counts once")
	}
	// It goes on from an entry that it shares.
	h.Append(second, user("b2", "1", "again")+"\n")
	if done := h.run(dir); done.Records.Imported != 1 {
		t.Errorf("%+v", done)
	}
	if got := h.Keys(h.Session("main/two")); !slices.Equal(got, []string{"1", "b2"}) {
		t.Errorf("path %v", got)
	}
}

func TestOpenClawTranscriptWithAByteOrderMark(t *testing.T) {
	historytest.MarkedFile(t, openclaw.New(historytest.NoEnv), "one.jsonl", header, user("1", "", "one"),
		reply("2", "1", "two"), user("3", "2", "three"))
}

// After a move to the database that failed both are written. What only the file has stands where it was said,
// and nothing is doubled.
func TestOpenClawFileAndDatabaseOfOneSession(t *testing.T) {
	state := filepath.Join(samples.Case(t, "21-openclaw-sqlite-and-files"), "openclaw")
	h := newHouse(t)
	done := h.run(state)
	want := "user: Water the basil on Mondays\nassistant: Noted.\nuser: And the mint daily\nassistant: Noted, too.\n" +
		"user: Fertilise in May\nassistant: Will do."
	if got := h.Talk(h.Session("main/21212121-1111-4222-8333-000000000001")); got != want {
		t.Errorf("%s", got)
	}
	messages, calls := 0, 0
	for _, s := range h.all() {
		messages, calls = messages+len(h.Entries(s.ID)), calls+len(h.Calls(s.ID))
	}
	if len(h.all()) != 3 || messages != 10 || calls != 5 || len(done.Errors) > 0 || done.Records.Read != 17 {
		t.Errorf("%d sessions, %d messages, %d calls: %+v", len(h.all()), messages, calls, done)
	}
	rows := h.Rows()
	if h.run(state); h.Rows() != rows {
		t.Error("a second import wrote")
	}
	h.Examine()
}
