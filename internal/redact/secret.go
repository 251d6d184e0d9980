package redact

import (
	"slices"
	"strings"
)

// Secret is a secret that stands in a text.
type Secret struct {
	Kind  string
	Value string
	Known bool // it has the shape of its kind; else only its name, or its place, announces a secret
}

// secretOf returns the secret that a mask replaces. A value of a known shape is of that kind, whatever its name says:
// GITHUB_TOKEN=ghp_… is a GitHub token.
func secretOf(kind, value string) Secret {
	t := text{s: value}
	if start, end, shape := t.find(0); shape != "" && start == 0 && end == len(value) && isShape(shape) {
		return Secret{Kind: shape, Value: value, Known: true}
	}
	return Secret{Kind: kind, Value: value, Known: isShape(kind)}
}

// IsExample reports whether a secret is one of a manual or a test: it says so, or it is less random than a real one.
func (s *Secret) IsExample() bool {
	v := strings.ToLower(s.Value)
	for _, word := range [...]string{
		"example", "placeholder", "redacted", "changeme", "your", "dummy", "fake", "xxxx", "...", "12345678", "abcdefgh",
	} {
		if strings.Contains(v, word) {
			return true
		}
	}
	return s.Known && distinct(s.Value) < 10
}

// Kinds returns the kinds of secrets that have a shape of their own.
func Kinds() []string {
	kinds := []string{jwt, privateKey}
	for _, some := range shapes {
		for _, sh := range some {
			if !slices.Contains(kinds, sh.kind) {
				kinds = append(kinds, sh.kind)
			}
		}
	}
	slices.Sort(kinds)
	return kinds
}

func isShape(kind string) bool { return slices.Contains(Kinds(), kind) }
