package api_test

import (
	"database/sql"
	"io"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // breaks what the store keeps whole

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
)

func TestLongTextsComeBackWhole(t *testing.T) {
	effort.NotShort(t, "megabytes pass through one goroutine")
	k := newKit(t, nil)
	id := k.session(nil)
	first := strings.Repeat("\"quoted\" \\ <b>&amp; \u2028 价格 \U0001f600 end\n", 40_000)
	second := strings.Repeat("and more\n", 100_000)
	k.want(201, k.do("POST", "/v1/sessions/"+id+"/messages", map[string]any{"messages": []any{
		map[string]any{"role": "user", "content": "short"},
		map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": first}, map[string]any{"type": "text", "text": second}}},
	}}))
	for path, at := range map[string]string{"": "data.1.", "/2": ""} {
		r := k.want(200, k.do("GET", "/v1/sessions/"+id+"/messages"+path, nil))
		if r.text(at+"content") != first+"\n"+second || r.text(at+"parts.0.text") != first || r.text(at+"parts.1.text") != second {
			t.Errorf("%q: it came as %.200s", path, r.raw)
		}
		if !strings.Contains(r.raw, string(session.JSONOf(first))) {
			t.Errorf("%q: it is not encoded as other texts are", path)
		}
	}
}

// Whoever takes an export that cannot go on sees that it is not whole.
func TestAnExportThatBreaksOffIsSeenToDoSo(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	k.say(id, "user", strings.Repeat("a line\n", 600_000))
	db := testkit.Must(sql.Open("sqlite", filepath.Join(k.dir, "sessions.db")))(t)
	defer db.Close()
	var guards []string
	rows := testkit.Must(db.Query(`SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'blob_pieces'`))(t)
	for rows.Next() {
		var name string
		testkit.Check(t, rows.Scan(&name))
		guards = append(guards, `DROP TRIGGER `+name)
	}
	testkit.Check(t, rows.Err())
	for _, q := range append(guards, `DELETE FROM blob_pieces WHERE n = 3`) {
		testkit.Must(db.Exec(q))(t)
	}
	server := httptest.NewServer(k.handler)
	defer server.Close()
	for _, format := range []string{"jsonl", "md", "html", "openai", "pi", "goose"} {
		r, err := server.Client().Get(server.URL + "/v1/sessions/" + id + "/export?format=" + format)
		if err != nil {
			continue // before the first byte
		}
		if all, err := io.ReadAll(r.Body); err == nil {
			t.Errorf("%s: %d bytes are taken for all of it", format, len(all))
		}
		_ = r.Body.Close()
	}
}
