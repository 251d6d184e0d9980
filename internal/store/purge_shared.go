package store

import (
	"context"
	"fmt"
	"slices"

	"sessiond/internal/session"
)

// shared finds what forks need of the session: every path that one of their messages, heads,
// overlays or marks lies on.
func (p *Purge) shared(ctx context.Context) (coverage, error) {
	var keep coverage
	for i := range p.forks {
		fork := p.forks[i].ID
		var rows []int64
		if err := p.store.list(ctx, &rows, needsOfFork, fork, p.ID, p.forks[i].Lives); err != nil {
			return nil, fmt.Errorf("what fork %s shares: %w", fork, err)
		}
		for _, row := range rows {
			if err := keep.addPath(ctx, p.store, p.ID, row); err != nil {
				return nil, fmt.Errorf("what fork %s shares: %w", fork, err)
			}
		}
	}
	return keep, nil
}

// What links a fork (?1) to rows of another session (?2). A fork's messages reach into another
// session by jumps only. Where one that was purged itself (?3 is 0) once left the other is
// nobody's path any more: lowerLinks.
const needsOfFork = `
	SELECT p.id FROM messages m JOIN messages p ON p.id = m.parent_id WHERE m.session_id = ?1 AND m.jump = 1 AND p.session_id = ?2
	UNION ALL SELECT p.id FROM links l JOIN messages p ON p.id = l.message_id WHERE l.session_id = ?1 AND p.session_id = ?2 AND ?3
	UNION ALL SELECT p.id FROM sessions s JOIN messages p ON p.id = s.head_id WHERE s.id = ?1 AND p.session_id = ?2
	UNION ALL SELECT p.id FROM compactions c JOIN messages p ON p.id = c.through_id WHERE c.session_id = ?1 AND p.session_id = ?2
	UNION ALL SELECT p.id FROM compactions c JOIN messages p ON p.id = c.first_kept_id WHERE c.session_id = ?1 AND p.session_id = ?2
	UNION ALL SELECT p.id FROM marks k JOIN messages p ON p.id = k.message_id WHERE k.session_id = ?1 AND p.session_id = ?2`

// Heir gives the oldest fork that shares a message whose own session was purged. Codes: NotFound.
func (s *Store) Heir(ctx context.Context, ref session.MessageRef) (session.Session, error) {
	forks, err := forksOf(ctx, s, ref.Session)
	if err != nil {
		return session.Session{}, err
	}
	for _, id := range forks {
		var shared coverage
		l, err := readLink(ctx, s, id)
		if err == nil && l.messageID != nil {
			err = shared.addPath(ctx, s, ref.Session, *l.messageID)
		}
		if err != nil {
			return session.Session{}, err
		}
		if !shared.holds(ref.Seq) {
			continue
		}
		if fork, err := readSession(ctx, s, id); session.CodeOf(err) != session.NotFound {
			return fork, err
		}
	}
	return session.Session{}, session.Errorf(session.NotFound, "no session shows message %s", ref)
}

// coverage is a set of seqs of one session, as runs that do not touch, in order.
type coverage []Span

func (c coverage) holds(seq int64) bool {
	i, found := slices.BinarySearchFunc(c, seq, func(sp Span, seq int64) int {
		switch {
		case sp.To < seq:
			return -1
		case sp.From > seq:
			return 1
		}
		return 0
	})
	return found && c[i].From <= seq
}

// last gives the highest seq of a run that is covered, 0 for none.
func (c coverage) last(in Span) int64 {
	for _, sp := range slices.Backward(c) {
		if sp.From <= in.To && sp.To >= in.From {
			return min(sp.To, in.To)
		}
	}
	return 0
}

// addPath adds what the path to a message has in the session. Where it meets what is covered
// the rest is covered, too.
func (c *coverage) addPath(ctx context.Context, q queryer, id session.ID, row int64) error {
	return eachSpan(ctx, q, &row, func(sp Span) error {
		if sp.Session != id {
			return nil
		}
		known := c.holds(sp.To)
		c.add(sp)
		if known {
			return errEnough
		}
		return nil
	})
}

func (c *coverage) add(sp Span) {
	all := append(*c, sp)
	slices.SortFunc(all, func(a, b Span) int { return int(a.From - b.From) })
	merged := all[:1]
	for _, next := range all[1:] {
		last := &merged[len(merged)-1]
		if next.From > last.To+1 {
			merged = append(merged, next)
			continue
		}
		last.To = max(last.To, next.To)
	}
	*c = merged
}

// Shared counts the messages that stay, since forks need them.
func (p *Purge) Shared() (n int64) {
	for _, sp := range p.keep {
		n += sp.To - sp.From + 1
	}
	return n
}
