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

// on returns the expression for a text, nil if it cannot match there.
func (p *Pattern) on(s string) *regexp.Regexp {
	c := p.compile()
	if c.needles != nil && !c.needles.mayMatch(s) {
		return nil
	}
	return c.Regexp
}

// MatchString is that of regexp.Regexp.
func (p *Pattern) MatchString(s string) bool {
	if re := p.on(s); re != nil {
		return re.MatchString(s)
	}
	return false
}

// FindString is that of regexp.Regexp.
func (p *Pattern) FindString(s string) string {
	if re := p.on(s); re != nil {
		return re.FindString(s)
	}
	return ""
}

// FindStringIndex is that of regexp.Regexp.
func (p *Pattern) FindStringIndex(s string) []int {
	if re := p.on(s); re != nil {
		return re.FindStringIndex(s)
	}
	return nil
}

// FindStringSubmatch is that of regexp.Regexp.
func (p *Pattern) FindStringSubmatch(s string) []string {
	if re := p.on(s); re != nil {
		return re.FindStringSubmatch(s)
	}
	return nil
}

// FindAllString is that of regexp.Regexp.
func (p *Pattern) FindAllString(s string, n int) []string {
	if re := p.on(s); re != nil {
		return re.FindAllString(s, n)
	}
	return nil
}

// FindAllStringIndex is that of regexp.Regexp.
func (p *Pattern) FindAllStringIndex(s string, n int) [][]int {
	if re := p.on(s); re != nil {
		return re.FindAllStringIndex(s, n)
	}
	return nil
}

// FindAllStringSubmatch is that of regexp.Regexp.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	if re := p.on(s); re != nil {
		return re.FindAllStringSubmatch(s, n)
	}
	return nil
}

// FindAllStringSubmatchIndex is that of regexp.Regexp.
func (p *Pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	if re := p.on(s); re != nil {
		return re.FindAllStringSubmatchIndex(s, n)
	}
	return nil
}

// ReplaceAllString is that of regexp.Regexp.
func (p *Pattern) ReplaceAllString(s, with string) string {
	if re := p.on(s); re != nil {
		return re.ReplaceAllString(s, with)
	}
	return s
}

// ReplaceAllStringFunc is that of regexp.Regexp.
func (p *Pattern) ReplaceAllStringFunc(s string, f func(string) string) string {
	if re := p.on(s); re != nil {
		return re.ReplaceAllStringFunc(s, f)
	}
	return s
}

// Split is that of regexp.Regexp.
func (p *Pattern) Split(s string, n int) []string {
	return p.compile().Split(s, n)
}
