package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
)

func TestDoctorFindsEachKindOfDamage(t *testing.T) {
	onFile(t)
	effort.NotShort(t, "one goroutine checks forty databases")
	drop := `DROP TRIGGER messages_immutable; DROP TRIGGER parts_immutable; DROP TRIGGER blobs_immutable; DROP TRIGGER messages_no_delete; DROP TRIGGER parts_no_delete; DROP TRIGGER blobs_no_delete; DROP TRIGGER blob_pieces_immutable; DROP TRIGGER blob_pieces_no_delete; DROP TRIGGER blobs_with_pieces; DROP TRIGGER blob_pieces_in_order;`
	healthy := openTest(t)
	sess := mustCreate(t, healthy, NewSession{})
	mustAppend(t, healthy, sess.ID, says(session.User,
		strings.Repeat("x", 100_000)+strings.Repeat("a piece", pieceSize/2)), calls("a"), results("a"))
	testkit.Must(healthy.AddCall(t.Context(), session.Call{SessionID: sess.ID, CostNanoUSD: priced(3)}))(t)
	testkit.Must(healthy.AddCompaction(t.Context(), overlay(t, healthy, sess.ID, 1, session.StatusDone, 2)))(t)
	mustBeHealthy(t, healthy)
	testkit.Check(t, healthy.Close())
	data := testkit.Must(os.ReadFile(healthy.File()))(t)
	for _, c := range []struct{ name, damage string }{
		{"parents", `UPDATE messages SET depth = 7 WHERE seq = 2`},
		{"parents", `DELETE FROM messages WHERE seq = 2`},
		{"jumps", `UPDATE messages SET jump = 1 WHERE seq = 2`},
		{"path tokens", `UPDATE messages SET path_tokens = path_tokens + 1 WHERE seq = 3`},
		{"parts", `INSERT INTO parts (id, message_id, idx, kind, tokens) VALUES (99 << 10, 99, 0, 'text', 0)`},
		{"blobs", `DELETE FROM blobs`},
		{"blob contents", `UPDATE blobs SET data = x'00'`},
		{"blob contents", `UPDATE blob_pieces SET data = x'00'`},
		{"blob contents", `DELETE FROM blob_pieces WHERE n = 1`},
		{"blob contents", `UPDATE blob_pieces SET n = 9 WHERE n = 2; UPDATE blob_pieces SET n = 2 WHERE n = 1; UPDATE blob_pieces SET n = 1 WHERE n = 9`},
		{"blob pieces", `DELETE FROM blobs`},
		{"blob pieces", `DELETE FROM blob_pieces WHERE n = 1`},
		{"blob pieces", `DELETE FROM blob_pieces WHERE n = (SELECT MAX(n) FROM blob_pieces)`},
		{"blob pieces", `UPDATE blob_pieces SET n = 9 WHERE n = 2`},
		{"blob pieces", `INSERT INTO blob_pieces SELECT sha256, 1 + MAX(n), x'00' FROM blob_pieces`},
		{"blob pieces", `INSERT INTO blobs VALUES ('a', 1, 'text/plain', x'41'); INSERT INTO blob_pieces VALUES ('a', 1, x'42')`},
		{"counters", `UPDATE sessions SET message_count = message_count + 1`},
		{"counters", `UPDATE sessions SET total_tokens = 0`},
		{"counters", `UPDATE sessions SET last_seq = 9`},
		{"usage", `UPDATE sessions SET input_tokens = 1`},
		{"usage", `UPDATE sessions SET cost_nanousd = NULL`},
		{"usage", `UPDATE sessions SET unpriced_calls = 9`},
		{"compactions", `UPDATE sessions SET compaction_count = 0`},
		{"heads", `UPDATE sessions SET head_id = 99`},
		{"contexts", `UPDATE sessions SET context_tokens = context_tokens + 1`},
		{"contexts", `INSERT INTO compaction_undos SELECT session_id, id, created_at FROM compactions`},
		{"results", `UPDATE parts SET call_part_id = 1024 WHERE kind = 'tool_result'`},
		{"marks", `INSERT INTO marks VALUES ('x', 99, 'pin', '', '', 0, 0)`},
		{"marks", `INSERT INTO touched_files VALUES ('/a', 99, 'read', 'x')`},
		{"daily usage", `UPDATE daily_usage SET calls = calls + 1`},
		{"daily usage", `UPDATE daily_usage SET cost_nanousd = 0`},
		{"daily usage", `DELETE FROM daily_usage`},
		{"daily usage", `UPDATE daily_usage SET prompts = 9 WHERE model = ''`},
		{"daily usage", `UPDATE daily_usage SET sessions = 9 WHERE model = ''`},
		{"foreign keys", `PRAGMA foreign_keys = 0; INSERT INTO messages (session_id, seq, depth, origin, tokens, path_tokens, day, created_at) VALUES ('nobody', 1, 0, 'person', 0, 0, '', '')`},
		{"schema", `DROP INDEX messages_person`},
		{"schema", `DROP TRIGGER sessions_no_replace`},
	} {
		t.Run(c.name+": "+c.damage, func(t *testing.T) {
			s := openData(t, data)
			testkit.Must(raw(t, s).Exec(drop + c.damage))(t)
			found := map[string]bool{}
			for _, check := range testkit.Must(s.Doctor(t.Context(), false))(t) {
				if !check.OK {
					found[check.Name] = true
					if check.Advice == "" || !strings.Contains(check.Detail, "it fails at: ") {
						t.Errorf("%+v leads nowhere", check)
					}
				}
			}
			if !found[c.name] {
				t.Errorf("found only %v", found)
			}
		})
	}
}

// damage overwrites a page of a closed database, from 1.
func damage(t *testing.T, path string, page, size int64) {
	t.Helper()
	f := testkit.Must(os.OpenFile(path, os.O_WRONLY, 0))(t)
	testkit.Must(f.WriteAt(bytes.Repeat([]byte{0xff}, int(size)), (page-1)*size))(t)
	testkit.Check(t, f.Close())
}

// Doctor ends at no damaged page, names the table or index and the sessions, and the store reads what it
// can and takes no more writes.
func TestDoctorReadsAroundADamagedPage(t *testing.T) {
	onFile(t)
	for name, page := range map[string]string{
		"an index":    `SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_messages_1'`,
		"a message":   `SELECT MAX(pageno) FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf'`,
		"a part":      `SELECT MIN(pageno) FROM dbstat WHERE name = 'parts' AND pagetype = 'leaf'`,
		"a roll-up":   `SELECT rootpage FROM sqlite_schema WHERE name = 'daily_usage'`,
		"the sources": `SELECT rootpage FROM sqlite_schema WHERE name = 'imports'`,
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t)
			var ids []session.ID
			for range 3 {
				sess := mustCreate(t, s, NewSession{})
				ids = append(ids, sess.ID)
				for i := range 30 {
					mustAppend(t, s, sess.ID, says(session.User, fmt.Sprint("message ", i, strings.Repeat("x", 500))))
				}
			}
			at, size := count(t, s, page), count(t, s, `PRAGMA page_size`)
			s.Close()
			damage(t, s.File(), at, size)
			var log bytes.Buffer
			opt := s.opt
			opt.Log = zerolog.New(&log)
			again := testkit.Must(Open(t.Context(), s.File(), opt))(t)
			defer again.Close()
			for _, quick := range []bool{false, true} {
				checks := testkit.Must(again.Doctor(t.Context(), quick))(t)
				if checks[0].OK || len(checks) < 15 || !strings.Contains(checks[0].Detail, "page") {
					t.Errorf("quick %t: %d checks, %+v", quick, len(checks), checks[0])
				}
				table := map[string]string{
					"an index": "sqlite_autoindex_messages_1", "a message": "table messages",
					"a part": "table parts", "a roll-up": "table daily_usage", "the sources": "table imports",
				}[name]
				if !strings.Contains(checks[0].Detail, table) {
					t.Errorf("quick %t: %s is not named: %s", quick, table, checks[0].Detail)
				}
			}
			damaged, err := again.DamagedSessions(t.Context())
			want := map[string][]session.ID{"a message": ids[2:], "a part": ids[:1]}[name]
			if name != "an index" && (err != nil || !slices.Equal(damaged, want)) {
				t.Errorf("damaged are %v, %v, not %v", damaged, err, want)
			}
			_, err = again.Append(t.Context(), Append{Session: ids[1], Messages: []session.Message{says(session.User, "more")}})
			wants(t, err, session.Unavailable, "is damaged")
			if h := again.Health(); h.State != engine.StateDamaged || strings.Count(log.String(), "\n") != 1 {
				t.Errorf("%+v, log %s", h, &log)
			}
			if name != "an index" {
				if got := testkit.Must(again.Session(t.Context(), ids[1]))(t); got.MessageCount != 30 {
					t.Errorf("%+v", got)
				}
			}
		})
	}
}

// A page that nothing but a backup reads: the backup says so, and so does the health of the store.
func TestBackupReportsADamagedPage(t *testing.T) {
	onFile(t)
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	for i := range 30 {
		mustAppend(t, s, sess.ID, says(session.User, fmt.Sprint("message ", i, strings.Repeat("x", 500))))
	}
	at, size := count(t, s, `SELECT MIN(pageno) FROM dbstat WHERE name = 'parts' AND pagetype = 'leaf'`), count(t, s, `PRAGMA page_size`)
	s.Close()
	damage(t, s.File(), at, size)
	again := testkit.Must(Open(t.Context(), s.File(), s.opt))(t)
	defer again.Close()
	testkit.Check(t, again.Ready(t.Context()))
	out := filepath.Join(t.TempDir(), "copy.db")
	_, err := again.Backup(t.Context(), out)
	wants(t, err, session.Unavailable, "is damaged")
	wants(t, again.Ready(t.Context()), session.Unavailable, "is damaged")
	if _, err := os.Stat(out); err == nil {
		t.Error("there is a backup")
	}
}
