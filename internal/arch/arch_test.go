package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "sessiond/"

// levels are the floors of the house: a package imports only from floors below its own.
var levels = [][]string{
	{"internal/pattern", "clients/go"}, // the client is for programs outside: it imports nothing of ours
	{
		"internal/session", "internal/folders", "internal/spelling", "internal/text", "internal/when", "db/migrations",
		"queries",
	},
	{"internal/jsonx", "internal/engine"}, // their errors are the kernel's
	{
		"internal/store", "internal/tokens", "internal/usage", "internal/dialect", "internal/routing", "internal/redact",
		"internal/touched", "internal/words",
	},
	{
		"internal/summarize", "internal/search", "internal/contextmgr", "internal/transcript", "internal/history",
		"internal/analytics", "internal/secrets",
	},
	{"internal/find", "internal/handover"},
	{
		"internal/export", "internal/recall", "internal/memory", "internal/picker", "internal/card", "internal/demo",
		"internal/otlp",
	},
	{"internal/mcp"},
	{"internal/jobs", "internal/web", "internal/config", "internal/connect", "internal/service"},
	{"cmd/sessiond", "tools", "clients"},
}

// besides are the imports that the floors would refuse: {who, whom}, each with the packages below it.
var besides = [][2]string{
	{"internal/dialect", "internal/dialect/"},                   // the registry and its wire forms
	{"internal/dialect/", "internal/dialect/wire"},              // and what those have in common
	{"internal/dialect/", "internal/dialect/callid"},            // and the ids of their calls
	{"internal/history/", "internal/history"},                   // a program's reader and the source it is one of
	{"internal/history/openclaw", "internal/history/pi"},        // OpenClaw's transcripts are pi's
	{"internal/history/qwencode", "internal/history/geminicli"}, // Qwen Code's contents are Gemini CLI's
	{"internal/summarize", "internal/summarize/"},               // who chooses, and the digest and the models
	{"internal/summarize/models", "internal/summarize/digest"},  // which adds what no model writes
	{"internal/web", "internal/web/"},                           // the server and its rooms
	{"internal/web/", "internal/web/problem"},                   // and how each says what failed
	{"internal/web/", "internal/web/answers"},                   // and what memory their answers may need
	{"internal/web/pages", "internal/web/guard"},                // the page that logs in
	{"tools/real", "tools/real/scripted"},                       // the model that the programs ask
}

// never are imports that the floors would allow.
var never = [][2]string{
	{"internal/contextmgr", "internal/dialect"}, // decides about messages, whatever their wire form
	{"internal/session", "db/migrations"},
	{"internal/session", "queries"},
}

// onlyTests and the packages below them may be imported by tests alone.
var onlyTests = []string{"internal/testkit", "internal/arch", "internal/bench", "internal/eval"}

// onlyHere says which packages may use a library that the rest must not come to depend on.
var onlyHere = map[string][]string{
	"github.com/google/generative-ai-go": {"internal/summarize"},
	"github.com/danielgtaylor/huma":      {"internal/web"},
	"github.com/spf13/cobra":             {"cmd/sessiond"},
	"github.com/knadh/koanf":             {"internal/config"},
	"github.com/tailscale/hujson":        {"internal/connect"},
	"github.com/modelcontextprotocol":    {"internal/mcp"},
	"github.com/pelletier/go-toml":       {"internal/connect"},
	"charm.land":                         {"internal/picker"},
	"github.com/charmbracelet":           {"internal/picker"},
	"github.com/tiktoken-go/tokenizer":   {}, // vocabularies of megabytes: tests and calibration only
	"golang.org/x/image":                 {"internal/card"},
	"modernc.org/sqlite": {
		"internal/engine", "internal/store", "internal/search", "internal/analytics",
		"internal/history", "tools",
	},
}

var nameless = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "lib"}

type pkg struct {
	ImportPath string
	Name       string
	Imports    []string
	Incomplete bool
}

func TestImportsPointDown(t *testing.T) {
	found := packages(t)
	if len(found) < 3 {
		t.Fatalf("only %d packages found", len(found))
	}
	for _, p := range found {
		t.Run(p.path(), func(t *testing.T) {
			for _, complaint := range check(p) {
				t.Error(complaint)
			}
		})
	}
}

// The rules are shown to bite.
func TestCheckComplains(t *testing.T) {
	tests := []struct {
		name, from, to string
		allowed        bool
	}{
		{"down a floor", "internal/store", "internal/session", true},
		{"down two floors", "internal/web", "internal/store", true},
		{"up a floor", "internal/store", "internal/search", false},
		{"across", "internal/search", "internal/analytics", false},
		{"the kernel imports nothing", "internal/session", "internal/tokens", false},
		{"the kernel and patterns", "internal/session", "internal/pattern", true},
		{"a wire form and its registry", "internal/dialect/openaichat", "internal/dialect", false},
		{"wire forms and what they share", "internal/dialect/openaichat", "internal/dialect/wire", true},
		{"one wire form and another", "internal/dialect/openaichat", "internal/dialect/native", false},
		{"the registry and a wire form", "internal/dialect", "internal/dialect/native", true},
		{"a reader and the source", "internal/history/pi", "internal/history", true},
		{"a reader and another's", "internal/history/codex", "internal/history/pi", false},
		{"openclaw reads as pi does", "internal/history/openclaw", "internal/history/pi", true},
		{"contexts and wire forms", "internal/contextmgr", "internal/dialect", false},
		{"contexts and a wire form", "internal/contextmgr", "internal/dialect/openaichat", false},
		{"contexts and summaries", "internal/contextmgr", "internal/summarize", false},
		{"contexts and search", "internal/contextmgr", "internal/search", false},
		{"the command and the client", "cmd/sessiond", "clients/go", true},
		{"the client is for programs outside", "clients/go", "internal/session", false},
		{"the command and anything", "cmd/sessiond", "internal/web/api", true},
		{"the command as a library", "internal/web", "cmd/sessiond", false},
		{"test kits in a program", "internal/search", "internal/testkit/storetest", false},
		{"the API and the pages", "internal/web/api", "internal/web/pages", false},
		{"samples in a program", "internal/history/pi", "internal/testkit/samples", false},
		{"what tests run in a program", "internal/history/pi", "internal/testkit/effort", false},
		{"a package that no floor knows", "internal/novelty", "internal/session", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := check(pkg{ImportPath: module + tt.from, Name: "x", Imports: []string{module + tt.to}})
			if (len(got) == 0) != tt.allowed {
				t.Errorf("%s → %s: %q", tt.from, tt.to, got)
			}
		})
	}
	t.Run("a package of odds and ends", func(t *testing.T) {
		if len(check(pkg{ImportPath: module + "internal/store/util", Name: "util"})) != 1 {
			t.Error("allowed")
		}
	})
	t.Run("a library out of its place", func(t *testing.T) {
		if len(check(pkg{
			ImportPath: module + "internal/store",
			Imports:    []string{"github.com/danielgtaylor/huma/v2"},
		})) != 1 {
			t.Error("allowed")
		}
	})
	for _, alone := range []string{"internal/session", "clients/go"} {
		t.Run(alone+" and any library", func(t *testing.T) {
			if len(check(pkg{ImportPath: module + alone, Imports: []string{"time", "github.com/google/uuid"}})) != 1 {
				t.Error("allowed")
			}
		})
	}
}

func (p *pkg) path() string { return strings.TrimPrefix(p.ImportPath, module) }

// check returns what is wrong with a package's name and imports.
func check(p pkg) []string {
	var wrong []string
	from := p.path()
	if slices.Contains(nameless, p.Name) {
		wrong = append(wrong, fmt.Sprintf("a package named %s says nothing of what is in it", p.Name))
	}
	if forTests(from) {
		return wrong
	}
	if level(from) < 0 {
		wrong = append(wrong, "stands on no floor: add it to levels, as ARCHITECTURE.md draws it")
	}
	for _, imported := range p.Imports {
		if to, ours := strings.CutPrefix(imported, module); ours {
			if complaint := checkImport(from, to); complaint != "" {
				wrong = append(wrong, fmt.Sprintf("imports %s: %s", to, complaint))
			}
			continue
		}
		if !strings.Contains(strings.Split(imported, "/")[0], ".") {
			continue // the standard library
		}
		if from == "internal/session" || from == "clients/go" {
			wrong = append(wrong, fmt.Sprintf("imports %s: %s stands on the standard library alone", imported, from))
		}
		for library, places := range onlyHere {
			if (imported == library || strings.HasPrefix(imported, library+"/")) &&
				!slices.ContainsFunc(places, func(place string) bool { return within(from, place) }) {
				wrong = append(wrong, fmt.Sprintf("imports %s, which only %v may", imported, places))
			}
		}
	}
	return wrong
}

func checkImport(from, to string) string {
	if forTests(to) {
		return "it is for tests"
	}
	for _, n := range never {
		if within(from, n[0]) && within(to, n[1]) {
			return "these two are kept apart"
		}
	}
	if level(to) >= 0 && level(to) < level(from) {
		return ""
	}
	for _, b := range besides {
		if matches(from, b[0]) && matches(to, b[1]) {
			return ""
		}
	}
	return "it is not on a floor below"
}

func forTests(path string) bool {
	return slices.ContainsFunc(onlyTests, func(name string) bool { return within(path, name) })
}

// level returns the floor of a package, which is that of the longest name it stands under.
func level(path string) int {
	best, floor := 0, -1
	for i, names := range levels {
		for _, name := range names {
			if within(path, name) && len(name) > best {
				best, floor = len(name), i
			}
		}
	}
	return floor
}

func within(path, name string) bool { return path == name || strings.HasPrefix(path, name+"/") }

// matches is like within, but a name that ends in / means only what is below it, and one that
// does not means only itself.
func matches(path, name string) bool {
	if strings.HasSuffix(name, "/") {
		return strings.HasPrefix(path, name)
	}
	return path == name
}

// packages lists the module's packages with what their programs, not their tests, import.
func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Name,Imports", "sessiond/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var found []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		found = append(found, p)
	}
}
