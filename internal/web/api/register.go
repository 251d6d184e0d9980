package api

import (
	"context"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/web/problem"
)

// Limits of bodies, in bytes, and of the time that they may take.
const (
	smallBody   = 1 << 20
	messageBody = 32 << 20
	stateBody   = store.MaxStateBytes
	bodyTime    = 30 * time.Second
)

// route is one line of the route table: an operation and how to register it.
type route struct {
	huma.Operation
	register func(*Server, huma.API, huma.Operation)
}

// option changes an operation.
type option func(*huma.Operation)

// status sets the status of success; 200 without it.
func status(code int) option { return func(op *huma.Operation) { op.DefaultStatus = code } }

// limit sets the size of the largest body, in bytes.
func limit(n int64) option { return func(op *huma.Operation) { op.MaxBodyBytes = n + 1 } } // the framework's own is exclusive

// about sets the description.
func about(text string) option { return func(op *huma.Operation) { op.Description = text } }

// anyQuery accepts query parameters that the input does not declare; its resolver checks them.
func anyQuery(op *huma.Operation) { op.RejectUnknownQueryParameters = false }

// handle builds a line of the route table.
func handle[I, O any](method, path string, handler func(context.Context, *I) (*O, error), summary string, opts ...option) route {
	op := huma.Operation{
		Method: method, Path: path, Summary: summary, OperationID: operationID(method, path), Tags: []string{tag(path)},
		MaxBodyBytes: smallBody + 1, BodyReadTimeout: bodyTime, SkipValidateBody: true, RejectUnknownQueryParameters: true,
	}
	for _, apply := range opts {
		apply(&op)
	}
	return route{op, func(s *Server, api huma.API, op huma.Operation) { register(s, api, op, handler) }}
}

// register adds an operation to the framework. It parses the shared parts of the input before
// the handler runs, and turns the handler's error into a problem.
func register[I, O any](s *Server, api huma.API, op huma.Operation, handler func(context.Context, *I) (*O, error)) {
	registry := api.OpenAPI().Components.Schemas
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	op.Responses["default"] = &huma.Response{
		Description: "A problem, by its code",
		Content: map[string]*huma.MediaType{problem.MediaType: {
			Schema: registry.Schema(reflect.TypeFor[problem.Problem](), true, "Problem"),
		}},
	}
	input, hasBody := any(new(I)).(withBody)
	if hasBody {
		op.RequestBody = &huma.RequestBody{}
	}
	huma.Register(api, op, func(ctx context.Context, in *I) (*O, error) {
		err := parse(ctx, in)
		var out *O
		if err == nil {
			out, err = handler(ctx, in)
		}
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		return out, nil
	})
	if hasBody { // only now: huma.Register sets its own content
		op.RequestBody.Required = false
		op.RequestBody.Content = map[string]*huma.MediaType{"application/json": {Schema: input.schema(registry)}}
	}
}

// problem turns an error into an answer. The text of an internal error goes only to the log.
func (s *Server) problem(ctx context.Context, err error) *problem.Problem {
	p, internal := problem.Of(err)
	if h := s.Store.Health(); internal && h.State == store.StateMoved {
		p, internal = problem.Of(h.Err) // a new reading connection finds no file, or another one
	}
	if internal {
		copied := *p
		copied.RequestID = requestOf(ctx).id
		p = &copied
		s.log.Error().Err(err).Str("request_id", p.RequestID).Msg("a request failed")
	}
	return p
}

// fromFramework is a transformer: it replaces the framework's errors, which echo the input and
// have none of our codes.
func (s *Server) fromFramework(ctx huma.Context, _ string, v any) (any, error) {
	e, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	switch e.Status {
	case http.StatusBadRequest:
		return problem.New(session.Malformed, e.Detail), nil
	case http.StatusRequestEntityTooLarge:
		return problem.New(session.TooLarge, "the body is larger than the "+
			strconv.FormatInt((ctx.Operation().MaxBodyBytes-1)>>20, 10)+" MiB that this route accepts"), nil
	case http.StatusRequestTimeout:
		p := problem.New(session.Malformed, "the body did not arrive in time")
		p.Status = e.Status
		return p, nil
	case http.StatusUnprocessableEntity:
		p := problem.New(session.Invalid, "the request has an invalid parameter")
		for _, d := range e.Errors {
			field := strings.TrimPrefix(strings.TrimPrefix(d.Location, "query."), "path.")
			p.Errors = append(p.Errors, session.FieldError{Path: field, Message: d.Message})
		}
		if len(p.Errors) > 0 {
			p.Detail = p.Errors[0].Path + ": " + p.Errors[0].Message
		}
		return p, nil
	default:
		p := s.problem(ctx.Context(), e)
		p.Status = e.Status
		return p, nil
	}
}

// operationID builds a name like post-sessions-messages out of a method and a path.
func operationID(method, path string) string {
	words := []string{strings.ToLower(method)}
	for _, part := range strings.Split(strings.TrimPrefix(path, "/v1"), "/") {
		if part != "" {
			words = append(words, strings.Trim(part, "{}"))
		}
	}
	return strings.Join(words, "-")
}

// tag groups routes in the documentation by the last noun of their path.
func tag(path string) string {
	if !strings.HasPrefix(path, "/v1/") {
		return "service"
	}
	noun := ""
	for _, part := range strings.Split(strings.TrimPrefix(path, "/v1/"), "/") {
		if !strings.HasPrefix(part, "{") {
			noun = part
		}
	}
	switch noun {
	case "untrash":
		return "sessions"
	case "redo", "sources":
		return "compactions"
	case "pin", "label":
		return "messages"
	case "head", "fork", "tree":
		return "trees"
	}
	return noun
}

// schemaType returns the type that describes a value in OpenAPI: raw JSON is any value.
func schemaType(v any) reflect.Type {
	if _, ok := v.(session.JSON); ok {
		return reflect.TypeFor[any]()
	}
	return reflect.TypeOf(v)
}
