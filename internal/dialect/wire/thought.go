package wire

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Signed is the first generation of Gemini that refuses a reply whose first call has no thought
// signature: by its own API, and by the one that speaks OpenAI's form.
const Signed = 3

// NoSignature is what Google documents for calls that another model made: it skips the check.
const NoSignature = "skip_thought_signature_validator"

// Generation returns the number in the name of a Gemini: 3 for gemini-3.1-pro, 0 for any other
// model. A name that follows the newest model has a large one.
func Generation(model string) int {
	_, rest, found := strings.Cut(model, "gemini-")
	if !found {
		return 0
	}
	if strings.HasSuffix(rest, "-latest") && (rest[0] < '0' || rest[0] > '9') {
		const newest = 1000
		return newest
	}
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	n, _ := strconv.Atoi(rest[:end])
	return n
}

// CallSignature returns the thought signature of a call as JSON, nil if there is none. It stands
// where the form that the call came in has it: Gemini's own beside the call, OpenAI's under
// extra_content.google, pi's in its block.
func CallSignature(p *session.Part) jsontext.Value {
	if !bytes.Contains(p.Extra, []byte("ignature")) {
		return nil
	}
	var x struct {
		Own  jsontext.Value `json:"thoughtSignature"`
		Rest struct {
			Snake jsontext.Value `json:"thought_signature"`
			Extra struct {
				Google struct {
					Signature jsontext.Value `json:"thought_signature"`
				} `json:"google"`
			} `json:"extra_content"`
		} `json:"rest"`
	}
	if jsonx.Unmarshal(p.Extra, &x) != nil {
		return nil
	}
	for _, raw := range []jsontext.Value{x.Own, x.Rest.Snake, x.Rest.Extra.Google.Signature} {
		if !jsonx.IsNull(raw) {
			return raw
		}
	}
	return nil
}

// IsSignature reports whether a text may be a thought signature: base64 in either alphabet, with
// or without padding.
func IsSignature(text string) bool {
	text = strings.TrimRight(text, "=")
	url := strings.ContainsAny(text, "-_")
	for i := range len(text) {
		c := text[i]
		legal := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
		if !legal && (url || c != '+' && c != '/') {
			return false
		}
	}
	return len(text)%4 != 1 && text != ""
}
