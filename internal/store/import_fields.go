package store

import "sessiond/internal/session"

// title takes the source's name, unless a person gave the session another one here.
func (im *importer) title() error {
	if im.batch.Title == nil || im.sess.TitleSource == "given" || im.sess.Title == *im.batch.Title {
		return nil
	}
	im.sess.Title, im.sess.TitleSource, im.moved = *im.batch.Title, "source", true
	return nil
}

// fields takes what the source says of the session now, where it says something else.
func (im *importer) fields() error {
	f := im.batch.Fields
	if f == nil {
		return nil
	}
	if model, provider := orElse(f.Model, im.sess.Model), orElse(f.Provider, im.sess.Provider); model != im.sess.Model || provider != im.sess.Provider {
		im.sess.Model, im.sess.Provider, im.moved = model, provider, true
	}
	if err := im.place(f); err != nil {
		return err
	}
	if f.ArchivedAt != nil && im.sess.ArchivedAt == nil {
		if err := im.exec(`UPDATE sessions SET archived_at = ? WHERE id = ?`, f.ArchivedAt, im.sess.ID); err != nil {
			return err
		}
		im.sess.ArchivedAt, im.moved = f.ArchivedAt, true
	}
	if err := im.links(f); err != nil {
		return err
	}
	if f.Metadata == nil {
		return nil
	}
	var before, after session.JSON
	err := im.row(`SELECT metadata, json_set(metadata, ?, json(?)) FROM sessions WHERE id = ?`,
		[]any{`$."` + string(im.sess.Source) + `"`, f.Metadata, im.sess.ID}, &before, &after)
	if err != nil || string(before) == string(after) {
		return err
	}
	err = im.exec(`UPDATE sessions SET metadata = ? WHERE id = ?`, after, im.sess.ID)
	im.sess.Metadata, im.moved = after, true
	return err
}

// place takes the folder and the branch of a session that knows none.
func (im *importer) place(f *ImportFields) error {
	folder, branch := im.sess.Directory == "" && f.Directory != "", im.sess.GitBranch == "" && f.GitBranch != ""
	if folder {
		im.sess.Directory, im.sess.Project = f.Directory, projectOf(f.Directory)
	}
	if branch {
		im.sess.GitBranch = f.GitBranch
	}
	if !folder && !branch {
		return nil
	}
	im.moved = true
	return im.exec(`UPDATE sessions SET directory = ?, project = ?, git_branch = ? WHERE id = ?`,
		im.sess.Directory, im.sess.Project, im.sess.GitBranch, im.sess.ID)
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

// links takes the key, the parent and the end of the session.
func (im *importer) links(f *ImportFields) error {
	before := im.sess
	if f.Key != "" {
		im.sess.Key, im.sess.Generation = f.Key, f.Generation
	}
	if (im.sess.ParentID == "" || im.sess.ParentID == f.Instead) && f.ParentID != "" {
		if err := im.setParent(f); err != nil {
			return err
		}
	}
	if f.EndedAt != nil {
		im.sess.EndedAt, im.sess.EndReason = f.EndedAt, f.EndReason
	}
	ended := before.EndedAt == im.sess.EndedAt || before.EndedAt != nil && before.EndedAt.Equal(im.sess.EndedAt.Time)
	if before.Key == im.sess.Key && before.Generation == im.sess.Generation && before.ParentID == im.sess.ParentID &&
		before.EndReason == im.sess.EndReason && ended {
		return nil
	}
	im.moved, im.keyed = true, before.Key != im.sess.Key || before.Generation != im.sess.Generation
	return im.exec(`UPDATE sessions SET key = ?, generation = ?, parent_id = ?, parent_kind = ?, ended_at = ?, end_reason = ? WHERE id = ?`,
		im.sess.Key, im.sess.Generation, im.sess.ParentID, im.sess.ParentKind, im.sess.EndedAt, im.sess.EndReason, im.sess.ID)
}

// setParent links a session that was here before its parent.
func (im *importer) setParent(f *ImportFields) error {
	if err := im.checkNoCycle(im.sess.ID, f.ParentID); err != nil {
		return err
	}
	im.sess.ParentID, im.sess.ParentKind = f.ParentID, f.ParentKind
	l := link{callID: f.StartedCall}
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
		l.messageID = at.id
	}
	return im.saveLink(im.sess.ID, l)
}
