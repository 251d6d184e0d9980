package pi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// identify gives the messages that were pi's entries their ids: those that pi could have made
// stay, the others are made of them, so that a session and its forks name an entry alike.
func (w *writer) identify() {
	var others []*session.Message
	for i := range w.Messages {
		m := &w.Messages[i]
		switch {
		case m.Dialect != string(session.SourcePi) || !isEntryID(m.ExternalID) || w.taken[m.ExternalID]:
		case isPlainID(m.ExternalID):
			w.ids[m.RowID] = m.ExternalID
			w.taken[m.ExternalID] = true
		default:
			others = append(others, m)
		}
	}
	for _, m := range others {
		if w.renamed[m.ExternalID] != "" {
			continue
		}
		sum := sha256.Sum256([]byte(m.ExternalID))
		id := hex.EncodeToString(sum[:4])
		if w.taken[id] {
			id = w.newID()
		}
		w.ids[m.RowID], w.renamed[m.ExternalID], w.taken[id] = id, id, true
	}
}

// isEntryID tells whether an external id is an entry's own, and not one that the reader made.
func isEntryID(id string) bool { return id != "" && !strings.ContainsAny(id, ":#") }

// isPlainID tells whether an id is one that pi makes: eight hexadecimal digits, or a UUID.
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
		if id := fmt.Sprintf("%08x", w.made); !w.taken[id] {
			w.taken[id] = true
			return id
		}
	}
}

// renaming gives the fields of a line with the entries that they name under their new ids.
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
