package gemini_test

import (
	"strings"
	"testing"

	"sessiond/internal/dialect/gemini"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

// A part in both spellings is none that its columns give back: it keeps its own JSON, but not
// the bytes in it.
func TestAPartThatDoesNotComeBackKeepsItsOwnJSONWithoutBytes(t *testing.T) {
	contents := list(t, `[{"role":"user","parts":[{"inline_data":{"mimeType":"image/png","data":"QUJD"}}]}]`)
	decoded := testkit.Must(gemini.Decode(contents))(t)
	p := &decoded.Messages[0].Parts[0]
	if extra := string(p.Extra); !strings.Contains(extra, `"raw":{"inline_data":{"mimeType":"image/png","data":"blob:`+p.Blob.SHA256) || strings.Contains(extra, "QUJD") {
		t.Errorf("extra %s", extra)
	}
	dialecttest.RoundTrip(t, gemini.Form(), contents)
}
