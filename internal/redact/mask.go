package redact

import (
	"strconv"
	"strings"
)

// Mask replaces each secret in s that has a known shape with a mark like "[secret: github token]"
// and returns the number of secrets. It scans s once and does not copy a text without a secret.
// Masking a masked text changes nothing.
func Mask(s string) (string, int) { return mask(s, nil) }

// mask is Mask that reports each secret to found, unless that is nil.
func mask(s string, found func(Secret)) (string, int) {
	var b strings.Builder
	t := text{s: s}
	n := 0
	for i := 0; i < len(s); {
		start, end, kind := t.next(i)
		if kind == "" {
			break
		}
		b.WriteString(s[t.floor:start])
		b.WriteString("[secret: " + kind + "]")
		if found != nil {
			found(secretOf(kind, s[start:end]))
		}
		n++
		i, t.floor = end, end
	}
	if n == 0 {
		return s, 0
	}
	b.WriteString(s[t.floor:])
	return b.String(), n
}

// next returns the first secret that begins at i or after it. The kind is empty if there is none.
func (t *text) next(i int) (start, end int, kind string) {
	s := t.s
	for ; i < len(s); i++ {
		switch lead[s[i]] {
		case leadsNothing:
			continue
		case leadsWord:
			if i > 0 && isWord(s[i-1]) && !endsInEscape(s[:i]) {
				continue
			}
		case leadsMark:
		}
		if start, end, kind = t.find(i); kind != "" {
			return start, end, kind
		}
	}
	return 0, 0, ""
}

// endsInEscape reports whether s ends in an escape of JSON (\n, \u001b) or of a URL (%3D), so that its
// last letter or digit belongs to no word.
func endsInEscape(s string) bool {
	n := len(s)
	if n >= 2 && s[n-2] == '\\' {
		return strings.IndexByte("nrtbf", s[n-1]) >= 0
	}
	hex := func(s string) bool { _, err := strconv.ParseUint(s, 16, 32); return err == nil }
	return n >= 3 && s[n-3] == '%' && hex(s[n-2:]) || n >= 6 && s[n-6] == '\\' && s[n-5] == 'u' && hex(s[n-4:])
}

// The kinds of secrets that a byte can begin.
const (
	leadsNothing = iota
	leadsWord    // a shape that begins a word
	leadsMark    // an assignment, a URL's password, a PEM block
)

// lead says which kind of secret each byte can begin, so that next skips most bytes.
var lead = func() (t [256]uint8) {
	t[':'], t['='], t['-'] = leadsMark, leadsMark, leadsMark
	for c := range shapes {
		if len(shapes[c]) > 0 {
			t[c] = leadsWord
		}
	}
	t['B'], t['b'], t['e'] = leadsWord, leadsWord, leadsWord // Bearer, Basic, eyJ
	return t
}()

// find returns the secret that begins at i, or whose sign is at i. The kind is empty if there is none.
func (t *text) find(i int) (start, end int, kind string) {
	s := t.s
	switch s[i] {
	case ':':
		if start, end, kind = findURLPassword(s, i); kind != "" {
			return start, end, kind
		}
		return t.findAssigned(i)
	case '=':
		return t.findAssigned(i)
	case '-':
		return t.findPrivateKey(i)
	case 'B', 'b':
		return t.findCredential(i)
	case 'e':
		return t.findJWT(i)
	}
	return t.findPrefixed(i)
}

// The kinds of secrets that have a form, and no prefix of a service.
const (
	jwt        = "jwt"
	privateKey = "private key"
)

// shape is a secret with a known prefix.
type shape struct {
	prefix string
	min    int   // bytes after the prefix
	max    int   // 0: any number
	class  class // of the bytes after the prefix
	digit  bool  // at least one of them is a digit
	kind   string
}

// findPrefixed returns the secret at i with a prefix that a service publishes for its keys.
func (t *text) findPrefixed(i int) (start, end int, kind string) {
	s := t.s
	for _, sh := range shapes[s[i]] {
		if !strings.HasPrefix(s[i:], sh.prefix) {
			continue
		}
		from := i + len(sh.prefix)
		to := t.run(from, sh.class)
		if n := to - from; n < sh.min || sh.max > 0 && n > sh.max {
			continue
		}
		if sh.digit && !hasDigit(sample(s[from:to])) {
			continue
		}
		return i, to, sh.kind
	}
	return 0, 0, ""
}

// shapes lists the shapes by their first byte, the longest prefix first.
var shapes = [256][]shape{
	'A': {
		{"AKIA", 16, 16, upper, false, "aws key id"},
		{"ASIA", 16, 16, upper, false, "aws key id"},
		{"AIza", 30, 60, key, false, "google api key"},
		{"AGE-SECRET-KEY-1", 50, 70, upper, true, "age key"},
	},
	'g': {
		{"github_pat_", 22, 0, word, false, "github token"},
		{"ghp_", 30, 0, word, false, "github token"},
		{"gho_", 30, 0, word, false, "github token"},
		{"ghu_", 30, 0, word, false, "github token"},
		{"ghs_", 30, 0, word, false, "github token"},
		{"ghr_", 30, 0, word, false, "github token"},
		{"glpat-", 18, 0, key, false, "gitlab token"},
		{"glrt-", 18, 0, key, true, "gitlab token"},
		{"gldt-", 18, 0, key, true, "gitlab token"},
		{"glcbt-", 18, 0, key, true, "gitlab token"},
		{"glptt-", 18, 0, key, true, "gitlab token"},
		{"glft-", 18, 0, key, true, "gitlab token"},
		{"glsoat-", 18, 0, key, true, "gitlab token"},
		{"gsk_", 40, 0, word, true, "groq key"},
	},
	'G': {{"GOCSPX-", 20, 0, key, false, "google client secret"}},
	's': {
		{"sk-ant-", 16, 0, key, false, "anthropic key"},
		{"sk_live_", 16, 0, word, false, "stripe key"},
		{"sk_test_", 16, 0, word, false, "stripe key"},
		{"sk-", 20, 0, key, true, "openai key"},
		{"shpat_", 30, 0, word, true, "shopify token"},
		{"sntrys_", 40, 0, base64, true, "sentry token"},
		{"sntryu_", 60, 0, word, true, "sentry token"},
	},
	'S': {{"SG.", 40, 0, dotted, true, "sendgrid key"}},
	'r': {
		{"rk_live_", 16, 0, word, false, "stripe key"},
		{"rk_test_", 16, 0, word, false, "stripe key"},
		{"r8_", 37, 37, word, true, "replicate token"},
	},
	'l': {{"lin_api_", 32, 0, word, true, "linear key"}},
	'p': {
		{"pypi-AgE", 8, 0, key, false, "pypi token"}, // how the site's tokens begin
		{"pypi-", 20, 0, key, true, "pypi token"},
		{"pplx-", 40, 0, word, true, "perplexity key"},
	},
	'x': {
		{"xoxb-", 10, 0, key, true, "slack token"},
		{"xoxp-", 10, 0, key, true, "slack token"},
		{"xoxa-", 10, 0, key, true, "slack token"},
		{"xoxr-", 10, 0, key, true, "slack token"},
		{"xoxs-", 10, 0, key, true, "slack token"},
		{"xoxe", 10, 0, dotted, true, "slack token"},
		{"xapp-", 10, 0, key, true, "slack token"},
		{"xai-", 40, 0, key, true, "xai key"},
	},
	'n': {{"npm_", 30, 0, word, false, "npm token"}},
	'h': {
		{"hooks.slack.com/services/", 20, 0, path, true, "slack webhook"},
		{"hf_", 30, 0, word, false, "hugging face token"},
		{"hvs.", 24, 0, key, true, "vault token"},
	},
	'd': {
		{"dop_v1_", 40, 0, word, true, "digitalocean token"},
		{"dp.pt.", 40, 0, word, true, "doppler token"},
		{"dapi", 32, 34, key, true, "databricks token"},
	},
	'f': {{"figd_", 38, 0, key, true, "figma token"}},
	'w': {{"whsec_", 20, 0, base64, true, "stripe key"}},
	'y': {{"ya29.", 30, 0, dotted, true, "google token"}},
}

// findJWT returns the JWT at i: three base64url pieces joined by dots, of which the first two are JSON
// objects ("eyJ" is `{"` in base64).
func (t *text) findJWT(i int) (start, end int, kind string) {
	s := t.s
	if !strings.HasPrefix(s[i:], "eyJ") {
		return 0, 0, ""
	}
	head := t.run(i, headOfJWT)
	if head-i < 10 || !strings.HasPrefix(s[head:], ".eyJ") {
		return 0, 0, ""
	}
	body := t.run(head+1, bodyOfJWT)
	if body == len(s) || s[body] != '.' {
		return 0, 0, ""
	}
	return i, run(s, body+1, isKey), jwt
}

// findPrivateKey returns the private key in PEM armour at i. A key without its end, as in cut output,
// reaches as far as its base64.
func (t *text) findPrivateKey(i int) (start, end int, kind string) {
	s := t.s
	const begin, private, dashes = "-----BEGIN ", "PRIVATE KEY", "-----"
	if !strings.HasPrefix(s[i:], begin) {
		return 0, 0, ""
	}
	label := s[i+len(begin) : min(len(s), i+len(begin)+60)]
	at := strings.Index(label, private)
	if at < 0 || strings.Contains(label[:at], dashes) {
		return 0, 0, ""
	}
	from := i + len(begin) + at + len(private)
	if n := strings.Index(s[from:min(len(s), from+20)], dashes); n >= 0 {
		from += n + len(dashes)
	}
	const longest = 16 << 10
	n := strings.Index(s[from:min(len(s), from+longest)], dashes)
	if n < 0 || !strings.HasPrefix(s[from+n:], "-----END ") {
		return i, run(s, from, isArmour), privateKey
	}
	to := from + n + len("-----END ")
	if n := strings.Index(s[to:min(len(s), to+80)], dashes); n >= 0 {
		to += n + len(dashes)
	}
	return i, to, privateKey
}

// findCredential returns the credential of an HTTP header: "Bearer …" or "Basic …".
func (t *text) findCredential(i int) (start, end int, kind string) {
	s := t.s
	word := ""
	switch {
	case len(s)-i > 7 && strings.EqualFold(s[i:i+7], "bearer "):
		word = s[i : i+7]
	case len(s)-i > 6 && strings.EqualFold(s[i:i+6], "basic "):
		word = s[i : i+6]
	default:
		return 0, 0, ""
	}
	from := i + len(word)
	to := run(s, from, isCredential)
	if to-from < 16 || !isMixed(sample(s[from:to])) || strings.HasPrefix(s[to:], "[") {
		return 0, 0, ""
	}
	return from, to, "credential"
}

// findURLPassword returns the password of scheme://user:password@host.
func findURLPassword(s string, i int) (start, end int, kind string) {
	if !strings.HasPrefix(s[i:], "://") {
		return 0, 0, ""
	}
	const longest = 256
	colon := -1
	for j := i + 3; j < len(s) && j < i+longest; j++ {
		switch c := s[j]; {
		case c == ':' && colon < 0:
			colon = j
		case c == '@':
			if colon < 0 || isPlaceholder(s[colon+1:j]) {
				return 0, 0, ""
			}
			return colon + 1, j, "password"
		case c <= ' ', c == '/', c == '"', c == '\'', c == '<', c == '>', c == '`', c == '\\', c == '[' && colon < 0:
			return 0, 0, ""
		}
	}
	return 0, 0, ""
}
