package store

import (
	"reflect"

	"sessiond/internal/session"
)

// title takes the source's name, unless a person gave the session another one here.
func (im *importer) title() error {
	if im.batch.Title == nil || im.sess.TitleSource == "given" || im.sess.Title == *im.batch.Title {
		return nil
	}
	im.sess.Title, im.sess.TitleSource, im.moved = *im.batch.Title, "source", true
	return nil
}

// fields updates what the source says of the session now, where it says something else.
func (im *importer) fields() error {
	f, s, was := im.batch.Fields, &im.sess, im.sess
	if f == nil {
		return nil
	}
	s.Model, s.Provider = orElse(f.Model, s.Model), orElse(f.Provider, s.Provider)
	if s.Directory == "" && f.Directory != "" {
		s.Directory, s.Project = f.Directory, projectOf(f.Directory)
	}
	s.GitBranch = orElse(s.GitBranch, f.GitBranch)
	if s.ArchivedAt == nil {
		s.ArchivedAt = f.ArchivedAt
	}
	if f.Key != "" {
		s.Key, s.Generation = f.Key, f.Generation
	}
	if f.ParentID != "" && (s.ParentID == "" || s.ParentID == f.Instead) {
		if err := im.setParent(f); err != nil {
			return err
		}
	}
	if f.EndedAt != nil && (s.EndedAt == nil || !s.EndedAt.Equal(f.EndedAt.Time) || s.EndReason != f.EndReason) {
		s.EndedAt, s.EndReason = f.EndedAt, f.EndReason
	}
	if f.Metadata != nil {
		if err := im.row(`SELECT json_set(?, ?, json(?))`, []any{s.Metadata, `$."` + string(s.Source) + `"`, f.Metadata}, &s.Metadata); err != nil {
			return err
		}
	}
	if reflect.DeepEqual(*s, was) {
		return nil
	}
	im.moved, im.keyed = true, s.Key != was.Key || s.Generation != was.Generation
	return im.exec(`UPDATE sessions SET directory = ?, project = ?, git_branch = ?, archived_at = ?, key = ?, generation = ?,
		parent_id = ?, parent_kind = ?, ended_at = ?, end_reason = ?, metadata = ? WHERE id = ?`,
		s.Directory, s.Project, s.GitBranch, s.ArchivedAt, s.Key, s.Generation,
		s.ParentID, s.ParentKind, s.EndedAt, s.EndReason, s.Metadata, s.ID)
}

// keepOneGenerationOpen sees to it that a key has one open generation after a session came in under it. Of
// one program's the later one goes on, as the program numbers them. A conversation that was
// begun here, or by another program, goes on as before: what comes in beside it has ended.
func (im *importer) keepOneGenerationOpen() error {
	s := &im.sess
	if !im.keyed && !im.res.Created || s.Key == "" || s.EndedAt != nil || s.DeletedAt != nil {
		return nil
	}
	open, err := im.openGenerations(s.Key, s.ID)
	if err != nil {
		return err
	}
	for i := range open {
		other := &open[i]
		if other.Source == s.Source && other.Generation < s.Generation {
			if err := im.endGeneration(other.ID, endedByProgram, other.ActiveAt); err != nil {
				return err
			}
			continue
		}
		if s.EndedAt == nil {
			at := s.ActiveAt
			s.EndedAt, s.EndReason, im.moved = &at, endedByProgram, true
			if err := im.endGeneration(s.ID, endedByProgram, at); err != nil {
				return err
			}
		}
		if other.Source != s.Source {
			if err := im.renumberGeneration(other, s.Generation); err != nil {
				return err
			}
		}
	}
	return nil
}

// setParent links a session that was here before its parent.
func (im *importer) setParent(f *ImportFields) error {
	if err := im.checkNoCycle(im.sess.ID, f.ParentID); err != nil {
		return err
	}
	im.sess.ParentID, im.sess.ParentKind = f.ParentID, f.ParentKind
	l := link{CallID: f.StartedCall}
	switch {
	case f.ParentKind == session.ParentFork:
		l = importedFork(im.sess.CreatedAt)
	case f.Started != nil:
		parent, err := readSession(im.ctx, im.tx, f.ParentID)
		if err != nil {
			return err
		}
		at, err := im.placeOnTree(parent, *f.Started, "parent_message")
		if err != nil {
			return err
		}
		l.MessageID = at.id
	}
	return im.saveLink(im.sess.ID, l)
}
