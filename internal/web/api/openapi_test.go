package api_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/testkit"
	"sessiond/tools/goclient"
)

// golden is set by -update: write docs/openapi.json instead of comparing with it.
func golden() bool { return flag.Lookup("update").Value.String() == "true" }

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write docs/openapi.json")
	flag.Parse()
	os.Exit(m.Run())
}

// docs/openapi.json is the API as it is, and the Go client follows it. After a change of the API:
// go test ./internal/web/api -run OpenAPI -update
func TestOpenAPIDocumentIsUpToDate(t *testing.T) {
	got := newKit(t, nil).do("GET", "/openapi.json", nil)
	if got.StatusCode != 200 {
		t.Fatalf("status %d", got.StatusCode)
	}
	for name, text := range map[string][]byte{
		"docs/openapi.json": []byte(got.raw),
		"clients/go/api.go": testkit.Must(goclient.Generate([]byte(got.raw)))(t),
	} {
		path := filepath.Join("..", "..", "..", filepath.FromSlash(name))
		if golden() {
			testkit.Check(t, os.WriteFile(path, text, 0o644))
		}
		if string(testkit.Must(os.ReadFile(path))(t)) != string(text) {
			t.Errorf("%s is not what /openapi.json says: run go test ./internal/web/api -run OpenAPI -update", name)
		}
	}
}

// Every operation says how it fails, and no schema of the framework's own errors is left.
func TestOpenAPIDescribesProblems(t *testing.T) {
	doc := newKit(t, nil).do("GET", "/openapi.json", nil)
	paths, _ := doc.at("paths").(map[string]any)
	if len(paths) < 20 {
		t.Fatalf("only %d paths", len(paths))
	}
	for path, methods := range paths {
		for method, op := range methods.(map[string]any) {
			responses := op.(map[string]any)["responses"].(map[string]any)
			if _, ok := responses["default"]; !ok {
				t.Errorf("%s %s says nothing of problems", method, path)
			}
		}
	}
	for _, word := range []string{"ErrorModel", "ErrorDetail", "$schema", "byte-string"} {
		if strings.Contains(doc.raw, word) {
			t.Errorf("the document speaks of %q", word)
		}
	}
	ref := doc.at("paths./v1/sessions/{id}/messages.post.requestBody.content.application/json.schema.$ref")
	if ref != "#/components/schemas/AppendRequest" {
		t.Errorf("body of an append: %v", ref)
	}
}
