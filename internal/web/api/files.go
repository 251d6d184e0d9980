package api

import (
	"context"
	"path/filepath"
	"strings"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

type filesInput struct {
	Paged
	Path string `query:"path" required:"true" doc:"Absolute: a file, or a folder with all that is below it. Where a tool named a file through a symbolic link, that name counts"`
	Op   string `query:"op" enum:"read,changed,write,edit,delete" doc:"Only those who did this to it; changed: write, edit and delete"`
}

type filesOutput struct {
	Body list[store.FileSession]
}

// filesOf tells which conversations read or changed a file.
func (s *Server) filesOf(ctx context.Context, in *filesInput) (*filesOutput, error) {
	switch {
	case !clean(in.Path) || strings.ContainsRune(in.Path, 0):
		return nil, session.Errorf(session.Invalid, "path is not UTF-8 without NUL").At("path", "not UTF-8 without NUL")
	case !filepath.IsAbs(in.Path):
		return nil, session.Errorf(session.Invalid, "path is not absolute: it begins with /").At("path", "not absolute")
	}
	data, next, err := s.Store.FileSessions(ctx, store.FileFilter{Paths: []string{in.Path}, Ops: store.OpsNamed(in.Op)}, in.page(false))
	if err != nil {
		return nil, err
	}
	return &filesOutput{Body: listOf(data, next)}, nil
}
