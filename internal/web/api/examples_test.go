package api_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/testkit"
	"sessiond/internal/web/api"
)

// step is an element of examples.json.
type step struct {
	Operation string         `json:"operation"`
	Method    string         `json:"method"`
	Path      string         `json:"path"`
	Body      jsontext.Value `json:"body,omitempty"`
	Status    int            `json:"status"`
	Answer    jsontext.Value `json:"answer,omitempty"`
}

// A server accepts each example and answers as the document says. -update records the answers; run it
// twice, since the document has those of the compiled file.
func TestOpenAPIExamplesAreAccepted(t *testing.T) {
	raw := testkit.Must(os.ReadFile("examples.json"))(t)
	var steps []step
	testkit.Check(t, json.Unmarshal(raw, &steps))
	k := newKit(t, func(d *api.Deps) { d.BackupDir = t.TempDir() })
	for i, s := range steps {
		var body any
		if s.Body != nil {
			body = []byte(s.Body)
		}
		got := k.do(s.Method, s.Path, body)
		if got.StatusCode != s.Status {
			t.Errorf("%s: status %d, want %d: %s", s.Operation, got.StatusCode, s.Status, got.raw)
		}
		if s.Answer == nil {
			continue
		}
		if golden() {
			steps[i].Answer = jsontext.Value(got.raw)
			continue
		}
		var want any
		testkit.Check(t, json.Unmarshal(s.Answer, &want))
		testkit.Equal(t, want, got.doc)
	}
	if golden() {
		testkit.Check(t, os.WriteFile("examples.json", indented(t, steps), 0o644))
	}
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	testkit.Check(t, enc.Encode(v))
	return []byte(b.String())
}

// Every property and parameter has a description; every operation a summary, a described tag, a 4xx
// answer and, if it reads a body, an example of one.
func TestOpenAPIDescribesEverything(t *testing.T) {
	doc, _ := newKit(t, nil).do("GET", "/openapi.json", nil).doc.(map[string]any)
	described := map[string]bool{}
	for _, tag := range doc["tags"].([]any) {
		described[text(tag, "name")] = text(tag, "description") != ""
	}
	if servers, _ := doc["servers"].([]any); len(servers) == 0 {
		t.Error("the document names no server")
	}
	called, callable := map[string]string{}, regexp.MustCompile(`^[a-z]+[A-Z]\w+$`) // takeTurn
	for path, methods := range doc["paths"].(map[string]any) {
		for method, v := range methods.(map[string]any) {
			op, name := v.(map[string]any), strings.ToUpper(method)+" "+path
			if id := text(op, "operationId"); !callable.MatchString(id) || called[id] != "" {
				t.Errorf("%s is called %q, as %q", name, id, called[id])
			} else {
				called[id] = name
			}
			if text(op, "summary") == "" {
				t.Errorf("%s has no summary", name)
			}
			tags, _ := op["tags"].([]any)
			if len(tags) != 1 || !described[tags[0].(string)] {
				t.Errorf("%s has no described tag: %v", name, tags)
			}
			parameters, _ := op["parameters"].([]any)
			for _, p := range parameters {
				if text(p, "description") == "" {
					t.Errorf("%s: parameter %s has no description", name, text(p, "name"))
				}
			}
			refused := false
			for status, response := range op["responses"].(map[string]any) {
				refused = refused || strings.HasPrefix(status, "4")
				headers, _ := response.(map[string]any)["headers"].(map[string]any)
				for header, h := range headers { // the framework describes its schema
					if text(h.(map[string]any)["schema"], "description") == "" {
						t.Errorf("%s: header %s has no description", name, header)
					}
				}
			}
			if !refused {
				t.Errorf("%s has no 4xx answer", name)
			}
			if body, ok := op["requestBody"].(map[string]any); ok {
				content := body["content"].(map[string]any)["application/json"].(map[string]any)
				if content["example"] == nil {
					t.Errorf("%s has no example of its body", name)
				}
			}
		}
	}
	undescribed(t, "", doc["components"])
	undescribed(t, "", doc["paths"])
}

// undescribed reports each property without a description.
func undescribed(t *testing.T, at string, v any) {
	t.Helper()
	switch x := v.(type) {
	case map[string]any:
		properties, _ := x["properties"].(map[string]any)
		for name, p := range properties {
			if text(p, "description") == "" {
				t.Errorf("%s.%s has no description", at, name)
			}
		}
		for name, child := range x {
			if name != "example" {
				undescribed(t, strings.TrimPrefix(at+"."+name, "."), child)
			}
		}
	case []any:
		for _, child := range x {
			undescribed(t, at, child)
		}
	}
}

func text(v any, field string) string {
	object, _ := v.(map[string]any)
	s, _ := object[field].(string)
	return s
}
