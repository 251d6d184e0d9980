package contextmgr

import (
	"context"
	"slices"
	"sync"

	"sessiond/internal/session"
)

// Bounds of what is remembered of paths, in bytes.
const (
	mostRemembered = 48 << 20
	mostOfOnePath  = 8 << 20
	bytesOfMessage = 700 // of its fields, about
)

// pathMemory remembers what was last read of sessions' paths. Messages never change, and what
// lies before one is always the same, so that the next context reads only what came since.
// Nobody may write to the messages that it gives.
type pathMemory struct {
	mu    sync.Mutex
	by    map[session.ID]*remembered
	bytes int
	clock int64
}

type remembered struct {
	path  []session.Message // in a row, oldest first
	bytes int
	used  int64
}

// of gives what is remembered of a session, nil for nothing.
func (p *pathMemory) of(id session.ID) []session.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.by[id]
	if known == nil {
		return nil
	}
	p.clock++
	known.used = p.clock
	return known.path
}

// keep remembers a path instead of what was known of the session, and forgets what was not used
// for longest where that is too much.
func (p *pathMemory) keep(id session.ID, path []session.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.by[id]; known != nil && len(path) > 0 && len(known.path) > 0 && len(path) == len(known.path) &&
		path[0].RowID == known.path[0].RowID && path[len(path)-1].RowID == known.path[len(path)-1].RowID {
		return
	}
	p.forget(id)
	bytes := sizeOf(path)
	if len(path) == 0 || bytes > mostOfOnePath {
		return
	}
	for p.bytes+bytes > mostRemembered {
		var oldest session.ID
		for other, known := range p.by {
			if oldest == "" || known.used < p.by[oldest].used {
				oldest = other
			}
		}
		p.forget(oldest)
	}
	if p.by == nil {
		p.by = map[session.ID]*remembered{}
	}
	p.clock++
	p.by[id] = &remembered{path: slices.Clone(path), bytes: bytes, used: p.clock}
	p.bytes += bytes
}

// forget must be called with the mutex held.
func (p *pathMemory) forget(id session.ID) {
	if known := p.by[id]; known != nil {
		p.bytes -= known.bytes
		delete(p.by, id)
	}
}

func sizeOf(path []session.Message) int {
	n := len(path) * bytesOfMessage
	for i := range path {
		m := &path[i]
		n += len(m.Extra) + len(m.Metadata)
		for k := range m.Parts {
			part := &m.Parts[k]
			n += bytesOfMessage/4 + len(part.Text) + len(part.Arguments) + len(part.Extra)
			if part.Blob != nil {
				n += len(part.Blob.Data)
			}
		}
	}
	return n
}

// Forget drops what is remembered of purged sessions, and of forks that share messages with them.
func (m *Manager) Forget() {
	if digest, ok := m.cfg.Digest.(interface{ Forget() }); ok {
		digest.Forget()
	}
	m.paths.mu.Lock()
	defer m.paths.mu.Unlock()
	m.paths.by, m.paths.bytes = nil, 0
}

// walk goes from head towards the root, the newest message first, until yield returns false or
// rows are below lowest. It reads from the store what is not remembered: rows fall along a path.
func (m *Manager) walk(ctx context.Context, id session.ID, head, lowest int64, yield func(session.Message) bool) error {
	known, next := m.paths.of(id), &head
	if len(known) == 0 {
		return m.store.WalkDownTo(ctx, head, lowest, yield)
	}
	newest, stopped := known[len(known)-1].RowID, false
	if err := m.store.WalkDownTo(ctx, head, max(lowest, newest+1), func(msg session.Message) bool {
		next, stopped = msg.ParentID, !yield(msg)
		return !stopped
	}); err != nil || stopped {
		return err
	}
	if next == nil || *next < lowest {
		return nil
	}
	from, found := slices.BinarySearchFunc(known, *next, func(msg session.Message, row int64) int { return int(msg.RowID - row) })
	if !found { // a branch that leaves before what is known
		return m.store.WalkDownTo(ctx, *next, lowest, yield)
	}
	for _, msg := range slices.Backward(known[:from+1]) {
		if msg.RowID < lowest || !yield(msg) {
			return nil
		}
	}
	if parent := known[0].ParentID; parent != nil && *parent >= lowest {
		return m.store.WalkDownTo(ctx, *parent, lowest, yield)
	}
	return nil
}
