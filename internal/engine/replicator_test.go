package engine_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"testing"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// replicateInChild does on a database what Litestream does: it keeps a reading transaction open, has two tables of its
// own, writes a row to have a new log begin, and makes checkpoints. A line on standard input is one round.
func replicateInChild(args []string) error {
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:"+args[0]+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	reader, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	var n int
	do := func(statements ...string) {
		for _, statement := range statements {
			if err == nil {
				_, err = db.ExecContext(ctx, statement)
			}
		}
	}
	hold := func() {
		if err == nil {
			_, err = reader.ExecContext(ctx, `BEGIN`)
		}
		if err == nil {
			err = reader.QueryRowContext(ctx, `SELECT COUNT(*) FROM _litestream_seq`).Scan(&n)
		}
	}
	do(`CREATE TABLE IF NOT EXISTS _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)`,
		`CREATE TABLE IF NOT EXISTS _litestream_lock (id INTEGER)`)
	hold()
	for lines := bufio.NewScanner(os.Stdin); err == nil && lines.Scan(); {
		if _, err = reader.ExecContext(ctx, `ROLLBACK`); err == nil {
			do(`PRAGMA wal_checkpoint(`+lines.Text()+`)`,
				`INSERT INTO _litestream_seq (id, seq) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET seq = seq + 1`)
		}
		hold()
		fmt.Println("round")
	}
	return err
}

// A replicator that reads, writes its own tables and makes checkpoints is told apart from a program that overwrites the
// file: every append is stored, and nothing is reported.
func TestReplicatorIsNoIntruder(t *testing.T) {
	path := t.TempDir() + "/sessions.db"
	s := testkit.Must(store.Open(t.Context(), path, store.Options{}))(t)
	sess := testkit.Must(s.CreateSession(t.Context(), store.NewSession{}))(t)
	cmd := child(t, "replicate", path)
	in, out := testkit.Must(cmd.StdinPipe())(t), testkit.Must(cmd.StdoutPipe())(t)
	testkit.Check(t, cmd.Start())
	rounds := bufio.NewScanner(out)
	const each = 10
	for round, checkpoint := range []string{"PASSIVE", "RESTART", "TRUNCATE", "PASSIVE", "TRUNCATE", "RESTART"} {
		for i := range each {
			testkit.Must(s.Append(t.Context(), store.Append{Session: sess.ID, Messages: []session.Message{{
				Role: session.User, InContext: true, Display: true,
				Parts: []session.Part{session.TextPart(fmt.Sprintf("round %d, message %d", round, i))},
			}}}))(t)
		}
		if _, err := fmt.Fprintln(in, checkpoint); err != nil || !rounds.Scan() {
			t.Fatalf("the replicator ended: %v", err)
		}
		if h := s.Health(); h.State != engine.StateOK {
			t.Fatalf("after its %s checkpoint the store is %s: %v", checkpoint, h.State, h.Err)
		}
		testkit.Check(t, s.Ready(t.Context()))
	}
	testkit.Check(t, s.Close())
	testkit.Check(t, in.Close())
	testkit.Check(t, cmd.Wait())
	s = testkit.Must(store.Open(t.Context(), path, store.Options{}))(t)
	defer s.Close() //nolint:errcheck // a test
	if got := testkit.Must(s.Session(t.Context(), sess.ID))(t); got.MessageCount != 6*each {
		t.Errorf("%d messages are left", got.MessageCount)
	}
}
