package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sessiond/internal/testkit"
)

// searches calls the tool search, and returns its answer.
func searches(t *testing.T, by mcp.Transport, in map[string]any) (text string, failed bool) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	cs := testkit.Must(client.Connect(t.Context(), by, nil))(t)
	res := testkit.Must(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "search", Arguments: in}))(t)
	testkit.Check(t, cs.Close())
	return res.Content[0].(*mcp.TextContent).Text, res.IsError
}

// A client that starts `sessiond mcp` needs no daemon, and the database may come later.
func TestMCPServesAClientWithoutTheDaemon(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	started := func(args ...string) *exec.Cmd {
		cmd := exec.Command("sessiond", args...)
		cmd.Dir, cmd.Env = home, append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home,
			"XDG_RUNTIME_DIR=")
		return cmd
	}
	serve := func() mcp.Transport { return &mcp.CommandTransport{Command: started("mcp")} }
	in := map[string]any{"query": "needle"}
	if text, failed := searches(t, serve(), in); failed ||
		!strings.Contains(text, "No session is stored yet. `sessiond import`") {
		t.Errorf("without a database: %t %s", failed, text)
	}
	if out, err := started("append", "--new", "user", "a needle").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text, failed := searches(t, serve(), in); failed || !strings.Contains(text, "a needle") {
		t.Errorf("%t %s", failed, text)
	}
}

// Neither a search of all projects nor the list of resources shows a session that was recorded under a link to an
// excluded folder, or with ".." in its path.
func TestMCPShowsNothingOfExcludedProjectsThroughLinks(t *testing.T) {
	t.Parallel()
	home := testkit.Must(filepath.EvalSymlinks(t.TempDir()))(t)
	for _, folder := range []string{"h/private", "h/pub", "sessiond"} {
		testkit.Check(t, os.MkdirAll(filepath.Join(home, folder), 0o700))
	}
	testkit.Check(t, os.Symlink("private", filepath.Join(home, "h/link")))
	testkit.Check(t, os.WriteFile(filepath.Join(home, "sessiond/config.yaml"),
		[]byte("exclude_projects: ["+filepath.Join(home, "h/private")+"]\n"), 0o600))
	started := func(dir string, args ...string) *exec.Cmd {
		cmd := exec.Command("sessiond", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_RUNTIME_DIR=",
			"PWD="+dir)
		return cmd
	}
	line := `{"type":"session","version":3,"id":"0199-%d","timestamp":"2026-01-12T10:00:00.000Z","cwd":"%s"}` + "\n" +
		`{"type":"message","id":"a%d","parentId":null,"timestamp":"2026-01-12T10:00:01.000Z","message":{"role":"user","content":"needle %s","timestamp":1768212001000}}` + "\n"
	for i, folder := range []string{"/h/private", "/h/link", "/h/pub/../private", "/h/link/gone", "/h/pub"} {
		file := filepath.Join(home, fmt.Sprintf("%d.jsonl", i))
		testkit.Check(t, os.WriteFile(file, fmt.Appendf(nil, line, i, home+folder, i, folder), 0o600))
		if out, err := started(home, "import", "pi", file).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for _, dir := range []string{
		filepath.Join(home, "h/pub"), filepath.Join(home, "h/link"),
		filepath.Join(home, "h/private"),
	} {
		text, failed := searches(t, &mcp.CommandTransport{Command: started(dir, "mcp")},
			map[string]any{"query": "needle", "scope": "all"})
		if failed || !strings.Contains(text, "1 session(s)") || !strings.Contains(text, "needle /h/pub\n") {
			t.Errorf("in %s: %t %s", dir, failed, text)
		}
		cs := testkit.Must(mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
			&mcp.CommandTransport{Command: started(dir, "mcp")}, nil))(t)
		if list := testkit.Must(cs.ListResources(t.Context(), nil))(t); len(list.Resources) != 1 ||
			!strings.HasPrefix(list.Resources[0].Title, "needle /h/pub") {
			t.Errorf("in %s the list has %d resources", dir, len(list.Resources))
		}
		testkit.Check(t, cs.Close())
	}
}

// withHeaders sends every request with these headers.
type withHeaders struct {
	inner  http.RoundTripper
	header []string
}

func (w withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for i := 0; i+1 < len(w.header); i += 2 {
		r.Header.Set(w.header[i], w.header[i+1])
	}
	return w.inner.RoundTrip(r)
}

// The daemon's /mcp stands behind the same guard as its API.
func TestMCPOverHTTPIsGuarded(t *testing.T) {
	t.Parallel()
	d := startDaemonOn(t, t.TempDir(), "127.0.0.1:0")
	id := d.newSession()
	testkit.Must(d.do("POST", "/v1/sessions/"+string(id)+"/messages",
		map[string]any{"messages": []any{map[string]string{"role": "user", "content": "a needle"}}}, nil))(t)
	token := "Bearer " + strings.TrimSpace(string(testkit.Must(os.ReadFile(strings.TrimSuffix(d.db(),
		"sessions.db")+"token"))(t)))
	const hello = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for want, header := range map[int][]string{
		http.StatusUnauthorized: nil,
		http.StatusForbidden:    {"Authorization", token, "Origin", "http://evil.example"},
		http.StatusOK:           {"Authorization", token, "Origin", d.url},
	} {
		req := testkit.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/mcp",
			strings.NewReader(hello)))(t)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res := testkit.Must(withHeaders{http.DefaultTransport, header}.RoundTrip(req))(t)
		testkit.Check(t, res.Body.Close())
		if res.StatusCode != want {
			t.Errorf("%q: %d, want %d", header, res.StatusCode, want)
		}
	}
	in := map[string]any{"query": "needle", "scope": "all"}
	for name, by := range map[string]*mcp.StreamableClientTransport{
		"TCP": {Endpoint: d.url + "/mcp", HTTPClient: &http.Client{Transport: withHeaders{
			http.DefaultTransport,
			[]string{"Authorization", token},
		}}},
		"socket": {Endpoint: "http://sessiond/mcp", HTTPClient: d.client},
	} {
		if text, failed := searches(t, by, in); failed || !strings.Contains(text, string(id)+".1 user") {
			t.Errorf("%s: %t %s", name, failed, text)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	d.stop()
}
