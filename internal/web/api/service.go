package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"sessiond/internal/session"
)

type healthView struct {
	Status string `json:"status" enum:"ok"`
}

type healthOutput struct {
	Body healthView
}

// healthz tells that the process answers.
func (s *Server) healthz(context.Context, *struct{}) (*healthOutput, error) {
	return &healthOutput{Body: healthView{Status: "ok"}}, nil
}

// readyz tells that the database answers, too. Codes: Busy.
func (s *Server) readyz(ctx context.Context, _ *struct{}) (*healthOutput, error) {
	if _, err := s.Store.LastMessageID(ctx); err != nil {
		s.log.Error().Err(err).Msg("the database does not answer")
		return nil, session.Errorf(session.Busy, "the database does not answer")
	}
	return &healthOutput{Body: healthView{Status: "ok"}}, nil
}

type versionOutput struct {
	Body Version
}

func (s *Server) version(context.Context, *struct{}) (*versionOutput, error) {
	return &versionOutput{Body: s.Version}, nil
}

type backupBody struct {
	Path name `json:"path,omitempty" doc:"An absolute path that does not exist yet; without it a file in the backup folder, which stays until somebody removes it"`
}

type backupInput struct {
	Keyed
	body[backupBody]
}

type backupView struct {
	Path      string       `json:"path"`
	Bytes     int64        `json:"bytes"`
	CreatedAt session.Time `json:"created_at"`
}

type backupOutput struct {
	Body backupView
}

// backup copies the database into a file that did not exist. Codes: Invalid, Conflict, Forbidden.
func (s *Server) backup(ctx context.Context, in *backupInput) (*backupOutput, error) {
	at := session.At(s.Now())
	path := string(in.value.Path)
	switch {
	case path == "" && s.BackupDir == "":
		return nil, session.Errorf(session.Invalid, "path is missing, and no backup folder is set: give an absolute path").At("path", "missing")
	case path == "":
		if err := os.MkdirAll(s.BackupDir, 0o700); err != nil {
			return nil, session.Errorf(session.Forbidden, "the backup folder cannot be made: %w", err)
		}
		path = filepath.Join(s.BackupDir, backupName(in.IdempotencyKey, at))
	case !filepath.IsAbs(path):
		return nil, session.Errorf(session.Invalid, "path must be absolute: the daemon's own folder is not the caller's").At("path", "must be absolute")
	}
	size, err := s.Store.Backup(ctx, path)
	if session.CodeOf(err) == session.Conflict && in.value.Path == "" && in.IdempotencyKey != "" {
		info, statErr := os.Stat(path) // made by the first try of this request
		if statErr != nil {
			return nil, err
		}
		size, at, err = info.Size(), session.At(info.ModTime()), nil
	}
	if err != nil {
		return nil, err
	}
	return &backupOutput{Body: backupView{Path: path, Bytes: size, CreatedAt: at}}, nil
}

// backupName names a backup by its time, or, so that a repeated request makes no second one,
// by the request's key. It is no name of the daemon's own backups, of which only so many are
// kept: what somebody asked for stays until somebody removes it.
func backupName(key string, at session.Time) string {
	by := at.UTC().Format("20060102T150405.000Z")
	if key != "" {
		sum := sha256.Sum256([]byte(key))
		by = hex.EncodeToString(sum[:12])
	}
	return "asked-" + by + ".db"
}
