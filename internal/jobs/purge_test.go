package jobs

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// place is a store and its index in real files, with a purger over both.
type place struct {
	dir    string
	store  *store.Store
	index  *search.Index
	purger *Purger
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir := t.TempDir()
	p := &place{dir: dir}
	p.store = testkit.Must(store.Open(t.Context(), storetest.New(t, filepath.Join(dir, "sessions.db")), store.Options{
		Measure: func(m *session.Message) {
			for i := range m.Parts {
				m.Parts[i].Tokens = int64(len(m.Parts[i].Text)/4 + 1)
				m.Tokens += m.Parts[i].Tokens
			}
		},
		Touched: func(m *session.Message, _ string) []session.TouchedFile {
			var files []session.TouchedFile
			for i := range m.Parts {
				if m.Parts[i].Kind == session.PartToolCall {
					files = append(files, session.TouchedFile{Path: "/" + m.Parts[i].ToolName, Op: "read"})
				}
			}
			return files
		},
	}))(t)
	p.index = testkit.Must(search.Open(t.Context(), filepath.Join(dir, "search.db"), p.store))(t)
	t.Cleanup(func() { _ = p.index.Close(); _ = p.store.Close() })
	p.purger = &Purger{Store: p.store, Index: p.index, BackupDir: filepath.Join(dir, "backups"), Log: zerolog.Nop()}
	return p
}

func (p *place) append(t *testing.T, id session.ID, parent *session.MessageRef,
	msgs ...session.Message,
) store.Appended {
	t.Helper()
	for i := range msgs {
		msgs[i].InContext, msgs[i].Display = true, true
	}
	return testkit.Must(p.store.Append(t.Context(), store.Append{Session: id, Parent: parent, Messages: msgs}))(t)
}

func (p *place) create(t *testing.T, in store.NewSession) session.Session {
	t.Helper()
	return testkit.Must(p.store.CreateSession(t.Context(), in))(t)
}

// scrub is whether a purge scrubs: what a server keeps beside its tables is its own business.
func scrub() bool { return !storetest.OnPostgres() }

// holding names the files that hold any of the words; of a database on PostgreSQL, its tables.
func (p *place) holding(t *testing.T, words ...string) []string {
	t.Helper()
	var found []string
	if storetest.OnPostgres() {
		rows := testkit.Must(p.store.Reader().Query(`SELECT query_to_xml('SELECT * FROM ' || table_name, true, true, '')::text FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`))(t)
		defer rows.Close()
		for rows.Next() {
			var all string
			testkit.Check(t, rows.Scan(&all))
			for _, w := range words {
				if strings.Contains(all, w) {
					found = append(found, "a table holds "+w)
				}
			}
		}
		testkit.Check(t, rows.Err())
		return found
	}
	entries := testkit.Must(os.ReadDir(p.dir))(t)
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		b := testkit.Must(os.ReadFile(filepath.Join(p.dir, e.Name())))(t)
		for _, w := range words {
			if bytes.Contains(b, []byte(w)) {
				found = append(found, e.Name()+" holds "+w)
			}
		}
	}
	return found
}

func (p *place) healthy(t *testing.T) {
	t.Helper()
	checks := testkit.Must(p.store.Doctor(t.Context(), false))(t)
	for _, c := range checks {
		if !c.OK {
			t.Errorf("doctor, %s: %s", c.Name, c.Detail)
		}
	}
}

// secret writes a session that says a word in every way there is.
func (p *place) secret(t *testing.T, r *rand.Rand, word string) session.ID {
	t.Helper()
	ctx := t.Context()
	s := p.create(t, store.NewSession{
		Title: "about " + word, Directory: "/home/" + word,
		Metadata: session.JSONOf(map[string]string{"of": word}), Source: session.SourcePi,
		SourceID: fmt.Sprint("id-", word, r.Uint32()),
	})
	text := func(role session.Role) session.Message {
		m := session.Message{
			Role: role, Metadata: session.JSONOf(word),
			Parts: []session.Part{session.TextPart(fmt.Sprintf("%s%d and %s", word, r.IntN(99), word))},
		}
		switch r.IntN(5) {
		case 0:
			m.Parts = append(m.Parts, session.TextPart(strings.Repeat(word+" ", 9000))) // a blob
		case 1:
			m.Parts = append(m.Parts, session.Part{
				Kind: session.PartToolCall, ToolName: word, CallID: word,
				Arguments: `{"path":"` + word + `"}`,
			})
		case 2:
			m.Author, m.Extra = word, session.JSONOf(map[string]string{"x": word})
		}
		return m
	}
	for range 3 + r.IntN(30) {
		var parent *session.MessageRef
		now := testkit.Must(p.store.Session(ctx, s.ID))(t)
		if now.LastSeq > 2 && r.IntN(6) == 0 {
			parent = &session.MessageRef{Session: s.ID, Seq: 1 + r.Int64N(now.LastSeq)}
		}
		p.append(t, s.ID, parent, text(session.User), text(session.Assistant))
	}
	now := testkit.Must(p.store.Session(ctx, s.ID))(t)
	path, err := p.store.Path(ctx, *now.HeadID, 0)
	testkit.Check(t, err)
	_, err = p.store.AddCompaction(ctx, session.Compaction{
		SessionID: s.ID, Strategy: session.StrategySummarize, Trigger: session.TriggerManual, Status: session.StatusDone,
		ThroughID: &path[0].RowID, FirstKeptID: &path[1].RowID, Summary: "they spoke of " + word,
		Details: session.JSONOf(word),
	})
	testkit.Check(t, err)
	_, err = p.store.SetMark(ctx, s.ID, path[0].ID, store.MarkLabel, word, true)
	testkit.Check(t, err)
	_, err = p.store.SaveContext(ctx, session.Context{SessionID: s.ID, HeadID: now.HeadID},
		map[string]string{session.BlockSystem: "you know " + word},
		[]session.Frozen{{SessionID: s.ID, MessageID: *now.HeadID, Kind: "volatile", Content: session.JSONOf(word)}})
	testkit.Check(t, err)
	_, err = p.store.AddCall(ctx, session.Call{
		SessionID: s.ID, Purpose: session.PurposeChat, Status: "failed",
		Error: "bad " + word, InputTokens: 5, Metadata: session.JSONOf(word),
	})
	testkit.Check(t, err)
	return s.ID
}

func TestScrubbedPurgeLeavesNoByte(t *testing.T) {
	storetest.OnFile(t)
	runs := 20
	if testing.Short() {
		runs = 2
	}
	for run := range runs {
		t.Run(fmt.Sprint("run ", run), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(run), 7))
			p := newPlace(t)
			word, other := fmt.Sprintf("quux%dzjvkqpw", run), fmt.Sprintf("quux%dharmless", run)
			var keep []session.ID
			for range 3 {
				keep = append(keep, p.secret(t, r, other))
			}
			gone := p.secret(t, r, word)
			if r.IntN(2) == 0 { // some in the index and some not yet
				testkit.Must(p.index.CatchUp(t.Context()))(t)
				p.append(t, gone, nil, session.Message{
					Role:  session.User,
					Parts: []session.Part{session.TextPart("once more " + word)},
				})
			}
			before := testkit.Must(p.store.Session(t.Context(), gone))(t)
			done := testkit.Must(p.purger.Purge(t.Context(), store.PurgeRequest{Session: gone, Scrub: true}))(t)
			if done.Messages != before.MessageCount || !done.Scrubbed || len(done.Backups) != 0 {
				t.Errorf("%+v, of %d messages", done, before.MessageCount)
			}
			if found := p.holding(t, word, word[4:], "zjvkqpw", "jvkqpw", "id-"+word); len(found) > 0 {
				t.Errorf("%q", found)
			}
			if found := p.holding(t, other); len(found) == 0 {
				t.Error("the others are gone, too: nothing was looked at")
			}
			for _, id := range keep {
				if _, err := p.store.Session(t.Context(), id); err != nil {
					t.Error(err)
				}
			}
			if _, err := p.store.Session(t.Context(), gone); session.CodeOf(err) != session.NotFound {
				t.Errorf("still there: %v", err)
			}
			p.healthy(t)
		})
	}
}

// Only what the fork shares stays, and it goes with the fork.
func TestPurgeKeepsOnlyThePathOfForks(t *testing.T) {
	p := newPlace(t)
	ctx := t.Context()
	say := func(text string) session.Message {
		return session.Message{Role: session.User, Parts: []session.Part{session.TextPart(text)}}
	}
	origin := p.create(t, store.NewSession{Title: "the origin's own title"})
	p.append(t, origin.ID, nil, say("shared alpha"), say("shared beta"))
	fork := p.create(t, store.NewSession{
		Title: "the origin's own title (fork #2)", ParentID: origin.ID,
		ParentKind: session.ParentFork,
	})
	p.append(t, fork.ID, nil, say("the fork's gamma"))
	deeper := p.create(t, store.NewSession{ParentID: fork.ID, ParentKind: session.ParentFork})
	p.append(t, deeper.ID, nil, say("deeper delta"))
	child := p.create(t, store.NewSession{ParentID: origin.ID})
	p.append(t, origin.ID, &session.MessageRef{Session: origin.ID, Seq: 1}, say("private epsilonword"))
	before := pathOf(t, p, deeper.ID)

	for i, step := range []struct {
		purge  session.ID
		gone   []string
		stays  []string
		shared int64
	}{
		{origin.ID, []string{"epsilonword", "the origin's own"}, []string{"shared alpha", "shared beta"}, 2},
		{fork.ID, nil, []string{"shared alpha", "shared beta", "the fork's gamma"}, 1},
		{deeper.ID, []string{"shared alpha", "shared beta", "the fork's gamma", "deeper delta"}, nil, 0},
	} {
		done := testkit.Must(p.purger.Purge(ctx, store.PurgeRequest{Session: step.purge, Scrub: scrub()}))(t)
		if done.Shared != step.shared {
			t.Errorf("step %d: %d messages stay for forks, want %d", i, done.Shared, step.shared)
		}
		if found := p.holding(t, step.gone...); len(found) > 0 {
			t.Errorf("step %d: %q", i, found)
		}
		for _, word := range step.stays {
			if len(p.holding(t, word)) == 0 {
				t.Errorf("step %d: %q is gone", i, word)
			}
		}
		if step.purge != deeper.ID {
			if now := pathOf(t, p, deeper.ID); now != before {
				t.Errorf("step %d: the fork's path was\n%s\nand is\n%s", i, before, now)
			}
		}
		if step.purge != deeper.ID { // what stays is found, in a session that is there
			r := testkit.Must(p.index.Search(ctx, search.Query{Text: "alpha"}))(t)
			if want := []session.ID{fork.ID, deeper.ID}[i]; len(r.Hits) != 1 || r.Hits[0].SessionID != want ||
				r.Hits[0].MessageID.Session != origin.ID {
				t.Errorf("step %d: found %+v, want it in %s", i, r.Hits, want)
			}
		}
		p.healthy(t)
	}
	var rows int
	testkit.Check(t, p.store.Reader().Get(&rows, `SELECT COUNT(*) FROM sessions WHERE purged_at IS NOT NULL`))
	if rows != 0 {
		t.Errorf("%d shells are left of what no fork needs", rows)
	}
	if c, err := p.store.Session(ctx, child.ID); err != nil || c.ParentID != "" {
		t.Errorf("the child: parent %q, %v", c.ParentID, err)
	}
}

func pathOf(t *testing.T, p *place, id session.ID) string {
	t.Helper()
	s := testkit.Must(p.store.Session(t.Context(), id))(t)
	path := testkit.Must(p.store.Path(t.Context(), *s.HeadID, 0))(t)
	var lines []string
	for _, m := range path {
		lines = append(lines, m.ID.String()+" "+m.Parts[0].Text)
	}
	return strings.Join(lines, "\n")
}

// A purge that is broken off anywhere is finished by the next that looks.
func TestInterruptedPurgeIsFinished(t *testing.T) {
	for _, stop := range []string{"hidden", "half deleted", "all messages deleted"} {
		t.Run(stop, func(t *testing.T) {
			p := newPlace(t)
			id := p.secret(t, rand.New(rand.NewPCG(3, 3)), "halfwayword")
			testkit.Must(p.index.CatchUp(t.Context()))(t)
			work, _, err := p.store.BeginPurge(t.Context(), store.PurgeRequest{Session: id})
			testkit.Check(t, err)
			for n := 0; stop != "hidden" && (n == 0 || stop != "half deleted"); n++ {
				rows := testkit.Must(work.Doomed(t.Context()))(t)
				if len(rows) == 0 {
					break
				}
				testkit.Check(t, p.index.Forget(t.Context(), rows))
				testkit.Check(t, work.Delete(t.Context(), rows))
			}
			p.healthy(t)
			if _, err := p.store.Session(t.Context(), id); session.CodeOf(err) != session.NotFound {
				t.Errorf("it is shown while it is being deleted: %v", err)
			}
			if list, _, err := p.store.Sessions(t.Context(), store.Filter{Trash: true}, store.Page{}); err != nil ||
				len(list) != 0 {
				t.Errorf("the trash lists it: %v", err)
			}
			if !scrub() {
				testkit.Check(t, p.purger.Resume(t.Context()))
				if found := p.holding(t, "halfwayword"); len(found) > 0 {
					t.Errorf("%q", found)
				}
				p.healthy(t)
				return
			}
			scrubbed := testkit.Must(p.purger.Scrub(t.Context()))(t)
			if found := p.holding(t, "halfwayword"); !scrubbed || len(found) > 0 {
				t.Errorf("scrubbed %t, %q", scrubbed, found)
			}
			if again, err := p.purger.Scrub(t.Context()); err != nil || again {
				t.Errorf("a clean file was scrubbed again: %t, %v", again, err)
			}
			p.healthy(t)
		})
	}
}

// A purge that fails at each start would otherwise keep the text of the others for ever.
func TestFailedPurgeDoesNotKeepOthers(t *testing.T) {
	if storetest.OnPostgres() {
		t.Skip("the failure is a trigger of SQLite")
	}
	p := newPlace(t)
	var ids []session.ID
	for n, word := range []string{"firstword", "secondword"} {
		id := p.secret(t, rand.New(rand.NewPCG(5, uint64(n))), word)
		_, _, err := p.store.BeginPurge(t.Context(), store.PurgeRequest{Session: id})
		testkit.Check(t, err)
		ids = append(ids, id)
	}
	file := testkit.Must(sql.Open("sqlite", filepath.Join(p.dir, "sessions.db")))(t)
	defer file.Close()
	testkit.Must(file.Exec(`CREATE TRIGGER stuck BEFORE DELETE ON messages WHEN old.session_id = '` + string(ids[0]) + `'
		BEGIN SELECT RAISE(ABORT, 'stuck'); END`))(t)
	if err := p.purger.Resume(t.Context()); err == nil || !strings.Contains(err.Error(), string(ids[0])) {
		t.Errorf("the failed purge is reported as %v", err)
	}
	if left := testkit.Must(p.store.Purging(t.Context()))(t); len(left) != 1 || left[0] != ids[0] {
		t.Errorf("unfinished are %q, not only the one that fails", left)
	}
	testkit.Must(file.Exec(`DROP TRIGGER stuck`))(t)
	testkit.Check(t, p.purger.Resume(t.Context()))
	if left := testkit.Must(p.store.Purging(t.Context()))(t); len(left) > 0 {
		t.Errorf("still unfinished: %q", left)
	}
}

func TestPurgeNamesBackupsWithItsText(t *testing.T) {
	p := newPlace(t)
	id := p.secret(t, rand.New(rand.NewPCG(1, 1)), "backedup")
	testkit.Check(t, os.Mkdir(filepath.Join(p.dir, "backups"), 0o700))
	kept := filepath.Join(p.dir, "backups", "sessions-20260101T000000Z.db")
	testkit.Must(p.store.Backup(t.Context(), kept))(t)
	testkit.Check(t, os.WriteFile(filepath.Join(p.dir, "backups", "notes.txt"), []byte("no database"), 0o600))
	done := testkit.Must(p.purger.Purge(t.Context(), store.PurgeRequest{Session: id}))(t)
	if len(done.Backups) != 1 || done.Backups[0] != kept {
		t.Errorf("%q", done.Backups)
	}
}

func TestPurgeKeepsUsageNumbers(t *testing.T) {
	p := newPlace(t)
	ids := []session.ID{
		p.secret(t, rand.New(rand.NewPCG(1, 2)), "numbersword"),
		p.secret(t, rand.New(rand.NewPCG(1, 3)), "othernumbers"),
	}
	sums := func() string {
		var n [4]int64
		testkit.Check(t, p.store.Reader().QueryRowContext(t.Context(), `SELECT SUM(sessions), SUM(messages), SUM(calls), SUM(input_tokens) FROM daily_usage`).Scan(&n[0], &n[1], &n[2], &n[3]))
		return fmt.Sprint(n)
	}
	before := sums()
	testkit.Must(p.purger.Purge(t.Context(), store.PurgeRequest{Session: ids[0]}))(t)
	if after := sums(); after != before {
		t.Errorf("usage was %s and is %s", before, after)
	}
	next := p.create(t, store.NewSession{})
	if next.ID <= ids[1] {
		t.Errorf("%s was given again", next.ID)
	}
	p.healthy(t)
}

func TestPurgedHistoryIsNotImportedAgain(t *testing.T) {
	p := newPlace(t)
	batch := func(again bool) store.ImportBatch {
		m := store.ImportMessage{Message: session.Message{
			Role: session.User, InContext: true, Display: true, ExternalID: "a",
			Parts: []session.Part{session.TextPart("imported")},
		}}
		return store.ImportBatch{
			Session: store.NewSession{Source: session.SourcePi, SourceID: "uuid"}, Messages: []store.ImportMessage{m},
			Purged: again,
			Cursor: &store.ImportCursor{Source: session.SourcePi, Path: "/f.jsonl", Size: 9},
		}
	}
	first := testkit.Must(p.store.Import(t.Context(), batch(false)))(t)
	testkit.Must(p.purger.Purge(t.Context(), store.PurgeRequest{Session: first.Session.ID}))(t)
	if again, err := p.store.Import(t.Context(), batch(false)); err != nil || !again.Purged || again.Messages != 0 {
		t.Errorf("%+v %v", again, err)
	}
	if back, err := p.store.Import(t.Context(), batch(true)); err != nil || back.Purged || back.Messages != 1 {
		t.Errorf("asked for: %+v %v", back, err)
	}
	p.healthy(t)
}

func TestPurgeRejects(t *testing.T) {
	p := newPlace(t)
	s := p.create(t, store.NewSession{})
	old := s.Revision - 1
	for _, c := range []struct {
		name     string
		id       session.ID
		revision *int64
		code     session.Code
	}{
		{"a session that is not there", "20200101_001", nil, session.NotFound},
		{"a session that changed", s.ID, &old, session.PreconditionFailed},
	} {
		if _, err := p.purger.Purge(context.Background(),
			store.PurgeRequest{Session: c.id, IfRevision: c.revision}); session.CodeOf(err) != c.code {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A backup from before a purge is put in the place of the database that purged: what that had purged goes again.
func TestARestoredBackupPurgesAgain(t *testing.T) {
	storetest.OnFile(t)
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprint("keep ", keep), func(t *testing.T) {
			p := newPlace(t)
			origin := p.create(t, store.NewSession{})
			said := p.append(t, origin.ID, nil, session.Message{
				Role:  session.User,
				Parts: []session.Part{session.TextPart("shared wombatword")},
			},
				session.Message{Role: session.User, Parts: []session.Part{session.TextPart("own zanzibarword")}})
			fork := testkit.Must(p.store.Fork(t.Context(), store.Fork{Session: origin.ID, At: &said.Messages[0].ID}))(t)
			imported := p.create(t, store.NewSession{Source: session.SourcePi, SourceID: "a"})
			lives := p.create(t, store.NewSession{})
			backup := filepath.Join(t.TempDir(), "backup.db")
			testkit.Must(p.store.Backup(t.Context(), backup))(t)
			later := p.create(t, store.NewSession{Source: session.SourcePi, SourceID: "later"})
			for _, id := range []session.ID{origin.ID, imported.ID, later.ID} {
				testkit.Must(p.purger.Purge(t.Context(), store.PurgeRequest{Session: id}))(t)
			}
			tombstones := testkit.Must(p.store.Tombstones(t.Context()))(t)

			restored := testkit.Must(store.Open(t.Context(), backup, store.Options{}))(t)
			defer restored.Close()
			again := testkit.Must((&Purger{Store: restored, Log: zerolog.Nop()}).PurgeAgain(t.Context(), tombstones, keep))(t)
			here := func(id session.ID) bool { _, err := restored.Session(t.Context(), id); return err == nil }
			if here(origin.ID) != keep || here(imported.ID) != keep || !here(fork.ID) || !here(lives.ID) ||
				len(again) != 2 && !keep {
				t.Errorf("purged again were %v", again)
			}
			if m, err := restored.Message(t.Context(), said.Messages[0].ID); err != nil || m.Text() != "shared wombatword" {
				t.Errorf("the fork's path has %q: %v", m.Text(), err)
			}
			// What the backup never had stays away, too.
			res := testkit.Must(restored.Import(t.Context(),
				store.ImportBatch{Session: store.NewSession{Source: session.SourcePi, SourceID: "later"}}))(t)
			if !res.Purged {
				t.Error("a session that was purged after the backup came in")
			}
			if twice := testkit.Must((&Purger{Store: restored, Log: zerolog.Nop()}).PurgeAgain(t.Context(), tombstones,
				false))(t); !keep && len(twice) != 0 {
				t.Errorf("a second run purged %v", twice)
			}
			for _, c := range testkit.Must(restored.Doctor(t.Context(), true))(t) {
				if !c.OK {
					t.Error(c)
				}
			}
		})
	}
}
