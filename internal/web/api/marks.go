package api

import (
	"context"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

type markInput struct {
	InMessage
	Keyed
}

func (s *Server) pinMessage(ctx context.Context, in *markInput) (*sessionOutput, error) {
	if err := s.Contexts.CheckPin(ctx, in.ID, in.ref); err != nil {
		return nil, err
	}
	return replySession(s.Store.SetMark(ctx, in.ID, in.ref, store.MarkPin, "", true))
}

func (s *Server) unpinMessage(ctx context.Context, in *markInput) (*sessionOutput, error) {
	return replySession(s.Store.SetMark(ctx, in.ID, in.ref, store.MarkPin, "", false))
}

type labelBody struct {
	Text name `json:"text" doc:"1 to 64 characters after trimming"`
}

type labelInput struct {
	InMessage
	Keyed
	body[labelBody]
}

func (s *Server) labelMessage(ctx context.Context, in *labelInput) (*sessionOutput, error) {
	text, err := session.CheckTag(string(in.value.Text))
	if err != nil {
		return nil, err
	}
	return replySession(s.Store.SetMark(ctx, in.ID, in.ref, store.MarkLabel, text, true))
}

func (s *Server) unlabelMessage(ctx context.Context, in *markInput) (*sessionOutput, error) {
	return replySession(s.Store.SetMark(ctx, in.ID, in.ref, store.MarkLabel, "", false))
}

// InTag is the part of an input that names a tag by the path.
type InTag struct {
	Tag string `path:"tag" doc:"The tag: 1 to 64 characters, in any case" example:"release"`
}

type sessionTagInput struct {
	InSession
	InTag
	Keyed
}

type messageTagInput struct {
	InMessage
	InTag
	Keyed
}

func (s *Server) tagSession(ctx context.Context, in *sessionTagInput) (*sessionOutput, error) {
	return replySession(s.Store.ChangeTags(ctx, store.Marking{Session: in.ID, Idem: in.idem}, []string{in.Tag}, nil))
}

func (s *Server) untagSession(ctx context.Context, in *sessionTagInput) (*sessionOutput, error) {
	return replySession(s.Store.ChangeTags(ctx, store.Marking{Session: in.ID, Idem: in.idem}, nil, []string{in.Tag}))
}

func (s *Server) tagMessage(ctx context.Context, in *messageTagInput) (*sessionOutput, error) {
	of := store.Marking{Session: in.ID, Message: &in.ref, Idem: in.idem}
	return replySession(s.Store.ChangeTags(ctx, of, []string{in.Tag}, nil))
}

func (s *Server) untagMessage(ctx context.Context, in *messageTagInput) (*sessionOutput, error) {
	of := store.Marking{Session: in.ID, Message: &in.ref, Idem: in.idem}
	return replySession(s.Store.ChangeTags(ctx, of, nil, []string{in.Tag}))
}

// TagInUse is a tag that sessions have.
type TagInUse struct {
	Tag      string `json:"tag" doc:"The tag, as it was written"`
	Sessions int64  `json:"sessions" doc:"How many sessions have it, on them or on one of their messages"`
}

// TagsInUse shows the tags of store.Values.
func TagsInUse(values []store.Value) []TagInUse {
	tags := make([]TagInUse, len(values))
	for i, v := range values {
		tags[i] = TagInUse{v.Text, v.Sessions}
	}
	return tags
}

func (s *Server) listTags(ctx context.Context, _ *struct{}) (*listOutput[TagInUse], error) {
	values, err := s.Store.Values(ctx, store.ColumnTag)
	return replyList(TagsInUse(values), "", err)
}

func (s *Server) listMarks(ctx context.Context, in *InSession) (*listOutput[session.Mark], error) {
	all, err := s.Store.Marks(ctx, in.ID)
	return replyList(all, "", err)
}

// noteOutput is a note with its revision as ETag.
type noteOutput struct {
	ETag string `header:"ETag" doc:"The revision, for If-Match; missing: there is no note, which If-None-Match: * requires"`
	Body session.Mark
}

func replyNote(note session.Mark, err error) (*noteOutput, error) {
	if err != nil {
		return nil, err
	}
	out := &noteOutput{Body: note}
	if note.Revision > 0 {
		out.ETag = etag(note.Revision)
	}
	return out, nil
}

type noteBody struct {
	Text string `json:"text" doc:"At most 10,000 characters; an empty text removes the note"`
}

type sessionNoteInput struct {
	InSession
	StateConditional
	body[noteBody]
}

type messageNoteInput struct {
	InMessage
	StateConditional
	body[noteBody]
}

func (s *Server) readSessionNote(ctx context.Context, in *InSession) (*noteOutput, error) {
	return replyNote(s.Store.Note(ctx, store.Marking{Session: in.ID}))
}

func (s *Server) readMessageNote(ctx context.Context, in *InMessage) (*noteOutput, error) {
	return replyNote(s.Store.Note(ctx, store.Marking{Session: in.ID, Message: &in.ref}))
}

func (s *Server) putSessionNote(ctx context.Context, in *sessionNoteInput) (*noteOutput, error) {
	return replyNote(s.Store.SetNote(ctx, store.Marking{Session: in.ID}, in.value.Text, in.ifRevision))
}

func (s *Server) putMessageNote(ctx context.Context, in *messageNoteInput) (*noteOutput, error) {
	return replyNote(s.Store.SetNote(ctx, store.Marking{Session: in.ID, Message: &in.ref}, in.value.Text, in.ifRevision))
}
