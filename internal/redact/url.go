package redact

import "strings"

// URLKey replaces the values of key=, api_key=, access_token= and the like in URLs of s with a mark,
// whatever they look like. Some clients put the key into the URL and the URL into their errors.
func URLKey(s string) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(s); i++ {
		if s[i] != '?' && s[i] != '&' {
			continue
		}
		from := i + 1
		eq := run(s, from, isKey)
		if eq == len(s) || s[eq] != '=' || nameKind(s[from:eq]) == "" {
			continue
		}
		to := run(s, eq+1, func(c byte) bool { return isValue(c) && c != '#' })
		if to == eq+1 {
			continue
		}
		b.WriteString(s[done : eq+1])
		b.WriteString("[secret]")
		done, i = to, to-1
	}
	return b.String() + s[done:]
}
