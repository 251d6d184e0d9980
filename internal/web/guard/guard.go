// Package guard protects the API. A request on TCP needs a Host of this daemon, no foreign Origin, and
// the bearer token. The Unix socket is protected by its file permissions.
package guard

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"sessiond/internal/session"
	"sessiond/internal/web/problem"
)

// Guard accepts or rejects requests. It is safe for concurrent use.
type Guard struct {
	token  [sha256.Size]byte // hash of the token, so that a comparison reveals nothing about its length
	noAuth bool
	hosts  []string
	open   func(*http.Request) bool
	named  Named
	pages  Pages

	browsers *browsers
}

// Pages are what people open in a browser. There a login's cookie stands for the token.
type Pages interface {
	Open(r *http.Request) bool                                    // whether a page needs no login
	Owns(r *http.Request) bool                                    // whether a request is for a page
	Refuse(w http.ResponseWriter, r *http.Request, because error) // answers a rejected one
}

// Named looks up the scope of a named token; false: there is no such token.
type Named func(ctx context.Context, token string) (scope session.Scope, ok bool, err error)

// Options of a Guard.
type Options struct {
	Token  string                   // of the owner
	NoAuth bool                     // no request needs a token; the caller allows it only on loopback
	Hosts  []string                 // names of this host beside localhost and addresses
	Open   func(*http.Request) bool // requests that need no token; nil: none
	Named  Named                    // tokens beside the owner's, for the API alone; nil: none
}

// New returns a Guard. Without a token and without NoAuth it rejects every request on TCP.
func New(opt Options) *Guard {
	g := &Guard{noAuth: opt.NoAuth, open: opt.Open, named: opt.Named, browsers: newBrowsers()}
	if opt.Token != "" {
		g.token = sha256.Sum256([]byte(opt.Token))
	}
	for _, host := range opt.Hosts {
		g.hosts = append(g.hosts, strings.ToLower(host))
	}
	return g
}

// Admit also admits browsers to pages. It is called before the first request.
func (g *Guard) Admit(p Pages) { g.pages = p }

// TCP returns a handler that passes accepted requests to next.
func (g *Guard) TCP(next http.Handler) http.Handler {
	return problem.AsOpenAI(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := g.pages != nil && g.pages.Owns(r)
		if page {
			r.Body = http.MaxBytesReader(w, r.Body, longestForm)
		}
		scope, err := g.check(r, page)
		if err != nil && page {
			g.pages.Refuse(w, r, err)
			return
		}
		if err != nil {
			p, _ := problem.Of(err)
			p.Write(w)
			return
		}
		if scope != nil {
			r = r.WithContext(session.WithScope(r.Context(), *scope))
		}
		next.ServeHTTP(w, r)
	}))
}

// check returns the scope of a named token, nil for the owner. Codes: Forbidden, Unauthorized. A page of a foreign site
// can make a browser on this host call the daemon: by a name that resolves to this host (then Host is foreign), or
// directly (then Origin or Sec-Fetch-Site is).
func (g *Guard) check(r *http.Request, page bool) (*session.Scope, error) {
	if !g.ours(hostname(r.Host)) {
		return nil, session.Errorf(session.Forbidden,
			"the Host header is not a name of this daemon: use localhost or its address, "+
				"or add the name to `hosts` in config.yaml")
	}
	if origin := r.Header.Get("Origin"); origin != "" && !g.ownOrigin(origin, r.Host) {
		return nil, session.Errorf(session.Forbidden,
			"the Origin header is not this daemon's own: pages of other sites and ports may not call it")
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	site := r.Header.Get("Sec-Fetch-Site")
	opened := page && reads && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	if (site == "cross-site" || site == "same-site") && !opened { // another port is the same site
		return nil, session.Errorf(session.Forbidden,
			"a page of another site or port made the request, which may not call this daemon")
	}
	if g.noAuth && r.ContentLength != 0 && !isJSON(r.Header.Get("Content-Type")) && !page {
		// A browser sends other types to foreign sites without asking them first.
		return nil, session.Errorf(session.Forbidden,
			"without a token (--no-auth) a body needs the header `Content-Type: application/json`")
	}
	if g.open != nil && g.open(r) || page && g.pages.Open(r) || g.noAuth && !page {
		return nil, nil
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if given = strings.TrimSpace(given); strings.EqualFold(scheme, "Bearer") && given != "" {
		if g.isToken(given) || g.noAuth {
			return nil, nil
		}
		return g.scopeOf(r, given)
	}
	if page && (g.noAuth || g.isLoggedIn(r)) {
		if reads {
			return nil, nil
		}
		if site != "same-origin" && r.Header.Get("Origin") == "" {
			return nil, session.Errorf(session.Forbidden, "the request does not say which page made it: it has no Origin header")
		}
		return nil, g.checkForm(r)
	}
	return nil, session.Errorf(session.Unauthorized,
		"a token is required: send `Authorization: Bearer TOKEN` with the token that `sessiond token` prints")
}

// scopeOf returns the scope of a named token. Codes: Unauthorized, Forbidden (it is not for the API).
func (g *Guard) scopeOf(r *http.Request, token string) (*session.Scope, error) {
	var scope session.Scope
	known := false
	if g.named != nil {
		var err error
		if scope, known, err = g.named(r.Context(), token); err != nil {
			return nil, err
		}
	}
	if !known {
		return nil, session.Errorf(session.Unauthorized, "the token is wrong: `sessiond token` prints the right one")
	}
	if !strings.HasPrefix(r.URL.Path, "/v1/") {
		return nil, session.Errorf(session.Forbidden,
			"a named token is for the routes below /v1 alone: pages, metrics and /mcp need the daemon's own token")
	}
	return &scope, nil
}

// isToken compares with the owner's token.
func (g *Guard) isToken(given string) bool {
	sum := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}

// ours reports whether a host name belongs to this daemon. Every address does: a browser sends as Host
// only the address that it connects to.
func (g *Guard) ours(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return slices.Contains(g.hosts, host)
}

// ownOrigin reports whether an origin is the daemon's: the host and port of the request, by http, or by
// https where a proxy gives it a configured name.
func (g *Guard) ownOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || !strings.EqualFold(withoutPort(u.Host, u.Scheme), withoutPort(host, u.Scheme)) {
		return false
	}
	return u.Scheme == "http" || u.Scheme == "https" && slices.Contains(g.hosts, hostname(host))
}

// withoutPort returns a host without the port that its scheme implies.
func withoutPort(host, scheme string) string {
	port := map[string]string{"http": ":80", "https": ":443"}[scheme]
	return strings.TrimSuffix(host, port)
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || media == "application/merge-patch+json")
}

// hostname returns a Host without port and brackets.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
