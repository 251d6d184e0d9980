package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// scrubPatience is how long a scrub waits for readers that still need the write-ahead log.
const scrubPatience = 20 * time.Second

// Unscrubbed tells since when the file may hold bytes of purged sessions outside of its tables;
// nil: it does not.
func (s *Store) Unscrubbed(ctx context.Context) (*session.Time, error) {
	at, err := engine.Get[*session.Time](ctx, s, `SELECT unscrubbed_at FROM store WHERE id = 1`)
	return at, err
}

// Scrub rewrites the file, so that no byte of what was deleted is left in it or in its
// write-ahead log. Fragments of deleted rows live on in pages that are still used, whatever
// secure_delete does. Appends wait for it, about as long as a copy of the file takes, and the
// disk must have room for that copy. Codes: Conflict (a purge is not finished), Busy (a reader
// holds the log), StorageFull.
func (s *Store) Scrub(ctx context.Context) error {
	if s.IsPostgres() {
		return session.Errorf(session.Invalid,
			"sessiond rewrites only files of its own: on PostgreSQL, VACUUM FULL rewrites the tables, "+
				"and its write-ahead log and backups expire as its owner configured")
	}
	running, err := s.Purging(ctx)
	if err != nil {
		return err
	}
	if len(running) > 0 {
		return session.Errorf(session.Conflict, "session %s is still being purged: scrub when it is done", running[0])
	}
	since, err := s.Unscrubbed(ctx)
	if err != nil {
		return err
	}
	if err := s.DB.Rewrite(ctx); err != nil {
		return fmt.Errorf("rewrite %s: %w", s.File(), err)
	}
	if err := s.emptyLog(ctx); err != nil {
		return err
	}
	return s.write(ctx, func(t *tx) error {
		return t.Exec(`UPDATE store SET unscrubbed_at = NULL WHERE id = 1 AND unscrubbed_at IS NOT DISTINCT FROM ?`, since)
	})
}

// emptyLog truncates the write-ahead log, waiting for readers of what it held before.
func (s *Store) emptyLog(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, scrubPatience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if done, err := s.TruncateWAL(ctx); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return session.Errorf(session.Busy,
				"%s was rewritten, but someone who reads it keeps its write-ahead log, which still holds what was there before: "+
					"end long readings and scrub again", s.File())
		case <-tick.C:
		}
	}
}

// CopiesHolding names the database files in folders, backups above all, that hold a session.
// A file that cannot be read as one of sessiond's is passed over.
func (s *Store) CopiesHolding(ctx context.Context, id session.ID, folders ...string) ([]string, error) {
	var own os.FileInfo // none on PostgreSQL
	if !s.IsPostgres() {
		var err error
		if own, err = os.Stat(s.File()); err != nil {
			return nil, err
		}
	}
	var found []string
	for _, dir := range folders {
		entries, err := os.ReadDir(dir)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for backups: %w", err)
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			info, err := os.Stat(path)
			if err != nil || !info.Mode().IsRegular() || os.SameFile(info, own) || besideDatabase(path) {
				continue
			}
			if holdsSession(ctx, path, id) {
				found = append(found, path)
			}
		}
	}
	return found, nil
}

// besideDatabase reports whether a file is one that SQLite keeps beside a database. It must not
// even be opened: closing any descriptor of an index of a write-ahead log gives up all locks
// that the process has there, and two processes would write at once.
func besideDatabase(path string) bool {
	for _, end := range []string{"-shm", "-wal", "-journal"} {
		if strings.HasSuffix(path, end) {
			return true
		}
	}
	return false
}

func holdsSession(ctx context.Context, path string, id session.ID) bool {
	db, err := sqlx.Open("sqlite", engine.DSN(path, "ro")+"&immutable=1")
	if err != nil {
		return false
	}
	defer db.Close() //nolint:errcheck // a reader
	var there bool
	return db.GetContext(ctx, &there, `SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?)`, id) == nil && there
}
