package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"sessiond/internal/export"
	"sessiond/internal/redact"
	"sessiond/internal/session"
)

type exportInput struct {
	InSession
	Format string `query:"format" doc:"jsonl (the default): everything, for an import; md, html: for people; openai: one line of messages; pi, goose: a file of that program"`
	Redact bool   `query:"redact" doc:"Mask well-known secret patterns"`
}

// exportPatience is how long one write of an export may take.
const exportPatience = 2 * time.Minute

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
		out := patient{w, http.NewResponseController(w)}
		if _, err := export.Write(ctx, out, s.Store, format, []session.ID{in.ID}, opt); err != nil {
			if ctx.Err() == nil {
				s.log.Error().Err(err).Str("session", string(in.ID)).Msg("an export failed")
			}
			panic(http.ErrAbortHandler)
		}
	}}, nil
}

// patient limits the time of each write, not of the whole answer.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (p patient) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(exportPatience)) // fails only without deadlines
	return p.ResponseWriter.Write(b)
}

// streams declares the media types of an export.
func streams(op *huma.Operation) {
	content := map[string]*huma.MediaType{}
	for _, name := range export.Names() {
		content[export.Format(name).MediaType()] = &huma.MediaType{Schema: &huma.Schema{Type: "string"}}
	}
	op.Responses = map[string]*huma.Response{"200": {Description: "The session", Content: content}}
}
