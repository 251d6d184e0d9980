package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sessiond/internal/testkit"
)

// What an SDK sends is searched within moments, also when the daemon was killed before it imported; the daemon
// acknowledges no line that it loses, and deletes the session with its lines.
func TestDaemonImportsLinesThatAnSDKSends(t *testing.T) {
	t.Parallel()
	dir, id := t.TempDir(), "4f1c9a4e-3a52-4f6e-9d2b-0c7a1e5b8d11"
	path := "/v1/sources/claude-code/lines?project=-home-me-p&session=" + id
	send := func(d *daemon, n int, words string) {
		line := map[string]any{
			"type": "user", "uuid": fmt.Sprint("u", n), "sessionId": id, "cwd": "/home/me/p", "version": "2.1.332",
			"timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), "parentUuid": nil,
			"message": map[string]any{"role": "user", "content": words},
		}
		if n > 1 {
			line["parentUuid"] = fmt.Sprint("u", n-1)
		}
		if status := testkit.Must(d.do("POST", path, map[string]any{"lines": []any{line}}, nil))(t); status != 201 {
			t.Fatalf("the line of %q is answered %d", words, status)
		}
	}
	found := func(d *daemon, word string) func() bool {
		return func() bool {
			var answer struct{ Hits []struct{ Snippet string } }
			_, err := d.do("GET", "/v1/search?q="+word, nil, &answer)
			return err == nil && len(answer.Hits) == 1 && strings.Contains(answer.Hits[0].Snippet, word)
		}
	}
	d := startDaemon(t, dir)
	send(d, 1, "where is the quagga")
	eventually(t, "the first line is searched", found(d, "quagga"))
	send(d, 2, "where is the tapir")
	testkit.Check(t, d.cmd.Process.Kill())
	_ = d.cmd.Wait()
	d = startDaemon(t, dir)
	eventually(t, "the line before the kill is searched", found(d, "tapir"))
	var lines struct{ Data []any }
	testkit.Must(d.do("GET", path, nil, &lines))(t)
	if len(lines.Data) != 2 {
		t.Errorf("%d lines are left", len(lines.Data))
	}
	testkit.Must(d.do("DELETE", path, nil, nil))(t)
	if found(d, "quagga")() {
		t.Error("a deleted session is found")
	}
	d.stop()
}

// Projects are apart: a copy of a session in another project keeps its lines, and the session, when one is deleted.
func TestDeletedLinesLeaveThoseOfAnotherProject(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, t.TempDir())
	path := func(project string) string {
		return "/v1/sources/claude-code/lines?session=4f1c9a4e-3a52-4f6e-9d2b-0c7a1e5b8d11&project=" + project
	}
	line := `{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"4f1c9a4e-3a52-4f6e-9d2b-0c7a1e5b8d11","cwd":"/p",` +
		`"version":"2.1.332","timestamp":"` + time.Now().UTC().Format("2006-01-02T15:04:05.000Z") + `","message":{"role":"user","content":"the okapi"}}`
	for _, project := range []string{"one", "two"} {
		body := map[string]any{"lines": []any{json.RawMessage(line)}}
		if status := testkit.Must(d.do("POST", path(project), body, nil))(t); status != 201 {
			t.Fatalf("the line is answered %d", status)
		}
	}
	found := func() int {
		var answer struct{ Hits []any }
		testkit.Must(d.do("GET", "/v1/search?q=okapi", nil, &answer))(t)
		return len(answer.Hits)
	}
	imported := func() bool {
		var answer struct{ Rows [][]any }
		_, err := d.do("POST", "/v1/sql", map[string]any{"sql": "SELECT COUNT(*) FROM source_sessions"}, &answer)
		return err == nil && len(answer.Rows) == 1 && fmt.Sprint(answer.Rows[0][0]) == "2"
	}
	eventually(t, "both are imported", imported)
	for i, project := range []string{"one", "two"} {
		var gone struct{ Sessions []string }
		testkit.Must(d.do("DELETE", path(project), nil, &gone))(t)
		if len(gone.Sessions) != i || found() != 1-i {
			t.Errorf("after the deletion in %s, %d sessions are purged and %d messages found", project, len(gone.Sessions),
				found())
		}
	}
}
