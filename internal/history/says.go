package history

import (
	"hash/maphash"

	"sessiond/internal/session"
)

// Says tells two messages apart by what they say and when, as far as both a reader and the
// store know it: not by their names, nor by what is kept beside them. The sum means something
// for equal seeds only.
func Says(seed maphash.Seed, m *session.Message) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	text := func(s string) { // a hash's writes do not fail
		_, _ = h.WriteString(s)
		_ = h.WriteByte(0)
	}
	text(m.CreatedAt.SQL())
	text(string(m.Kind) + string(m.Role))
	for i := range m.Parts {
		p := &m.Parts[i]
		text(string(p.Kind) + p.CallID + p.Content())
		if o, ok := ParseObject([]byte(p.Arguments)); ok {
			text(Fingerprint(o)) // a program may write them anew
		} else {
			text(p.Arguments)
		}
	}
	return h.Sum64()
}
