package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// copyToRead names a copy of a database that is brought up to date to be read.
const copyToRead = "sessiond-read-*.db"

// openCopy opens, for a reading command, a copy of a database that this program is too new to read: an upgraded program
// reads beside a daemon that was not started anew. The command's end removes the copy.
func (a *app) openCopy(ctx context.Context, options store.Options, why error) (*store.Store, error) {
	if a.copied == "" {
		a.warn("%v. This command reads a copy that is up to date.", why)
		removeDeadCopies(a.now())
		made, err := a.copyUpToDate(ctx, options)
		if err != nil {
			removeCopy(made)
			return nil, err
		}
		a.copied = made
	}
	return store.Open(ctx, a.copied, options)
}

// copyUpToDate makes a copy of the database and brings it up to date. What it began is there when it fails.
func (a *app) copyUpToDate(ctx context.Context, options store.Options) (made string, err error) {
	file, err := os.CreateTemp("", copyToRead) // 0600
	if err != nil {
		return "", err
	}
	made = file.Name()
	if err := errors.Join(file.Close(), engine.CopyFile(ctx, a.cfg.DB, made, engine.Options{Now: a.now})); err != nil {
		return made, fmt.Errorf("copy %s to read it: %w", a.cfg.DB, err)
	}
	options.ReadOnly, options.Scratch = false, true
	s, err := store.Open(ctx, made, options)
	if err == nil {
		err = s.Close()
	}
	return made, session.Wrap(err, "bring a copy of %s up to date", a.cfg.DB)
}

// removeCopy removes a copy and what SQLite had beside it. There may be none.
func removeCopy(path string) {
	if path != "" {
		for _, end := range []string{"", "-wal", "-shm", "-journal"} {
			_ = os.Remove(path + end)
		}
	}
}

// removeDeadCopies removes copies that killed commands left. An error is no news to the user: the next one tries again.
func removeDeadCopies(now time.Time) {
	const longCommand = 24 * time.Hour
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), copyToRead+"*"))
	for _, name := range left {
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > longCommand {
			_ = os.Remove(name)
		}
	}
}
