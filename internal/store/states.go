package store

import (
	"context"
	"fmt"

	"sessiond/internal/engine"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// Limits of a session's documents.
const (
	MaxStateBytes = 1 << 20
	MaxStates     = 256 // names of one session, also of documents that were taken away
)

var stateName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckStateName reports whether a document can have this name. Codes: Invalid.
func CheckStateName(name string) error {
	if stateName.MatchString(name) {
		return nil
	}
	return session.Errorf(session.Invalid,
		"%.80q cannot name a state: it has 1 to 64 letters, digits, dots, dashes and underscores, "+
			"and begins with a letter or a digit", name).
		At("name", "no name of a state")
}

// StateChange is a request to change a document of a session.
type StateChange struct {
	Session session.ID
	Name    string
	// Change makes the new document of the one that is there, nil where there is none. A nil
	// result takes the document away. It may be called more than once and must not keep was.
	Change     func(was session.JSON) (session.JSON, error)
	IfRevision *int64 // nil: any; 0: there must be none
	Idem       *Idempotency
}

const stateColumns = `session_id, name, revision, value, updated_at`

// States lists the documents of a session by name, without their values. Codes: NotFound.
func (s *Store) States(ctx context.Context, id session.ID) ([]session.State, error) {
	if _, err := s.Session(ctx, id); err != nil {
		return nil, err
	}
	all, err := engine.List[session.State](ctx, s, `SELECT session_id, name, revision, OCTET_LENGTH(CAST(value AS TEXT)) AS size, updated_at FROM states
		WHERE session_id = ? AND deleted_at IS NULL ORDER BY name`, id)
	return all, session.Wrap(err, "states of %s", id)
}

// State reads a document. Codes: NotFound.
func (s *Store) State(ctx context.Context, id session.ID, name string) (session.State, error) {
	if _, err := s.Session(ctx, id); err != nil {
		return session.State{}, err
	}
	st, err := readState(ctx, s, id, name)
	if err == nil && (st.Revision == 0 || st.Deleted != nil) {
		err = noState(id, name)
	}
	return st, err
}

func noState(id session.ID, name string) error {
	return session.Errorf(session.NotFound, "session %s has no state %q: PUT /v1/sessions/%s/states/%s makes it", id, name,
		id, name)
}

// readState returns a document; its revision is 0 where the name was never used.
func readState(ctx context.Context, q engine.Queryer, id session.ID, name string) (st session.State, err error) {
	st, err = engine.Get[session.State](ctx, q, `SELECT `+stateColumns+`, OCTET_LENGTH(CAST(value AS TEXT)) AS size, deleted_at FROM states WHERE session_id = ? AND name = ?`, id, name)
	if engine.NoRows(err) {
		return session.State{Session: id, Name: name}, nil
	}
	return st, session.Wrap(err, "state %s of %s", name, id)
}

// ChangeState makes, changes or takes away a document in one transaction, so that of two
// changes at once the second sees what the first made. A change to the same bytes is none.
// Codes: NotFound (the session; the document where Change says so), PreconditionFailed,
// Invalid, TooLarge, Conflict (in the trash).
func (s *Store) ChangeState(ctx context.Context, in StateChange) (session.State, error) {
	if err := CheckStateName(in.Name); err != nil {
		return session.State{}, err
	}
	all, err := s.changeStates(ctx, in.Session, []StateChange{in}, in.Idem, func(_ int, err error) error { return err })
	if err != nil {
		return session.State{}, err
	}
	return all[0], nil
}

// ChangeStates is ChangeState for several documents of one session: all of them change, or none. It returns each as it
// is now, also those that were taken away. The error of a change names its place, as states[2].
func (s *Store) ChangeStates(ctx context.Context, id session.ID, in []StateChange, idem *Idempotency,
) ([]session.State, error) {
	return s.changeStates(ctx, id, in, idem, func(i int, err error) error {
		return session.Under(fmt.Sprintf("states[%d]", i), err)
	})
}

// changeStates changes documents in one transaction; under says which one an error is about.
func (s *Store) changeStates(ctx context.Context, id session.ID, in []StateChange, idem *Idempotency,
	under func(i int, err error) error,
) ([]session.State, error) {
	read := func(t *tx) (all []session.State, err error) {
		all = make([]session.State, len(in))
		for i := 0; i < len(in) && err == nil; i++ {
			all[i], err = readState(t.Ctx, t, id, in[i].Name)
		}
		return all, err
	}
	return writeOnce(ctx, s, idem, func(t *tx, _ *outcome) ([]session.State, error) {
		return read(t)
	}, func(t *tx) (all []session.State, o outcome, err error) {
		sess, err := readSession(t.Ctx, t, id)
		if err != nil {
			return nil, o, err
		}
		if sess.DeletedAt != nil {
			return nil, o, inTrash(sess.ID)
		}
		if all, err = read(t); err != nil {
			return nil, o, err
		}
		for i := 0; i < len(in) && err == nil; i++ {
			if err = t.changeState(in[i], &all[i]); err != nil {
				err = under(i, err)
			}
		}
		o = outcome{SessionID: string(id), ObjectID: in[0].Name, Revision: all[0].Revision, Status: 200}
		return all, o, err
	})
}

func (t *tx) changeState(in StateChange, st *session.State) error {
	was, there := st.Value, st.Revision > 0 && st.Deleted == nil
	now := int64(0)
	if there {
		now = st.Revision
	} else {
		was = nil
	}
	if in.IfRevision != nil && *in.IfRevision != now {
		if now == 0 {
			return session.Errorf(session.PreconditionFailed,
				"state %s of session %s is not there: read it again and decide anew", in.Name, in.Session)
		}
		return session.Errorf(session.PreconditionFailed,
			"state %s of session %s is at revision %d: read it again and decide anew", in.Name, in.Session, now)
	}
	value, err := in.Change(was)
	if err != nil {
		return err
	}
	if value != nil && was != nil && string(value) == string(was) || value == nil && !there {
		return nil
	}
	if value != nil {
		if err := t.checkState(in, st.Revision == 0, value); err != nil {
			return err
		}
	}
	return t.saveState(st, value)
}

// saveState writes the next revision of a document; a nil value takes it away.
func (t *tx) saveState(st *session.State, value session.JSON) error {
	st.Revision++
	st.Value, st.Size, st.UpdatedAt, st.Deleted = value, int64(len(value)), t.Now, nil
	kept := value
	if value == nil {
		at := t.Now
		st.Deleted, kept = &at, session.JSON(`null`)
	}
	if err := t.Exec(`INSERT INTO states (session_id, name, revision, value, updated_at, deleted_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (session_id, name) DO UPDATE SET revision = excluded.revision, value = excluded.value,
		updated_at = excluded.updated_at, deleted_at = excluded.deleted_at`,
		st.Session, st.Name, st.Revision, kept, st.UpdatedAt, st.Deleted); err != nil {
		return fmt.Errorf("state %s of %s: %w", st.Name, st.Session, err)
	}
	return t.event(st.Session, EventStateChanged, 0,
		session.JSONOf(map[string]any{"name": st.Name, "revision": st.Revision, "deleted": value == nil}))
}

func (t *tx) checkState(in StateChange, first bool, value session.JSON) error {
	if len(value) > MaxStateBytes {
		return session.Errorf(session.TooLarge, "state %s would have %d bytes; at most %d are kept", in.Name, len(value),
			MaxStateBytes).At("value", "too large")
	}
	if err := checkStorable([]field{{"value", string(value)}}); err != nil || !first {
		return err
	}
	n, err := engine.Get[int](t.Ctx, t, `SELECT COUNT(*) FROM states WHERE session_id = ?`, in.Session)
	if err != nil {
		return err
	}
	if n >= MaxStates {
		return session.Errorf(session.Invalid, "session %s has %d states already, which is the most: use one of their names",
			in.Session, n).At("name", "too many states")
	}
	return nil
}

// copyStates copies to a fork the named documents as they are now. Codes: Invalid.
func (t *tx) copyStates(from, to session.ID, names []string) error {
	for i, name := range names {
		st, err := readState(t.Ctx, t, from, name)
		if err != nil {
			return err
		}
		if st.Revision == 0 || st.Deleted != nil {
			return session.Errorf(session.Invalid, "states[%d]: session %s has no state %.80q to take along", i, from,
				name).At(fmt.Sprintf("states[%d]", i), "no such state")
		}
		copied := session.State{Session: to, Name: name}
		if err := t.saveState(&copied, st.Value); err != nil {
			return err
		}
	}
	return nil
}
