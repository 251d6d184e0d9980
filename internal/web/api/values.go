package api

import (
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// maxName bounds titles, keys, paths and the like, in bytes.
const maxName = 4096

// name is a short text: a title, a key, a path. It rejects what would not be returned unchanged
// (a lone surrogate, a NUL), and more than maxName bytes.
type name string

// UnmarshalJSON implements json.Unmarshaler.
func (n *name) UnmarshalJSON(raw []byte) error {
	s, err := exactText(raw)
	if err != nil {
		return err
	}
	if len(s) > maxName {
		return refuse("is %d bytes long; the limit is %d", len(s), maxName)
	}
	*n = name(s)
	return nil
}

// Schema implements huma.SchemaProvider.
func (name) Schema(huma.Registry) *huma.Schema {
	most := maxName
	return &huma.Schema{Type: huma.TypeString, MaxLength: &most}
}

// text is a text of any length that the body's limit allows, under the same rule as name.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(raw []byte) error {
	s, err := exactText(raw)
	*t = text(s)
	return err
}

func exactText(raw []byte) (string, error) {
	if jsonx.IsNull(raw) {
		return "", nil
	}
	if jsonx.KindOf(raw) != '"' {
		return "", refuse("must be a string, not %s", jsonx.Describe(raw))
	}
	s, exact := jsonx.Text(raw)
	if !exact {
		return "", refuse("contains a NUL or half of a surrogate pair")
	}
	return s, nil
}

// moment is a time in a body or a query.
type moment struct{ session.Time }

// UnmarshalJSON implements json.Unmarshaler.
func (m *moment) UnmarshalJSON(raw []byte) error {
	if err := m.Time.UnmarshalJSON(raw); err != nil {
		return refuse("is not an RFC 3339 time like 2026-02-11T10:00:15.000Z")
	}
	return nil
}

// Schema implements huma.SchemaProvider.
func (moment) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time"}
}

// messageArg names a message: a seq of the route's session, as a string or as a number, or the id S.n of any message.
// It distinguishes absent from null.
type messageArg struct {
	given bool
	null  bool
	seq   int64
	ref   session.MessageRef
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *messageArg) UnmarshalJSON(raw []byte) error {
	*a = messageArg{given: true}
	switch jsonx.KindOf(raw) {
	case 'n':
		a.null = true
		return nil
	case '"':
		s, _ := jsonx.Text(raw)
		var err error
		if a.seq, err = strconv.ParseInt(s, 10, 64); err == nil && a.seq > 0 {
			return nil
		}
		if a.ref, err = session.ParseRef(s); err == nil {
			a.seq = 0
			return nil
		}
	case 0:
		if err := jsonx.Unmarshal(raw, &a.seq); err == nil && a.seq > 0 {
			return nil
		}
	}
	return refuse("names no message: write a seq of this session, 1 or more, or an id like 20260211_001.42")
}

// in returns the message that the argument names in a session; nil if it is absent or null.
func (a *messageArg) in(id session.ID) *session.MessageRef {
	switch {
	case !a.given || a.null:
		return nil
	case a.seq > 0:
		return &session.MessageRef{Session: id, Seq: a.seq}
	}
	return &a.ref
}

// Schema implements huma.SchemaProvider. It has one form, as generated clients want it; the server accepts a seq as a
// number, too.
func (messageArg) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Examples: []any{"20260211_001.42", "42"}}
}

// headArg is a messageArg that may be null: there is no message.
type headArg struct{ messageArg }

// Schema implements huma.SchemaProvider.
func (a headArg) Schema(r huma.Registry) *huma.Schema {
	s := a.messageArg.Schema(r)
	s.Nullable = true
	return s
}

// change is a field of a merge patch: absent, null, or a value.
type change[T any] struct {
	given bool
	null  bool
	value T
}

// set returns what the field is set to: the zero value for null; nil if it is absent.
func (c *change[T]) set() *T {
	if !c.given {
		return nil
	}
	return &c.value
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *change[T]) UnmarshalJSON(raw []byte) error {
	*c = change[T]{given: true, null: jsonx.IsNull(raw)}
	if c.null {
		return nil
	}
	return jsonx.Unmarshal(raw, &c.value)
}

// Schema implements huma.SchemaProvider.
func (c change[T]) Schema(r huma.Registry) *huma.Schema {
	s := *huma.SchemaFromType(r, schemaType(c.value))
	if s.Ref != "" {
		return &huma.Schema{AnyOf: []*huma.Schema{&s, {Type: "null"}}}
	}
	s.Nullable = s.Type != ""
	return &s
}
