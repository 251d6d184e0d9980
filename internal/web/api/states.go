package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// InState is the part of an input that names a document of a session by the path.
type InState struct {
	InSession
	Name string `path:"name" example:"todos"`
}

func (in *InState) names() (session.ID, error) {
	id, err := in.sessionID()
	if err == nil {
		err = store.CheckStateName(in.Name)
	}
	return id, err
}

// anyBody is a body that is one JSON value of any kind.
type anyBody struct {
	RawBody []byte `contentType:"application/json"`
}

// read checks the body. Codes: Malformed, Invalid.
func (b *anyBody) read() error {
	if len(bytes.TrimSpace(b.RawBody)) == 0 {
		return session.Errorf(session.Malformed, "the body is empty: give a JSON value")
	}
	if at := invalidUTF8(b.RawBody); at >= 0 {
		return session.Errorf(session.Malformed, "the body is not UTF-8: byte %d begins no character", at)
	}
	if wire.Depth(b.RawBody) > maxDepth {
		return session.Errorf(session.Invalid, "the body nests deeper than %d levels: at most that many are read", maxDepth)
	}
	dec := json.NewDecoder(bytes.NewReader(b.RawBody))
	var value json.RawMessage
	if err := dec.Decode(&value); err != nil {
		return explain(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return session.Errorf(session.Malformed, "the body goes on after its JSON value, at byte %d", dec.InputOffset())
	}
	return nil
}

func (b *anyBody) raw() []byte { return b.RawBody }

// document is the value without the space around it.
func (b *anyBody) document() session.JSON { return session.JSON(bytes.TrimSpace(b.RawBody)) }

func (b *anyBody) schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "Any JSON value"}
}

// StateConditional is the part of a write's input that is bound to a document's revision.
type StateConditional struct {
	Conditional
	IfNoneMatch string `header:"If-None-Match" doc:"*: only if there is no such document yet"`
}

// revision gives the one that must still be there: nil any, 0 none. Codes: Invalid.
func (in *StateConditional) revision() (*int64, error) {
	switch none := strings.TrimSpace(in.IfNoneMatch); none {
	case "":
		return in.Conditional.revision()
	case "*":
		return new(int64), nil
	}
	return nil, session.Errorf(session.Invalid, "the If-None-Match header can only be *").At("If-None-Match", "must be *")
}

// stateOutput is a document with its revision as ETag.
type stateOutput struct {
	ETag         string `header:"ETag"`
	LastModified string `header:"Last-Modified"`
	Body         session.JSON
}

func stateAnswer(st session.State) *stateOutput {
	return &stateOutput{
		ETag: strconv.Quote(strconv.FormatInt(st.Revision, 10)), Body: st.Value,
		LastModified: st.UpdatedAt.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"),
	}
}

func (s *Server) listStates(ctx context.Context, in *InSession) (*listOutput[session.State], error) {
	id, err := in.sessionID()
	if err != nil {
		return nil, err
	}
	all, err := s.Store.States(ctx, id)
	if err != nil {
		return nil, err
	}
	return &listOutput[session.State]{Body: listOf(all, "")}, nil
}

func (s *Server) getState(ctx context.Context, in *InState) (*stateOutput, error) {
	id, err := in.names()
	if err != nil {
		return nil, err
	}
	st, err := s.Store.State(ctx, id, in.Name)
	if err != nil {
		return nil, err
	}
	return stateAnswer(st), nil
}

type writeStateInput struct {
	InState
	Keyed
	StateConditional
	anyBody
}

func (s *Server) putState(ctx context.Context, in *writeStateInput) (*stateOutput, error) {
	return s.changeState(ctx, &in.InState, &in.Keyed, &in.StateConditional, in.raw(), func(session.JSON) (session.JSON, error) {
		return in.document(), nil
	})
}

func (s *Server) patchState(ctx context.Context, in *writeStateInput) (*stateOutput, error) {
	patch := in.document()
	if wire.KindOf(json.RawMessage(patch)) != '{' {
		return nil, session.Errorf(session.Malformed, "a merge patch is a JSON object, not %s; PUT replaces the document as a whole", wire.Describe(json.RawMessage(patch)))
	}
	if err := checkObject(json.RawMessage(patch)); err != nil {
		var refused *json.UnmarshalTypeError
		if errors.As(err, &refused) {
			err = session.Errorf(session.Invalid, "the merge patch %s", refused.Value)
		}
		return nil, err
	}
	return s.changeState(ctx, &in.InState, &in.Keyed, &in.StateConditional, in.raw(), func(was session.JSON) (session.JSON, error) {
		return merge(was, patch), nil
	})
}

// addToState appends to a document that is an array. It is done where the document is
// written, so of two at once none is lost.
func (s *Server) addToState(ctx context.Context, in *writeStateInput) (*stateOutput, error) {
	return s.changeState(ctx, &in.InState, &in.Keyed, &in.StateConditional, in.raw(), func(was session.JSON) (session.JSON, error) {
		return withElement(in.Name, was, in.document())
	})
}

func withElement(name string, was, element session.JSON) (session.JSON, error) {
	was = bytes.TrimSpace(was)
	if len(was) == 0 {
		was = session.JSON(`[]`)
	}
	if was[0] != '[' {
		return nil, session.Errorf(session.Invalid, "state %s is %s and no array: nothing can be appended to it; PUT or PATCH changes it", name, wire.Describe(json.RawMessage(was)))
	}
	begin := bytes.TrimRight(was[:len(was)-1], " \t\r\n")
	out := append(session.JSON(nil), begin...)
	if len(begin) > 1 {
		out = append(out, ',')
	}
	return append(append(out, element...), ']'), nil
}

type deleteStateInput struct {
	InState
	Keyed
	Conditional
}

type noOutput struct{}

func (s *Server) deleteState(ctx context.Context, in *deleteStateInput) (*noOutput, error) {
	_, err := s.changeState(ctx, &in.InState, &in.Keyed, &StateConditional{Conditional: in.Conditional}, nil, func(session.JSON) (session.JSON, error) {
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	return &noOutput{}, nil
}

func (s *Server) changeState(ctx context.Context, at *InState, key *Keyed, cond *StateConditional, body []byte, change func(session.JSON) (session.JSON, error)) (*stateOutput, error) {
	id, err := at.names()
	if err != nil {
		return nil, err
	}
	wanted, err := cond.revision()
	if err != nil {
		return nil, err
	}
	idem, err := key.idempotency(ctx, body)
	if err != nil {
		return nil, err
	}
	st, err := s.Store.ChangeState(ctx, store.StateChange{Session: id, Name: at.Name, Change: change, IfRevision: wanted, Idem: idem})
	if err != nil {
		return nil, err
	}
	return stateAnswer(st), nil
}
