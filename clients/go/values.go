package sessiond

import (
	"encoding/json"
	"iter"
)

// Ptr returns a pointer to a value, for the optional fields of requests.
func Ptr[T any](v T) *T { return &v }

// Field is an optional field of a request that may be null. Its zero value is not sent.
type Field[T any] struct {
	given, null bool
	value       T
}

// Set returns a field with a value.
func Set[T any](v T) Field[T] { return Field[T]{given: true, value: v} }

// Null returns a field that is null.
func Null[T any]() Field[T] { return Field[T]{given: true, null: true} }

// IsZero reports whether the field is not sent.
func (f Field[T]) IsZero() bool { return !f.given }

// MarshalJSON implements json.Marshaler.
func (f Field[T]) MarshalJSON() ([]byte, error) {
	if !f.given || f.null {
		return []byte("null"), nil
	}
	return json.Marshal(f.value)
}

// List is a page of a list.
type List[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"` // for the next page; nil: this is the last one
}

// Item is a message in sessiond's own form, or in that of the dialect that was asked for, as it came.
type Item json.RawMessage

// MarshalJSON implements json.Marshaler.
func (i Item) MarshalJSON() ([]byte, error) { return json.RawMessage(i).MarshalJSON() }

// UnmarshalJSON implements json.Unmarshaler.
func (i *Item) UnmarshalJSON(raw []byte) error { return (*json.RawMessage)(i).UnmarshalJSON(raw) }

// Message returns the message of an item that was asked for without a dialect.
func (i Item) Message() (m Message, err error) {
	err = json.Unmarshal(i, &m)
	return m, err
}

// Pages reads a list to its end, page by page. read reads the page behind a cursor; the first has none.
func Pages[T any](read func(cursor string) (*List[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := ""; ; {
			page, err := read(cursor)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, one := range page.Data {
				if !yield(one, nil) {
					return
				}
			}
			if page.NextCursor == nil {
				return
			}
			cursor = *page.NextCursor
		}
	}
}
