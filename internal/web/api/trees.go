package api

import (
	"context"
	"net/http"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

type forkBody struct {
	At     messageArg `json:"at,omitzero" doc:"The last message that the fork shares: a seq of this session, or the id of any message on its tree; the head without it"`
	Title  *name      `json:"title,omitempty" doc:"This session's and the fork's number without it"`
	States []string   `json:"states,omitempty" doc:"Documents to take along, as they are now; none without it"`
}

type forkInput struct {
	InSession
	Keyed
	body[forkBody]
}

func (s *Server) fork(ctx context.Context, in *forkInput) (*sessionOutput, error) {
	id, err := in.sessionID()
	if err != nil {
		return nil, err
	}
	if in.value.At.null {
		return nil, session.Errorf(session.Invalid, "at is null: it names the last message that the fork shares; POST /v1/sessions makes a session that shares nothing").At("at", "must name a message")
	}
	idem, err := in.idempotency(ctx, in.raw())
	if err != nil {
		return nil, err
	}
	made, err := s.Store.Fork(ctx, store.Fork{
		Session: id, At: in.value.At.in(id), Title: (*string)(in.value.Title), States: in.value.States, Idem: idem,
	})
	if err != nil {
		return nil, err
	}
	out := sessionAnswer(made)
	out.Location = "/v1/sessions/" + string(made.ID)
	return out, nil
}

type headBody struct {
	Seq       messageArg `json:"seq,omitzero" doc:"The message that the next one is to follow; null: begin anew, before the first message"`
	Summarize bool       `json:"summarize,omitempty" doc:"Tell at the new head what happened on the branch that is left; made behind the answer, which is 202 then"`
}

type headInput struct {
	InSession
	Keyed
	Conditional
	body[headBody]
}

type headOutput struct {
	Status int
	ETag   string `header:"ETag"`
	Body   session.Session
}

// moveHead goes on from another message. The summary of what was left is made behind the
// answer, with the configured model if there is one.
func (s *Server) moveHead(ctx context.Context, in *headInput) (*headOutput, error) {
	id, err := in.sessionID()
	if err != nil {
		return nil, err
	}
	if !in.value.Seq.given {
		return nil, session.Errorf(session.Invalid, "seq is missing: it names the message to go on from, or is null").At("seq", "must name a message, or be null")
	}
	wanted, err := in.revision()
	if err != nil {
		return nil, err
	}
	idem, err := in.idempotency(ctx, in.raw())
	if err != nil {
		return nil, err
	}
	to := in.value.Seq.in(id)
	done, err := s.Store.MoveHead(ctx, store.HeadMove{Session: id, To: to, IfRevision: wanted, Idem: idem})
	if err != nil {
		return nil, err
	}
	answer := sessionAnswer(done.Session)
	out := &headOutput{Status: http.StatusOK, ETag: answer.ETag, Body: answer.Body}
	if in.value.Summarize && done.Moved && done.From != nil {
		if err := s.tellBranch(ctx, id, *done.From, to); err != nil {
			return nil, err
		}
		out.Status = http.StatusAccepted
	}
	return out, nil
}

// tellBranch has a branch summarised behind the answer. The head has moved, whatever becomes
// of the summary.
func (s *Server) tellBranch(ctx context.Context, id session.ID, from session.MessageRef, to *session.MessageRef) error {
	request := requestOf(ctx).id
	work := func(ctx context.Context) {
		if m, _, err := s.Contexts.SummarizeBranch(ctx, id, from, to); err != nil {
			s.log.Error().Err(err).Str("request_id", request).Str("session", string(id)).Msg("no summary was made of a branch that was left")
		} else if m != nil && s.Changed != nil {
			s.Changed(id)
		}
	}
	if s.Run == nil {
		work(ctx)
		return nil
	}
	if !s.Run(work) {
		return session.Errorf(session.Busy, "the head was moved, but sessiond is stopping and makes no summary of the branch")
	}
	return nil
}

type treeInput struct {
	InSession
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" doc:"Segments of one answer; 50 without it"`
	Cursor string `query:"cursor" doc:"next_cursor of the answer before"`
}

// treeView is a piece of a tree. A parent stands before what follows it.
type treeView struct {
	list[session.Segment]
	Head     *session.MessageRef `json:"head"`
	Segments int                 `json:"segments" doc:"Of the whole tree"`
	Leaves   int                 `json:"leaves" doc:"Ends of branches in the whole tree"`
}

type treeOutput struct {
	ETag string `header:"ETag"`
	Body treeView
}

func (s *Server) getTree(ctx context.Context, in *treeInput) (*treeOutput, error) {
	id, err := in.sessionID()
	if err != nil {
		return nil, err
	}
	page := store.TreePage{Limit: in.Limit}
	if page.Limit == 0 {
		page.Limit = defaultLimit
	}
	if in.Cursor != "" {
		ref, err := session.ParseRef(in.Cursor)
		if err != nil {
			return nil, session.Errorf(session.Invalid, "cursor is none of this tree's: begin without one").At("cursor", "not a next_cursor of this tree")
		}
		page.Cursor = &ref
	}
	tree, err := s.Store.Tree(ctx, id, page)
	if err != nil {
		return nil, err
	}
	return &treeOutput{ETag: sessionAnswer(tree.Session).ETag, Body: treeView{
		list: listOf(tree.Segments, tree.Next), Head: tree.Session.Head, Segments: tree.Total, Leaves: tree.Leaves,
	}}, nil
}
