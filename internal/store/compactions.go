package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

var compactionColumns = messageName("c.through_id") + ` AS through, ` + messageName("c.first_kept_id") + ` AS first_kept,
	c.id, c.session_id, c.previous_id, c.strategy, c.trigger, c.status, c.reason, c.through_id, c.first_kept_id,
	c.hidden_tokens, c.summary_tokens, c.span_summary, c.summary, c.prefix_summary, c.replacement, c.details, c.tokens_before,
	c.tokens_after, c.message_count, c.provider, c.model, c.duration_ms, c.created_at, c.activated_at`

var compactionByID = `SELECT ` + compactionColumns + ` FROM compactions c WHERE c.id = ?`

// Effective returns the overlay that is in force at the session's head, nil for none.
func (s *Store) Effective(ctx context.Context, sess session.Session) (*session.Compaction, error) {
	if sess.CompactionID == nil {
		return nil, nil
	}
	c, err := readCompaction(ctx, s, *sess.CompactionID)
	return &c, err
}

// Compaction reads one record of a session, its own or an inherited one. Codes: NotFound.
func (s *Store) Compaction(ctx context.Context, id session.ID, rowID int64) (session.Compaction, error) {
	all, err := s.Compactions(ctx, id)
	if err != nil {
		return session.Compaction{}, err
	}
	for _, c := range all {
		if c.RowID == rowID {
			return c, nil
		}
	}
	return session.Compaction{}, session.Errorf(session.NotFound, "session %s has no compaction %s", id,
		session.CompactionName(rowID))
}

// Compactions lists the records of a session and those that it inherited from the sessions
// it was forked off, oldest first. Undone tells whether it is undone for this session.
func (s *Store) Compactions(ctx context.Context, id session.ID) ([]session.Compaction, error) {
	sess, err := s.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	return lineage(ctx, s, sess)
}

func readCompaction(ctx context.Context, q engine.Queryer, rowID int64) (session.Compaction, error) {
	c, err := engine.Get[session.Compaction](ctx, q, compactionByID, rowID)
	if engine.NoRows(err) {
		return c, noCompaction(rowID)
	}
	if err != nil {
		return c, fmt.Errorf("compaction %s: %w", session.CompactionName(rowID), err)
	}
	return c, nameCompaction(&c)
}

func noCompaction(rowID int64) error {
	return session.Errorf(session.NotFound, "there is no compaction %s", session.CompactionName(rowID))
}

// nameCompaction fills what the record is called outside the database, after it was read.
func nameCompaction(c *session.Compaction) error {
	c.ID = session.CompactionName(c.RowID)
	if c.PreviousID != nil {
		c.Previous = session.CompactionName(*c.PreviousID)
	}
	switch {
	case c.ThroughID != nil && c.Through == nil:
		return missingRow(*c.ThroughID)
	case c.FirstKeptID != nil && c.FirstKept == nil:
		return missingRow(*c.FirstKeptID)
	}
	return nil
}

// AddCompaction records a compaction. One that is done takes effect at once, in a new epoch.
// Codes: NotFound, Conflict (previous_id is no longer the effective overlay, or the last
// represented message no longer on the path).
func (s *Store) AddCompaction(ctx context.Context, c session.Compaction) (session.Compaction, error) {
	return writeOnce(ctx, s, c.Idem, (*tx).replayCompaction, func(t *tx) (session.Compaction, outcome, error) {
		err := t.addCompaction(&c)
		return c, outcome{Status: 201, SessionID: string(c.SessionID), ObjectID: c.ID}, err
	})
}

func (t *tx) addCompaction(c *session.Compaction) error {
	sess, err := readSession(t.Ctx, t, c.SessionID)
	if err != nil {
		return err
	}
	if c.Status == session.StatusDone {
		if err := t.activate(sess, c); err != nil {
			return err
		}
	}
	if err := t.insertCompaction(c); err != nil {
		return err
	}
	return t.announceCompaction(&sess, *c)
}

func (t *tx) insertCompaction(c *session.Compaction) error {
	if c.CreatedAt.IsZero() {
		c.CreatedAt = t.Now
	}
	if c.Status == session.StatusDone && c.ActivatedAt == nil {
		at := t.Now
		c.ActivatedAt = &at
	}
	var err error
	if c.RowID, err = t.Insert(`INSERT INTO compactions (session_id, previous_id, strategy, trigger, status, reason, through_id, first_kept_id,
		hidden_tokens, summary_tokens, span_summary, summary, prefix_summary, replacement, details, tokens_before, tokens_after,
		message_count, provider, model, duration_ms, created_at, activated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		c.SessionID, c.PreviousID, c.Strategy, c.Trigger, c.Status, c.Reason, c.ThroughID, c.FirstKeptID,
		c.HiddenTokens, c.SummaryTokens, c.SpanSummary, c.Summary, c.PrefixSummary, c.Replacement, c.Details, c.TokensBefore,
		c.TokensAfter,
		c.MessageCount, c.Provider, c.Model, c.DurationMS, c.CreatedAt, c.ActivatedAt); err != nil {
		return fmt.Errorf("insert compaction: %w", err)
	}
	*c, err = readCompaction(t.Ctx, t, c.RowID)
	return err
}

// FinishCompaction stores the outcome of a running or staged record: staged, done, failed or
// skipped, with everything that is known by then; one that is done takes effect, in a new
// epoch. Codes: NotFound, Conflict (it has an outcome, or as AddCompaction).
func (s *Store) FinishCompaction(ctx context.Context, c session.Compaction) (session.Compaction, error) {
	switch c.Status {
	case session.StatusStaged, session.StatusDone, session.StatusFailed, session.StatusSkipped:
	default:
		return c, session.Errorf(session.Invalid, "a compaction ends staged, done, failed or skipped, not %q", c.Status)
	}
	err := s.write(ctx, func(t *tx) error { return t.finishCompaction(&c) })
	return c, err
}

func (t *tx) finishCompaction(c *session.Compaction) error {
	sess, err := readSession(t.Ctx, t, c.SessionID)
	if err != nil {
		return err
	}
	if now, err := readCompaction(t.Ctx, t, c.RowID); err != nil {
		return err
	} else if now.SessionID != c.SessionID || now.Status != session.StatusRunning && now.Status != session.StatusStaged {
		return session.Errorf(session.Conflict, "compaction %s has its outcome already", session.CompactionName(c.RowID))
	}
	if c.Status == session.StatusDone {
		if err := t.activate(sess, c); err != nil {
			return err
		}
	}
	if err := t.updateCompaction(c); err != nil {
		return err
	}
	if *c, err = readCompaction(t.Ctx, t, c.RowID); err != nil {
		return err
	}
	return t.announceCompaction(&sess, *c)
}

func (t *tx) updateCompaction(c *session.Compaction) error {
	return t.Exec(`UPDATE compactions SET previous_id = ?, status = ?, reason = ?, through_id = ?, first_kept_id = ?, hidden_tokens = ?, summary_tokens = ?,
		span_summary = ?, summary = ?, prefix_summary = ?, replacement = ?, details = ?, tokens_before = ?, tokens_after = ?, message_count = ?,
		provider = ?, model = ?, duration_ms = ?, activated_at = ? WHERE id = ?`,
		c.PreviousID, c.Status, c.Reason, c.ThroughID, c.FirstKeptID, c.HiddenTokens, c.SummaryTokens,
		c.SpanSummary, c.Summary, c.PrefixSummary, c.Replacement, c.Details, c.TokensBefore, c.TokensAfter, c.MessageCount,
		c.Provider, c.Model, c.DurationMS, c.ActivatedAt, c.RowID)
}

// AnswerCompaction remembers a record as the answer of a request that asked for what another
// was already making. Codes: Invalid (the key was used with another body).
func (s *Store) AnswerCompaction(ctx context.Context, i *Idempotency, c session.Compaction) error {
	_, err := writeOnce(ctx, s, i, (*tx).replayCompaction, func(*tx) (session.Compaction, outcome, error) {
		return c, outcome{Status: 201, SessionID: string(c.SessionID), ObjectID: session.CompactionName(c.RowID)}, nil
	})
	return err
}

// Activate makes a staged overlay effective, in a new epoch. Codes: NotFound, Conflict (it is
// not staged, another overlay became effective meanwhile, or the path no longer holds it).
func (s *Store) Activate(ctx context.Context, id session.ID, rowID int64) (session.Compaction, error) {
	return write(ctx, s, func(t *tx) (session.Compaction, error) {
		sess, err := readSession(t.Ctx, t, id)
		if err != nil {
			return session.Compaction{}, err
		}
		c, err := readCompaction(t.Ctx, t, rowID)
		if err != nil {
			return c, err
		}
		if c.SessionID != id || c.Status != session.StatusStaged {
			return c, session.Errorf(session.Conflict, "compaction %s is not staged for session %s", c.ID, id)
		}
		if err := t.activate(sess, &c); err != nil {
			return c, err
		}
		c.Status = session.StatusDone
		if err := t.Exec(`UPDATE compactions SET status = 'done', activated_at = ? WHERE id = ?`, c.ActivatedAt, rowID); err != nil {
			return c, err
		}
		return c, t.announceCompaction(&sess, c)
	})
}

// activate checks an overlay and sets when it takes effect: now, but after every earlier one, for
// the newest is in force and a clock can be set back. It refuses an overlay that was planned on a
// path or a chain that has changed; what was appended meanwhile does not matter. Codes: Conflict.
func (t *tx) activate(sess session.Session, c *session.Compaction) error {
	if !sameID(sess.CompactionID, c.PreviousID) {
		return session.Errorf(session.Conflict, "another compaction took effect in session %s meanwhile; plan anew", sess.ID)
	}
	if sess.HeadID == nil || c.ThroughID == nil {
		return session.Errorf(session.Conflict, "session %s has no path to compact", sess.ID)
	}
	on, err := onPath(t.Ctx, t, *sess.HeadID, *c.ThroughID)
	if err == nil && !on {
		err = session.Errorf(session.Conflict,
			"the head of session %s moved to a branch that this compaction does not cover; plan anew", sess.ID)
	}
	if err != nil {
		return err
	}
	at := t.Now
	all, err := overlaysOf(t.Ctx, t, sess)
	if len(all) > 0 && !at.After(all[0].ActivatedAt.Time) {
		at = session.At(all[0].ActivatedAt.Add(time.Millisecond))
	}
	c.ActivatedAt = &at
	return err
}

// announceCompaction writes the event of a record's status and, for a done one, moves the
// session into the epoch where it counts.
func (t *tx) announceCompaction(sess *session.Session, c session.Compaction) error {
	kind, ok := map[session.Status]string{
		session.StatusStaged: EventCompactionStaged, session.StatusDone: EventCompactionDone,
		session.StatusFailed: EventCompactionFailed, session.StatusSkipped: EventCompactionSkipped,
	}[c.Status]
	if !ok { // running: nothing to tell yet
		return nil
	}
	// Of the calls that were made for it so far; nil: none, or of no known price.
	cost, err := engine.Get[*float64](t.Ctx, t, `SELECT SUM(cost_nanousd) / 1e9 FROM calls WHERE compaction_id = ?`, c.RowID)
	if err != nil {
		return err
	}
	data := session.JSONOf(map[string]any{
		"compaction": c.ID, "strategy": c.Strategy, "trigger": c.Trigger, "reason": c.Reason,
		"tokens_before": c.TokensBefore, "tokens_after": c.TokensAfter, "duration_ms": c.DurationMS,
		"provider": c.Provider, "model": c.Model, "cost_usd": cost,
	})
	if err := t.event(sess.ID, kind, 0, data); err != nil || c.Status != session.StatusDone {
		return err
	}
	return t.newEpoch(sess, 1)
}

// newEpoch settles the overlay after a change of the chain and writes the session.
func (t *tx) newEpoch(sess *session.Session, compactions int64) error {
	if err := t.updateOverlay(sess); err != nil {
		return err
	}
	sess.Epoch++
	sess.Revision++
	sess.UpdatedAt = t.Now
	sess.CompactionCount += compactions
	return t.Exec(`UPDATE sessions SET compaction_id = ?, context_tokens = ?, epoch = ?, revision = ?, compaction_count = ?, updated_at = ? WHERE id = ?`,
		sess.CompactionID, sess.ContextTokens, sess.Epoch, sess.Revision, sess.CompactionCount, t.Now, sess.ID)
}

// UndoCompaction takes the effective overlay out of force for this session; the record and
// the messages stay. Codes: NotFound, Conflict (it is not the effective one, which is named).
func (s *Store) UndoCompaction(ctx context.Context, id session.ID, rowID int64) (session.Session, error) {
	return s.shiftOverlay(ctx, id, rowID, func(t *tx, sess *session.Session, c session.Compaction) error {
		switch {
		case sess.CompactionID == nil:
			return session.Errorf(session.Conflict,
				"no compaction is in force in session %s: %s is undone, or its branch was left", id, c.ID)
		case *sess.CompactionID != rowID:
			return session.Errorf(session.Conflict, "only the effective compaction can be undone; in session %s that is %s", id,
				session.CompactionName(*sess.CompactionID))
		}
		if err := t.Exec(`INSERT INTO compaction_undos (session_id, compaction_id, at) VALUES (?, ?, ?)`, id, rowID, t.Now); err != nil {
			return err
		}
		if err := t.event(id, EventCompactionUndone, 0, session.JSONOf(map[string]string{"compaction": c.ID})); err != nil {
			return err
		}
		return t.newEpoch(sess, -ownCount(sess, c))
	})
}

// RedoCompaction takes an undo back: the overlay is in force again, as if it had not been
// undone. Codes: NotFound, Conflict (it is not undone, what it was built on still is, or
// another overlay would stay in force before it).
func (s *Store) RedoCompaction(ctx context.Context, id session.ID, rowID int64) (session.Session, error) {
	return s.shiftOverlay(ctx, id, rowID, func(t *tx, sess *session.Session, c session.Compaction) error {
		if c.PreviousID != nil {
			undone, err := t.Exists(`SELECT 1 FROM compaction_undos WHERE session_id = ? AND compaction_id = ?`, id, *c.PreviousID)
			if err == nil && undone {
				err = session.Errorf(session.Conflict, "redo %s first: %s was built on it", c.Previous, c.ID)
			}
			if err != nil {
				return err
			}
		}
		n, err := t.Changed(`DELETE FROM compaction_undos WHERE session_id = ? AND compaction_id = ?`, id, rowID)
		if err != nil {
			return err
		}
		if n == 0 {
			return session.Errorf(session.Conflict, "compaction %s is not undone in session %s", c.ID, id)
		}
		if err := t.event(id, EventCompactionRedone, 0, session.JSONOf(map[string]string{"compaction": c.ID})); err != nil {
			return err
		}
		if err := t.newEpoch(sess, ownCount(sess, c)); err != nil || sameID(sess.CompactionID, &rowID) {
			return err
		}
		return session.Errorf(session.Conflict,
			"%s would not take effect in session %s: a newer compaction is in force, "+
				"or the head is on a branch that it does not cover", c.ID, id)
	})
}

// ownCount is how much a compaction weighs in compaction_count: an inherited one is counted
// where it was made.
func ownCount(sess *session.Session, c session.Compaction) int64 {
	if c.SessionID == sess.ID {
		return 1
	}
	return 0
}

func (s *Store) shiftOverlay(ctx context.Context, id session.ID, rowID int64,
	shift func(*tx, *session.Session, session.Compaction) error,
) (session.Session, error) {
	return write(ctx, s, func(t *tx) (session.Session, error) {
		sess, err := readSession(t.Ctx, t, id)
		if err != nil {
			return sess, err
		}
		all, err := lineage(t.Ctx, t, sess)
		if err != nil {
			return sess, err
		}
		at := slices.IndexFunc(all, func(c session.Compaction) bool { return c.RowID == rowID })
		if at < 0 || all[at].Status != session.StatusDone {
			return sess, session.Errorf(session.NotFound, "session %s has no finished compaction %s", id,
				session.CompactionName(rowID))
		}
		err = shift(t, &sess, all[at])
		return sess, err
	})
}

func sameID(a, b *int64) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// longestSummary is longer than any request for a summary takes.
const longestSummary = 15 * time.Minute

// FailRunning gives every running record the outcome failed. The daemon calls it at its start:
// what ran then was cut short. Other processes must not, since they start while it works.
func (s *Store) FailRunning(ctx context.Context, reason string) (failed []session.Compaction, err error) {
	query, args := `SELECT id FROM compactions WHERE status = 'running'`, []any(nil)
	if s.IsPostgres() { // another daemon may be making one
		query, args = query+` AND created_at <= ?`, []any{session.At(s.opt.Now().Add(-longestSummary))}
	}
	running, err := engine.List[int64](ctx, s, query, args...)
	if err != nil || len(running) == 0 {
		return nil, err
	}
	for _, id := range running {
		c, err := readCompaction(ctx, s, id)
		if err != nil {
			return failed, err
		}
		c.Status, c.Reason = session.StatusFailed, reason
		c, err = s.FinishCompaction(ctx, c)
		if session.CodeOf(err) == session.Conflict {
			continue // it ended meanwhile, or another daemon starts, too
		}
		if err != nil {
			return failed, err
		}
		failed = append(failed, c)
	}
	return failed, nil
}

// stagedReach is how many of the newest records are looked at for what stands ready.
const stagedReach = 10000

// Staged gives the sessions for which a compaction stands ready, with the time of their last
// change, the one changed last first. The daemon reads them at its start.
func (s *Store) Staged(ctx context.Context) ([]session.Resting, error) {
	rows, err := engine.List[session.Resting](ctx, s, stagedSessions, stagedReach)
	if err != nil {
		return nil, fmt.Errorf("sessions with something staged: %w", err)
	}
	slices.SortFunc(rows, func(a, b session.Resting) int {
		return cmp.Or(b.Since.Compare(a.Since.Time), strings.Compare(string(a.Session), string(b.Session)))
	})
	return slices.CompactFunc(rows, func(a, b session.Resting) bool { return a.Session == b.Session }), nil
}

const stagedSessions = `SELECT c.session_id, s.updated_at FROM compactions c JOIN sessions s ON s.id = c.session_id
	WHERE c.id > (SELECT COALESCE(MAX(id), 0) FROM compactions) - ? AND c.status = 'staged' AND s.deleted_at IS NULL AND s.purged_at IS NULL`
