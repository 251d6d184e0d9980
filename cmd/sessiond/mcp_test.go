package main

import (
	"net/http"
	"os"
	"os/exec"
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
	home := t.TempDir()
	started := func(args ...string) *exec.Cmd {
		cmd := exec.Command("sessiond", args...)
		cmd.Dir, cmd.Env = home, append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_RUNTIME_DIR=")
		return cmd
	}
	serve := func() mcp.Transport { return &mcp.CommandTransport{Command: started("mcp")} }
	in := map[string]any{"query": "needle"}
	if text, failed := searches(t, serve(), in); !failed || !strings.Contains(text, "does not exist yet: `sessiond import`") {
		t.Errorf("without a database: %t %s", failed, text)
	}
	if out, err := started("append", "--new", "user", "a needle").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text, failed := searches(t, serve(), in); failed || !strings.Contains(text, "a needle") {
		t.Errorf("%t %s", failed, text)
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
	d := startDaemonOn(t, t.TempDir(), "127.0.0.1:0")
	id := d.newSession()
	testkit.Must(d.do("POST", "/v1/sessions/"+string(id)+"/messages", map[string]any{"messages": []any{map[string]string{"role": "user", "content": "a needle"}}}, nil))(t)
	token := "Bearer " + strings.TrimSpace(string(testkit.Must(os.ReadFile(strings.TrimSuffix(d.db(), "sessions.db")+"token"))(t)))
	const hello = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for want, header := range map[int][]string{
		http.StatusUnauthorized: nil,
		http.StatusForbidden:    {"Authorization", token, "Origin", "http://evil.example"},
		http.StatusOK:           {"Authorization", token, "Origin", d.url},
	} {
		req := testkit.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/mcp", strings.NewReader(hello)))(t)
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
		"TCP":    {Endpoint: d.url + "/mcp", HTTPClient: &http.Client{Transport: withHeaders{http.DefaultTransport, []string{"Authorization", token}}}},
		"socket": {Endpoint: "http://sessiond/mcp", HTTPClient: d.client},
	} {
		if text, failed := searches(t, by, in); failed || !strings.Contains(text, string(id)+".1 user") {
			t.Errorf("%s: %t %s", name, failed, text)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	d.stop()
}
