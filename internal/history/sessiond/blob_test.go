package sessiond_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	own "sessiond/internal/history/sessiond"
	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// A blob is written once for a session, as text where it is one, and comes back as the same bytes.
func TestBlobsComeBack(t *testing.T) {
	bytesOf := func(n int) string {
		b := make([]byte, n)
		r := rand.NewChaCha8([32]byte{7})
		_, _ = r.Read(b)
		return string(b)
	}
	for _, c := range []struct {
		name, data string
		kind       session.PartKind
		mediaType  string
		text       bool
	}{
		{
			"lines", strings.Repeat("a line \"quoted\" <b> & \\ \t\r\n", 10_000), session.PartToolResult, session.TextBlob,
			true,
		},
		{"wide characters", strings.Repeat("字é🎉\u2028\u0001x", 20_000), session.PartText, session.TextBlob, true},
		{"a file of text", strings.Repeat("words\n", 50_000), session.PartFile, session.TextBlob, true},
		{"a file of text with NUL", strings.Repeat("words\x00", 50_000), session.PartFile, session.TextBlob, true},
		{"a file said to be text", bytesOf(300<<10 + 1), session.PartFile, session.TextBlob, false},
		{"bytes", bytesOf(300<<10 + 2), session.PartImage, "image/png", false},
		{"bytes that are text", strings.Repeat("words\n", 50_000), session.PartImage, "image/png", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, other := t.TempDir(), t.TempDir()
			s := open(t, dir)
			defer s.Close()
			sess := testkit.Must(s.CreateSession(t.Context(), store.NewSession{}))(t)
			part := session.Part{Kind: c.kind, Blob: &session.Blob{MediaType: c.mediaType, Data: []byte(c.data)}}
			var res store.Appended
			for range 2 { // the second time it is named alone
				res = testkit.Must(s.Append(t.Context(), store.Append{
					Session:  sess.ID,
					Messages: []session.Message{{Role: session.User, Parts: []session.Part{part}}},
				}))(t)
			}
			if c.text && !strings.Contains(c.data, "\x00") { // a system text that says the same is a block beside the blob
				testkit.Must(s.SaveContext(t.Context(), session.Context{SessionID: sess.ID, HeadID: res.Session.HeadID},
					map[string]string{session.BlockSystem: c.data}, nil))(t)
			}
			out := export(t, s, nil, sess.ID)
			sum := sha256.Sum256([]byte(c.data))
			field := `"base64":"` + base64.StdEncoding.EncodeToString([]byte(c.data)) + `"`
			if c.text {
				quoted := testkit.Must(session.MarshalPlain(c.data))(t)
				field = `"text":` + string(quoted)
			}
			want := fmt.Sprintf("{\"type\":\"blob\",\"sha256\":%q,\"media_type\":%q,%s}\n", hex.EncodeToString(sum[:]),
				c.mediaType, field)
			if bytes.Count(out, []byte(want)) != 1 {
				t.Fatal("its line is another one")
			}
			back := openLater(t, other)
			defer back.Close()
			if done := importFile(t, back, other, out, own.Source{}); len(done.Errors) > 0 {
				t.Fatal(done.Errors)
			}
			if again := export(t, back, nil, sess.ID); !bytes.Equal(out, again) {
				t.Error(firstDifference(out, again))
			}
			sound(t, back)
		})
	}
}

// What was kept of data is masked too: it is a line of a log, or JSON, which stays JSON.
func TestDataIsMasked(t *testing.T) {
	const secret = "AKIAIOSFODNN7EXAMPLE"
	for _, size := range []int{1 << 10, 300 << 10} {
		filling := strings.Repeat("a line of a log\\n", size/17)
		for name, c := range map[string]struct{ mediaType, data, masked string }{
			"a line": {session.TextBlob, filling + secret + filling, filling + "[secret: aws key id]" + filling},
			"JSON": {
				"application/json", `{"a":"` + filling + `","k":"-----BEGIN PRIVATE KEY-----\nMIIEow\"x"}`,
				`{"a":"` + filling + `","k":"[secret: private key]\"x"}`,
			},
		} {
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				dir, other := t.TempDir(), t.TempDir()
				s := open(t, dir)
				defer s.Close()
				sess := testkit.Must(s.CreateSession(t.Context(), store.NewSession{}))(t)
				blob := &session.Blob{MediaType: c.mediaType, Data: []byte(c.data)}
				parts := []session.Part{{Kind: session.PartData, Blob: blob}, {Kind: session.PartFile, Blob: blob}}
				testkit.Must(s.Append(t.Context(), store.Append{
					Session:  sess.ID,
					Messages: []session.Message{{Role: session.User, Parts: parts}},
				}))(t)
				mask := &redact.Masker{}
				out := export(t, s, mask, sess.ID)
				back := openLater(t, other)
				defer back.Close()
				importFile(t, back, other, out, own.Source{})
				m := testkit.Must(back.Message(t.Context(), session.MessageRef{Session: sess.ID, Seq: 1}))(t)
				if mask.Masked != 1 || string(m.Parts[0].Blob.Data) != c.masked || string(m.Parts[1].Blob.Data) != c.data {
					t.Errorf("%d masked, the data is %.60q … %.60q", mask.Masked, m.Parts[0].Blob.Data,
						m.Parts[0].Blob.Data[len(c.masked)-60:])
				}
				sound(t, back)
			})
		}
	}
}
