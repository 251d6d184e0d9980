package wire

import (
	"bytes"
	"encoding/base64"
	"slices"
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
	if !maySign(p) {
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

// Signature returns a thought signature as it came. It returns nil where there is none, with a loss for one that is no
// base64.
func (s *Sender) Signature(raw jsontext.Value) jsontext.Value {
	if jsonx.IsNull(raw) || string(raw) == `""` {
		return nil
	}
	if text, exact := jsonx.Text(raw); !exact || !IsSignature(text) {
		s.Lose("a thought signature that is no base64")
		return nil
	}
	return raw
}

// SkipSignature returns what is sent for the thought signature of a call that has none. The first is a loss.
func (s *Sender) SkipSignature() jsontext.Value {
	if !s.skipped {
		s.Lose("calls without a thought signature are sent with the one that skips its check")
	}
	s.skipped = true
	return jsonx.Quote(NoSignature)
}

// IsSignature reports whether a text may be a thought signature: base64 in either alphabet, with or without padding, if
// decoding and encoding give the same text.
func IsSignature(text string) bool {
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(text, "-_") {
		encoding = base64.RawURLEncoding
	}
	data, err := encoding.Strict().DecodeString(strings.TrimRight(text, "="))
	return err == nil && len(data) > 0
}

// Signatures says which signatures of thoughts a provider is sent. Send decides about signatures of another maker's
// model.
type Signatures string

// The rules for signatures.
const (
	KeepSignatures Signatures = "keep"
	DropForeign    Signatures = "drop_foreign" // drop ids of OpenAI's messages
	Base64Only     Signatures = "base64_only"
)

func (rule Signatures) accepts(signature string) bool {
	switch rule {
	case DropForeign:
		return !strings.HasPrefix(signature, "msg_")
	case Base64Only:
		return DropForeign.accepts(signature) && IsSignature(signature)
	}
	return true
}

// maySign reports whether a part's extra fields may hold a signature: each program and form has a name of its own for
// them.
func maySign(p *session.Part) bool { return bytes.Contains(p.Extra, []byte("ignature")) }

// dropSignatures drops the signatures that a rule rejects and returns how many.
func (m *fitted) dropSignatures(rule Signatures) int {
	if rule == KeepSignatures || rule == "" {
		return 0
	}
	n := 0
	for i := range m.Parts {
		if !maySign(&m.Parts[i]) {
			continue
		}
		if extra, dropped := withoutSignatures(m.Parts[i].Extra, rule); dropped > 0 {
			m.copyParts()
			m.Parts[i].Extra = session.JSON(extra)
			n += dropped
		}
	}
	return n
}

// withoutSignatures drops the rejected signatures from extra fields. Dialects keep them at the top or under rest; pi
// and Google's form of OpenAI use names of their own.
func withoutSignatures[T ~[]byte](extra T, rule Signatures) (T, int) {
	fields, err := jsonx.ParseObject("", extra)
	if err != nil {
		return extra, 0
	}
	n := 0
	for _, f := range slices.Clone(fields) {
		switch f.Key {
		case "thoughtSignature", "thought_signature", "textSignature":
			isText := jsonx.KindOf(f.Value) == '"' || jsonx.IsNull(f.Value)
			if text, _ := jsonx.Text(f.Value); !isText || !rule.accepts(text) {
				fields.Drop(f.Key)
				n++
			}
		case "rest", "extra_content", "google":
			if inner, dropped := withoutSignatures(f.Value, rule); dropped > 0 {
				fields.Set(f.Key, inner)
				n += dropped
			}
		}
	}
	return T(fields.Value()), n
}
