package api

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// InSession is the part of an input that names a session by the path. It and its like are
// exported because the framework sees no others.
type InSession struct {
	ID session.ID `path:"id" example:"20260211_001"`
}

// sessionID checks the form of the id. Codes: NotFound, since nothing has a name of another form.
func (in *InSession) sessionID() (session.ID, error) {
	id, err := session.ParseID(string(in.ID))
	if err != nil {
		return "", session.Errorf(session.NotFound, "there is no session of that name: an id looks like 20260211_001")
	}
	return id, nil
}

// Keyed is the part of a write's input that makes a retry safe.
type Keyed struct {
	IdempotencyKey string `header:"Idempotency-Key" doc:"A retry with the same key and body answers the same and writes nothing"`
}

const maxKey = 255

// idempotency gives the request's key as the store takes it; nil without one. Codes: Invalid.
func (in *Keyed) idempotency(ctx context.Context, body []byte) (*store.Idempotency, error) {
	if in.IdempotencyKey == "" {
		return nil, nil
	}
	if len(in.IdempotencyKey) > maxKey {
		return nil, session.Errorf(session.Invalid, "the Idempotency-Key has %d bytes; at most %d are allowed", len(in.IdempotencyKey), maxKey).
			At("Idempotency-Key", "too long")
	}
	return &store.Idempotency{Key: in.IdempotencyKey, Route: requestOf(ctx).route, Body: body}, nil
}

// Conditional is the part of a write's input that is bound to a revision.
type Conditional struct {
	IfMatch string `header:"If-Match" doc:"The ETag that was read; another revision answers 412"`
}

// revision gives the one that must still be there; nil: any. Codes: Invalid.
func (in *Conditional) revision() (*int64, error) {
	tag := strings.TrimSpace(in.IfMatch)
	if tag == "" || tag == "*" {
		return nil, nil
	}
	n, err := strconv.ParseInt(strings.Trim(tag, `"`), 10, 64)
	if err != nil || n < 1 {
		return nil, session.Errorf(session.Invalid, "the If-Match header is no ETag of a session: it looks like \"7\"").At("If-Match", "no ETag of a session")
	}
	return &n, nil
}

// Paged is the part of a list's input.
type Paged struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" doc:"Items of one answer; 50 without it"`
	Cursor string `query:"cursor" doc:"next_cursor of the answer before"`
	Order  string `query:"order" enum:"asc,desc"`
}

func (in *Paged) page(ascending bool) store.Page {
	if in.Order != "" {
		ascending = in.Order == "asc"
	}
	return store.Page{Limit: in.Limit, Cursor: in.Cursor, Ascending: ascending}
}

const defaultLimit = 50

// list is one piece of a list.
type list[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor" doc:"null at the end"`
}

func listOf[T any](data []T, next string) list[T] {
	out := list[T]{Data: data}
	if data == nil {
		out.Data = []T{}
	}
	if next != "" {
		out.NextCursor = &next
	}
	return out
}

// listOutput is the answer of a list's route.
type listOutput[T any] struct {
	Body list[T]
}

// cut gives the piece of a whole list that a request asks for. The cursor is the name of the
// last item before it. Codes: Invalid.
func cut[T any](all []T, in *Paged, nameOf func(T) string) (data []T, next string, err error) {
	if in.Cursor != "" {
		at := slices.IndexFunc(all, func(v T) bool { return nameOf(v) == in.Cursor })
		if at < 0 {
			return nil, "", session.Errorf(session.Invalid, "cursor is none of this list's: begin without one").At("cursor", "not a next_cursor of this list")
		}
		all = all[at+1:]
	}
	most := in.Limit
	if most == 0 {
		most = defaultLimit
	}
	if len(all) > most {
		return all[:most], nameOf(all[most-1]), nil
	}
	return all, "", nil
}
