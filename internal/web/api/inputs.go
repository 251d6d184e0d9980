package api

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// InSession is the part of an input that names a session in the path. It and the other parts
// are exported because the framework skips unexported fields.
type InSession struct {
	ID session.ID `path:"id" doc:"The session's id" example:"20260211_001"`
}

func (in *InSession) sessionID() session.ID { return in.ID }

// parsePath parses the id. Codes: NotFound, because no session has an id of another form.
func (in *InSession) parsePath() (err error) {
	if in.ID, err = session.ParseID(string(in.ID)); err != nil {
		return session.Errorf(session.NotFound, "no session has this id: an id looks like 20260211_001")
	}
	return nil
}

// Keyed is the part of a write's input that makes a retry safe.
type Keyed struct {
	IdempotencyKey string `header:"Idempotency-Key" doc:"A key of the caller's choice, at most 255 bytes. A retry with the same key and body gets the same answer and writes nothing; keys are kept for 7 days"`

	idem *store.Idempotency // nil without a key
}

const maxKey = 255

// parseKey builds the store's form of the key. Codes: Invalid.
func (in *Keyed) parseKey(ctx context.Context, body []byte) error {
	if in.IdempotencyKey == "" {
		return nil
	}
	if len(in.IdempotencyKey) > maxKey {
		return session.Errorf(session.Invalid, "the Idempotency-Key has %d bytes; the limit is %d", len(in.IdempotencyKey),
			maxKey).
			At("Idempotency-Key", "too long")
	}
	key := in.IdempotencyKey
	if scope, limited := session.ScopeOf(ctx); limited { // each scope has keys of its own
		key = strings.Join([]string{key, scope.Owner, string(scope.Source), scope.Key}, "\x00")
	}
	in.idem = &store.Idempotency{Key: key, Route: requestOf(ctx).route, Body: body}
	return nil
}

// Conditional is the part of a write's input that requires a revision.
type Conditional struct {
	IfMatch string `header:"If-Match" doc:"The ETag of an earlier answer: if the revision has changed, the answer is 412"`

	ifRevision *int64 // nil: any
}

// parseRevision parses the ETag. Codes: Invalid.
func (in *Conditional) parseRevision() error {
	tag := strings.TrimSpace(in.IfMatch)
	if tag == "" || tag == "*" {
		return nil
	}
	n, err := strconv.ParseInt(strings.Trim(tag, `"`), 10, 64)
	if err != nil || n < 1 {
		return session.Errorf(session.Invalid,
			"the If-Match header is not an ETag of this API: one looks like \"7\"").At("If-Match", "not an ETag")
	}
	in.ifRevision = &n
	return nil
}

// parse checks the parts of an input that routes share: the body, the path, the revision, the
// idempotency key. Codes: Malformed, NotFound, Invalid.
func parse(ctx context.Context, in any) error {
	var raw []byte
	if err := requestOf(ctx).queryError(); err != nil {
		return err
	}
	if b, ok := in.(withBody); ok {
		if err := requestOf(ctx).bodyError(); err != nil {
			return err
		}
		if err := b.read(); err != nil {
			return err
		}
		raw = b.raw()
	}
	if p, ok := in.(interface{ parsePath() error }); ok {
		if err := p.parsePath(); err != nil {
			return err
		}
	}
	if c, ok := in.(interface{ parseRevision() error }); ok {
		if err := c.parseRevision(); err != nil {
			return err
		}
	}
	if k, ok := in.(interface {
		parseKey(context.Context, []byte) error
	}); ok {
		return k.parseKey(ctx, raw)
	}
	return nil
}

// Paged is the part of a list's input.
type Paged struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" doc:"Items per answer; default 50"`
	Cursor string `query:"cursor" doc:"next_cursor of the previous answer"`
	Order  string `query:"order" enum:"asc,desc" doc:"asc or desc; default: the order that the summary names"`
}

func (in *Paged) page(ascending bool) store.Page {
	if in.Order != "" {
		ascending = in.Order == "asc"
	}
	return store.Page{Limit: in.Limit, Cursor: in.Cursor, Ascending: ascending}
}

const defaultLimit = 50

// List is one page of a list.
type List[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor" doc:"Send it as cursor to get the next page; null: this is the last page"`
}

// ListOf returns a page of a list; next is the cursor of the next page, "" at the end.
func ListOf[T any](data []T, next string) List[T] {
	out := List[T]{Data: data}
	if data == nil {
		out.Data = []T{}
	}
	if next != "" {
		out.NextCursor = &next
	}
	return out
}

// output is an answer that has a body and no headers of its own.
type output[T any] struct{ Body T }

// listOutput is the answer of a list's route.
type listOutput[T any] = output[List[T]]

// tagged is an answer with the revision of what it shows.
type tagged[T any] struct {
	ETag string `header:"ETag" doc:"The revision, for If-Match"`
	Body T
}

// reply returns v as the answer, unless there is an error.
func reply[T any](v T, err error) (*output[T], error) {
	if err != nil {
		return nil, err
	}
	return &output[T]{v}, nil
}

// replyList returns one page of a list as the answer, unless there is an error.
func replyList[T any](data []T, next string, err error) (*listOutput[T], error) {
	return reply(ListOf(data, next), err)
}

// cut returns the page of a whole list that a request asks for. The cursor is the name of the
// last item before it. Codes: Invalid.
func cut[T any](all []T, in *Paged, nameOf func(T) string) (data []T, next string, err error) {
	if in.Cursor != "" {
		at := slices.IndexFunc(all, func(v T) bool { return nameOf(v) == in.Cursor })
		if at < 0 {
			return nil, "", errCursor()
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

func errCursor() error {
	return session.Errorf(session.Invalid, "cursor is not a next_cursor of this list: leave it out to begin at the start").
		At("cursor", "not a next_cursor of this list")
}
