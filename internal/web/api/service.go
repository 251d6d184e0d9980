package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

type healthView struct {
	Status string `json:"status" enum:"ok" doc:"ok"`
}

// checkHealth answers if the process runs.
func (s *Server) checkHealth(context.Context, *struct{}) (*output[healthView], error) {
	return reply(healthView{Status: "ok"}, nil)
}

type readyView struct {
	healthView
	Engine string `json:"engine" enum:"sqlite,postgresql" doc:"sqlite or postgresql"`
	Detail string `json:"detail,omitempty" doc:"What a person should look at although the daemon is ready: the search index knew messages that the database has not"`
}

// checkReadiness answers if the database can be read and accepts writes. Codes: Busy, StorageFull, Unavailable.
func (s *Server) checkReadiness(ctx context.Context, _ *struct{}) (*output[readyView], error) {
	err := s.Store.Ready(ctx)
	if session.CodeOf(err) == session.Internal {
		s.log.Error().Err(err).Msg("the database does not answer")
		err = session.Errorf(session.Busy, "the database does not answer")
	}
	return reply(readyView{healthView{Status: "ok"}, s.Store.Engine(), s.Notice}, err)
}

func (s *Server) readVersion(context.Context, *struct{}) (*output[Version], error) {
	return reply(s.Version, nil)
}

type backupBody struct {
	Path name `json:"path,omitempty" doc:"Name of a new file in the backup folder; default: a name with the time. sessiond does not delete it"`
}

type backupInput struct {
	Keyed
	body[backupBody]
}

type backupView struct {
	Path      string       `json:"path" doc:"The backup's absolute path"`
	Bytes     int64        `json:"bytes" doc:"Size in bytes"`
	CreatedAt session.Time `json:"created_at"`
}

// makeBackup copies the database into a file that did not exist. Codes: Invalid, Conflict, Forbidden.
func (s *Server) makeBackup(ctx context.Context, in *backupInput) (*output[backupView], error) {
	at := session.At(s.Now())
	path := string(in.value.Path)
	switch {
	case path == "":
		path = backupName(in.IdempotencyKey, at)
	case path != filepath.Base(path) || path[0] == '.' || strings.ContainsFunc(path, unicode.IsControl):
		return nil, session.Errorf(session.Invalid,
			"path must be a file's name in the backup folder; `sessiond backup PATH` writes elsewhere").
			At("path", "must be a file's name")
	}
	if err := os.MkdirAll(s.BackupDir, 0o700); err != nil {
		return nil, session.Errorf(session.Forbidden, "cannot create the backup folder: %w", err)
	}
	path = filepath.Join(s.BackupDir, path)
	size, err := s.Store.Backup(ctx, path)
	if session.CodeOf(err) == session.Conflict && in.value.Path == "" && in.IdempotencyKey != "" {
		info, statErr := os.Stat(path) // by the first attempt of this request
		if statErr != nil {
			return nil, err
		}
		size, at, err = info.Size(), session.At(info.ModTime()), nil
	}
	return reply(backupView{Path: path, Bytes: size, CreatedAt: at}, err)
}

// backupName names a backup by its time, or by the request's key, so that a repeated request
// makes no second one. The daemon's own backups have other names: their rotation does not delete
// this file.
func backupName(key string, at session.Time) string {
	by := at.UTC().Format("20060102T150405.000Z")
	if key != "" {
		sum := sha256.Sum256([]byte(key))
		by = hex.EncodeToString(sum[:12])
	}
	return engine.AskedBackup + by + ".db"
}
