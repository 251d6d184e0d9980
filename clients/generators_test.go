package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/testkit"
)

// What three generators make of openapi.json, without a flag that changes it, compiles and takes a turn: each program
// of testdata/generators prints the same.
func TestGenerators(t *testing.T) {
	dir := os.Getenv(wanted)
	if dir == "" {
		t.Skip("it downloads generators: ./scripts/clients runs it")
	}
	if dir == "1" {
		dir = t.TempDir()
	}
	dir = filepath.Join(testkit.Must(filepath.Abs(dir))(t), "generators")
	testkit.Check(t, os.RemoveAll(filepath.Join(dir, "ogen")))
	copyTree(t, filepath.Join("testdata", "generators"), dir)
	for from, to := range map[string]string{"generators.mod": "go.mod", "generators.sum": "go.sum"} {
		testkit.Check(t, os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)))
	}
	spec := testkit.Must(filepath.Abs(filepath.Join("..", "docs", "openapi.json")))(t)
	turns := func(t *testing.T, name string, args ...string) {
		d := startDaemon(t)
		env := []string{"DAEMON=" + d.url, "TOKEN=" + d.token()}
		const want = `[{"content":"How high is the water?","role":"user"}]
"How high is the water?" true
1
not_found
`
		got := strings.Replace(run(t, dir, env, name, args...), `"role":"user","content":"How high is the water?"`,
			`"content":"How high is the water?","role":"user"`, 1) // a map of Go sorts its names
		if got != want {
			t.Errorf("it says\n%s\nnot\n%s", got, want)
		}
	}
	t.Run("oapi-codegen", func(t *testing.T) {
		testkit.Check(t, os.MkdirAll(filepath.Join(dir, "oapi-codegen", "api"), 0o755))
		run(t, dir, nil, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "api", "-o",
			filepath.Join("oapi-codegen", "api", "api.go"), spec)
		turns(t, "go", "run", "./oapi-codegen")
	})
	t.Run("ogen", func(t *testing.T) {
		run(t, dir, nil, "go", "tool", "ogen", "-target", filepath.Join("ogen", "api"), "-package", "api", "-clean", spec)
		turns(t, "go", "run", "./ogen")
	})
	t.Run("openapi-typescript", func(t *testing.T) {
		npm, err := exec.LookPath("npm")
		if err != nil {
			t.Skip("npm is not in PATH: install Node.js")
		}
		folder := filepath.Join(dir, "openapi-typescript")
		env := []string{"npm_config_update_notifier=false", "npm_config_audit=false", "npm_config_fund=false"}
		run(t, folder, env, npm, "install", "--no-package-lock")
		bin := filepath.Join(folder, "node_modules", ".bin")
		run(t, folder, nil, filepath.Join(bin, "openapi-typescript"), spec, "-o", "api.ts")
		run(t, folder, nil, filepath.Join(bin, "tsc"), "--strict", "--target", "es2022", "--module", "nodenext",
			"--skipLibCheck", "main.ts")
		turns(t, "node", strings.TrimPrefix(filepath.Join(folder, "main.js"), dir+string(os.PathSeparator)))
	})
}
