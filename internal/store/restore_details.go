package store

import (
	"encoding/json"
	"strings"

	"sessiond/internal/session"
)

// detailsHere gives the names of messages in an overlay's details as they are here: a copy's
// messages have others.
func (r *restorer) detailsHere(raw session.JSON) session.JSON {
	var d session.CompactionDetails
	if r.now.id == r.batch.Session.ID && len(r.batch.Into.ids) == 0 || json.Unmarshal(raw, &d) != nil {
		return raw
	}
	d.TurnStart, d.LastPerson, d.Record = r.hereName(d.TurnStart), r.hereName(d.LastPerson), r.hereName(d.Record)
	for i, output := range d.Pruned {
		d.Pruned[i] = r.hereName(output)
	}
	for i := range d.Replaced {
		for j, name := range d.Replaced[i].Messages {
			d.Replaced[i].Messages[j] = r.hereName(name)
		}
	}
	return session.JSONOf(d)
}

// hereName is here for a name in text, of a message or an output of one.
func (r *restorer) hereName(name string) string {
	message, output, of := strings.Cut(name, "/")
	ref, err := session.ParseRef(message)
	if err != nil {
		return name
	}
	if message = r.here(ref).String(); of {
		message += "/" + output
	}
	return message
}
