package store

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
)

func TestDoctorFindsEachKindOfDamage(t *testing.T) {
	effort.NotShort(t, "one goroutine checks forty databases")
	drop := `DROP TRIGGER messages_immutable; DROP TRIGGER parts_immutable; DROP TRIGGER blobs_immutable; DROP TRIGGER messages_no_delete; DROP TRIGGER parts_no_delete; DROP TRIGGER blobs_no_delete; DROP TRIGGER blob_pieces_immutable; DROP TRIGGER blob_pieces_no_delete; DROP TRIGGER blobs_with_pieces; DROP TRIGGER blob_pieces_in_order;`
	healthy := openTest(t)
	sess := mustCreate(t, healthy, NewSession{})
	mustAppend(t, healthy, sess.ID, says(session.User, strings.Repeat("x", 100_000)+strings.Repeat("a piece", pieceSize/2)), calls("a"), results("a"))
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
		{"marks", `INSERT INTO marks VALUES ('x', 99, 'pin', '', '')`},
		{"marks", `INSERT INTO touched_files VALUES ('/a', 99, 'read', 'x')`},
		{"daily usage", `UPDATE daily_usage SET calls = calls + 1`},
		{"daily usage", `UPDATE daily_usage SET cost_nanousd = 0`},
		{"daily usage", `DELETE FROM daily_usage`},
		{"daily messages", `UPDATE daily_usage SET prompts = 9 WHERE model = ''`},
		{"daily messages", `DELETE FROM daily_usage`},
		{"daily sessions", `UPDATE daily_usage SET sessions = 9 WHERE model = ''`},
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
					if check.Advice == "" || !strings.Contains(check.Detail, "among them: ") {
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

func TestDoctorFindsADamagedPage(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	for i := range 50 {
		mustAppend(t, s, sess.ID, says(session.User, fmt.Sprint("message ", i, strings.Repeat("x", 500))))
	}
	root := count(t, s, `SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_messages_1'`)
	size := count(t, s, `PRAGMA page_size`)
	s.Close()
	f := testkit.Must(os.OpenFile(s.File(), os.O_WRONLY, 0))(t)
	testkit.Must(f.WriteAt(bytes.Repeat([]byte{0xff}, 200), (root-1)*size+100))(t)
	f.Close()
	again := testkit.Must(Open(ctx, s.File(), s.opt))(t)
	defer again.Close()
	for _, quick := range []bool{false, true} {
		checks, err := again.Doctor(ctx, quick)
		if err == nil && checks[0].OK {
			t.Errorf("quick=%v: all is well", quick)
		}
	}
}
