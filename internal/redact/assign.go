package redact

import "strings"

// findAssigned returns the secret behind the '=' or ':' at i, if the name before it announces one and
// the value looks like one. It covers shell, .env, YAML, JSON (also escaped inside another string),
// query strings and most code.
func (t *text) findAssigned(i int) (start, end int, kind string) {
	s, floor := t.s, t.floor
	kind = nameKind(nameBefore(s, i, floor))
	if kind == "" {
		return 0, 0, ""
	}
	from := i + 1
	if from < len(s) && (s[from] == '=' || s[from] == '>') && s[i] == '=' { // == is a comparison, => an arrow
		return 0, 0, ""
	}
	for from < len(s) && (s[from] == ' ' || s[from] == '\t') {
		from++
	}
	quoted := false
	for from < len(s) && (s[from] == '\\' || s[from] == '"' || s[from] == '\'' || s[from] == '`') {
		quoted = true
		from++
	}
	to := t.run(from, value)
	if v := sample(s[from:to]); isPlaceholder(v) || !isSecretValue(v, kind, quoted) {
		return 0, 0, ""
	}
	return from, to, kind
}

// nameBefore returns the name before i: at most 64 letters, digits, '_' and '-'.
func nameBefore(s string, i, floor int) string {
	end := i
	for end > floor && (s[end-1] == ' ' || s[end-1] == '"' || s[end-1] == '\'' || s[end-1] == '\\') && i-end < 4 {
		end--
	}
	start := end
	for start > floor && end-start < 64 && isKey(s[start-1]) {
		start--
	}
	return s[start:end]
}

// nameKind returns the kind of secret that a name announces; "" for others, like "max_tokens".
func nameKind(name string) string {
	if len(name) < 3 {
		return ""
	}
	switch name[len(name)-1] | 0x20 { // the last letters of the endings below; most names have others
	case 'd', 'e', 'n', 's', 't', 'y':
	default:
		return ""
	}
	flat := make([]byte, 0, 64)
	for k := range len(name) {
		switch c := name[k]; {
		case c >= 'A' && c <= 'Z':
			flat = append(flat, c+'a'-'A')
		case c != '_' && c != '-':
			flat = append(flat, c)
		}
	}
	n := string(flat)
	if isPass(name) {
		return "password"
	}
	for _, known := range [...]struct{ ending, kind string }{
		{"password", "password"},
		{"passwd", "password"},
		{"passphrase", "password"},
		{"pwd", "password"},
		{"apikey", "api key"},
		{"accesskey", "api key"},
		{"secretkey", "secret key"},
		{"accountkey", "secret key"},
		{"signingkey", "secret key"},
		{"encryptionkey", "secret key"},
		{"authkey", "secret key"},
		{"secretkeybase", "secret key"},
		{"clientsecret", "secret key"},
		{"secret", "secret key"},
		{"token", "token"},
		{"key", "key"},
	} {
		if strings.HasSuffix(n, known.ending) {
			return known.kind
		}
	}
	return ""
}

// isPass reports whether a name's last word is "pass": PASS, DB_PASS, dbPass, but not bypass.
func isPass(name string) bool {
	i := len(name) - len("pass")
	if i < 0 || !strings.EqualFold(name[i:], "pass") {
		return false
	}
	return i == 0 || name[i-1] == '_' || name[i-1] == '-' || name[i] == 'P' && name[i+1] == 'a'
}

// isSecretValue reports whether a value is random enough to be the secret that its name announces.
// A plain "key" often names harmless things, so its value must be the most random.
func isSecretValue(v, kind string, quoted bool) bool {
	switch kind {
	case "password":
		least := 8
		if quoted {
			least = 6
		}
		return len(v) >= least && (isMixed(v) || quoted && hasSymbol(v))
	case "key":
		return len(v) >= 24 && hasDigit(v) && hasLower(v) && hasUpper(v) && distinct(v) >= 14
	default:
		return len(v) >= 12 && isMixed(v) && distinct(v) >= 6
	}
}

// isPlaceholder reports whether a value only stands for a secret: $PASS, ${PASS}, <password>,
// {{ .Password }}, %s, *** or a mark of Mask.
func isPlaceholder(v string) bool {
	if v == "" {
		return true
	}
	switch v[0] {
	case '$', '<', '{', '%', '*', '[', '(', '.':
		return true
	}
	return strings.Trim(v, "xX*.") == "" || strings.HasPrefix(v, "os.") || strings.HasPrefix(v, "process.env")
}
