package contextmgr

import (
	"math"
	"slices"

	"sessiond/internal/session"
)

// Weigh sizes the content of a context, in tokens of the model.
type Weigh interface {
	Message(m *session.Message, changed bool) int64
	Text(s string) int64
}

// scales counts in tokens of one model: its family's counter times the model's learned scale.
type scales struct {
	family    string
	counter   Counter
	reference bool // the family is that of the stored counts
	scale     float64
	doubt     float64 // two standard errors, as a share of a scaled count
	weights   *cache[weightKey, int64]
}

// weightKey names a stored message's size in a family other than the reference.
type weightKey struct {
	family string
	rowID  int64
}

// Text implements Weigh.
func (s *scales) Text(text string) int64 { return s.scaled(s.counter.Text(text)) }

// Message implements Weigh. A stored message never changes, so it is counted once.
func (s *scales) Message(m *session.Message, changed bool) int64 {
	if changed || m.RowID == 0 {
		return s.scaled(s.count(m))
	}
	if s.reference && m.Tokens > 0 {
		return s.scaled(m.Tokens)
	}
	key := weightKey{s.family, m.RowID}
	n, ok := s.weights.get(key)
	if !ok {
		n = s.count(m)
		s.weights.put(key, n, 1)
	}
	return s.scaled(n)
}

func (s *scales) count(m *session.Message) int64 {
	c := *m
	c.Parts = slices.Clone(m.Parts)
	s.counter.Measure(&c)
	return c.Tokens
}

func (s *scales) scaled(n int64) int64 { return int64(math.Ceil(float64(n) * s.scale)) }

// errorOf returns two standard errors of a scaled count.
func (s *scales) errorOf(scaled int64) int64 { return int64(math.Ceil(float64(scaled) * s.doubt)) }

// unscaled converts tokens of the model into tokens of the reference counter, approximately.
func (s *scales) unscaled(n int64) int64 { return int64(float64(n) / s.scale) }
