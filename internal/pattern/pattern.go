// Package pattern has regular expressions that are compiled at their first use: no command pays for those that it
// does not use.
package pattern

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression, for use by several goroutines at once.
type Pattern struct{ compile func() *regexp.Regexp }

// New returns a pattern for a package's variable. An expression with an error panics at the first use; internal/arch
// compiles all of them.
func New(expression string) *Pattern {
	return &Pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
}

// MatchString is that of regexp.Regexp.
func (p *Pattern) MatchString(s string) bool {
	return p.compile().MatchString(s)
}

// FindString is that of regexp.Regexp.
func (p *Pattern) FindString(s string) string {
	return p.compile().FindString(s)
}

// FindStringIndex is that of regexp.Regexp.
func (p *Pattern) FindStringIndex(s string) []int {
	return p.compile().FindStringIndex(s)
}

// FindStringSubmatch is that of regexp.Regexp.
func (p *Pattern) FindStringSubmatch(s string) []string {
	return p.compile().FindStringSubmatch(s)
}

// FindAllString is that of regexp.Regexp.
func (p *Pattern) FindAllString(s string, n int) []string {
	return p.compile().FindAllString(s, n)
}

// FindAllStringIndex is that of regexp.Regexp.
func (p *Pattern) FindAllStringIndex(s string, n int) [][]int {
	return p.compile().FindAllStringIndex(s, n)
}

// FindAllStringSubmatch is that of regexp.Regexp.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.compile().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex is that of regexp.Regexp.
func (p *Pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return p.compile().FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString is that of regexp.Regexp.
func (p *Pattern) ReplaceAllString(s, with string) string {
	return p.compile().ReplaceAllString(s, with)
}

// ReplaceAllStringFunc is that of regexp.Regexp.
func (p *Pattern) ReplaceAllStringFunc(s string, f func(string) string) string {
	return p.compile().ReplaceAllStringFunc(s, f)
}

// Split is that of regexp.Regexp.
func (p *Pattern) Split(s string, n int) []string {
	return p.compile().Split(s, n)
}
