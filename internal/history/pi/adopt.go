package pi

import (
	"encoding/json"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Entries of version 1 have no ids: they are named by their places, and known again by what
// they say. pi gives them random ids when it opens the file with a later version, and they must
// not double by that, here or in a fork.

func v1Key(place int32) string { return "v1:" + strconv.Itoa(int(place)) }

// HashesByPlace returns the hashes of the messages of a session that are named by their places, by
// their external ids.
func HashesByPlace(in *history.Intake, id session.ID) (map[string]string, error) {
	hashes := map[string]string{}
	first, err := in.Known.Message(in.Context(), id, v1Key(0))
	if err != nil || first == nil {
		return nil, err
	}
	err = in.Known.Entries(in.Context(), id, func(m *session.Message) bool {
		var extra struct {
			Hash string `json:"hash"`
		}
		if strings.HasPrefix(m.ExternalID, "v1:") && json.Unmarshal(m.Extra, &extra) == nil {
			hashes[m.ExternalID] = extra.Hash
		}
		return true
	})
	return hashes, err
}

// adopt renames entries to the names under which a session has them by their places: those of an
// upgraded file, as long as they say the same. An entry of version 1 whose place another one
// took gets a name of its own: the file was changed, and both are history.
func (r *reader) adopt(id session.ID) error {
	hashes, err := HashesByPlace(r.in, id)
	if err != nil || len(hashes) == 0 {
		return err
	}
	for i := range r.next() {
		n := &r.nodes[i]
		before, ok := hashes[v1Key(max(n.place, 0))]
		if !ok || n.place < 0 {
			continue
		}
		line, err := r.raw(i)
		if err != nil {
			return err
		}
		o, _ := parse(line)
		says := fingerprint(o, r.version)
		switch {
		case before == says:
			n.key = v1Key(n.place)
		case r.version == 1:
			n.key = v1Key(n.place) + "#" + says[:12]
		}
	}
	return nil
}
