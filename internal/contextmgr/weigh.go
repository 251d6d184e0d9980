package contextmgr

import (
	"math"
	"slices"
	"sync"

	"sessiond/internal/session"
)

// scales counts in tokens of one model: by its family's counter, times the scale that was
// learned from reports.
type scales struct {
	family    string
	counter   Counter
	reference bool // the counts that messages carry are of this family
	scale     float64
	doubt     float64 // share of a scaled count that two standard errors are
	memory    *weightMemory
}

// Text implements Weigh.
func (s *scales) Text(text string) int64 { return s.scaled(s.counter.Text(text)) }

// Message implements Weigh. A stored message never changes, so its size is counted once.
func (s *scales) Message(m *session.Message, changed bool) int64 {
	if changed || m.RowID == 0 {
		return s.scaled(s.measure(m))
	}
	if s.reference && m.Tokens > 0 {
		return s.scaled(m.Tokens)
	}
	return s.scaled(s.memory.get(weightKey{s.family, m.RowID}, func() int64 { return s.measure(m) }))
}

func (s *scales) measure(m *session.Message) int64 {
	c := *m
	c.Parts = slices.Clone(m.Parts)
	s.counter.Measure(&c)
	return c.Tokens
}

func (s *scales) scaled(n int64) int64 { return int64(math.Ceil(float64(n) * s.scale)) }

// errorOf is by how much a scaled count may well be off.
func (s *scales) errorOf(scaled int64) int64 { return int64(math.Ceil(float64(scaled) * s.doubt)) }

// unscaled turns tokens of the model into those of the reference counter, about.
func (s *scales) unscaled(n int64) int64 { return int64(float64(n) / s.scale) }

type weightKey struct {
	family string
	rowID  int64
}

// mostWeights bounds the memory of sizes: some megabytes.
const mostWeights = 1 << 16

// weightMemory remembers sizes of stored messages in families other than the reference.
type weightMemory struct {
	mu    sync.Mutex
	sizes map[weightKey]int64
}

func (w *weightMemory) get(key weightKey, count func() int64) int64 {
	w.mu.Lock()
	n, ok := w.sizes[key]
	w.mu.Unlock()
	if ok {
		return n
	}
	n = count()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sizes == nil || len(w.sizes) >= mostWeights {
		w.sizes = map[weightKey]int64{}
	}
	w.sizes[key] = n
	return n
}
