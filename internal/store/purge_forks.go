package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// heir is a fork of a purged session, directly or through others, and what of it can reach that
// fork: what was frozen up to frozenID, with messages of the path that it shares.
type heir struct {
	ID       session.ID `db:"id"`
	Lives    bool       `db:"lives"`      // not purged itself and kept for others
	At       *int64     `db:"message_id"` // where it leaves the other's path
	FrozenID int64      `db:"frozen_id"`
	Imported bool       `db:"imported"` // from several places, perhaps
	path     []Span     // to At, of one that lives
}

func (h *heir) shares(ref session.MessageRef) bool {
	return holds(h.path, ref)
}

// One statement, so that a purge that ends meanwhile and hands its forks on hides none of them.
const heirsOf = withHeirs + ` SELECT id, lives, message_id, frozen_id, imported FROM heir`

const withHeirs = `
	WITH RECURSIVE heir (id, lives, message_id, frozen_id, imported) AS (
		SELECT s.id, CASE WHEN s.purged_at IS NULL THEN 1 ELSE 0 END, l.message_id, COALESCE(l.frozen_id, 0), CASE WHEN l.compaction_id = ?2 THEN 1 ELSE 0 END
		FROM sessions s LEFT JOIN links l ON l.session_id = s.id
		WHERE s.parent_id = ?1 AND s.parent_id <> '' AND s.parent_kind = 'fork'
		UNION
		SELECT s.id, CASE WHEN s.purged_at IS NULL THEN 1 ELSE 0 END, l.message_id, MIN(h.frozen_id, COALESCE(l.frozen_id, 0)), CASE WHEN l.compaction_id = ?2 THEN 1 ELSE 0 END
		FROM heir h JOIN sessions s ON s.parent_id = h.id AND s.parent_id <> '' AND s.parent_kind = 'fork' LEFT JOIN links l ON l.session_id = s.id)`

func readHeirs(ctx context.Context, q engine.Queryer, id session.ID) ([]heir, error) {
	heirs, err := engine.List[heir](ctx, q, heirsOf, id, math.MaxInt64)
	return heirs, session.Wrap(err, "forks of %s", id)
}

// forksOf lists the forks of a session, and theirs.
func forksOf(ctx context.Context, q engine.Queryer, id session.ID) ([]session.ID, error) {
	heirs, err := readHeirs(ctx, q, id)
	var forks []session.ID
	for i := range heirs {
		forks = append(forks, heirs[i].ID)
	}
	return forks, err
}

// findHeirs reads the forks of the session and the paths of those that live.
func (p *Purge) findHeirs(ctx context.Context) error {
	var err error
	if p.forks, err = readHeirs(ctx, p.store, p.ID); err != nil {
		return err
	}
	for i := range p.forks {
		if h := &p.forks[i]; h.Lives {
			if h.path, err = pathSpans(ctx, p.store, h.At); err != nil {
				return fmt.Errorf("what fork %s shares: %w", h.ID, err)
			}
		}
	}
	return nil
}

// inheritsOverlay reports whether a fork may be under an overlay of the session that ends at ref.
func (p *Purge) inheritsOverlay(ref session.MessageRef) bool {
	if ref.Session == p.ID {
		return p.keep.holds(ref.Seq)
	}
	return slices.ContainsFunc(p.forks, func(h heir) bool { return h.Lives && (h.Imported || h.shares(ref)) })
}

// unfrozen returns the rows of what was frozen into the session's contexts and that no fork
// inherits: it was made after the fork, or with a message that the fork does not share.
func (p *Purge) unfrozen(ctx context.Context) ([]int64, error) {
	type frozen struct {
		ID      int64               `db:"id"`
		Message *session.MessageRef `db:"message"`
	}
	var doomed []int64
	err := engine.Each(ctx, p.store, func(f *frozen) error {
		inherits := func(h heir) bool { return f.Message != nil && h.Lives && f.ID <= h.FrozenID && h.shares(*f.Message) }
		if !slices.ContainsFunc(p.forks, inherits) {
			doomed = append(doomed, f.ID)
		}
		return nil
	}, `SELECT f.id, m.session_id || '.' || m.seq AS message FROM frozen f LEFT JOIN messages m ON m.id = f.message_id WHERE f.session_id = ?`, p.ID)
	return doomed, err
}

// trimLinks lets forks that were purged themselves, and are kept for others, leave the
// session where what stays of their path ends: where they left it is no longer needed.
func (p *Purge) trimLinks(t *tx) error {
	for i := range p.forks {
		id := p.forks[i].ID
		if p.forks[i].Lives {
			continue
		}
		l, err := readLink(t.Ctx, t, id)
		if err != nil {
			return err
		}
		if l.MessageID == nil {
			continue
		}
		to, err := p.lastKept(t, *l.MessageID)
		if err != nil {
			return fmt.Errorf("what the purged fork %s shared: %w", id, err)
		}
		if to != nil && *to == *l.MessageID {
			continue
		}
		if err := t.Exec(`UPDATE links SET message_id = ? WHERE session_id = ?`, to, id); err != nil {
			return fmt.Errorf("what the purged fork %s shared: %w", id, err)
		}
	}
	return nil
}

// lastKept returns the last message of a path that this purge leaves; nil for none.
func (p *Purge) lastKept(t *tx, at int64) (*int64, error) {
	var last session.MessageRef
	err := eachSpan(t.Ctx, t, &at, func(sp Span) error {
		last = session.MessageRef{Session: sp.Session, Seq: sp.To}
		if sp.Session == p.ID {
			last.Seq = p.keep.last(sp)
		}
		if last.Seq == 0 {
			return nil
		}
		return engine.ErrEnough
	})
	if err != nil || last.Seq == 0 {
		return nil, err
	}
	return engine.First[int64](t.Ctx, t, `SELECT id FROM messages WHERE session_id = ? AND seq = ?`, last.Session,
		last.Seq)
}

// shared finds what forks need of the session: every path that one of their messages, heads,
// overlays or marks lies on.
func (p *Purge) shared(ctx context.Context) (coverage, error) {
	var runs []Span
	err := p.store.Read(ctx, engine.NewReading(sharedRuns, []any{p.ID, math.MaxInt64}, func(row *sqlx.Rows) error {
		var sp Span
		err := row.Scan(&sp.From, &sp.To)
		runs = append(runs, sp)
		return err
	}))
	return merge(runs), session.Wrap(err, "what forks of %s share", p.ID)
}

// What links a fork to rows of the session (?1), and the paths of those. A fork's messages reach
// into another session by jumps only. Where a purged fork left the session does not count: no path
// needs it any more, and trimLinks moves it.
const sharedRuns = withHeirs + `, span (session_id, upto, jump_id) AS (
		SELECT m.session_id, m.seq, ` + jumpBefore + ` FROM (
			SELECT f.parent_id AS id FROM heir h CROSS JOIN messages f ON f.session_id = h.id AND f.jump = 1
			UNION ALL SELECT message_id FROM heir WHERE lives = 1
			UNION ALL SELECT s.head_id FROM heir h CROSS JOIN sessions s ON s.id = h.id
			UNION ALL SELECT c.through_id FROM heir h CROSS JOIN compactions c ON c.session_id = h.id
			UNION ALL SELECT c.first_kept_id FROM heir h CROSS JOIN compactions c ON c.session_id = h.id
			UNION ALL SELECT k.message_id FROM heir h CROSS JOIN marks k ON k.session_id = h.id
		) need CROSS JOIN messages m ON m.id = need.id WHERE m.session_id = ?1
		UNION
		SELECT m.session_id, m.seq, ` + jumpBefore + ` FROM span s JOIN messages f ON f.id = s.jump_id JOIN messages m ON m.id = f.parent_id)
	SELECT COALESCE(f.seq, 1), s.upto FROM span s LEFT JOIN messages f ON f.id = s.jump_id WHERE s.session_id = ?1`

// Heir returns the oldest fork that shares a message whose own session was purged. Codes: NotFound.
func (s *Store) Heir(ctx context.Context, ref session.MessageRef) (session.Session, error) {
	forks, err := forksOf(ctx, s, ref.Session)
	if err != nil {
		return session.Session{}, err
	}
	m, err := readMessage(ctx, s, ref)
	if err != nil {
		return session.Session{}, err
	}
	for _, id := range forks {
		fork, err := readSession(ctx, s, id)
		if session.CodeOf(err) == session.NotFound {
			continue
		}
		if err != nil {
			return session.Session{}, err
		}
		if on, err := onTree(ctx, s, fork, ref, m.RowID); on || err != nil {
			return fork, err
		}
	}
	return session.Session{}, session.Errorf(session.NotFound, "no session shows message %s", ref)
}

// coverage is a set of seqs of one session, as runs that do not touch, in order.
type coverage []Span

func (c coverage) holds(seq int64) bool { return c.last(Span{From: seq, To: seq}) == seq }

// last returns the highest seq of a run that is covered, 0 for none.
func (c coverage) last(in Span) int64 {
	i := sort.Search(len(c), func(i int) bool { return c[i].From > in.To }) - 1
	if i < 0 || c[i].To < in.From {
		return 0
	}
	return min(c[i].To, in.To)
}

func merge(runs []Span) (merged coverage) {
	slices.SortFunc(runs, func(a, b Span) int { return int(a.From - b.From) })
	for _, next := range runs {
		if n := len(merged); n > 0 && next.From <= merged[n-1].To+1 {
			merged[n-1].To = max(merged[n-1].To, next.To)
		} else {
			merged = append(merged, next)
		}
	}
	return merged
}

// Shared counts the messages that stay, since forks need them.
func (p *Purge) Shared() (n int64) {
	for _, sp := range p.keep {
		n += sp.To - sp.From + 1
	}
	return n
}
