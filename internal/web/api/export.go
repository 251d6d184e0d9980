package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"sessiond/internal/export"
	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/web/answers"
)

type exportInput struct {
	InSession
	Format string `query:"format" doc:"jsonl (the default): everything, for an import; md, html: for people; openai: one line of messages; pi, goose: a file of that program"`
	Redact bool   `query:"redact" doc:"Mask well-known secret patterns"`
}

// exportSession streams a session. A failure after the first byte closes the connection.
func (s *Server) exportSession(ctx context.Context, in *exportInput) (*huma.StreamResponse, error) {
	format := export.JSONL
	if in.Format != "" {
		format = export.Format(in.Format)
	}
	if err := format.Check(); err != nil {
		return nil, err
	}
	if _, err := s.Store.Session(ctx, in.ID); err != nil {
		return nil, err
	}
	var opt export.Options
	if in.Redact {
		opt.Mask = &redact.Masker{}
	}
	return &huma.StreamResponse{Body: func(hctx huma.Context) {
		_, w := humago.Unwrap(hctx)
		w.Header().Set("Content-Type", format.MediaType())
		w.Header().Set("Content-Disposition", "attachment; filename="+strconv.Quote(string(in.ID)+format.Extension()))
		if _, err := export.Write(ctx, answers.Patient(w), s.Store, format, []session.ID{in.ID}, opt); err != nil {
			if ctx.Err() == nil {
				s.log.Error().Err(err).Str("session", string(in.ID)).Msg("an export failed")
			}
			panic(http.ErrAbortHandler)
		}
	}}, nil
}

// streams declares the media types of an export.
func streams(op *huma.Operation) {
	content := map[string]*huma.MediaType{}
	for _, name := range export.Names() {
		content[export.Format(name).MediaType()] = &huma.MediaType{Schema: &huma.Schema{Type: "string"}}
	}
	op.Responses = map[string]*huma.Response{"200": {Description: "The session", Content: content}}
}
