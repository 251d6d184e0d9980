// Package pattern has regular expressions that are compiled at their first use, so that no command pays for those that
// it does not use, and that look for the words of an expression before they try it.
package pattern

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression, for use by several goroutines at once.
type Pattern struct{ compile func() compiled }

type compiled struct {
	*regexp.Regexp
	needles *needles // nil: a match may be without any
}

// New returns a pattern for a package's variable. An expression with an error panics at the first use; internal/arch
// compiles all of them.
func New(expression string) *Pattern {
	return &Pattern{sync.OnceValue(func() compiled {
		return compiled{regexp.MustCompile(expression), needlesOf(expression)}
	})}
}

// MatchString is that of regexp.Regexp.
func (p *Pattern) MatchString(s string) bool {
	c := p.compile()
	if c.needles != nil && !c.needles.mayMatch(s) {
		return false
	}
	return c.MatchString(s)
}

// FindString is that of regexp.Regexp.
func (p *Pattern) FindString(s string) string {
	c := p.compile()
	if c.needles != nil && !c.needles.mayMatch(s) {
		return ""
	}
	return c.FindString(s)
}

// FindStringIndex is that of regexp.Regexp.
func (p *Pattern) FindStringIndex(s string) []int {
	c := p.compile()
	if c.needles != nil && !c.needles.mayMatch(s) {
		return nil
	}
	return c.FindStringIndex(s)
}

// FindStringSubmatch is that of regexp.Regexp.
func (p *Pattern) FindStringSubmatch(s string) []string {
	c := p.compile()
	if c.needles != nil && !c.needles.mayMatch(s) {
		return nil
	}
	return c.FindStringSubmatch(s)
}

// FindAllString is that of regexp.Regexp.
func (p *Pattern) FindAllString(s string, n int) []string {
	c := p.compile()
	if c.needles != nil && !c.needles.mayMatch(s) {
		return nil
	}
	return c.FindAllString(s, n)
}

// FindAllStringIndex is that of regexp.Regexp.
func (p *Pattern) FindAllStringIndex(s string, n int) [][]int {
	c := p.compile()
	if c.needles != nil && !c.needles.mayMatch(s) {
		return nil
	}
	return c.FindAllStringIndex(s, n)
}

// FindAllStringSubmatch is that of regexp.Regexp.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	c := p.compile()
	if c.needles != nil && !c.needles.mayMatch(s) {
		return nil
	}
	return c.FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex is that of regexp.Regexp.
func (p *Pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	c := p.compile()
	if c.needles != nil && !c.needles.mayMatch(s) {
		return nil
	}
	return c.FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString is that of regexp.Regexp.
func (p *Pattern) ReplaceAllString(s, with string) string {
	c := p.compile()
	if c.needles != nil && !c.needles.mayMatch(s) {
		return s
	}
	return c.ReplaceAllString(s, with)
}

// ReplaceAllStringFunc is that of regexp.Regexp.
func (p *Pattern) ReplaceAllStringFunc(s string, f func(string) string) string {
	c := p.compile()
	if c.needles != nil && !c.needles.mayMatch(s) {
		return s
	}
	return c.ReplaceAllStringFunc(s, f)
}

// Split is that of regexp.Regexp.
func (p *Pattern) Split(s string, n int) []string {
	return p.compile().Split(s, n)
}
