// Package api is sessiond over HTTP: the route table and the inputs and outputs of its routes.
// The packages below do the work; web/guard checks beforehand who may call.
package api

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rs/zerolog"

	"sessiond/internal/analytics"
	"sessiond/internal/otlp"
	"sessiond/internal/routing"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/web/answers"
	"sessiond/internal/web/problem"
)

// Purges deletes sessions for good.
type Purges interface {
	Purge(ctx context.Context, in store.PurgeRequest) (session.Purged, error)
}

// Deps is what the routes work with. Store, Contexts, Search, Reports, Catalogue and Purges are needed.
type Deps struct {
	Store     *store.Store
	Contexts  Contexts
	Search    *search.Index
	Reports   *analytics.Reports
	Catalogue Catalogue
	Routing   routing.Config // its zero value has the defaults
	Purges    Purges
	Events    *Feed           // nil: a new feed without nudges
	Answers   *answers.Budget // of the memory of answers; nil: a new one
	Log       zerolog.Logger
	Version   Version

	// SQL runs a caller's SELECT on a file of SQLite. nil: Reports does, within this process.
	SQL *analytics.Process

	// Changed is called after an append to a session: it updates the search index and stages summaries
	// in the background. It must not block. May be nil.
	Changed func(session.ID)
	// Reported is called after the append of a call with its context: the call calibrates the token
	// counts. It must not block. May be nil.
	Reported func(session.ID)
	// Answered is called after an early reply in a session whose title is only the beginning of
	// its first message: a model can write a better one. It must not block. nil: the title stays.
	Answered func(session.ID)
	// Run accepts work that outlives its request, and owns it until it ends; false: the queue is
	// full. nil: the work runs within the request.
	Run func(work func(context.Context)) bool
	// Notice is what a person should look at although the daemon is ready; "": nothing.
	Notice string
	Spans  *otlp.Exporter // nil: no collector gets spans

	// LineSources are the programs whose transcripts are kept line by line.
	LineSources []session.Source
	// LinesStored is called with the path of a transcript that got lines: sessions are imported from them. It must not
	// block. May be nil.
	LinesStored func(path string)
	// BackupDir is the folder of backups.
	BackupDir string
	Now       func() time.Time // nil: time.Now
	// ExcludeProjects are folders that hooks never show.
	ExcludeProjects []string
	// HookSettings is what the daemon's version, database and settings are to a hook; a hook of others is refused.
	HookSettings string
	// Stopping is closed when the daemon begins to stop; it ends streams. nil: never.
	Stopping <-chan struct{}
}

// Version says what is running.
type Version struct {
	Version string `json:"version" doc:"Version of the program"`
	Commit  string `json:"commit,omitempty" doc:"Commit that it was built from"`
	Date    string `json:"date,omitempty" doc:"Time of that commit"`
	Go      string `json:"go" doc:"Version of Go that built it"`
	Schema  int64  `json:"schema,omitempty" doc:"The newest migration of this program"`
}

// Server answers the routes.
type Server struct {
	Deps
	log     zerolog.Logger
	metrics *metrics
	openAPI func() []byte // rendered on the first request

	inFlight atomic.Int64 // bytes of the bodies of all requests
}

// New returns the handler of all routes, without a guard.
func New(deps Deps) http.Handler {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Events == nil {
		deps.Events = NewFeed()
	}
	if deps.Answers == nil {
		deps.Answers = &answers.Budget{}
	}
	s := &Server{Deps: deps, log: deps.Log, metrics: newMetrics(&deps)}
	mux := http.NewServeMux()
	api := humago.New(mux, s.config())
	for _, r := range s.routes() {
		r.register(s, api, r.Operation)
	}
	s.openAPI = sync.OnceValue(func() []byte { return document(api) })
	mux.HandleFunc("GET /openapi.json", s.serveOpenAPI)
	mux.Handle("GET /metrics", s.metrics.handler())
	mux.HandleFunc("/", notFound(mux))
	return problem.AsOpenAI(s.around(mux))
}

// Open reports whether a request needs no token: its answer contains no stored data.
func Open(r *http.Request) bool {
	switch r.URL.Path {
	case "/healthz", "/readyz", "/version", "/openapi.json":
		return r.Method == http.MethodGet || r.Method == http.MethodHead
	}
	return false
}

// config of the framework: our JSON, our problems, none of its own routes.
func (s *Server) config() huma.Config {
	format := huma.Format{Marshal: writeJSON, Unmarshal: json.Unmarshal}
	registry := huma.NewMapRegistry(schemaPrefix, schemaName)
	registry.RegisterTypeAlias(reflect.TypeFor[session.Time](), reflect.TypeFor[time.Time]())
	registry.RegisterTypeAlias(reflect.TypeFor[session.JSON](), reflect.TypeFor[any]())
	registry.RegisterTypeAlias(reflect.TypeFor[jsontext.Value](), reflect.TypeFor[any]())
	registry.Schema(reflect.TypeFor[problem.Problem](), true, "Problem")
	registry.Schema(reflect.TypeFor[problem.OpenAIError](), true, "OpenAIError")
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title:   "sessiond",
				Version: "1",
				Description: "The session store of the AI agents on a host: " +
					"it stores whole conversations and builds contexts that fit the model.",
			},
			Components: &huma.Components{
				Schemas:   registry,
				Responses: problems(),
				SecuritySchemes: map[string]*huma.SecurityScheme{"token": {
					Type: "http", Scheme: "bearer",
					Description: "The token that `sessiond token` prints; not needed on the Unix socket",
				}},
			},
			Security: []map[string][]string{{"token": {}}},
			Tags:     tags(),
			Servers: []*huma.Server{{
				URL: "http://{address}", Description: "The daemon; `listen` in its configuration sets the address",
				Variables: map[string]*huma.ServerVariable{"address": {Default: "127.0.0.1:7433", Description: "Host and port"}},
			}},
		},
		Formats:       map[string]huma.Format{"application/json": format, "json": format},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{s.fromFramework},
	}
}

// writeJSON encodes an answer. Those that can be large write their JSON themselves: a copy of it would be large, too.
func writeJSON(w io.Writer, v any) error {
	switch v := v.(type) {
	case List[messageItem]:
		return writeMessages(w, &messageList{Data: v.Data, NextCursor: v.NextCursor})
	case messageList:
		return writeMessages(w, &v)
	case messageItem:
		return v.writeJSON(w)
	case itemList:
		return v.writeJSON(w)
	case rawItem:
		_, err := w.Write(v)
		return err
	case sqlView:
		return v.writeJSON(w)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (s *Server) serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/openapi+json")
	_, _ = w.Write(s.openAPI()) // the client may have gone
}

// notFound answers requests without a route: 405 with the methods that the path has, else 404.
func notFound(mux *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range []string{
			http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
			http.MethodDelete,
		} {
			probe := &http.Request{Method: method, URL: r.URL, Host: r.Host}
			if _, pattern := mux.Handler(probe); pattern != "/" && pattern != "" {
				allowed = append(allowed, method)
			}
		}
		p := problem.New(session.NotFound, "no route has this path: GET /openapi.json lists the routes")
		if len(allowed) > 0 && !slices.Contains(allowed, r.Method) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			p = problem.New(session.Invalid, "this path accepts "+strings.Join(allowed, ", ")+", not "+r.Method)
			p.Status = http.StatusMethodNotAllowed
		}
		p.Write(w)
	}
}
