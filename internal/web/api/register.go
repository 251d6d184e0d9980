package api

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/web/problem"
)

// Limits of bodies, in bytes, and of the time that they may take.
const (
	smallBody   = 1 << 20
	MessageBody = 32 << 20
	stateBody   = store.MaxStateBytes
	bodyTime    = 30 * time.Second
)

// routeMessage is one line of the route table: an operation and how to register it.
type route struct {
	huma.Operation
	register func(*Server, huma.API, huma.Operation)
}

// option changes an operation.
type option func(*huma.Operation)

// status sets the status of success; 200 without it.
func status(code int) option { return func(op *huma.Operation) { op.DefaultStatus = code } }

// limit sets the size of the largest body, in bytes.
// the framework's own is exclusive
func limit(n int64) option { return func(op *huma.Operation) { op.MaxBodyBytes = n + 1 } }

// memory sets how many bytes an answer reserves before it is made. Without it a GET reserves smallAnswer, and all
// other routes nothing: appends and turns never wait.
func memory(bytes int64) option {
	return func(op *huma.Operation) { setMetadata(op, "memory", bytes) }
}

func setMetadata(op *huma.Operation, name string, value any) {
	if op.Metadata == nil {
		op.Metadata = map[string]any{}
	}
	op.Metadata[name] = value
}

// Memory that answers reserve, in bytes: with what they are read from and encoded to.
const (
	smallAnswer   = 2 << 20
	listAnswer    = 8 << 20  // of values of up to 1 MiB
	messageAnswer = 16 << 20 // of messages of 4 MiB
	searchAnswer  = 24 << 20
	contextAnswer = 32 << 20
	tableAnswer   = 32 << 20 // of a query
	largeCopies   = 2        // of a message of more than 4 MiB that are in memory
)

// about sets the description.
func about(text string) option { return func(op *huma.Operation) { op.Description = text } }

// byMetadata accepts filters on fields of the sessions' metadata.
func byMetadata() option {
	return anyQuery("metadata", "deepObject", "Filters on fields of the sessions' metadata: metadata[user]=u_7, also "+
		"written metadata.user=u_7, takes the sessions whose metadata has this user. A field in a field is "+
		"metadata[user][id]. Several filters must all match.")
}

// whole marks an operation on the whole database, which is for the daemon's own token.
func whole(op *huma.Operation) { setMetadata(op, "whole", true) }

// anyQuery accepts query parameters that the input does not declare; its resolver checks them. OpenAPI
// has them as the members of one object: style form has NAME=VALUE, deepObject has metadata[NAME]=VALUE.
func anyQuery(name, style, description string) option {
	return func(op *huma.Operation) {
		explode := true
		op.RejectUnknownQueryParameters = false
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: name, In: "query", Description: description, Style: style, Explode: &explode,
			Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: &huma.Schema{Type: huma.TypeString}},
		})
	}
}

// handle builds a line of the route table.
func handle[I, O any](method, path string, handler func(context.Context, *I) (*O, error), summary string,
	opts ...option,
) route {
	op := huma.Operation{
		Method: method, Path: path, Summary: summary, OperationID: operationID(handler), Tags: []string{tag(path)},
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
	if Open(&http.Request{Method: op.Method, URL: &url.URL{Path: op.Path}}) {
		op.Security = []map[string][]string{{}} // no token
	}
	for _, refusal := range refusals(op, new(I)) {
		op.Responses[strconv.Itoa(refusal)] = &huma.Response{Ref: responsePrefix + strconv.Itoa(refusal)}
	}
	op.Responses["default"] = &huma.Response{Ref: responsePrefix + "default"}
	if isOpenAI(op.Path) {
		delete(op.Responses, strconv.Itoa(http.StatusUnprocessableEntity)) // it is 400 there
		op.Responses[strconv.Itoa(http.StatusBadRequest)] = nil
		for status := range op.Responses {
			op.Responses[status] = &huma.Response{Ref: responsePrefix + openAIResponse}
		}
		op.Responses["default"] = &huma.Response{Ref: responsePrefix + openAIOther}
	}
	input, hasBody := any(new(I)).(withBody)
	if hasBody {
		op.RequestBody = &huma.RequestBody{}
	}
	reserved, known := op.Metadata["memory"].(int64)
	if !known && op.Method == http.MethodGet {
		reserved = smallAnswer
	}
	huma.Register(api, op, func(ctx context.Context, in *I) (*O, error) {
		err := parse(ctx, in)
		if err == nil {
			err = s.permit(ctx, &op, in)
		}
		var out *O
		if err == nil {
			err = s.reserve(ctx, reserved)
		}
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
	showExample(&op)
}

// reserve reserves memory for the answer of a request until it is written. Codes: Busy.
func (s *Server) reserve(ctx context.Context, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	release, err := s.Answers.Reserve(ctx, bytes)
	if err != nil {
		return err
	}
	r := requestOf(ctx)
	r.releases = append(r.releases, release)
	return nil
}

// reserveLarge reserves memory for a message of more than a page. What the request has reserved is returned before,
// so that two requests do not wait for each other.
func (s *Server) reserveLarge(ctx context.Context, bytes int64) error {
	requestOf(ctx).release()
	return s.reserve(ctx, largeCopies*bytes)
}

// permit decides what a named token may do, for every route: what is of the whole database is not for it, and a session
// in the path must be within its scope. Routes that list or create sessions get the scope from the context. Codes:
// Forbidden, NotFound.
func (s *Server) permit(ctx context.Context, op *huma.Operation, in any) error {
	if _, limited := session.ScopeOf(ctx); !limited {
		return nil
	}
	if op.Metadata["whole"] == true {
		return session.Errorf(session.Forbidden,
			"this route is about the sessions of all owners: it needs the daemon's own token")
	}
	at, ok := in.(interface{ sessionID() session.ID })
	if !ok {
		return nil
	}
	_, err := s.Store.Session(ctx, at.sessionID())
	if c, is := in.(interface{ missing() error }); is && session.CodeOf(err) == session.NotFound {
		err = c.missing()
	}
	if session.CodeOf(err) != session.NotFound || op.Method != http.MethodDelete {
		return err
	}
	if _, whoever := s.Store.Session(session.WithoutScope(ctx),
		at.sessionID()); session.CodeOf(whoever) == session.NotFound {
		return nil // nobody's: the handler says so, or repeats the answer of its purge
	}
	return err
}

// refusals returns the 4xx statuses that an operation can answer, by its input. Each operation answers
// 422 to an unknown query parameter. The default answer is for the others.
func refusals(op huma.Operation, input any) []int {
	statuses := []int{http.StatusForbidden, http.StatusUnprocessableEntity}
	if op.Security == nil {
		statuses = append(statuses, http.StatusUnauthorized)
	}
	if _, ok := input.(withBody); ok {
		statuses = append(statuses, http.StatusBadRequest, http.StatusRequestEntityTooLarge)
	}
	if strings.Contains(op.Path, "{") {
		statuses = append(statuses, http.StatusNotFound)
	}
	if op.Method != http.MethodGet {
		statuses = append(statuses, http.StatusConflict)
	}
	if _, ok := input.(interface{ parseRevision() error }); ok {
		statuses = append(statuses, http.StatusPreconditionFailed)
	}
	return statuses
}

const (
	responsePrefix = "#/components/responses/"
	openAIResponse = "openai" // of the routes that speak as OpenAI's API does
	openAIOther    = "openai-other"
)

func isOpenAI(path string) bool { return strings.HasPrefix(path, problem.OpenAIPath) }

// problems returns the answers that operations share: one for each 4xx status, and one for the others.
func problems() map[string]*huma.Response {
	content := map[string]*huma.MediaType{problem.MediaType: {
		Schema:  &huma.Schema{Ref: schemaPrefix + "Problem"},
		Example: problem.New(session.Invalid, "dialect: contexts are not available in this dialect"),
	}}
	responses := map[string]*huma.Response{}
	for name, description := range map[string]string{
		"400": "The body is not valid JSON (malformed)",
		"401": "The token is missing or wrong (unauthorized)",
		"403": "The token does not allow this, or the Host or Origin is foreign (forbidden)",
		"404": "The path names nothing that exists (not_found)",
		"409": "The state does not allow this: the head is another one, or two writes met (conflict, " +
			"compaction_required)",
		"412":     "The revision is not that of If-Match or If-None-Match (precondition_failed)",
		"413":     "The body or a part of it is too large (too_large)",
		"422":     "A field or a parameter is invalid; errors names it (invalid, does_not_fit)",
		"default": "Any other problem; code names its kind",
	} {
		responses[name] = &huma.Response{Description: description, Content: content}
	}
	for name, description := range map[string]string{
		openAIResponse: "The error, as OpenAI's API says it",
		openAIOther:    "Any other error, as OpenAI's API says it", // apart: ogen's has the status beside it
	} {
		responses[name] = &huma.Response{Description: description, Content: map[string]*huma.MediaType{
			"application/json": {Schema: &huma.Schema{Ref: schemaPrefix + "OpenAIError"}},
		}}
	}
	return responses
}

// problem turns an error into an answer. The text of an internal error goes only to the log.
func (s *Server) problem(ctx context.Context, err error) *problem.Problem {
	p, internal := problem.Of(err)
	if h := s.Store.Health(); internal && (h.State == engine.StateMoved || h.State == engine.StateOverwritten) {
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

// operationID returns the name of an operation, by which generated clients call it: that of its handler, takeTurn.
func operationID(handler any) string {
	name := runtime.FuncForPC(reflect.ValueOf(handler).Pointer()).Name() // …(*Server).takeTurn-fm
	return strings.TrimSuffix(name[strings.LastIndexByte(name, '.')+1:], "-fm")
}

// tag groups routes in the documentation, mostly by the last noun of their path.
func tag(path string) string {
	if !strings.HasPrefix(path, "/v1/") {
		return "service"
	}
	if strings.HasPrefix(path, "/v1/sources/") {
		return "sources"
	}
	if isOpenAI(path) {
		return "conversations"
	}
	noun := ""
	for _, part := range strings.Split(strings.TrimPrefix(path, "/v1/"), "/") {
		if !strings.HasPrefix(part, "{") {
			noun = part
		}
	}
	return cmp.Or(groups[noun], noun)
}

// groups are the groups of nouns that are none themselves.
var groups = map[string]string{
	"untrash": "sessions", "export": "sessions", "turns": "contexts", "context": "contexts", "flushes": "contexts",
	"route": "keys",
	"files": "search", "hook": "search", "sql": "queries", "calls": "usage", "backups": "service", "redo": "compactions",
	"sources": "compactions",
	"pin":     "messages", "label": "messages", "pop": "messages", "note": "tags", "marks": "tags",
	"head": "trees", "fork": "trees", "tree": "trees",
}

// tags describes the groups of routes.
func tags() []*huma.Tag {
	return []*huma.Tag{
		{
			Name:        "sessions",
			Description: "A session is one conversation: create, list, change, export, archive and delete it.",
		},
		{Name: "contexts", Description: "A turn appends messages and answers with the next context for the model."},
		{Name: "messages", Description: "Append and read messages; pin and label them. A message never changes."},
		{Name: "tags", Description: "What a person puts on sessions and messages to find them again: tags and notes."},
		{
			Name: "compactions",
			Description: "A compaction replaces the old part of a context by a summary. The messages stay; " +
				"undo and redo are possible.",
		},
		{
			Name: "conversations",
			Description: "Sessions as conversations of OpenAI's API, for its clients: set their base URL to this daemon's " +
				"/v1. Errors are in OpenAI's form.",
		},
		{Name: "trees", Description: "A session is a tree of messages: move its head, fork it, list its branches."},
		{Name: "states", Description: "Named JSON documents of a session, such as a list of todos."},
		{Name: "keys", Description: "A routing key names a conversation of a chat program; a reset begins its next session."},
		{Name: "search", Description: "Find messages by words, and sessions by the files that they touched."},
		{Name: "usage", Description: "Model calls, with their tokens and costs."},
		{Name: "queries", Description: "Named SQL queries, and SQL of your own. Both only read."},
		{Name: "events", Description: "A stream of all changes."},
		{
			Name: "sources",
			Description: "Transcripts that a program's SDK sends line by line. They are kept as they came, " +
				"and sessions are imported from them as from files.",
		},
		{Name: "service", Description: "Health, version and backups of the daemon."},
	}
}

// schemaType returns the type that describes a value in OpenAPI: raw JSON is any value.
func schemaType(v any) reflect.Type {
	if _, ok := v.(session.JSON); ok {
		return reflect.TypeFor[any]()
	}
	return reflect.TypeOf(v)
}
