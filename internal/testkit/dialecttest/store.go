// Package dialecttest is what tests of dialects, and of contexts made for them, share:
// validators written from the providers' rules and not from the encoders, equality of JSON
// that no decoder blurs, and a store's way with messages.
package dialecttest

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"sessiond/internal/session"
)

// Stored returns messages as a store gives them back: columns and JSON only, long text in blobs.
// It fails the test for what the schema would refuse.
func Stored(t testing.TB, msgs []session.Message) []session.Message {
	t.Helper()
	out := make([]session.Message, len(msgs))
	for i := range msgs {
		out[i] = msgs[i]
		checkJSON(t, msgs[i].Extra)
		checkText(t, msgs[i].Author)
		out[i].Extra = append(session.JSON(nil), msgs[i].Extra...)
		out[i].Parts = nil
		if len(msgs[i].Parts) > session.MaxParts {
			t.Fatalf("message %d has %d parts", i, len(msgs[i].Parts))
		}
		for _, p := range msgs[i].Parts {
			checkJSON(t, p.Extra)
			checkText(t, p.Text, p.ToolName, p.CallID, p.Arguments)
			p.Extra = append(session.JSON(nil), p.Extra...)
			if p.Blob == nil && len(p.Text) > session.BlobThreshold {
				p.Blob = &session.Blob{SHA256: "sha", MediaType: session.TextBlob, Data: []byte(p.Text)}
				p.Text = ""
			}
			if p.Blob != nil {
				if len(p.Text) > session.BlobThreshold {
					t.Fatalf("message %d: a part has bytes and a text that needs a blob of its own", i)
				}
				other := *p.Blob
				other.MediaType = "application/x-stored-before" // the type of a blob is its first part's
				p.Blob, p.BlobSHA = &other, &other.SHA256
			}
			out[i].Parts = append(out[i].Parts, p)
		}
	}
	return out
}

func checkText(t testing.TB, texts ...string) {
	t.Helper()
	for _, s := range texts {
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			t.Fatalf("a column cannot hold the text %q", s)
		}
	}
}

// checkJSON asks of an extra what SQLite asks: JSON, at most 1,000 levels deep.
func checkJSON(t testing.TB, j session.JSON) {
	t.Helper()
	if len(j) == 0 {
		return
	}
	if !json.Valid(j) || !utf8.Valid(j) {
		t.Fatalf("an extra is no JSON: %.300s", j)
	}
	depth, deepest, inString := 0, 0, false
	for i := 0; i < len(j); i++ {
		switch c := j[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == '[' || c == '{'):
			depth++
			deepest = max(deepest, depth)
		case !inString && (c == ']' || c == '}'):
			depth--
		}
	}
	if deepest > 1000 {
		t.Fatalf("an extra is %d levels deep", deepest)
	}
}
