package store

import (
	"context"
	"slices"

	"sessiond/internal/engine"
	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// mendVersion is the version of the rules by which the rows of earlier versions are mended.
const mendVersion = 134

// mend applies today's rules to what earlier versions stored. A step that was cut short runs again at the next start.
func (s *Store) mend(ctx context.Context) error {
	done, err := engine.Get[int64](ctx, s, `SELECT mended FROM store WHERE id = 1`)
	if err != nil || done >= mendVersion {
		return session.Wrap(err, "read what was mended")
	}
	for _, step := range []func(context.Context) error{
		s.improveTitles, s.regroupProjects, s.respellFiles,
		s.forgetFailedFiles,
	} {
		if err := step(ctx); err != nil {
			if session.CodeOf(err) == session.StorageFull {
				return nil // the database is read all the same
			}
			return err
		}
	}
	return s.write(ctx, func(t *tx) error { return t.Exec(`UPDATE store SET mended = ? WHERE id = 1`, mendVersion) })
}

// regroupProjects gives the sessions of worktrees the project of their repository, and paths of Windows one spelling.
// What was counted for a project moves along.
func (s *Store) regroupProjects(ctx context.Context) error {
	type group struct {
		Project   string `db:"project"`
		Elsewhere bool   `db:"elsewhere"` // on other hosts alone, whose folders cannot be looked up
	}
	groups, err := engine.List[group](ctx, s, projectsAndHosts, s.opt.Host)
	if err != nil {
		return session.Wrap(err, "projects to regroup")
	}
	for _, g := range groups {
		to := folders.Project(g.Project)
		if g.Elsewhere {
			to = folders.ProjectElsewhere(g.Project)
		}
		if to == g.Project {
			continue
		}
		if err := s.write(ctx, func(t *tx) error { return t.renameProject(g.Project, to) }); err != nil {
			return session.Wrap(err, "move project %s to %s", g.Project, to)
		}
	}
	return nil
}

const projectsAndHosts = `
	SELECT project, MIN(CASE WHEN host IN ('', ?) THEN 0 ELSE 1 END) = 1 AS elsewhere FROM sessions
	WHERE project <> '' AND purged_at IS NULL GROUP BY project ORDER BY project`

// renameProject moves all sessions of a project, and what they count for, to another one.
func (t *tx) renameProject(from, to string) error {
	if err := t.Exec(`UPDATE sessions SET project = ?, revision = revision + 1, updated_at = ? WHERE project = ?`, to, t.Now, from); err != nil {
		return err
	}
	if err := t.Exec(`INSERT INTO daily_usage (`+usageKeys+`, `+usageColumns+`)
		SELECT day, ?, source, model, purpose, `+usageColumns+` FROM daily_usage WHERE project = ? `+addToUsage, to, from); err != nil {
		return err
	}
	return t.Exec(`DELETE FROM daily_usage WHERE project = ?`, from)
}

// respellFiles gives touched files of Windows one spelling.
func (s *Store) respellFiles(ctx context.Context) error {
	paths, err := engine.List[string](ctx, s, pathsOfWindows)
	if err != nil {
		return session.Wrap(err, "files of Windows")
	}
	for some := range slices.Chunk(paths, batchRows) {
		err := s.write(ctx, func(t *tx) error {
			for _, from := range some {
				to := folders.Clean(from)
				if to == from {
					continue
				}
				if err := t.Exec(`INSERT INTO touched_files (path, message_id, op, session_id)
					SELECT ?, message_id, op, session_id FROM touched_files WHERE path = ? ON CONFLICT DO NOTHING`, to, from); err != nil {
					return err
				}
				if err := t.Exec(`DELETE FROM touched_files WHERE path = ?`, from); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return session.Wrap(err, "spell the files of Windows")
		}
	}
	return nil
}

const pathsOfWindows = `
	SELECT DISTINCT path FROM touched_files
	WHERE SUBSTR(path, 2, 1) = ':' OR SUBSTR(path, 1, 2) IN ('\\', '//') OR path LIKE '/mnt/_/%' OR path LIKE '/cygdrive/_/%' OR path LIKE '/c/%'`

// forgetFailedFiles removes the files of calls that failed: a failed edit is none.
func (s *Store) forgetFailedFiles(ctx context.Context) error {
	if s.opt.Touched == nil {
		return nil
	}
	messages, err := engine.List[int64](ctx, s, touchesWithFailures)
	if err != nil {
		return session.Wrap(err, "files of failed calls")
	}
	for some := range slices.Chunk(messages, batchRows) {
		err := s.write(ctx, func(t *tx) error {
			for _, message := range some {
				if err := t.forgetFailed(message); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return session.Wrap(err, "forget the files of failed calls")
		}
	}
	return nil
}

const touchesWithFailures = `
	SELECT DISTINCT f.message_id FROM touched_files f
	JOIN parts c ON c.id BETWEEN f.message_id << 10 AND (f.message_id << 10) + 1023 AND c.kind = 'tool_call'
	JOIN parts r ON r.call_part_id = c.id WHERE r.is_error = 1`

// forgetFailed removes the touched files of a message that only calls of it name which failed.
func (t *tx) forgetFailed(message int64) error {
	known, err := engine.List[session.TouchedFile](t.Ctx, t, `SELECT path, message_id, op, session_id FROM touched_files WHERE message_id = ?`, message)
	if err != nil || len(known) == 0 || t.opt.Touched == nil {
		return err
	}
	failed, err := engine.List[int64](t.Ctx, t, failedCalls, message)
	if err != nil {
		return err
	}
	msgs, err := readSelection(t.Ctx, t, 1, messagesByID, string(session.JSONOf([]int64{message})))
	if err == nil {
		err = readAllBlobs(t.Ctx, t, msgs)
	}
	if err != nil || len(msgs) == 0 {
		return err
	}
	yes := true
	for i := range msgs[0].Parts {
		if p := &msgs[0].Parts[i]; slices.Contains(failed, p.RowID) {
			p.IsError = &yes
		}
	}
	directory, err := engine.Get[string](t.Ctx, t, `SELECT directory FROM sessions WHERE id = ?`, msgs[0].SessionID)
	if err != nil {
		return err
	}
	kept := t.opt.Touched(&msgs[0], directory)
	for _, f := range known {
		if slices.ContainsFunc(kept, func(k session.TouchedFile) bool { return k.Path == f.Path && k.Op == f.Op }) {
			continue
		}
		if err := t.Exec(`DELETE FROM touched_files WHERE message_id = ? AND path = ? AND op = ?`, message, f.Path, string(f.Op)); err != nil {
			return err
		}
	}
	return nil
}

const failedCalls = `
	SELECT DISTINCT call_part_id FROM parts WHERE call_part_id BETWEEN ?1 << 10 AND (?1 << 10) + 1023 AND is_error = 1`
