// Package api is sessiond over HTTP: the route table, the wire's inputs and outputs, and
// nothing else. What a route does is said by the packages below; what a caller may do at all
// was decided by web/guard before.
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
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/rs/zerolog"

	"sessiond/internal/analytics"
	"sessiond/internal/routing"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
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
	Events    *Feed // nil: one of the store's own, that nobody nudges
	Log       zerolog.Logger
	Version   Version

	// Changed is called after messages were appended to a session, so that whoever indexes
	// or stages can do it behind the answer; it must not block. nil: nobody.
	Changed func(session.ID)
	// Reported is called after a call was appended that says which of our contexts it was made
	// with, so that somebody can learn from its numbers; it must not block. nil: nobody.
	Reported func(session.ID)
	// Answered is called after a reply to a session whose title is only the beginning of what a
	// person said, early on, so that somebody can find a better one; it must not block. nil: nobody.
	Answered func(session.ID)
	// Run takes work that outlives its request, and owns it until it ends; false: it cannot
	// be taken now. nil: such work is done within the request.
	Run func(work func(context.Context)) bool
	// BackupDir is where backups are made when a request names no file.
	BackupDir string
	Now       func() time.Time // nil: time.Now
	// Stopping is closed when the daemon begins to stop: streams end then. nil: never.
	Stopping <-chan struct{}
}

// Version says what is running.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	Schema  int64  `json:"schema,omitempty" doc:"The newest migration that this program knows"`
}

// Server answers the routes.
type Server struct {
	Deps
	log     zerolog.Logger
	metrics *metrics
	openAPI func() []byte // rendered when it is first asked for
}

// New makes the handler of all routes. It has no guard of its own.
func New(deps Deps) http.Handler {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Events == nil {
		deps.Events = NewFeed(deps.Store)
	}
	s := &Server{Deps: deps, log: deps.Log, metrics: newMetrics(deps.Store, deps.Events)}
	mux := http.NewServeMux()
	api := humago.New(mux, s.config())
	for _, r := range s.routes() {
		r.register(s, api, r.Operation)
	}
	s.openAPI = sync.OnceValue(func() []byte { return document(api) })
	mux.HandleFunc("GET /openapi.json", s.serveOpenAPI)
	mux.Handle("GET /metrics", s.metrics.handler())
	mux.HandleFunc("/", notFound(mux))
	return s.around(mux)
}

// Open tells whether a request needs no token: those that say nothing of what is stored.
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
	registry := huma.NewMapRegistry("#/components/schemas/", schemaName)
	registry.RegisterTypeAlias(reflect.TypeFor[session.Time](), reflect.TypeFor[time.Time]())
	registry.RegisterTypeAlias(reflect.TypeFor[session.JSON](), reflect.TypeFor[any]())
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title:       "sessiond",
				Version:     "1",
				Description: "The session store of the AI agents on a host: conversations kept whole, contexts that fit.",
			},
			Components: &huma.Components{
				Schemas:         registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer", Description: "What `sessiond token` prints; not needed on the Unix socket"}},
			},
			Security: []map[string][]string{{"token": {}}},
		},
		Formats:       map[string]huma.Format{"application/json": format, "json": format},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{s.fromFramework},
	}
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (s *Server) serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/openapi+json")
	_, _ = w.Write(s.openAPI()) // a client that went away is no failure of ours
}

// notFound answers what no route takes: 405 with the methods that the path has, else 404.
func notFound(mux *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			probe := &http.Request{Method: method, URL: r.URL, Host: r.Host}
			if _, pattern := mux.Handler(probe); pattern != "/" && pattern != "" {
				allowed = append(allowed, method)
			}
		}
		p := problem.New(session.NotFound, "there is nothing at this path: GET /openapi.json lists what there is")
		if len(allowed) > 0 && !slices.Contains(allowed, r.Method) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			p = problem.New(session.Invalid, "this path takes "+strings.Join(allowed, ", ")+", not "+r.Method)
			p.Status = http.StatusMethodNotAllowed
		}
		p.Write(w)
	}
}
