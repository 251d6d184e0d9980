package mcp

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sessiond/internal/folders"
	"sessiond/internal/memory"
	"sessiond/internal/session"
	"sessiond/internal/transcript"
)

const (
	scopeAll  = "all"
	rootsTime = 2 * time.Second // for a client's answer
	rootsName = "roots"
)

// folders returns the folders that a call is about, none for all. Where the client must be asked for them, it
// returns the question as the call's result.
func (s *Server) folders(ctx context.Context, req *mcp.CallToolRequest,
	args common,
) ([]string, *mcp.CallToolResult, error) {
	switch {
	case args.Project != "" && !folders.IsAbs(args.Project):
		return nil, nil, session.Errorf(session.Invalid,
			"project %q is not an absolute folder: pass one like /home/ana/web, or scope: %q", args.Project, scopeAll)
	case args.Project != "":
		return []string{args.Project}, nil, nil
	case args.Scope == scopeAll:
		return nil, nil, nil
	case s.cfg.Folder == "":
		return nil, nil, session.Errorf(session.Invalid,
			"which project? Pass project: the absolute folder that you work in, or scope: %q", scopeAll)
	}
	roots, question := s.clientRoots(ctx, req)
	if len(roots) == 0 {
		roots = []string{s.cfg.Folder}
	}
	return roots, question, nil
}

// clientRoots returns the folders that the client works in, if it tells them. It is asked once, and again when they
// change. Since protocol 2026-07-28 the question is a result, which the client answers by a second call.
func (s *Server) clientRoots(ctx context.Context, req *mcp.CallToolRequest) ([]string, *mcp.CallToolResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	init := req.Session.InitializeParams()
	//lint:ignore SA1019 clients of today tell their folders this way
	if s.asked || init == nil || init.Capabilities == nil || init.Capabilities.RootsV2 == nil {
		return s.working, nil
	}
	//lint:ignore SA1019 as above
	told, answered := req.Params.InputResponses[rootsName].(*mcp.ListRootsResult)
	if !answered && init.ProtocolVersion >= "2026-07-28" {
		if req.Params.InputResponses == nil {
			//lint:ignore SA1019 as above
			return nil, &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{rootsName: &mcp.ListRootsParams{}}}
		}
	} else if !answered {
		limited, cancel := context.WithTimeout(ctx, rootsTime)
		defer cancel()
		//lint:ignore SA1019 as above; without an answer the process's folder counts
		told, _ = req.Session.ListRoots(limited, nil)
	}
	if ctx.Err() != nil {
		return s.working, nil
	}
	s.asked, s.working = true, nil
	if told == nil {
		return nil, nil
	}
	for _, root := range told.Roots {
		if u, err := url.Parse(root.URI); err == nil && u.Scheme == "file" && folders.IsAbs(u.Path) {
			s.working = append(s.working, folders.Clean(u.Path))
		}
	}
	return s.working, nil
}

// scope is what a call is told of.
type scope struct {
	given common
	memory.Scope
}

func (s *Server) scopeOf(folders []string, args common) scope {
	return scope{given: args, Scope: memory.NewScope(folders, s.cfg.Exclude)}
}

func (sc *scope) all() bool { return len(sc.Projects) == 0 }

// session returns a session that may be shown. Codes: NotFound.
func (c *call) session(ctx context.Context, id session.ID) (session.Session, error) {
	s, err := c.Store.Session(ctx, id)
	switch {
	case err != nil, c.Shows(&s):
		return s, err
	case s.DeletedAt != nil:
		return s, session.Errorf(session.NotFound, "session %s is in the trash", id)
	case c.Excludes(&s):
		return s, session.Errorf(session.NotFound, "session %s is private: the user's configuration excludes its project", id)
	}
	return s, session.Errorf(session.NotFound, "session %s belongs to another project (%s): pass scope: %q to read it",
		id, session.EscapeBlocks(mask(transcript.OneLine(s.Project, 120))), scopeAll)
}

// leaveOut leaves the caller's session out, if it is stored: the one that it names, else the one that its program told.
func (c *call) leaveOut(ctx context.Context, named string) error {
	own := cmp.Or(named, c.own)
	if own == "" {
		return nil
	}
	id, err := c.Store.Resolve(ctx, own, "")
	switch code := session.CodeOf(err); {
	case err == nil:
		c.Asking = id
		c.note("Your own session %s is left out; {read_session} reads it.", id)
	case code != session.NotFound && code != session.Invalid && code != session.Conflict:
		return err
	}
	return nil
}

// withoutPrivate drops the messages that a fork shares with a session of a private project.
func (c *call) withoutPrivate(ctx context.Context, msgs []session.Message) ([]session.Message, error) {
	private := map[session.ID]bool{}
	for i := range msgs {
		id := msgs[i].ID.Session
		if _, known := private[id]; known || len(c.Exclude) == 0 {
			continue
		}
		s, err := c.Store.Session(ctx, id)
		if err != nil && session.CodeOf(err) != session.NotFound { // purged; the fork keeps its messages
			return nil, err
		}
		private[id] = err == nil && c.Excludes(&s)
	}
	return slices.DeleteFunc(msgs, func(m session.Message) bool { return private[m.ID.Session] }), nil
}
