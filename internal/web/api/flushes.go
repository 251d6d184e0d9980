package api

import (
	"context"

	"sessiond/internal/session"
)

type flushBody struct {
	Generation *name  `json:"generation,omitempty" doc:"That of the directive; without it the one that was asked for last"`
	Outcome    string `json:"outcome,omitempty" enum:"ok,failed" doc:"ok (the default), or failed: it is asked for again"`
}

type flushInput struct {
	InSession
	Keyed
	body[flushBody]
}

type flushOutput struct {
	Body session.Flush
}

// recordFlush keeps that an agent wrote down what it wants to remember. To say it twice
// changes nothing. Codes: NotFound, Invalid.
func (s *Server) recordFlush(ctx context.Context, in *flushInput) (*flushOutput, error) {
	id, err := in.sessionID()
	if err != nil {
		return nil, err
	}
	b := &in.value
	if err := oneOf("outcome", b.Outcome, "", session.FlushOK, session.FlushFailed); err != nil {
		return nil, err
	}
	var generation *int64
	if b.Generation != nil {
		var n int64 // "": before the first overlay
		if *b.Generation != "" {
			if n, err = session.ParseName("cmp", string(*b.Generation)); err != nil {
				return nil, session.Errorf(session.Invalid, "generation %w", err).At("generation", "no overlay's id")
			}
		}
		generation = &n
	}
	done, err := s.Store.RecordFlush(ctx, id, generation, orElse(b.Outcome, session.FlushOK))
	if err != nil {
		return nil, err
	}
	return &flushOutput{Body: done}, nil
}
