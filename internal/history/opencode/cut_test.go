package opencode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/history/historytest"
	"sessiond/internal/session"
	"sessiond/internal/testkit/effort"
)

func fresh() history.Source { return New(historytest.NoEnv, historytest.Later) }

// written says how a message and its part stand in a file, and the session beside them.
type written struct{ begin, message, end string }

const aboutOne = `{"id":"ses_1","title":"one","directory":"/w","time":{"created":1770109200000,"updated":1770109200000}}`

func forms() map[string]written {
	return map[string]written{
		"an export": {`{"info":` + aboutOne + `,"messages":[`, `{"info":MESSAGE,"parts":[PART]},`, `]}`},
		"a share":   {`[{"type":"session","data":` + aboutOne + `},`, `{"type":"part","data":PART},{"type":"message","data":MESSAGE},`, `]`},
	}
}

// of writes so many messages, of which the last is long.
func (w written) of(n, long int) string {
	var b strings.Builder
	b.WriteString(w.begin)
	for i := range n {
		text := fmt.Sprint("what was said, ", i)
		if i == n-1 {
			text = strings.Repeat(`a line, \"quoted\", and its end\n`, long/32) + text
		}
		message := fmt.Sprintf(`{"id":"msg_%05d","sessionID":"ses_1","role":"user","time":{"created":%d}}`, i, 1770109200000+i)
		part := fmt.Sprintf(`{"id":"prt_%05d","messageID":"msg_%05d","sessionID":"ses_1","type":"text","text":"%s"}`, i, i, text)
		b.WriteString(strings.NewReplacer("MESSAGE", message, "PART", part).Replace(w.message))
	}
	return strings.TrimSuffix(b.String(), ",") + w.end
}

// TestLongMessagesOfAnExportGiveTheSameRows: whether they are read whole or shortened.
func TestLongMessagesOfAnExportGiveTheSameRows(t *testing.T) {
	for name, form := range forms() {
		t.Run(name, func(t *testing.T) {
			historytest.SameWhole(t, fresh, 1, map[string]string{"one.json": form.of(3, 2<<20)}, map[string]string{"one.json": form.of(5, 3<<20)})
		})
	}
}

func TestOpencodeExportOf50MBIsNotHeld(t *testing.T) {
	effort.NotShort(t, "long exports take the way of short ones")
	for name, form := range forms() {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "one.json")
			if err := os.WriteFile(path, []byte(form.of(1000, 50<<20)), 0o600); err != nil {
				t.Fatal(err)
			}
			historytest.ReadsWithoutHolding(t, fresh(), path, 1000)
		})
	}
}

// rewriting rewrites a file when it is asked for the session, which is between the two looks at the file.
type rewriting struct {
	historytest.Nobody
	rewrite func()
}

func (r rewriting) Session(context.Context, session.Source, string) (*session.Session, error) {
	r.rewrite()
	return nil, nil
}

// Where a message stood there may be anything when it is read again.
func TestShareThatChangesWhileItIsRead(t *testing.T) {
	text := forms()["a share"].of(1, 0)
	path := filepath.Join(t.TempDir(), "one.json")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	known := rewriting{rewrite: func() { write(strings.Replace(text, `"type":"message"`, `"type":"part"   `, 1)) }}
	_, err := fresh().Read(t.Context(), history.Found{Path: path}, nil, known, func(history.Batch) error { return nil })
	if session.CodeOf(err) != session.Busy {
		t.Errorf("%v", err)
	}
}
