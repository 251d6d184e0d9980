// Package storetest gives tests databases to begin with.
package storetest

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// New writes a fresh database at path, for store.Open to open, and gives path back. Making one,
// migration after migration, takes longer than most tests, so one is made for all of them; its
// copies have no identity until store.Open gives each its own.
func New(t testkit.Failer, path string) string {
	t.Helper()
	if os.Getenv(Postgres) != "" {
		return newPostgres(t)
	}
	data := testkit.Must(fresh())(t)
	testkit.Check(t, os.WriteFile(path, data, 0o600))
	return path
}

var fresh = sync.OnceValues(func() (data []byte, err error) {
	dir, err := os.MkdirTemp("", "storetest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of a folder for temporary files
	path := filepath.Join(dir, "sessions.db")
	s, err := store.Open(context.Background(), path, store.Options{})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	if err := forget(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// forget takes the identity that store.Open made.
func forget(path string) (err error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(context.Background(), `DELETE FROM store`)
	return err
}
