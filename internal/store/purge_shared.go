package store

import (
	"context"
	"math"
	"slices"
	"sort"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/session"
)

// shared finds what forks need of the session: every path that one of their messages, heads,
// overlays or marks lies on.
func (p *Purge) shared(ctx context.Context) (coverage, error) {
	var runs []Span
	err := p.store.rows(ctx, func(row *sqlx.Rows) error {
		var sp Span
		err := row.Scan(&sp.From, &sp.To)
		runs = append(runs, sp)
		return err
	}, sharedRuns, p.ID, math.MaxInt64)
	return merge(runs), wrap(err, "what forks of %s share", p.ID)
}

// What links a fork to rows of the session (?1), and the paths of those. A fork's messages reach
// into another session by jumps only. Where a purged fork left the session does not count: no path
// needs it any more, and trimLinks moves it.
const sharedRuns = withHeirs + `, span (session_id, upto, jump_id) AS (
		SELECT m.session_id, m.seq, ` + jumpBefore + ` FROM (
			SELECT f.parent_id AS id FROM heir h CROSS JOIN messages f ON f.session_id = h.id AND f.jump = 1
			UNION ALL SELECT message_id FROM heir WHERE lives
			UNION ALL SELECT s.head_id FROM heir h CROSS JOIN sessions s ON s.id = h.id
			UNION ALL SELECT c.through_id FROM heir h CROSS JOIN compactions c ON c.session_id = h.id
			UNION ALL SELECT c.first_kept_id FROM heir h CROSS JOIN compactions c ON c.session_id = h.id
			UNION ALL SELECT k.message_id FROM heir h CROSS JOIN marks k ON k.session_id = h.id
		) need CROSS JOIN messages m ON m.id = need.id WHERE m.session_id = ?1
		UNION
		SELECT m.session_id, m.seq, ` + jumpBefore + ` FROM span s JOIN messages f ON f.id = s.jump_id JOIN messages m ON m.id = f.parent_id)
	SELECT COALESCE(f.seq, 1), s.upto FROM span s LEFT JOIN messages f ON f.id = s.jump_id WHERE s.session_id = ?1`

// Heir gives the oldest fork that shares a message whose own session was purged. Codes: NotFound.
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
