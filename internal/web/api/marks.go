package api

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

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
	text, err := CheckLabel(string(in.value.Text))
	if err != nil {
		return nil, err
	}
	return replySession(s.Store.SetMark(ctx, in.ID, in.ref, store.MarkLabel, text, true))
}

func (s *Server) unlabelMessage(ctx context.Context, in *markInput) (*sessionOutput, error) {
	return replySession(s.Store.SetMark(ctx, in.ID, in.ref, store.MarkLabel, "", false))
}

// maxLabel is how long a label can be, in characters.
const maxLabel = 64

// CheckLabel trims a label and checks it. Codes: Invalid.
func CheckLabel(text string) (string, error) {
	text = strings.TrimSpace(text)
	switch n := utf8.RuneCountInString(text); {
	case n == 0:
		return "", session.Errorf(session.Invalid, "a label needs a text").At("text", "must not be empty")
	case n > maxLabel:
		return "", session.Errorf(session.Invalid, "the label has %d characters; the limit is %d", n, maxLabel).
			At("text", "at most %d characters", maxLabel)
	case strings.ContainsFunc(text, unicode.IsControl):
		return "", session.Errorf(session.Invalid, "the label holds a control character").At("text", "no control characters")
	}
	return text, nil
}
