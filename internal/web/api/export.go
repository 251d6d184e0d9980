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
	Format string `query:"format" doc:"jsonl (the default) has everything, with the sessions that a fork begins in; md and html are for reading; openai is a line of messages; pi and goose are files of those programs"`
	Redact bool   `query:"redact" doc:"Mask what looks like a secret"`
}

// exportPatience is how long a client may take for one piece of an export.
const exportPatience = 2 * time.Minute

// exportSession streams a session. What fails after the first byte cuts the connection.
func (s *Server) exportSession(ctx context.Context, in *exportInput) (*huma.StreamResponse, error) {
	id, err := in.sessionID()
	if err != nil {
		return nil, err
	}
	format := export.JSONL
	if in.Format != "" {
		format = export.Format(in.Format)
	}
	if err := format.Check(); err != nil {
		return nil, err
	}
	if _, err := s.Store.Session(ctx, id); err != nil {
		return nil, err
	}
	var opt export.Options
	if in.Redact {
		opt.Mask = &redact.Masker{}
	}
	return &huma.StreamResponse{Body: func(hctx huma.Context) {
		_, w := humago.Unwrap(hctx)
		w.Header().Set("Content-Type", format.MediaType())
		w.Header().Set("Content-Disposition", "attachment; filename="+strconv.Quote(string(id)+format.Extension()))
		out := patient{w, http.NewResponseController(w)}
		if _, err := export.Write(ctx, out, s.Store, format, []session.ID{id}, opt); err != nil {
			if ctx.Err() == nil {
				s.log.Error().Err(err).Str("session", string(id)).Msg("an export broke off")
			}
			panic(http.ErrAbortHandler)
		}
	}}, nil
}

// patient gives a client time for each piece, however long the whole takes.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (p patient) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(exportPatience)) // what has no deadlines needs none
	return p.ResponseWriter.Write(b)
}

// streams says which media types a route answers with.
func streams(op *huma.Operation) {
	content := map[string]*huma.MediaType{}
	for _, name := range export.Names() {
		content[export.Format(name).MediaType()] = &huma.MediaType{Schema: &huma.Schema{Type: "string"}}
	}
	op.Responses = map[string]*huma.Response{"200": {Description: "The session", Content: content}}
}
