package store

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// markForeign marks a session that got messages from a file which is not known to be the user's own, and takes the
// mark from one that a file of the user's own holds.
func (im *importer) markForeign() error {
	from := im.batch.Foreign
	switch was := im.sess.ForeignFrom; {
	case from != "" && (was != "" || im.res.Messages == 0), from == "" && (was == "" || im.batch.Cursor == nil):
		return nil
	}
	im.sess.ForeignFrom = from
	return im.Exec(`UPDATE sessions SET foreign_from = ? WHERE id = ?`, from, im.sess.ID)
}

// ImportIsMine reports what was decided of a path, or of the nearest folder above it: whether its histories are the
// user's own. decided is false if nothing was.
func (s *Store) ImportIsMine(ctx context.Context, source session.Source, path string) (mine, decided bool, err error) {
	for {
		c, err := s.ImportCursor(ctx, source, path)
		if err != nil {
			return false, false, err
		}
		if c != nil && c.Mine != nil {
			return *c.Mine == 1, true, nil
		}
		above := filepath.Dir(path)
		if above == path {
			return false, false, nil
		}
		path = above
	}
}

// ofPath finds the imports of a path: the file, what is below the folder, and the sessions of a database.
const ofPath = `source = ?1 AND (path = ?2 OR SUBSTR(path, 1, LENGTH(?2) + 1) IN (?2 || '/', ?2 || '#'))`

// SetMine decides whether what was imported from a path, and from all below it, is the user's own: it takes the mark
// from the sessions, or marks them.
func (s *Store) SetMine(ctx context.Context, source session.Source, path string, mine bool) error {
	path = strings.TrimSuffix(path, "/")
	imported := hostPath(s.File(), s.opt.Host, path)
	return s.write(ctx, func(t *tx) error {
		if mine {
			if err := t.Exec(`UPDATE imports SET mine = 1 WHERE `+ofPath, source, imported); err != nil {
				return fmt.Errorf("decide that %s is the user's own: %w", path, err)
			}
			return session.Wrap(t.Exec(`UPDATE sessions SET foreign_from = '' WHERE foreign_from <> ''
				AND (foreign_from = ?1 OR SUBSTR(foreign_from, 1, LENGTH(?1) + 1) = ?1 || '/')`, path), "take the marks of an import")
		}
		if err := t.Exec(`UPDATE imports SET mine = 0 WHERE `+ofPath, source, imported); err != nil {
			return fmt.Errorf("decide that %s is not the user's own: %w", path, err)
		}
		return session.Wrap(t.Exec(`UPDATE sessions SET foreign_from = ?3 WHERE foreign_from = ''
			AND id IN (SELECT session_id FROM imports WHERE session_id <> '' AND `+ofPath+`)`, source, imported, path), "mark the sessions of an import")
	})
}

// UndecidedSources returns the programs with imports of which nobody decided whose they are.
func (s *Store) UndecidedSources(ctx context.Context) ([]session.Source, error) {
	return engine.List[session.Source](ctx, s, `SELECT DISTINCT source FROM imports WHERE mine IS NULL`)
}

// DecideImports decides whose the imports of a source are for which nobody did yet: an older version made them. What
// isPlace says to lie in one of the program's own places is the user's own; the other sessions are marked.
func (s *Store) DecideImports(ctx context.Context, source session.Source, isPlace func(path string) bool) error {
	paths, err := engine.List[string](ctx, s, `SELECT path FROM imports WHERE source = ? AND mine IS NULL`, source)
	if err != nil || len(paths) == 0 {
		return err
	}
	var own, others []string
	prefix := hostPath(s.File(), s.opt.Host, "")
	for _, stored := range paths {
		path, here := strings.CutPrefix(stored, prefix)
		file, _, _ := strings.Cut(path, "#")
		switch {
		case !here || !filepath.IsAbs(path): // of another host, which decides
		case isPlace(file):
			own = append(own, stored)
		default:
			others = append(others, stored)
		}
	}
	return s.write(ctx, func(t *tx) error {
		for _, path := range own {
			if err := t.Exec(`UPDATE imports SET mine = 1 WHERE source = ? AND path = ?`, source, path); err != nil {
				return fmt.Errorf("decide that %s is the user's own: %w", path, err)
			}
		}
		for _, path := range others {
			if err := t.decideForeign(source, path, strings.TrimPrefix(path, prefix)); err != nil {
				return fmt.Errorf("decide that %s is not the user's own: %w", path, err)
			}
		}
		return nil
	})
}

// decideForeign marks the session of an import, and those that it started, unless another import of it is the user's
// own.
func (t *tx) decideForeign(source session.Source, imported, path string) error {
	if err := t.Exec(`UPDATE imports SET mine = 0 WHERE source = ? AND path = ?`, source, imported); err != nil {
		return err
	}
	id, err := engine.Get[session.ID](t.Ctx, t, `SELECT session_id FROM imports WHERE source = ? AND path = ?`, source, imported)
	if err != nil || id == "" {
		return err
	}
	file, _, _ := strings.Cut(path, "#")
	return t.Exec(`UPDATE sessions SET foreign_from = ? WHERE foreign_from = '' AND (id = ? OR parent_id = ? AND parent_kind = 'child')
		AND NOT EXISTS (SELECT 1 FROM imports i WHERE i.session_id = sessions.id AND i.mine = 1)`, file, id, id)
}
