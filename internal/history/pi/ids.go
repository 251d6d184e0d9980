package pi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// ids is a set of ids. Those of eight digits, which nearly all are, take a few bytes each.
type ids struct {
	short map[uint32]struct{}
	long  map[string]struct{}
}

func shortID(id string) (uint32, bool) {
	if len(id) != 8 || !isPlainID(id) {
		return 0, false
	}
	n, err := strconv.ParseUint(id, 16, 32)
	return uint32(n), err == nil
}

func (s *ids) add(id string) {
	if s.short == nil {
		s.short, s.long = map[uint32]struct{}{}, map[string]struct{}{}
	}
	if n, ok := shortID(id); ok {
		s.short[n] = struct{}{}
		return
	}
	s.long[id] = struct{}{}
}

func (s *ids) has(id string) bool {
	if n, ok := shortID(id); ok {
		_, has := s.short[n]
		return has
	}
	_, has := s.long[id]
	return has
}

// idsOf gives the ids of messages by their rows, in as few bytes.
type idsOf struct {
	short map[int64]uint32
	long  map[int64]string
}

func (s *idsOf) set(row int64, id string) {
	if s.short == nil {
		s.short, s.long = map[int64]uint32{}, map[int64]string{}
	}
	if n, ok := shortID(id); ok {
		s.short[row] = n
		delete(s.long, row)
		return
	}
	s.long[row] = id
	delete(s.short, row)
}

// of returns "" for a message that has none.
func (s *idsOf) of(row int64) string {
	if n, ok := s.short[row]; ok {
		return fmt.Sprintf("%08x", n)
	}
	return s.long[row]
}

// identify sets the ids of the messages that were pi's entries: those that pi could have made
// stay, the others are made of them, so that a session and its forks name an entry alike.
func (w *writer) identify() error {
	type other struct {
		row int64
		id  string
	}
	var others []other
	err := w.Each(true, func(m *session.Message) error {
		w.notePlaces(m)
		switch {
		case m.Dialect != string(session.SourcePi) || !isEntryID(m.ExternalID) || w.taken.has(m.ExternalID):
		case isPlainID(m.ExternalID):
			w.ids.set(m.RowID, m.ExternalID)
			w.taken.add(m.ExternalID)
		default:
			others = append(others, other{m.RowID, m.ExternalID})
		}
		return nil
	})
	for _, o := range others {
		if w.renamed[o.id] != "" {
			continue
		}
		sum := sha256.Sum256([]byte(o.id))
		id := hex.EncodeToString(sum[:4])
		if w.taken.has(id) {
			id = w.newID()
		}
		w.ids.set(o.row, id)
		w.renamed[o.id] = id
		w.taken.add(id)
	}
	return err
}

// isEntryID reports whether an external id is an entry's own, and not one that the reader made.
func isEntryID(id string) bool { return id != "" && !strings.ContainsAny(id, ":#") }

// isPlainID reports whether an id is one that pi makes: eight hexadecimal digits, or a UUID.
func isPlainID(id string) bool {
	if len(id) != 8 && len(id) != 36 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case len(id) == 36 && (i == 8 || i == 13 || i == 18 || i == 23):
			if c != '-' {
				return false
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return false
		}
	}
	return true
}

func (w *writer) newID() string {
	for {
		w.made++
		if id := fmt.Sprintf("%08x", w.made); !w.taken.has(id) {
			w.taken.add(id)
			return id
		}
	}
}

// renaming returns the fields of a line with the entries that they name under their new ids.
func (w *writer) renaming(o history.Object) history.Object {
	if len(w.renamed) == 0 {
		return o
	}
	for _, key := range []string{"targetId", "fromId", "firstKeptEntryId"} {
		if id, ok := w.renamed[o.String(key)]; ok {
			o = o.With(key, session.JSONOf(id))
		}
	}
	return o
}
