package guard_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/web/guard"
)

const token = "0123456789abcdef0123456789abcdef"

func TestWhoMayPass(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	open := func(r *http.Request) bool { return r.URL.Path == "/healthz" }
	strict := guard.New(guard.Options{Token: token, Hosts: []string{"Box.example"}, Open: open}).TCP(ok)
	free := guard.New(guard.Options{NoAuth: true}).TCP(ok)
	named := guard.New(guard.Options{
		Token: token, Open: open,
		Named: func(_ context.Context, token string) (session.Scope, bool, error) {
			if token == "down" {
				return session.Scope{}, false, session.Errorf(session.Unavailable, "no database")
			}
			return session.Scope{Owner: "ana"}, token == "hers", nil
		},
	}).TCP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if scope, limited := session.ScopeOf(r.Context()); limited != (r.Header.Get("Authorization") == "Bearer hers") ||
			limited && scope.Owner != "ana" {
			t.Errorf("the scope is %+v, %v", scope, limited)
		}
		ok(w, r)
	}))
	unset := guard.New(guard.Options{}).TCP(ok)
	for _, tc := range []struct {
		name    string
		handler http.Handler
		path    string
		host    string
		header  map[string]string
		want    int
	}{
		{"right token", strict, "/", "127.0.0.1:7433", map[string]string{"Authorization": "Bearer " + token}, 204},
		{"scheme in lower case", strict, "/", "localhost:7433", map[string]string{"Authorization": "bearer " + token}, 204},
		{"configured name", strict, "/", "box.example", map[string]string{"Authorization": "Bearer " + token}, 204},
		{"IPv6", strict, "/", "[::1]:7433", map[string]string{"Authorization": "Bearer " + token}, 204},
		{"no token", strict, "/", "localhost", nil, 401},
		{"named token", named, "/v1/sessions", "localhost", map[string]string{"Authorization": "Bearer hers"}, 204},
		{
			"own token beside named ones", named, "/metrics", "localhost",
			map[string]string{"Authorization": "Bearer " + token},
			204,
		},
		{"unknown named token", named, "/v1/sessions", "localhost", map[string]string{"Authorization": "Bearer his"}, 401},
		{"named token elsewhere", named, "/metrics", "localhost", map[string]string{"Authorization": "Bearer hers"}, 403},
		{"named token for MCP", named, "/mcp", "localhost", map[string]string{"Authorization": "Bearer hers"}, 403},
		{"no database", named, "/v1/sessions", "localhost", map[string]string{"Authorization": "Bearer down"}, 503},
		{"wrong token", strict, "/", "localhost", map[string]string{"Authorization": "Bearer x" + token}, 401},
		{"beginning of the token", strict, "/", "localhost", map[string]string{"Authorization": "Bearer " + token[:31]}, 401},
		{"basic auth", strict, "/", "localhost", map[string]string{"Authorization": "Basic " + token}, 401},
		{"empty token", strict, "/", "localhost", map[string]string{"Authorization": "Bearer "}, 401},
		{"open path", strict, "/healthz", "localhost", nil, 204},
		{"open path by a foreign name", strict, "/healthz", "evil.example", nil, 403},
		{"foreign host", strict, "/", "evil.example:7433", map[string]string{"Authorization": "Bearer " + token}, 403},
		{
			"host that begins like ours", strict, "/", "localhost.evil.example",
			map[string]string{"Authorization": "Bearer " + token},
			403,
		},
		{"no host", strict, "/", "", map[string]string{"Authorization": "Bearer " + token}, 403},
		{
			"own origin", strict, "/", "localhost:7433",
			map[string]string{"Authorization": "Bearer " + token, "Origin": "http://localhost:7433"},
			204,
		},
		{
			"own origin, implied port", strict, "/", "localhost",
			map[string]string{"Authorization": "Bearer " + token, "Origin": "http://localhost:80"},
			204,
		},
		{
			"own origin behind a proxy", strict, "/", "box.example",
			map[string]string{"Authorization": "Bearer " + token, "Origin": "https://Box.example"},
			204,
		},
		{
			"https where no proxy is configured", strict, "/", "localhost:7433",
			map[string]string{"Authorization": "Bearer " + token, "Origin": "https://localhost:7433"},
			403,
		},
		{"another port", free, "/", "localhost:7433", map[string]string{"Origin": "http://localhost:3000"}, 403},
		{"another name of this host", free, "/", "localhost:7433", map[string]string{"Origin": "http://127.0.0.1:7433"}, 403},
		{"a page on another port", free, "/", "localhost:7433", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{
			"the own page", free, "/", "localhost:7433",
			map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost:7433"},
			204,
		},
		{"foreign origin", strict, "/", "localhost", map[string]string{
			"Authorization": "Bearer " + token,
			"Origin":        "https://evil.example",
		}, 403},
		{
			"opaque origin", strict, "/", "localhost",
			map[string]string{"Authorization": "Bearer " + token, "Origin": "null"},
			403,
		},
		{
			"origin on another address", strict, "/", "localhost",
			map[string]string{"Authorization": "Bearer " + token, "Origin": "http://192.0.2.1"},
			403,
		},
		{"cross-site fetch", free, "/", "localhost", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"free on loopback", free, "/", "localhost", nil, 204},
		{"free, but foreign host", free, "/", "evil.example", nil, 403},
		{"free, but foreign origin", free, "/", "localhost", map[string]string{"Origin": "http://evil.example"}, 403},
		{"no token configured", unset, "/", "localhost", map[string]string{"Authorization": "Bearer x"}, 401},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, tc.path, nil)
			r.Host = tc.host
			for k, v := range tc.header {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			tc.handler.ServeHTTP(w, r)
			if w.Code != tc.want {
				t.Errorf("status %d, want %d: %s", w.Code, tc.want, w.Body)
			}
			if w.Code == 401 && w.Header().Get("WWW-Authenticate") == "" {
				t.Error("401 without WWW-Authenticate")
			}
		})
	}
}

func TestBodiesWithoutATokenAreJSON(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for kind, want := range map[string]int{
		"": 403, "text/plain": 403, "application/x-www-form-urlencoded": 403,
		"application/json; charset=utf-8": 204, "application/merge-patch+json": 204,
	} {
		for noAuth, want := range map[bool]int{true: want, false: 204} {
			r := httptest.NewRequest(http.MethodPost, "/v1/sessions", strings.NewReader("{}"))
			r.Host = "localhost"
			r.Header.Set("Content-Type", kind)
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			guard.New(guard.Options{Token: token, NoAuth: noAuth}).TCP(ok).ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%q, no token needed %t: %d, not %d", kind, noAuth, w.Code, want)
			}
		}
	}
}

func TestTokenIsMadeOnceForItsOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "token")
	tokens := make([]string, 8)
	var wg sync.WaitGroup
	for i := range tokens {
		wg.Go(func() {
			got, _, err := guard.EnsureToken(path)
			if err != nil {
				t.Error(err)
			}
			tokens[i] = got
		})
	}
	wg.Wait()
	for _, got := range tokens {
		if len(got) < 40 || got != tokens[0] {
			t.Fatalf("tokens differ or are short: %q", tokens)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, made, err := guard.EnsureToken(path); made || err != nil {
		t.Errorf("made again: %v %v", made, err)
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".token-*"))
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestUnfitTokenFilesAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		mode os.FileMode
	}{
		"others can read": {token, 0o644},
		"group can read":  {token, 0o640},
		"empty":           {"", 0o600},
		"short":           {"abc", 0o600},
		"two words":       {token + " " + token, 0o600},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "token")
			testkit.Check(t, os.WriteFile(path, []byte(tc.text), tc.mode))
			testkit.Check(t, os.Chmod(path, tc.mode))
			if _, _, err := guard.EnsureToken(path); session.CodeOf(err) != session.Invalid {
				t.Errorf("err = %v", err)
			}
		})
	}
}
