package api

import (
	"cmp"
	"context"

	"sessiond/internal/session"
)

type flushBody struct {
	Generation *name  `json:"generation,omitempty" doc:"generation of the directive; default: that of the newest request"`
	Outcome    string `json:"outcome,omitempty" enum:"ok,failed" doc:"ok (the default), or failed: a later turn requests it again"`
}

type flushInput struct {
	InSession
	Keyed
	body[flushBody]
}

// recordFlush records that an agent saved its memories. It is idempotent. Codes: NotFound, Invalid.
func (s *Server) recordFlush(ctx context.Context, in *flushInput) (*output[session.Flush], error) {
	b := &in.value
	if err := oneOf("outcome", b.Outcome, "", session.FlushOK, session.FlushFailed); err != nil {
		return nil, err
	}
	var generation *int64
	if b.Generation != nil {
		var n int64 // "": before the first overlay
		if *b.Generation != "" {
			var err error
			if n, err = session.ParseName("cmp", string(*b.Generation)); err != nil {
				return nil, session.Errorf(session.Invalid, "generation %w", err).At("generation", "not the id of an overlay")
			}
		}
		generation = &n
	}
	return reply(s.Store.RecordFlush(ctx, in.ID, generation, cmp.Or(b.Outcome, session.FlushOK)))
}
