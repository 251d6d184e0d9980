package jobs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"sessiond/internal/engine"
)

// Backups configures the daemon's backups. An Every of 0 means never.
type Backups struct {
	Every time.Duration
	Keep  int
	Dir   string
}

const (
	backupPrefix = engine.OwnBackup
	backupSuffix = ".db"
	backupTime   = "20060102T150405Z"
)

// backupName returns the name of a backup by the daemon. Backups by a command have other names, so
// that prune keeps them.
func backupName(at time.Time) string {
	return backupPrefix + at.UTC().Format(backupTime) + backupSuffix
}

// Late says that the backups of the folder are late, and since when; "" if they are not. A backup may take a while.
func (b Backups) Late(now time.Time) string {
	if b.Every <= 0 {
		return ""
	}
	newest := engine.NewestBackup(b.Dir)
	switch age := now.Sub(newest); {
	case newest.IsZero():
		return fmt.Sprintf("no backup is in %s yet, and backup.every is %s", b.Dir, b.Every)
	case age > b.Every+max(b.Every/10, time.Minute):
		return fmt.Sprintf("backups are late: the newest in %s is %s, and backup.every is %s",
			b.Dir, humanize.RelTime(newest, now, "old", ""), b.Every)
	}
	return ""
}

// due returns the time until the next backup. The clock may have been set back since the newest.
func (b Backups) due(now time.Time) time.Duration {
	return min(b.Every, max(0, b.Every-now.Sub(engine.NewestBackup(b.Dir))))
}

// runBackups backs up in each interval since the newest backup, so that a daemon that is started each morning does so.
func (r *Runner) runBackups() {
	if r.cfg.Backups.Every <= 0 {
		return
	}
	tick := time.NewTimer(r.cfg.Backups.due(r.cfg.Now()))
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
			tick.Reset(r.cfg.Backups.Every)
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
		r.cfg.Log.Info().Str("file", out).Int64("bytes", size).Float64("seconds",
			r.cfg.Now().Sub(begun).Seconds()).Msg("backup made")
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
