package api

import (
	"context"
	"net/http"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

type forkBody struct {
	At     messageArg `json:"at,omitzero" doc:"The last message that the fork shares: a seq of this session, or the id of any message of its tree; default: the head"`
	Title  *name      `json:"title,omitempty" doc:"Title, for people; default: this session's title and the fork's number"`
	States []string   `json:"states,omitempty" doc:"Names of the documents to copy; default: none"`
}

type forkInput struct {
	InSession
	Keyed
	body[forkBody]
}

func (s *Server) forkSession(ctx context.Context, in *forkInput) (*sessionOutput, error) {
	b := &in.value
	if b.At.null {
		return nil, session.Errorf(session.Invalid,
			"at is null: name the last message that the fork shares, or make an empty session with POST /v1/sessions").
			At("at", "must name a message")
	}
	return replyCreated(s.Store.Fork(ctx, store.Fork{
		Session: in.ID, At: b.At.in(in.ID), Title: (*string)(b.Title), States: b.States, Idem: in.idem,
	}))
}

type headBody struct {
	Seq       headArg `json:"seq,omitzero" doc:"The message to continue from; null: before the first message"`
	Summarize bool    `json:"summarize,omitempty" doc:"Add a short summary of the abandoned branch at the new head; it is made in the background, and the answer is 202"`
}

type headInput struct {
	InSession
	Keyed
	Conditional
	body[headBody]
}

type headOutput struct {
	Status int
	ETag   string `header:"ETag" doc:"The revision, for If-Match"`
	Body   session.Session
}

// moveHead moves the head to another message. The summary of the abandoned branch is made after
// the answer, by the configured model if there is one.
func (s *Server) moveHead(ctx context.Context, in *headInput) (*headOutput, error) {
	if !in.value.Seq.given {
		return nil, session.Errorf(session.Invalid, "seq is missing: name the message to continue from, or null").
			At("seq", "must name a message, or be null")
	}
	to := in.value.Seq.in(in.ID)
	done, err := s.Store.MoveHead(ctx, store.HeadMove{Session: in.ID, To: to, IfRevision: in.ifRevision, Idem: in.idem})
	answer, err := replySession(done.Session, err)
	if err != nil {
		return nil, err
	}
	out := &headOutput{Status: http.StatusOK, ETag: answer.ETag, Body: answer.Body}
	if in.value.Summarize && done.Moved && done.From != nil {
		if err := s.summarizeBranch(ctx, in.ID, *done.From, to); err != nil {
			return nil, err
		}
		out.Status = http.StatusAccepted
	}
	return out, nil
}

// summarizeBranch summarizes a branch after the answer. The head has moved, even if the summary
// fails.
func (s *Server) summarizeBranch(ctx context.Context, id session.ID, from session.MessageRef,
	to *session.MessageRef,
) error {
	request := requestOf(ctx).id
	work := func(ctx context.Context) {
		if m, _, err := s.Contexts.SummarizeBranch(ctx, id, from, to); err != nil {
			s.log.Error().Err(err).Str("request_id", request).Str("session",
				string(id)).Msg("the summary of an abandoned branch failed")
		} else if m != nil && s.Changed != nil {
			s.Changed(id)
		}
	}
	if s.Run == nil {
		work(ctx)
		return nil
	}
	if !s.Run(work) {
		return session.Errorf(session.Busy, "the head was moved, but sessiond is stopping and does not summarize the branch")
	}
	return nil
}

type treeInput struct {
	InSession
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" doc:"Segments per answer; default 50"`
	Cursor string `query:"cursor" doc:"next_cursor of the previous answer"`
}

// treeView is a piece of a tree. A parent stands before what follows it.
type treeView struct {
	List[session.Segment]
	Head     *session.MessageRef `json:"head"`
	Segments int                 `json:"segments" doc:"Segments in the whole tree"`
	Leaves   int                 `json:"leaves" doc:"Number of branches in the whole tree"`
}

func (s *Server) readTree(ctx context.Context, in *treeInput) (*tagged[treeView], error) {
	page := store.TreePage{Limit: in.Limit}
	if page.Limit == 0 {
		page.Limit = defaultLimit
	}
	if in.Cursor != "" {
		ref, err := session.ParseRef(in.Cursor)
		if err != nil {
			return nil, session.Errorf(session.Invalid,
				"cursor is not a next_cursor of this tree: leave it out to begin at the start").
				At("cursor", "not a next_cursor of this tree")
		}
		page.Cursor = &ref
	}
	tree, err := s.Store.Tree(ctx, in.ID, page)
	if err != nil {
		return nil, err
	}
	return &tagged[treeView]{ETag: etag(tree.Session.Revision), Body: treeView{
		List: ListOf(tree.Segments, tree.Next), Head: tree.Session.Head, Segments: tree.Total, Leaves: tree.Leaves,
	}}, nil
}
