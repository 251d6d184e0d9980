package summarize

import (
	"slices"
	"sync"
)

// mostRemembered bounds what is remembered of messages, in bytes: some windows full.
const mostRemembered = 24 << 20

// memory remembers what was found in the texts of stored messages. They never change; a text that is
// told in the place of a stored one is read anew, since a reading counts for its text alone. What was
// not asked for since half of the room was filled is forgotten. The zero value is ready; nil
// remembers nothing.
type memory struct {
	mu         sync.Mutex
	young, old map[textKey]*remembered
	bytes      int // of young
}

// textKey is a message's row and which of its parts it is.
type textKey struct {
	rowID int64
	part  int
}

type remembered struct {
	passage
	reading
}

// read gives what is found in a passage, read by rd where it is not known. Nobody may write to it,
// and it is whole only until rd reads the next.
func (m *memory) read(rd *reader, rowID int64, part int, at passage) *reading {
	if m == nil || rowID == 0 {
		return rd.read(at)
	}
	key := textKey{rowID, part}
	if known := m.of(key); known != nil && known.passage == at {
		return &known.reading
	}
	found := rd.read(at)
	m.keep(key, &remembered{at, reading{slices.Clone(found.sentences), slices.Clone(found.terms), slices.Clone(found.facts)}})
	return found
}

func (m *memory) of(key textKey) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.young[key]
	if known == nil {
		if known = m.old[key]; known != nil {
			m.put(key, known)
		}
	}
	return known
}

func (m *memory) keep(key textKey, known *remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(key, known)
}

// put must be called with the mutex held.
func (m *memory) put(key textKey, known *remembered) {
	size := known.size()
	if size > mostRemembered/2 {
		return
	}
	if m.bytes+size > mostRemembered/2 {
		m.old, m.young, m.bytes = m.young, nil, 0
	}
	if m.young == nil {
		m.young = map[textKey]*remembered{}
	}
	if before := m.young[key]; before != nil {
		m.bytes -= before.size()
	}
	m.young[key] = known
	m.bytes += size
}

// size is about what it takes; its text once for itself, and once masked.
func (r *remembered) size() int {
	return 200 + 2*len(r.text) + 72*cap(r.sentences) + 4*cap(r.terms) + 56*cap(r.facts)
}

func (m *memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.young, m.old, m.bytes = nil, nil, 0
}
