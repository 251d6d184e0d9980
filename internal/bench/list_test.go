package bench_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

const listed = 50

// BenchmarkList lists the newest 50 of many sessions, in process and by a command from its start to
// its end. The baselines are the SELECT of the listed columns, `sessiond version` and the sqlite3 shell.
func BenchmarkList(b *testing.B) {
	ctx, n := b.Context(), sized(100_000)
	path := filepath.Join(b.TempDir(), "sessions.db")
	s := testkit.Must(store.Open(ctx, path, options()))(b)
	b.Cleanup(func() { testkit.Check(b, s.Close()) })
	begin := time.Date(2024, 1, 1, 8, 0, 0, 0, time.UTC)
	testkit.Check(b, atOnce(128, func(w int) error { // many share a commit
		write := newAuthor(uint64(w))
		for i := w; i < n; i += 128 {
			at := session.At(begin.Add(time.Duration(i) * 10 * time.Minute))
			m := write.message(0, 20)
			m.CreatedAt = at
			if _, err := s.Import(ctx, store.ImportBatch{
				Session: store.NewSession{
					Source: session.SourcePi, SourceID: fmt.Sprintf("session-%d", i), Title: write.sentence(5), Model: "gpt-4o",
					Directory: "/home/me/project", Project: "/home/me/project", CreatedAt: &at,
				},
				Messages: []store.ImportMessage{{Message: m}},
			}); err != nil {
				return err
			}
		}
		return nil
	}))
	query := fmt.Sprintf(`SELECT id, day, title, title_source, kind, draft, settings, key, generation, source, source_id,
		directory, project, git_branch, provider, model, window, parent_id, parent_kind, head_id, last_seq,
		compaction_id, epoch, revision, message_count, total_tokens, context_tokens, compaction_count,
		input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_nanousd, cost_usd,
		unpriced_calls, turn_origin, created_at, updated_at, active_at, inbound_at, archived_at, deleted_at,
		ended_at, end_reason, metadata FROM sessions
		WHERE draft = 0 AND deleted_at IS NULL AND archived_at IS NULL ORDER BY active_at DESC, id DESC LIMIT %d`, listed+1)

	b.Run("in process", func(b *testing.B) {
		bare := openBare(b, path, readerPragmas())
		compare(b, 20, &side{op: func() error {
			data, _, err := s.Sessions(ctx, store.Filter{}, store.Page{Limit: listed})
			if err == nil && len(data) != listed {
				err = fmt.Errorf("%d sessions, not %d", len(data), listed)
			}
			return err
		}}, &side{name: "bare", op: func() error { return bare.read(query) }})
	})
	b.Run("sessiond ls", func(b *testing.B) {
		program := binary(b)
		of := func(name string, cmd func() *exec.Cmd) *side {
			return &side{name: name, cpu: childrenCPU, op: func() error { return run(cmd()) }}
		}
		sides := []*side{
			of("", func() *exec.Cmd { return command(program, path, "ls", "--limit", fmt.Sprint(listed)) }),
			of("version", func() *exec.Cmd { return command(program, path, "version") }),
		}
		if _, err := exec.LookPath("sqlite3"); err == nil {
			sides = append(sides, of("C", func() *exec.Cmd { return exec.Command("sqlite3", "-readonly", "-box", path, query) }))
		}
		compare(b, 3, sides...)
	})
}
