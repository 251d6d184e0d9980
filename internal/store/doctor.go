package store

import (
	"context"
	"fmt"
	"strings"
)

// Check is one thing that doctor looked at.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Advice string `json:"advice"`
}

// counterChecks compare what is kept with what recounting gives. Each query lists rows that
// disagree, as text; none means that all is well.
func counterChecks() []struct{ name, what, query, advice string } {
	const restore = "restore a backup, and report this: a counter that drifts is a defect of sessiond"
	return []struct{ name, what, query, advice string }{
		{"parents", "every message's parent is there and one message shallower", `
			SELECT m.session_id || '.' || m.seq FROM messages m LEFT JOIN messages p ON p.id = m.parent_id
			WHERE m.depth <> COALESCE(p.depth + 1, 0) OR (m.parent_id IS NOT NULL AND p.id IS NULL) LIMIT 5`, restore},
		{"jumps", "a jump is marked exactly where the parent is not the message before", `
			SELECT m.session_id || '.' || m.seq FROM messages m LEFT JOIN messages p ON p.id = m.parent_id
			WHERE m.jump <> CASE WHEN m.parent_id IS NULL THEN m.seq > 1 ELSE NOT (p.session_id = m.session_id AND p.seq = m.seq - 1) END LIMIT 5`, restore},
		{"path tokens", "path_tokens is the running sum of the tokens in the context", `
			SELECT m.session_id || '.' || m.seq FROM messages m LEFT JOIN messages p ON p.id = m.parent_id
			WHERE m.path_tokens <> COALESCE(p.path_tokens, 0) + m.tokens * m.in_context LIMIT 5`, restore},
		{"parts", "every part has its message", `
			SELECT p.id FROM parts p WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = p.message_id) LIMIT 5`, restore},
		{"blobs", "every part's blob is there", `
			SELECT p.id FROM parts p WHERE p.blob IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.sha256 = p.blob) LIMIT 5`, restore},
		{"counters", "sessions count their own messages and tokens", `
			SELECT s.id FROM sessions s WHERE (s.message_count, s.total_tokens, s.last_seq) <>
			(SELECT COUNT(*), COALESCE(SUM(m.tokens), 0), COALESCE(MAX(m.seq), 0) FROM messages m WHERE m.session_id = s.id) LIMIT 5`, restore},
		{"usage", "sessions sum up their calls", `
			SELECT s.id FROM sessions s WHERE (s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens, COALESCE(s.cost_nanousd, -1), s.unpriced_calls) <>
			(SELECT COALESCE(SUM(c.input_tokens), 0), COALESCE(SUM(c.output_tokens), 0), COALESCE(SUM(c.cache_read_tokens), 0),
			        COALESCE(SUM(c.cache_write_tokens), 0), COALESCE(SUM(c.cost_nanousd), -1), COALESCE(SUM(c.cost_nanousd IS NULL), 0)
			 FROM calls c WHERE c.session_id = s.id AND c.session_id <> '') LIMIT 5`, restore},
		{"compactions", "sessions count their done and not undone compactions", `
			SELECT s.id FROM sessions s WHERE s.compaction_count <>
			(SELECT COUNT(*) FROM compactions c WHERE c.session_id = s.id AND c.status = 'done'
			 AND NOT EXISTS (SELECT 1 FROM compaction_undos u WHERE u.session_id = s.id AND u.compaction_id = c.id)) LIMIT 5`, restore},
		{"heads", "every head is there", `
			SELECT s.id FROM sessions s WHERE s.head_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = s.head_id) LIMIT 5`, restore},
		{"daily usage", "the roll-up sums up the calls", `
			SELECT d.day FROM (SELECT day, SUM(calls) n, SUM(cost_nanousd) usd, SUM(input_tokens + output_tokens + cache_read_tokens + cache_write_tokens) t
			                   FROM daily_usage GROUP BY day) d
			LEFT JOIN (SELECT day, COUNT(*) n, COALESCE(SUM(cost_nanousd), 0) usd, SUM(input_tokens + output_tokens + cache_read_tokens + cache_write_tokens) t
			           FROM calls GROUP BY day) c ON c.day = d.day
			WHERE d.n <> COALESCE(c.n, 0) OR d.usd <> COALESCE(c.usd, 0) OR d.t <> COALESCE(c.t, 0) LIMIT 5`, restore},
	}
}

// Doctor looks at the whole file and recounts what is counted. It changes nothing. quick
// leaves out the check of every page, which reads all of the file.
func (s *Store) Doctor(ctx context.Context, quick bool) ([]Check, error) {
	checks := make([]Check, 0, 16)
	name, pages := "integrity", `SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok' LIMIT 5`
	if quick {
		name, pages = "quick integrity", `SELECT quick_check FROM pragma_quick_check WHERE quick_check <> 'ok' LIMIT 5`
	}
	all := []struct{ name, what, query, advice string }{
		{name, "SQLite finds no fault in the file", pages, "stop sessiond and restore the newest backup; `sqlite3 FILE .recover` saves what it can of this one"},
		{"foreign keys", "every reference leads somewhere", `SELECT "table" || ' row ' || rowid FROM pragma_foreign_key_check LIMIT 5`, "restore a backup"},
	}
	for _, c := range append(all, counterChecks()...) {
		check, err := s.check(ctx, c.name, c.what, c.query, c.advice)
		if err != nil {
			return checks, err
		}
		checks = append(checks, check)
	}
	return checks, nil
}

func (s *Store) check(ctx context.Context, name, what, query, advice string) (Check, error) {
	var faults []string
	if err := s.readers.SelectContext(ctx, &faults, query); err != nil {
		return Check{}, fmt.Errorf("check %s: %w", name, err)
	}
	if len(faults) == 0 {
		return Check{Name: name, OK: true, Detail: what}, nil
	}
	return Check{Name: name, Detail: "not true that " + what + "; among them: " + strings.Join(faults, ", "), Advice: advice}, nil
}
