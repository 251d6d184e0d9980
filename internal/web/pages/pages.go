// Package pages is what people open in a browser: the sessions, a conversation, what the model sees of it, and
// usage. Pages are rendered here, with the pieces of transcript; they load nothing from elsewhere, and no stored text
// can run. guard decides who may see them.
package pages

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"sessiond/internal/analytics"
	"sessiond/internal/contextmgr"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
	"sessiond/internal/web/answers"
	"sessiond/internal/web/guard"
	"sessiond/internal/web/problem"
)

//go:embed templates static
var files embed.FS

// Config is what the pages work with. All but Models and Key are needed.
type Config struct {
	Store    *store.Store
	Search   *search.Index
	Contexts *contextmgr.Manager
	Reports  *analytics.Reports
	Budget   analytics.Budget                             // that usage is compared with; may be none
	Models   func(model string) (session.ModelInfo, bool) // for windows; may be nil
	Key      func(text string) (string, error)
	Guard    *guard.Guard
	API      http.Handler                     // whose events the pages follow
	Answers  *answers.Budget                  // of the memory of answers; nil: a new one
	Alarm    func(ctx context.Context) string // why what is stored may be lost, in one line; "" if all is well
	Now      func() time.Time
	Zone     *time.Location
	Log      zerolog.Logger
}

// Pages answers browsers.
type Pages struct {
	Config
	mux       *http.ServeMux
	templates *template.Template
	static    map[string]asset
	address   atomic.Pointer[string] // host:port of the daemon
}

// asset is an embedded file. Its address holds a hash of its content, so that a browser keeps it for good.
type asset struct {
	content []byte
	packed  []byte // by gzip
	kind    string
	address string
}

// policy lets a page load from this daemon alone, and run nothing that stands in it. Images of a conversation are
// embedded as data.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// New returns the pages.
func New(cfg Config) *Pages {
	if cfg.Answers == nil {
		cfg.Answers = &answers.Budget{}
	}
	p := &Pages{Config: cfg, mux: http.NewServeMux(), static: map[string]asset{}}
	p.loadStatic()
	p.templates = template.Must(template.New("").Funcs(template.FuncMap{
		"static":   func(name string) string { return p.static[name].address },
		"count":    transcript.Count,
		"ago":      func(t session.Time) string { return transcript.Ago(t.Time, p.Now().In(p.Zone)) },
		"stamp":    func(t session.Time) string { return t.In(p.Zone).Format(time.RFC3339) },
		"title":    titleOf,
		"heading":  headingOf,
		"sentence": sentence,
		"hint":     hintOf,
	}).ParseFS(files, "templates/*.html"))
	for _, route := range []struct {
		pattern string
		answer  func(http.ResponseWriter, *http.Request) error
		memory  int64 // that it reserves
	}{
		{"GET /{$}", p.home, 24 << 20},
		{"POST /several", p.several, 0},
		{"GET /s/{id}", p.conversation, 16 << 20},
		{"GET /s/{id}/whole/{message}/{part}", p.whole, 4 << 20},
		{"GET /s/{id}/files", p.files, 16 << 20},
		{"GET /s/{id}/now", p.now, 1 << 20},
		{"GET /s/{id}/export", p.export, 0},
		{"GET /s/{rest...}", noPage, 0},
		{"POST /s/{id}/{action}", p.act, 0},
		{"GET /usage", p.usage, 8 << 20},
		{"GET /year/{file}", p.year, 24 << 20},
		{"GET /login", p.showLogin, 0},
		{"POST /login", p.login, 0},
		{"POST /logout", p.logout, 0},
		{"POST /open", p.link, 0},
		{"GET /open/{code}", p.redeem, 0},
		{"GET /static/{name}", p.serveStatic, 0},
		{"GET /live", p.live, 0},
	} {
		p.mux.HandleFunc(route.pattern, func(w http.ResponseWriter, r *http.Request) {
			release, err := p.Answers.Reserve(r.Context(), route.memory)
			if err == nil {
				defer release()
				err = route.answer(w, r)
			}
			if err != nil {
				p.Refuse(w, r, err)
			}
		})
	}
	return p
}

// noPage answers an address below a conversation's that is none, in a browser and not as the API does.
func noPage(_ http.ResponseWriter, r *http.Request) error {
	return session.Errorf(session.NotFound, "there is no page %s", r.URL.Path)
}

// SetAddress says where the daemon listens, for links.
func (p *Pages) SetAddress(address string) { p.address.Store(&address) }

// Owns implements guard.Pages. An address that nothing has is a page, too, if a browser opens it: one that says so.
func (p *Pages) Owns(r *http.Request) bool {
	_, pattern := p.mux.Handler(r)
	return pattern != "" || r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") &&
		!slices.ContainsFunc(forPrograms, func(path string) bool {
			return r.URL.Path == path || strings.HasSuffix(path, "/") && strings.HasPrefix(r.URL.Path, path)
		})
}

// forPrograms are the addresses that are no pages, whoever opens them.
var forPrograms = []string{"/v1/", "/v1", "/mcp", "/metrics", "/healthz", "/readyz", "/version", "/openapi.json"}

// Open reports whether a request needs no login.
func (p *Pages) Open(r *http.Request) bool {
	return r.URL.Path == "/login" || r.Method == http.MethodGet &&
		(strings.HasPrefix(r.URL.Path, "/static/") || strings.HasPrefix(r.URL.Path, "/open/"))
}

// Before answers pages, and passes all else to next.
func (p *Pages) Before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.Owns(r) {
			p.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ServeHTTP implements http.Handler.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with less, forms would say Origin: null
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if _, pattern := p.mux.Handler(r); pattern == "" {
		p.Refuse(w, r, noPage(w, r))
		return
	}
	p.mux.ServeHTTP(w, r)
}

// frame is what every page has around it.
type frame struct {
	Title    string
	Place    string // of the navigation: sessions, usage
	Form     string // token of the page's forms
	Query    string // in the search line
	Keep     []chip // filters that a search keeps
	LoggedIn bool
	Alarm    string
	Body     any

	pieces func(w io.Writer) error // writes what stands at piecesMark; nil: nothing does
	// packed by gzip, where the browser accepts that. Other sites cannot probe for what is in it: the login's cookie is
	// a strict one.
	packed bool
}

// show writes a page, or for htmx the named piece of it alone.
func (p *Pages) show(w http.ResponseWriter, r *http.Request, name string, f frame) error {
	f.Form = p.Guard.FormToken(r)
	_, err := r.Cookie("sessiond")
	f.LoggedIn = err == nil
	var b bytes.Buffer
	if name != "login" { // nobody else is told
		f.Alarm = p.Alarm(r.Context())
	}
	if isFragment(r) {
		err = p.templates.ExecuteTemplate(&b, name+"-piece", f)
	} else {
		err = p.page(&b, name, f)
	}
	if err != nil {
		return fmt.Errorf("render %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Vary", "HX-Request, Accept-Encoding")
	if f.packed && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write(b.Bytes())
		return z.Close()
	}
	before, after, found := bytes.Cut(b.Bytes(), []byte(piecesMark))
	_, _ = w.Write(before)
	if found {
		if err := f.pieces(w); err != nil {
			if r.Context().Err() == nil {
				p.Log.Error().Err(err).Str("path", r.URL.Path).Msg("a page failed")
			}
			panic(http.ErrAbortHandler) // half a page is out: the browser must see that it is broken
		}
		_, _ = w.Write(after)
	}
	return nil
}

func (p *Pages) page(b *bytes.Buffer, name string, f frame) error {
	if err := p.templates.ExecuteTemplate(b, "head", f); err != nil {
		return err
	}
	if err := p.templates.ExecuteTemplate(b, name, f); err != nil {
		return err
	}
	return p.templates.ExecuteTemplate(b, "tail", f)
}

// piece renders a piece of a page for another one; "" if that fails.
func (p *Pages) piece(name string, data any) template.HTML {
	var b strings.Builder
	if err := p.templates.ExecuteTemplate(&b, name, data); err != nil {
		return ""
	}
	return template.HTML(b.String()) //nolint:gosec // it was escaped by its own template
}

// isFragment reports whether htmx asks for a part of a page, not a browser for all of it.
func isFragment(r *http.Request) bool {
	return r.Header.Get("HX-Request") == "true" && r.Header.Get("HX-History-Restore-Request") != "true"
}

// Refuse implements guard.Pages: it says what happened and what to do. Whoever is not logged in comes to the door.
func (p *Pages) Refuse(w http.ResponseWriter, r *http.Request, because error) {
	problem, internal := problem.Of(because)
	if internal && r.Context().Err() == nil {
		p.Log.Error().Err(because).Str("path", r.URL.Path).Msg("a page failed")
	}
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff",
		"Cache-Control": "no-store",
	} {
		w.Header().Set(name, value)
	}
	if problem.Code == session.Unauthorized && r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/open/") &&
		!isFragment(r) {
		http.Redirect(w, r, "/login?to="+template.URLQueryEscaper(r.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		problem.Write(w)
		return
	}
	if problem.Code == session.Unauthorized && r.Method == http.MethodPost {
		problem.Detail = "you are no longer logged in, and nothing was done: `sessiond open` logs you in again"
	}
	var b bytes.Buffer
	if err := p.page(&b, "error", frame{Title: problem.Title, Body: problem}); err != nil {
		http.Error(w, problem.Detail, problem.Status)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(problem.Status)
	_, _ = w.Write(b.Bytes())
}

func (p *Pages) loadStatic() {
	add := func(name string, content []byte) {
		sum := sha256.Sum256(content)
		kind := map[string]string{
			".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
			".svg": "image/svg+xml",
		}[path.Ext(name)]
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is one
		_, _ = z.Write(content)                                    // a buffer takes everything
		_ = z.Close()
		p.static[name] = asset{content, packed.Bytes(), kind, "/static/" + name + "?" + hex.EncodeToString(sum[:6])}
	}
	entries, _ := fs.ReadDir(files, "static")
	for _, e := range entries {
		content, err := files.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err) // it is embedded
		}
		add(e.Name(), content)
	}
	add("pieces.css", []byte(transcript.Style()))
}

func (p *Pages) serveStatic(w http.ResponseWriter, r *http.Request) error {
	a, ok := p.static[r.PathValue("name")]
	if !ok || a.kind == "" {
		return session.Errorf(session.NotFound, "there is no file %q", r.PathValue("name"))
	}
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		a.content = a.packed
	}
	_, _ = w.Write(a.content)
	return nil
}

// live passes on what happens, as the API tells it.
func (p *Pages) live(w http.ResponseWriter, r *http.Request) error {
	told := r.Clone(context.WithoutCancel(r.Context()))
	told = told.WithContext(r.Context())
	told.URL.Path, told.RequestURI = "/v1/events", "/v1/events"
	p.API.ServeHTTP(w, told)
	return nil
}

func titleOf(s *session.Session) string { return titleWithin(s, 200) }

// headingOf returns the title as the conversation's own page has it: whole, unless a page of text was given as one.
func headingOf(s *session.Session) string { return titleWithin(s, 4000) }

func titleWithin(s *session.Session, width int) string {
	return cmp.Or(transcript.OneLine(s.Title, width), "untitled")
}

// sentence writes an error as a sentence. A name that it begins with stays as it is.
func sentence(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if r, size := utf8.DecodeRuneInString(text); strings.IndexFunc(word, func(r rune) bool {
		return !unicode.IsLower(r)
	}) < 0 {
		text = string(unicode.ToUpper(r)) + text[size:]
	}
	if text != "" && !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "?") {
		text += "."
	}
	return text
}

// hintOf says what to do about an error whose text names nothing to do.
func hintOf(code session.Code) string {
	switch code {
	case session.Unauthorized:
		return "You can also log in with the token that `sessiond token` prints."
	case session.NotFound:
		return "It may have been purged, or the address is not complete. The search finds sessions by their words."
	case session.Invalid:
		return "Go back and correct the address or the search."
	case session.Busy, session.Unavailable:
		return "Reload the page in a moment."
	case session.Conflict, session.PreconditionFailed:
		return "Something changed meanwhile: go back and reload the page."
	}
	return ""
}
