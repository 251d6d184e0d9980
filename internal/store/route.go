package store

import (
	"context"
	"fmt"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Route asks for the session that something belongs to which came in at a key.
type Route struct {
	Key string // in its stored form
	// Decide judges the key's current generation, nil for none. It is called inside the
	// transaction and must be quick, and the same for the same generation.
	Decide func(current *Generation) (Turnover, error)
	Idem   *Idempotency
}

// Generation is a session as the run of a conversation under a key, and how it stands.
type Generation struct {
	session.Session
	HeadRole   session.Role // of its last message; "": there is none
	HeadFinish session.Finish
	HeadAt     session.Time
}

// Turnover says what becomes of the current generation.
type Turnover struct {
	New      bool         // close it, if there is one, and begin the next
	Reason   string       // why it is closed
	At       session.Time // when
	Next     NewSession   // what the next one begins with; the store gives key, generation and time
	Metadata session.JSON // of a generation that goes on: replaces its metadata; nil: as it is
}

// Routed is the session that Route found or made.
type Routed struct {
	Session  session.Session
	Created  bool
	Previous session.ID // that was closed; "": none
	Reason   string     // why
}

// Route finds the current generation of a key, or closes it and begins the next, in one
// transaction: of two that come at once one sees what the other made. Codes: Invalid, and
// what Decide gives.
func (s *Store) Route(ctx context.Context, in Route) (Routed, error) {
	if err := checkStorable([]field{{"key", in.Key}}); err != nil {
		return Routed{}, err
	}
	return writeOnce(ctx, s, in.Idem, (*tx).replayRoute, func(t *tx) (Routed, outcome, error) {
		out, err := t.route(in)
		o := outcome{
			Status: 200, SessionID: string(out.Session.ID), Revision: out.Session.Revision,
			ObjectID: string(out.Previous),
		}
		if out.Created {
			o.Status = 201
		}
		return out, o, err
	})
}

func (t *tx) route(in Route) (Routed, error) {
	current, newest, err := t.current(in.Key)
	if err != nil {
		return Routed{}, err
	}
	turn, err := in.Decide(current)
	if err != nil {
		return Routed{}, err
	}
	if current != nil && !turn.New {
		if turn.Metadata == nil {
			return Routed{Session: current.Session}, nil
		}
		return t.renewMetadata(current.Session, turn.Metadata)
	}
	out := Routed{Created: true}
	if current != nil {
		if current.ActiveAt.After(turn.At.Time) { // the clock was set back; time goes on in a key
			turn.At = current.ActiveAt
		}
		if err := t.endGeneration(current.ID, turn.Reason, turn.At); err != nil {
			return Routed{}, err
		}
		out.Previous, out.Reason = current.ID, turn.Reason
	}
	next := turn.Next
	next.Key, next.Generation, next.Owner, next.CreatedAt = in.Key, newest.Generation+1, newest.Owner, &turn.At
	out.Session, err = t.createSession(next)
	return out, err
}

// current returns the open generation of a key, nil for none, and its last one, a zero session for none.
func (t *tx) current(key string) (open *Generation, newest session.Session, err error) {
	err = t.Unlimited(func() error { // a key has one owner
		last, err := engine.First[session.Session](t.Ctx, t, lastGeneration, key)
		if last != nil {
			newest = *last
		}
		return err
	})
	if err != nil || newest.ID == "" {
		return nil, newest, session.Wrap(err, "generations of the key")
	}
	g := Generation{Session: newest}
	switch {
	case !visible(t.Ctx, &newest):
		// A token that may not begin this key does not learn that it is taken.
		if err := t.mayCreate(&session.Session{
			Owner: t.owner(), Source: session.SourceSessiond, Key: key,
			Generation: 1,
		}); err != nil {
			return nil, newest, err
		}
		return nil, newest, session.Errorf(session.Forbidden,
			"the key belongs to sessions that this token may not see: use another key")
	case g.EndedAt != nil:
		return nil, newest, nil
	case g.DeletedAt != nil: // nobody goes on in the trash
		return nil, newest, t.endGeneration(g.ID, endedByProgram, t.Now)
	}
	if g.HeadID != nil {
		err = t.Row(`SELECT role, finish, created_at FROM messages WHERE id = ?`, []any{*g.HeadID}, &g.HeadRole,
			&g.HeadFinish, &g.HeadAt)
	}
	return &g, newest, err
}

const lastGeneration = `SELECT ` + sessionColumns + fromSessions + `
	WHERE s.key = ? AND s.key <> '' AND s.generation > 0 ORDER BY s.generation DESC LIMIT 1`

// endedByProgram is the reason of a generation that a program closed.
const endedByProgram = "rpc"

func (t *tx) endGeneration(id session.ID, reason string, at session.Time) error {
	err := t.Exec(`UPDATE sessions SET ended_at = ?, end_reason = ?, revision = revision + 1, updated_at = ? WHERE id = ?`, at, reason, t.Now, id)
	if err != nil {
		return fmt.Errorf("end the generation: %w", err)
	}
	return t.event(id, EventSessionEnded, 0, session.JSONOf(map[string]string{"reason": reason}))
}

// nextGeneration closes the open generation of a key for a session that a program makes
// under it, and gives the new one's number, and its owner: "" for the maker.
func (t *tx) nextGeneration(key string) (n int64, owner string, err error) {
	current, newest, err := t.current(key)
	if err == nil && current != nil {
		err = t.endGeneration(current.ID, endedByProgram, t.Now)
	}
	return newest.Generation + 1, newest.Owner, err
}

// openGenerations lists the open generations of a key but for one session.
func (t *tx) openGenerations(key string, but session.ID) ([]session.Session, error) {
	return readSessions(t.Ctx, t, openOfKey, key, but)
}

const openOfKey = `SELECT ` + sessionColumns + fromSessions + `
	WHERE s.key = ? AND s.key <> '' AND s.generation > 0 AND s.ended_at IS NULL AND s.deleted_at IS NULL AND s.id <> ? ORDER BY s.generation`

// renumberGeneration leaves the conversation of a key to the session that it goes on in here: it is the
// key's last generation also after another one came in, whose number may be higher.
func (t *tx) renumberGeneration(open *session.Session, other int64) error {
	if open.Generation > other {
		return nil
	}
	if err := t.Exec(`UPDATE sessions SET generation = ?, revision = revision + 1, updated_at = ? WHERE id = ?`, other+1, t.Now, open.ID); err != nil {
		return fmt.Errorf("number the generation: %w", err)
	}
	return t.event(open.ID, EventSessionChanged, 0, nil)
}

// renewMetadata keeps what a connector told of the conversation. It is no activity.
func (t *tx) renewMetadata(sess session.Session, metadata session.JSON) (Routed, error) {
	if err := t.Exec(`UPDATE sessions SET metadata = ?, revision = revision + 1, updated_at = ? WHERE id = ?`, metadata, t.Now, sess.ID); err != nil {
		return Routed{}, fmt.Errorf("update metadata: %w", err)
	}
	if err := t.event(sess.ID, EventSessionChanged, 0, nil); err != nil {
		return Routed{}, err
	}
	sess, err := readSession(t.Ctx, t, sess.ID)
	return Routed{Session: sess}, err
}

func (t *tx) replayRoute(o *outcome) (Routed, error) {
	sess, err := readSession(t.Ctx, t, session.ID(o.SessionID))
	if err != nil {
		return Routed{}, err
	}
	out := Routed{Session: sess, Created: o.Status == 201, Previous: session.ID(o.ObjectID)}
	if out.Previous != "" {
		before, err := readSession(t.Ctx, t, out.Previous)
		if session.CodeOf(err) == session.NotFound { // purged since; the key goes on
			return out, nil
		}
		if err != nil {
			return Routed{}, err
		}
		out.Reason = before.EndReason
	}
	return out, nil
}
