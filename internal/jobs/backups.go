package jobs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Backups configures the daemon's backups. An Every of 0 means never.
type Backups struct {
	Every time.Duration
	Keep  int
	Dir   string
}

const (
	backupPrefix = "sessions-"
	backupSuffix = ".db"
	backupTime   = "20060102T150405Z"
)

// backupName returns the name of a backup by the daemon. Backups by a command have other names, so
// that prune keeps them.
func backupName(at time.Time) string {
	return backupPrefix + at.UTC().Format(backupTime) + backupSuffix
}

func (r *Runner) runBackups() {
	if r.cfg.Backups.Every <= 0 {
		return
	}
	tick := time.NewTicker(r.cfg.Backups.Every)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
		}
		if err := r.backUpNow(); err != nil {
			if r.ctx.Err() == nil {
				r.cfg.Log.Error().Err(err).Msg("the backup failed")
			}
			continue
		}
		if err := r.prune(); err != nil {
			r.cfg.Log.Error().Err(err).Msg("cannot remove old backups")
		}
	}
}

func (r *Runner) backUpNow() error {
	if err := os.MkdirAll(r.cfg.Backups.Dir, 0o700); err != nil {
		return err
	}
	begun, out := r.cfg.Now(), filepath.Join(r.cfg.Backups.Dir, backupName(r.cfg.Now()))
	size, err := r.cfg.Store.Backup(r.ctx, out)
	if err == nil {
		r.cfg.Log.Info().Str("file", out).Int64("bytes", size).Float64("seconds", r.cfg.Now().Sub(begun).Seconds()).Msg("backup made")
	}
	return err
}

// prune removes the daemon's oldest backups beyond those to keep. It keeps files with other names.
func (r *Runner) prune() error {
	if r.cfg.Backups.Keep <= 0 {
		return nil
	}
	entries, err := os.ReadDir(r.cfg.Backups.Dir)
	if err != nil {
		return err
	}
	var ours []string
	for _, e := range entries {
		if _, err := time.Parse(backupPrefix+backupTime+backupSuffix, e.Name()); err == nil {
			ours = append(ours, e.Name())
		}
	}
	slices.Sort(ours)
	for _, name := range ours[:max(0, len(ours)-r.cfg.Backups.Keep)] {
		if err := os.Remove(filepath.Join(r.cfg.Backups.Dir, name)); err != nil {
			return fmt.Errorf("remove the old backup %s: %w", name, err)
		}
	}
	return nil
}
