package api

import (
	"context"
	"strings"
	"unicode/utf8"

	"sessiond/internal/folders"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

type filesInput struct {
	Paged
	Path string `query:"path" required:"true" doc:"Absolute path of a file, or of a folder with everything below it, also in other worktrees of its repository"`
	Op   string `query:"op" enum:"read,changed,write,edit,delete" doc:"Only sessions with this operation; changed: write, edit and delete"`
}

// listFileSessions lists the sessions that read or changed a file.
func (s *Server) listFileSessions(ctx context.Context, in *filesInput) (*listOutput[store.FileSession], error) {
	switch {
	case !utf8.ValidString(in.Path) || strings.ContainsRune(in.Path, 0):
		return nil, session.Errorf(session.Invalid, "path must be UTF-8 without NUL").At("path", "not UTF-8 without NUL")
	case !folders.IsAbs(in.Path):
		return nil, session.Errorf(session.Invalid, "path is not absolute: it must begin with /").At("path", "not absolute")
	}
	paths, err := s.Store.FilePaths(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	return replyList(s.Store.FileSessions(ctx, store.FileFilter{Paths: paths, Ops: store.OpsNamed(in.Op)}, in.page(false)))
}
