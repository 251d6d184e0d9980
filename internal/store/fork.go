package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"sessiond/internal/engine"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// Fork is a request for a session that goes on from a message of another one.
type Fork struct {
	Session session.ID
	At      *session.MessageRef // any message on the session's tree; nil: its head
	Title   *string             // nil: the session's with the fork's number
	States  []string            // documents to take along, as they are now
	Idem    *Idempotency
}

// Fork makes a session whose path begins with that of another one. No message is copied: the
// fork's first own message follows the one that it was forked at. It inherits the overlays
// and undos as they are now, pins and labels on the path, settings, metadata, model, folder
// and project; not the key, and no document that is not named. Codes: NotFound, Invalid (at
// is not on the tree, no such document), Conflict (in the trash).
func (s *Store) Fork(ctx context.Context, in Fork) (session.Session, error) {
	if in.Title != nil {
		if err := checkStorable([]field{{"title", *in.Title}}); err != nil {
			return session.Session{}, err
		}
	}
	return writeOnce(ctx, s, in.Idem, (*tx).replaySession, func(t *tx) (session.Session, outcome, error) {
		made, err := t.fork(in)
		return made, outcome{SessionID: string(made.ID), Revision: made.Revision, Status: 201}, err
	})
}

func (t *tx) fork(in Fork) (session.Session, error) {
	parent, err := readSession(t.Ctx, t, in.Session)
	if err != nil {
		return session.Session{}, err
	}
	if parent.DeletedAt != nil {
		return session.Session{}, inTrash(parent.ID)
	}
	at, ref := parent.HeadID, parent.Head
	if in.At != nil {
		p, err := t.placeOnTree(parent, *in.At, "at")
		if err != nil {
			return session.Session{}, err
		}
		at, ref = p.id, in.At
	}
	family, err := t.family(parent)
	if err != nil {
		return session.Session{}, err
	}
	made, err := t.createSession(NewSession{
		Title: forkTitle(parent.Title, in.Title, family.Number), Kind: parent.Kind, Settings: parent.Settings,
		Metadata:  parent.Metadata,
		Directory: parent.Directory, Project: parent.Project, GitBranch: parent.GitBranch, ForeignFrom: parent.ForeignFrom,
		Provider: parent.Provider, Model: parent.Model, Window: parent.Window, ParentID: parent.ID,
		ParentKind: session.ParentFork,
	})
	if err != nil {
		return made, err
	}
	if err := t.beginFork(&made, parent, family, ref, at); err != nil {
		return made, err
	}
	return made, t.copyStates(parent.ID, made.ID, in.States)
}

// numbered is a title that a fork was given.
var numbered = pattern.New(`^(.*\S) \(fork #[0-9]+\)$`)

// forkTitle is the title of what was forked with the fork's own number. Numbers go through a
// family, so a fork of "Plan (fork #1)" is "Plan (fork #2)" and never a second "(fork #1)".
func forkTitle(parent string, wanted *string, number int64) string {
	switch {
	case wanted != nil:
		return *wanted
	case parent == "":
		return ""
	}
	if m := numbered.FindStringSubmatch(parent); m != nil {
		parent = m[1]
	}
	return parent + " (fork #" + strconv.FormatInt(number, 10) + ")"
}

// family returns the family that a fork of parent belongs to, and its number there.
func (t *tx) family(parent session.Session) (link, error) {
	l := link{Root: parent.ID}
	if parent.ParentKind == session.ParentFork {
		up, err := readLink(t.Ctx, t, parent.ID)
		if err != nil {
			return l, err
		}
		l.Root = orElse(up.Root, l.Root)
	}
	err := t.Row(`SELECT COALESCE(MAX(number), 0) + 1 FROM links WHERE root_id = ? AND root_id <> ''`, []any{l.Root}, &l.Number)
	return l, err
}

// beginFork puts a new session's head on the message that it is forked at and gives it what it
// inherits. Nothing is counted twice: tokens of the shared path are its owners'.
func (t *tx) beginFork(made *session.Session, parent session.Session, l link, ref *session.MessageRef,
	at *int64,
) error {
	l.MessageID = at
	if err := t.Row(`SELECT (SELECT COALESCE(MAX(id), 0) FROM compactions), (SELECT COALESCE(MAX(id), 0) FROM frozen)`, nil, &l.CompactionID, &l.FrozenID); err != nil {
		return fmt.Errorf("what a fork inherits: %w", err)
	}
	overlays, err := overlaysOf(t.Ctx, t, parent)
	if err != nil {
		return err
	}
	if len(overlays) > 0 {
		l.ActivatedAt = overlays[0].ActivatedAt.SQL()
	}
	if err := t.saveLink(made.ID, l); err != nil || at == nil {
		return err
	}
	// A redo in the parent takes its undo away, so the fork keeps what was undone itself.
	if err := t.Exec(`INSERT INTO compaction_undos (session_id, compaction_id, at)
		SELECT ?, compaction_id, at FROM compaction_undos WHERE session_id = ?`, made.ID, parent.ID); err != nil {
		return fmt.Errorf("inherit undos: %w", err)
	}
	if err := t.copyMarks(parent.ID, made.ID, *at); err != nil {
		return err
	}
	made.HeadID, made.Head = at, ref
	if made.TurnOrigin, err = t.turnOrigin(*ref); err != nil {
		return err
	}
	if err := t.updateOverlay(made); err != nil {
		return err
	}
	return t.Exec(`UPDATE sessions SET head_id = ?, compaction_id = ?, context_tokens = ?, turn_origin = ? WHERE id = ?`,
		made.HeadID, made.CompactionID, made.ContextTokens, made.TurnOrigin, made.ID)
}

// copyMarks copies to a fork the pins, tags and notes of the path that it shares.
func (t *tx) copyMarks(from, to session.ID, head int64) error {
	marks, err := engine.List[session.Message](t.Ctx, t, `SELECT m.id, m.session_id, m.seq FROM marks k JOIN messages m ON m.id = k.message_id
		WHERE k.session_id = ? AND k.message_id <= ? ORDER BY k.message_id`, from, head)
	if err != nil || len(marks) == 0 {
		return err
	}
	marks = slices.CompactFunc(marks, func(a, b session.Message) bool { return a.RowID == b.RowID }) // pinned and tagged
	spans, err := spansDownTo(t.Ctx, t, head, marks[0].RowID)
	if err != nil {
		return err
	}
	for _, m := range marks {
		if !holds(spans, session.MessageRef{Session: m.SessionID, Seq: m.Seq}) {
			continue
		}
		if err := t.Exec(`INSERT INTO marks (session_id, message_id, kind, text, created_at, place, revision)
			SELECT ?, message_id, kind, text, created_at, place, revision FROM marks WHERE session_id = ? AND message_id = ?`, to, from, m.RowID); err != nil {
			return fmt.Errorf("inherit marks: %w", err)
		}
	}
	return nil
}

// turnLook is how far back the beginning of a turn is looked for, in messages.
const turnLook = 256

// turnOrigin returns who began the turn that a message belongs to, "" when that is far back.
func (t *tx) turnOrigin(ref session.MessageRef) (session.Origin, error) {
	origin, err := engine.First[session.Origin](t.Ctx, t, originOfTurn, ref.Session, ref.Seq-turnLook, ref.Seq)
	if err != nil || origin == nil {
		return "", err
	}
	return *origin, nil
}

const originOfTurn = `
	SELECT origin FROM messages WHERE session_id = ?1 AND seq BETWEEN ?2 AND ?3
	AND seq >= COALESCE((SELECT seq FROM messages WHERE session_id = ?1 AND jump = 1 AND seq <= ?3 ORDER BY seq DESC LIMIT 1), 1)
	AND role = 'user' AND kind <> 'branch_summary' ORDER BY seq DESC LIMIT 1`

func inTrash(id session.ID) error {
	return session.Errorf(session.Conflict,
		"session %s is in the trash: take it out with POST /v1/sessions/%s/untrash first", id, id)
}
