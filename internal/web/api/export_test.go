package api_test

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestASessionIsExported(t *testing.T) {
	k := newKit(t, nil)
	made := k.want(201, k.do("POST", "/v1/sessions", map[string]any{"title": "A <plan>"}))
	id := strings.TrimPrefix(made.Header.Get("Location"), "/v1/sessions/")
	k.want(201, k.do("POST", "/v1/sessions/"+id+"/messages", map[string]any{"messages": []any{
		map[string]any{"role": "user", "content": "my key is AKIAIOSFODNN7EXAMPLE"},
	}}))
	for format, want := range map[string][3]string{
		"":      {"application/x-ndjson", ".jsonl", `{"type":"export","program":"sessiond","version":1}`},
		"jsonl": {"application/x-ndjson", ".jsonl", `{"type":"end","sessions":1}`},
		"md":    {"text/markdown; charset=utf-8", ".md", `# A \<plan\>`},
		"html":  {"text/html; charset=utf-8", ".html", `<h1 dir="auto">A &lt;plan&gt;</h1>`},
	} {
		w := httptest.NewRecorder()
		k.handler.ServeHTTP(w, httptest.NewRequest("GET", "/v1/sessions/"+id+"/export?format="+format, nil))
		head := w.Result().Header
		if w.Code != 200 || head.Get("Content-Type") != want[0] || head.Get("Content-Disposition") != `attachment; filename="`+id+want[1]+`"` {
			t.Errorf("%q is answered with %d, %v", format, w.Code, head)
		}
		if body := w.Body.String(); !strings.Contains(body, want[2]) || !strings.Contains(body, "AKIAIOSFODNN7EXAMPLE") {
			t.Errorf("%q holds %.300s", format, body)
		}
	}
	w := httptest.NewRecorder()
	k.handler.ServeHTTP(w, httptest.NewRequest("GET", "/v1/sessions/"+id+"/export?format=md&redact=true", nil))
	if body := w.Body.String(); strings.Contains(body, "AKIAIOSFODNN7EXAMPLE") || !strings.Contains(body, "secret: aws key id") {
		t.Errorf("masked: %s", body)
	}
	k.want(422, k.do("GET", "/v1/sessions/"+id+"/export?format=docx", nil))
	k.want(404, k.do("GET", "/v1/sessions/20200101_001/export", nil))
}
