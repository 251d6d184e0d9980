package codex_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/history"
	"sessiond/internal/history/codex"
	"sessiond/internal/samples"
)

// told writes everything that an import stored, in words that do not depend on the order in
// which rows came.
func (h *house) told() map[string]string {
	h.Helper()
	all := map[string]string{}
	rows, err := h.store.Reader().Queryx(`
		SELECT s.source_id || ' ' || m.external_id AS name,
		       COALESCE((SELECT p.external_id FROM messages p WHERE p.id = m.parent_id), '') || ' ' || m.kind || ' ' || m.role || ' ' || m.origin
		       || ' ' || m.finish || ' ' || m.model || ' ' || m.in_context || m.display || ' ' || m.created_at || ' ' ||
		       COALESCE((SELECT group_concat(kind || call_id || length(text) || COALESCE(duration_ms, '') || COALESCE(is_error, '')) FROM parts WHERE message_id = m.id), '') AS said
		FROM messages m JOIN sessions s ON s.id = m.session_id
		UNION ALL
		SELECT 'call ' || external_id, input_tokens || ' ' || cache_read_tokens || ' ' || cache_write_tokens || ' ' || output_tokens || ' ' || model || ' ' ||
		       COALESCE((SELECT external_id FROM messages WHERE id = message_id), '') FROM calls
		UNION ALL
		SELECT 'compaction ' || (SELECT external_id FROM messages WHERE id = through_id), status || length(summary) || length(COALESCE(replacement, '')) FROM compactions
		UNION ALL
		SELECT 'session ' || source_id, title || ' ' || parent_kind || ' ' || message_count || ' ' || context_tokens || ' ' || git_branch || ' ' ||
		       COALESCE((SELECT external_id FROM messages WHERE id = head_id), '') || ' ' || (SELECT COUNT(*) FROM messages WHERE session_id = sessions.id) FROM sessions`)
	if err != nil {
		h.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, said string
		if err := rows.Scan(&name, &said); err != nil {
			h.Fatal(err)
		}
		if _, twice := all[name]; twice {
			h.Errorf("%s stands twice", name)
		}
		all[name] = said
	}
	return all
}

// A transcript that is read while it grows, cut anywhere, gives what it gives when it is read
// whole: what is not finished waits.
func TestPiecesGiveTheWhole(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(samples.Dir(t), "codex", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.Contains(file, "key-sweep") {
			continue // no conversation: its rows name one another in any order
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			whole, pieces := newHouse(t), newHouse(t)
			all := whole.run(copyOf(t, file, t.TempDir()))
			text := read(t, file)
			path := filepath.Join(t.TempDir(), filepath.Base(file))
			pieces.source = codex.New(noEnv, time.Now) // by which nothing is quiet
			var sum history.Records
			const cuts = 7
			for i := range cuts {
				end := len(text) * (i + 1) / cuts
				if err := os.WriteFile(path, []byte(text[:end]), 0o600); err != nil {
					t.Fatal(err)
				}
				if i == cuts-1 {
					pieces.source = codex.New(noEnv, later)
				}
				done := pieces.run(path)
				sum.Add(done.Records)
			}
			if diff := cmp.Diff(whole.told(), pieces.told()); diff != "" {
				t.Errorf("-whole +pieces\n%.3000s", diff)
			}
			torn := sum.Skipped[history.SkipTorn] - all.Records.Skipped[history.SkipTorn]
			if sum.Read-torn != all.Records.Read || sum.Imported != all.Records.Imported || sum.Raw != all.Records.Raw {
				t.Errorf("whole %+v\npieces %+v", all.Records, sum)
			}
		})
	}
}

func copyOf(t *testing.T, file, dir string) string {
	t.Helper()
	path := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(path, []byte(read(t, file)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A file that was written anew is recognised: what it says as before is not doubled, what it
// says otherwise is a branch, and reading it again changes nothing.
func TestRewrittenFilesBranch(t *testing.T) {
	h := newHouse(t)
	lines := strings.Split(strings.TrimSuffix(read(t, sample(t, "localpush-0.104-12-41-04.jsonl")), "\n"), "\n")
	path := h.write(filepath.Base(sample(t, "localpush-0.104-12-41-04.jsonl")), lines...)
	h.run(path)
	before := h.told()
	middle := len(lines) / 2
	changed := append(append([]string{}, lines[:middle]...), lines[middle+1:]...) // one line is gone
	h.rewrite(path, changed...)
	done := h.run(path)
	if done.Sessions.New != 0 {
		t.Errorf("%+v", done)
	}
	after := h.told()
	for name, said := range before {
		if strings.HasPrefix(name, "session ") {
			continue
		}
		if after[name] != said {
			t.Errorf("%s was %q, is %q", name, said, after[name])
		}
	}
	rows := h.rows()
	if done := h.run(path); done.Records.Read != 0 || h.rows() != rows {
		t.Errorf("a third import wrote: %+v", done)
	}
}
