// Package dialecttest is what tests of dialects, and of contexts made for them, share:
// validators written from the providers' rules and not from the encoders, equality of JSON
// that no decoder blurs, and a store's way with messages.
package dialecttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
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
	if depth := jsonx.Depth(j); depth > 1000 {
		t.Fatalf("an extra is %d levels deep", depth)
	}
}

// EqualJSON reports whether two texts are the same JSON value, more sharply than encoding/json
// does: 1.0 is not 1, and half a surrogate pair is not U+FFFD.
func EqualJSON(a, b []byte) bool {
	x, errX := sharp(a)
	y, errY := sharp(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// sharp decodes with numbers as they are written and escapes of half pairs made visible.
func sharp(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(markHalves(raw)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

// markHalves writes an escape of half a pair as text, since decoding would blur it.
func markHalves(raw []byte) []byte {
	// What stands behind a backslash: a whole pair, half of one, anything else.
	escapes := regexp.MustCompile(`(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\[^u]`)
	return escapes.ReplaceAllFunc(raw, func(e []byte) []byte {
		if len(e) != 6 {
			return e
		}
		n, _ := strconv.ParseUint(string(e[2:]), 16, 32)
		return fmt.Appendf(nil, "⟦half %04x⟧", n)
	})
}

// Array writes elements as one JSON array, for comparing and printing.
func Array(elements []jsontext.Value) []byte {
	parts := make([]string, len(elements))
	for i, e := range elements {
		parts[i] = string(e)
	}
	return []byte("[" + strings.Join(parts, ",\n ") + "]")
}

// BytesBecomeBlobs decodes a message whose parts hold the bytes ABC, of these media types, and returns its
// parts: each must have the bytes as its blob.
func BytesBecomeBlobs(t *testing.T, form wire.Form, entries string, mediaTypes ...string) []session.Part {
	t.Helper()
	decoded, err := form.Decode(List(t, entries))
	testkit.Check(t, err)
	parts := decoded.Messages[0].Parts
	for i, mediaType := range mediaTypes {
		p := &parts[i]
		if p.Blob == nil || string(p.Blob.Data) != "ABC" || p.Blob.MediaType != mediaType || p.BlobSHA == nil ||
			*p.BlobSHA != p.Blob.SHA256 || wire.MediaOf(p).MediaType != mediaType {
			t.Errorf("part %d: %+v of %s, want the bytes ABC of type %s", i, p.Blob, p.Extra, mediaType)
		}
	}
	return parts
}

// RefusesMissingBlobs claims that a part whose blob was not read with it is an error, in a message of any
// form and role.
func RefusesMissingBlobs(t *testing.T, form wire.Form) {
	t.Helper()
	for _, dialect := range []string{form.Name, "another"} {
		for _, role := range []session.Role{session.System, session.User, session.Assistant, session.Tool} {
			m := session.Message{
				Kind: session.KindMessage, Role: role, Dialect: dialect, InContext: true,
				Parts: []session.Part{{Kind: session.PartText, BlobSHA: new("abc")}},
			}
			if _, err := form.Export([]session.Message{m}); session.CodeOf(err) != session.Internal {
				t.Errorf("export of %s, %s: %v", dialect, role, err)
			}
			if _, err := form.Send(wire.Request{Messages: []session.Message{m}}); session.CodeOf(err) != session.Internal {
				t.Errorf("send of %s, %s: %v", dialect, role, err)
			}
		}
	}
}
