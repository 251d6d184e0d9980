package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// InState is the part of an input that names a document of a session by the path.
type InState struct {
	InSession
	Name string `path:"name" doc:"The document's name" example:"todos"`
}

// parsePath parses the session's id and the document's name. Codes: NotFound, Invalid.
func (in *InState) parsePath() error {
	if err := in.InSession.parsePath(); err != nil {
		return err
	}
	return store.CheckStateName(in.Name)
}

// anyBody is a body that is one JSON value of any kind.
type anyBody struct {
	RawBody []byte `contentType:"application/json"`
}

// read checks the body. Codes: Malformed, Invalid.
func (b *anyBody) read() error {
	if len(bytes.TrimSpace(b.RawBody)) == 0 {
		return session.Errorf(session.Malformed, "the body is empty: send a JSON value")
	}
	return decode(b.RawBody, new(jsontext.Value), jsontext.AllowDuplicateNames(true)) // stored as it came
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
	IfNoneMatch string `header:"If-None-Match" doc:"*: only if the document does not exist"`
}

// parseRevision parses the condition; the revision 0 stands for no document. Codes: Invalid.
func (in *StateConditional) parseRevision() error {
	switch none := strings.TrimSpace(in.IfNoneMatch); none {
	case "":
		return in.Conditional.parseRevision()
	case "*":
		in.ifRevision = new(int64)
		return nil
	}
	return session.Errorf(session.Invalid, "the If-None-Match header can only be *").At("If-None-Match", "must be *")
}

// stateOutput is a document with its revision as ETag.
type stateOutput struct {
	ETag         string `header:"ETag" doc:"The revision, for If-Match"`
	LastModified string `header:"Last-Modified" doc:"Time of the last change"`
	Body         session.JSON
}

func replyState(st session.State, err error) (*stateOutput, error) {
	if err != nil {
		return nil, err
	}
	return &stateOutput{ETag: etag(st.Revision), Body: st.Value, LastModified: st.UpdatedAt.UTC().Format(http.TimeFormat)},
		nil
}

func (s *Server) listStates(ctx context.Context, in *InSession) (*listOutput[session.State], error) {
	all, err := s.Store.States(ctx, in.ID)
	return replyList(all, "", err)
}

func (s *Server) readState(ctx context.Context, in *InState) (*stateOutput, error) {
	return replyState(s.Store.State(ctx, in.ID, in.Name))
}

type writeStateInput struct {
	InState
	Keyed
	StateConditional
	anyBody
}

func (s *Server) putState(ctx context.Context, in *writeStateInput) (*stateOutput, error) {
	return s.changeState(ctx, in, func(session.JSON) (session.JSON, error) { return in.document(), nil })
}

func (s *Server) patchState(ctx context.Context, in *writeStateInput) (*stateOutput, error) {
	change, err := mergePatch(in.document())
	if err != nil {
		return nil, err
	}
	return s.changeState(ctx, in, change)
}

// mergePatch returns the change that a JSON merge patch makes. Codes: Malformed, Invalid.
func mergePatch(patch session.JSON) (stateChange, error) {
	if jsonx.KindOf(jsontext.Value(patch)) != '{' {
		return nil, session.Errorf(session.Malformed,
			"a merge patch is a JSON object, not %s; PUT replaces the document as a whole",
			jsonx.Describe(jsontext.Value(patch)))
	}
	if err := checkObject(jsontext.Value(patch)); err != nil {
		var refused *refusal
		if errors.As(err, &refused) {
			err = session.Errorf(session.Invalid, "the merge patch %s", refused.what)
		}
		return nil, err
	}
	return func(was session.JSON) (session.JSON, error) { return jsonx.Patch(was, patch), nil }, nil
}

type stateChangeBody struct {
	Name       string         `json:"name" required:"true" doc:"The document's name"`
	Value      jsontext.Value `json:"value,omitempty" doc:"Of PUT: the document; of PATCH: a JSON merge patch of it"`
	Delete     bool           `json:"delete,omitempty" doc:"Delete the document, instead of value"`
	IfRevision *int64         `json:"if_revision,omitempty" minimum:"0" doc:"Only if this is the document's revision; 0: only if it does not exist; else 412"`
}

type statesBody struct {
	States []stateChangeBody `json:"states" doc:"The changes, at most one of a document"`
}

type statesInput struct {
	InSession
	Keyed
	body[statesBody]
}

func (s *Server) putStates(ctx context.Context, in *statesInput) (*listOutput[session.State], error) {
	return s.changeStates(ctx, in, func(value session.JSON) (stateChange, error) {
		return func(session.JSON) (session.JSON, error) { return value, nil }, nil
	})
}

func (s *Server) patchStates(ctx context.Context, in *statesInput) (*listOutput[session.State], error) {
	return s.changeStates(ctx, in, mergePatch)
}

// stateChange makes the new document of the one that is there; nil: there is none.
type stateChange = func(was session.JSON) (session.JSON, error)

// changeStates changes several documents in one transaction. changeOf makes a change of its value.
func (s *Server) changeStates(ctx context.Context, in *statesInput, changeOf func(session.JSON) (stateChange, error),
) (*listOutput[session.State], error) {
	if len(in.value.States) == 0 {
		return nil, session.Errorf(session.Invalid, "states is empty: name at least one document").
			At("states", "must not be empty")
	}
	changes := make([]store.StateChange, 0, len(in.value.States))
	named := map[string]bool{}
	for i := range in.value.States {
		b := &in.value.States[i]
		change, err := b.change(changeOf)
		if err == nil && named[b.Name] {
			err = session.Errorf(session.Invalid, "document %s is named twice: merge its changes into one", b.Name).
				At("name", "occurs twice")
		}
		if err != nil {
			return nil, session.Under(fmt.Sprintf("states[%d]", i), err)
		}
		named[b.Name] = true
		changes = append(changes, store.StateChange{
			Session: in.ID, Name: b.Name, IfRevision: b.IfRevision, Change: change,
		})
	}
	all, err := s.Store.ChangeStates(ctx, in.ID, changes, in.idem)
	return replyList(slices.DeleteFunc(all, func(st session.State) bool { return st.Deleted != nil || st.Revision == 0 }),
		"", err)
}

// change returns the change of one document. Codes: Malformed, Invalid.
func (b *stateChangeBody) change(changeOf func(session.JSON) (stateChange, error)) (stateChange, error) {
	switch err := store.CheckStateName(b.Name); {
	case err != nil:
		return nil, err
	case b.Delete == (len(b.Value) > 0):
		return nil, session.Errorf(session.Invalid, "give value, or delete: true, and not both").
			At("value", "value and delete exclude one another")
	case b.IfRevision != nil && *b.IfRevision < 0:
		return nil, session.Errorf(session.Invalid, "if_revision is negative").At("if_revision", "must be at least 0")
	case b.Delete:
		return func(session.JSON) (session.JSON, error) { return nil, nil }, nil
	}
	return changeOf(session.JSON(bytes.TrimSpace(b.Value)))
}

// addToState appends an element to an array. The store runs the change in its transaction, so that
// concurrent requests all append.
func (s *Server) addToState(ctx context.Context, in *writeStateInput) (*stateOutput, error) {
	return s.changeState(ctx, in, func(was session.JSON) (session.JSON, error) {
		return withElement(in.Name, was, in.document())
	})
}

func withElement(name string, was, element session.JSON) (session.JSON, error) {
	was = bytes.TrimSpace(was)
	if len(was) == 0 {
		was = session.JSON(`[]`)
	}
	if was[0] != '[' {
		return nil, session.Errorf(session.Invalid,
			"state %s is %s and not an array, so nothing can be appended: change it with PUT or PATCH", name,
			jsonx.Describe(jsontext.Value(was)))
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

func (s *Server) deleteState(ctx context.Context, in *deleteStateInput) (*struct{}, error) {
	_, err := s.Store.ChangeState(ctx, store.StateChange{
		Session: in.ID, Name: in.Name, IfRevision: in.ifRevision, Idem: in.idem,
		Change: func(session.JSON) (session.JSON, error) { return nil, nil },
	})
	return nil, err
}

func (s *Server) changeState(ctx context.Context, in *writeStateInput,
	change func(session.JSON) (session.JSON, error),
) (*stateOutput, error) {
	return replyState(s.Store.ChangeState(ctx, store.StateChange{
		Session: in.ID, Name: in.Name, Change: change,
		IfRevision: in.ifRevision, Idem: in.idem,
	}))
}
