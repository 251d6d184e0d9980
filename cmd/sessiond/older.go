package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sessiond/internal/engine"
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
		file, err := os.CreateTemp("", copyToRead) // 0600
		if err != nil {
			return nil, err
		}
		a.copied = file.Name()
		_ = file.Close()
		writing := options
		writing.ReadOnly, writing.Scratch = false, true
		if err := engine.CopyFile(ctx, a.cfg.DB, a.copied, engine.Options{Now: a.now}); err != nil {
			return nil, fmt.Errorf("copy %s to read it: %w", a.cfg.DB, err)
		}
		s, err := store.Open(ctx, a.copied, writing)
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("bring a copy of %s up to date: %w", a.cfg.DB, err)
		}
	}
	return store.Open(ctx, a.copied, options)
}

// removeCopy removes what openCopy made.
func (a *app) removeCopy() {
	if a.copied != "" {
		for _, end := range []string{"", "-wal", "-shm", "-journal"} {
			_ = os.Remove(a.copied + end)
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
