// Package clients_test builds and packs the clients in other languages and runs their tests against a real daemon.
package clients_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"sessiond/internal/testkit"
	"sessiond/tools/real/scripted"
)

// wanted is the variable that asks for these tests, which install packages. Its value is the folder in which packages
// stay for the next run; 1: a temporary one.
const wanted = "SESSIOND_TEST_CLIENTS"

// The packed TypeScript client does what its tests say, against a daemon and a model on loopback.
func TestTypeScript(t *testing.T) {
	dir := os.Getenv(wanted)
	if dir == "" {
		t.Skip("it installs packages of npm: ./scripts/clients runs it")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is not in PATH: install Node.js")
	}
	if dir == "1" {
		dir = t.TempDir()
	}
	dir = filepath.Join(testkit.Must(filepath.Abs(dir))(t), "typescript")
	sessiond := testkit.Must(buildProgram())(t)

	for _, name := range []string{"src", "test", "dist"} {
		testkit.Check(t, os.RemoveAll(filepath.Join(dir, name)))
	}
	copyTree(t, "typescript", dir)
	env := []string{
		"OPENAPI=" + testkit.Must(filepath.Abs("../docs/openapi.json"))(t),
		"DOCS=" + testkit.Must(filepath.Abs("../docs"))(t),
		"npm_config_update_notifier=false", "npm_config_audit=false", "npm_config_fund=false",
	}
	run(t, dir, env, npm, "install", "--no-package-lock")
	node := filepath.Join(dir, "node_modules", "node", "bin")
	env = append(env, "PATH="+node+string(os.PathListSeparator)+os.Getenv("PATH"))
	run(t, dir, env, npm, "run", "build")

	packed := strings.Fields(run(t, dir, env, npm, "pack", "--silent"))
	installed := filepath.Join(dir, "test", "node_modules", "@sessiond", "client")
	testkit.Check(t, os.MkdirAll(installed, 0o755))
	run(t, dir, nil, "tar", "-xzf", packed[len(packed)-1], "-C", installed, "--strip-components=1")
	run(t, dir, env, filepath.Join(dir, "node_modules", ".bin", "tsc"), "-p", "test")

	tests := testkit.Must(filepath.Glob(filepath.Join(dir, "test", "*.test.ts")))(t)
	if len(tests) == 0 {
		t.Fatal("there are no tests")
	}
	for _, test := range tests {
		t.Run(strings.TrimSuffix(filepath.Base(test), ".test.ts"), func(t *testing.T) {
			env := append(env, "SESSIOND="+sessiond, "MODEL="+serveModel(t), "SCRATCH="+t.TempDir())
			t.Log(run(t, dir, env, filepath.Join(node, "node"), "--test", "--test-reporter=spec", test))
		})
	}
}

// The stores in Python answer as a dict and a list do. The SDKs themselves are not run.
func TestPython(t *testing.T) {
	if os.Getenv(wanted) == "" {
		t.Skip("it builds a daemon: ./scripts/clients runs it")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not in PATH")
	}
	d := startDaemon(t)
	env := []string{"PYTHONDONTWRITEBYTECODE=1"}
	said := run(t, "python", env, python, "trial.py", d.url, d.token())
	if !strings.Contains(said, "all is well") {
		t.Error(said)
	}
}

// serveModel serves the scripted model, and at /exchanges what it was asked, until the test ends.
func serveModel(t *testing.T) string {
	t.Helper()
	model := &scripted.Server{}
	mux := http.NewServeMux()
	mux.Handle("/", model)
	mux.HandleFunc("/exchanges", func(w http.ResponseWriter, _ *http.Request) {
		type exchange struct {
			scripted.Exchange
			Body string `json:"body"`
		}
		all := []exchange{}
		for _, x := range model.Log() {
			all = append(all, exchange{x, x.Body})
		}
		if err := json.MarshalWrite(w, all); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out)
}

// copyTree copies the files that git knows, or would.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	listed := run(t, from, nil, "git", "ls-files", "--cached", "--others", "--exclude-standard")
	for name := range strings.Lines(listed) {
		name = strings.TrimSpace(name)
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(fmt.Errorf("copy %s: %w", name, err))
		}
		target := filepath.Join(to, name)
		testkit.Check(t, os.MkdirAll(filepath.Dir(target), 0o755))
		testkit.Check(t, os.WriteFile(target, text, 0o644))
	}
}
