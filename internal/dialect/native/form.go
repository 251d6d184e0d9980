// Package native is sessiond's own form of a message: {role, content} for a plain text,
// {role, parts} for anything else, and the form in which the API gives messages back. It is
// strict: a field that it does not know is an error, so that a typo never passes silently.
package native

import (
	"encoding/json"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Name is the dialect's name.
const Name = "native"

// Form is the dialect. No provider takes it, so it has no Send.
func Form() wire.Form { return wire.Form{Name: Name, Decode: Decode, Export: Export} }

// bytesOf is what a part with bytes has beside its columns.
type bytesOf struct {
	Data      []byte `json:"data,omitempty"`
	MediaType string `json:"media_type,omitempty"`
}

// written is a part as the API gives it, with its bytes.
type written struct {
	session.Part
	Text string `json:"text,omitempty"` // also where it lies in a blob
	bytesOf
}

// Export returns messages as the API gives them, with the bytes of their parts, so that they
// can be appended again. Codes: Internal.
func Export(msgs []session.Message) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, 0, len(msgs))
	for i := range msgs {
		raw, err := export(&msgs[i])
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	return out, nil
}

func export(m *session.Message) (json.RawMessage, error) {
	raw, err := session.MarshalPlain(m)
	if err != nil {
		return nil, err
	}
	o, err := wire.ParseObject("message", raw)
	if err != nil {
		return nil, err
	}
	parts := make([]written, len(m.Parts))
	for i := range m.Parts {
		p := &m.Parts[i]
		if err := wire.Loaded(p); err != nil {
			return nil, err
		}
		parts[i] = written{Part: *p, Text: p.Content()}
		if p.Blob != nil && p.Kind.HasBytes() {
			parts[i].bytesOf = bytesOf{Data: p.Blob.Data, MediaType: wire.MediaOf(p).MediaType}
		}
	}
	if raw, err = session.MarshalPlain(parts); err != nil {
		return nil, err
	}
	o.Set("parts", raw)
	return o.JSON(), nil
}
