package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// An export of a damaged database writes the sessions that can be read, names the others, and fails.
func TestExportLeavesOutWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := storetest.New(t, filepath.Join(dir, "sessions.db"))
	s := testkit.Must(store.Open(t.Context(), path, store.Options{}))(t)
	var ids []session.ID
	for range 3 {
		sess := testkit.Must(s.CreateSession(t.Context(), store.NewSession{Title: "a title"}))(t)
		ids = append(ids, sess.ID)
		for i := range 30 {
			said := session.Message{
				Role: session.User, Display: true, InContext: true,
				Parts: []session.Part{session.TextPart(fmt.Sprint(i, strings.Repeat(" word", 100)))},
			}
			testkit.Must(s.Append(t.Context(), store.Append{Session: sess.ID, Messages: []session.Message{said}}))(t)
		}
	}
	var page, size int64
	testkit.Check(t, s.Reader().Get(&page, `SELECT MIN(pageno) FROM dbstat WHERE name = 'parts' AND pagetype = 'leaf'`))
	testkit.Check(t, s.Reader().Get(&size, `PRAGMA page_size`))
	testkit.Check(t, s.Close())
	f := testkit.Must(os.OpenFile(path, os.O_WRONLY, 0))(t)
	testkit.Must(f.WriteAt(bytes.Repeat([]byte{0xff}, int(size)), (page-1)*size))(t)
	testkit.Check(t, f.Close())

	sessiond := func(args ...string) (string, int) {
		var out bytes.Buffer
		e := &env{in: strings.NewReader(""), out: &out, err: &out, environ: []string{"HOME=" + dir}, now: time.Now}
		code := run(t.Context(), append(args, "--db", path), e)
		return out.String(), code
	}
	for _, to := range []string{"folder/", "all.jsonl"} {
		target := filepath.Join(dir, to)
		if strings.HasSuffix(to, "/") {
			target += "/"
		}
		out, code := sessiond("export", "-o", target)
		if code != exitFailed || !strings.Contains(out, string(ids[0])+" is left out") ||
			!strings.Contains(out, "2 sessions, 60 messages") {
			t.Errorf("%s: exit %d: %s", to, code, out)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "folder", "*")); len(files) != 2 {
		t.Errorf("the folder has %v", files)
	}
	out, code := sessiond("doctor")
	if code != exitFailed || !strings.Contains(out, "table parts") || !strings.Contains(out, string(ids[0])) ||
		strings.Contains(out, string(ids[1])) {
		t.Errorf("doctor: exit %d: %s", code, out)
	}
	for _, args := range [][]string{{"show", string(ids[0])}, {"show", string(ids[0]), "--json"}} {
		out, code := sessiond(args...)
		if code != exitFailed || !strings.Contains(out, "29 word") {
			t.Errorf("%v ends before the last message: exit %d: %s", args, code, out)
		}
	}
	saved := filepath.Join(dir, "saved.db")
	out, code = sessiond("doctor", "--recover", saved)
	if code != 0 || !strings.Contains(out, "LOST: something of messages ") || strings.Contains(out, "BAD") {
		t.Errorf("doctor --recover: exit %d: %s", code, out)
	}
	path = saved
	if out, code := sessiond("export", "-o", filepath.Join(dir, "saved.jsonl")); code != 0 ||
		!strings.Contains(out, "3 sessions, 90 messages") {
		t.Errorf("exit %d: %s", code, out)
	}
}
