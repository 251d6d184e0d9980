package claudecode

import (
	"slices"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// mostWithdrawn bounds the rows that one row takes out of the context, and those that are
// remembered for a compaction that keeps some of them.
const mostWithdrawn = 1000

// uuids reads a list of names of rows.
func uuids(raw []byte) []string {
	elements, _ := history.Elements(raw)
	var names []string
	for _, e := range elements[:min(len(elements), mostWithdrawn)] {
		if text, _ := history.Text(e); text != "" && !slices.Contains(names, plain(text)) {
			names = append(names, plain(text))
		}
	}
	return names
}

// withdrawn finds the messages of rows that the model sees no more: nothing stands in their
// place. A reply goes with its last row, whose name it has: of one that is withdrawn in part
// the rest counts. Rows that are not here are passed over.
func (r *reader) withdrawn(id string, st *stream, names []string) ([]history.Replaced, error) {
	var pieces []history.Replaced
	for _, name := range names {
		at, ok, err := r.resolve(id, st, name)
		if err != nil {
			return nil, err
		}
		if !ok || at.Key != name {
			continue
		}
		pieces = append(pieces, history.Replaced{Messages: []history.Place{{Key: at.Key, Session: at.Session}}})
		if at.Session == "" {
			st.Withdrawn = append(st.Withdrawn, at.Key)
		}
	}
	st.Withdrawn = st.Withdrawn[max(0, len(st.Withdrawn)-mostWithdrawn):]
	return pieces, nil
}

// retract makes an overlay of what a row withdraws after a refusal: the model that answers
// instead does not see it. The overlay ends with that row.
func (r *reader) retract(id string, st *stream, w *row, names []string) error {
	pieces, err := r.withdrawn(id, st, names)
	if err != nil || len(pieces) == 0 {
		return err
	}
	c := history.Compaction{Key: w.uuid, ThroughKey: w.uuid, Replaced: pieces, At: history.Place{Key: w.uuid}}
	c.Strategy, c.Trigger, c.Status, c.CreatedAt = session.StrategyPrune, session.TriggerImport, session.StatusDone, w.at
	c.MessageCount, c.Reason = int64(len(pieces)), "Claude Code withdrew messages after a refusal"
	p := r.pending(id, st)
	p.batch.Compactions = append(p.batch.Compactions, c)
	return nil
}

// superseded retracts what the rows of a reply supersede, but for rows of the reply itself.
func (r *reader) superseded(id string, st *stream, rows []*row) error {
	var names []string
	for _, w := range rows {
		names = append(names, uuids(w.Get("supersedesUuids"))...)
	}
	if len(names) == 0 {
		return nil
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(rows, func(w *row) bool { return w.uuid == name })
	})
	return r.retract(id, st, rows[len(rows)-1], names)
}

// supersededBy tells whether a row stands for what its own response said so far: then that is
// a message of its own. One with calls is not: their results would go with it.
func (o *reply) supersededBy(w *row) bool {
	names := uuids(w.Get("supersedesUuids"))
	if len(names) == 0 {
		return false
	}
	named := false
	for _, before := range o.rows {
		named = named || slices.Contains(names, before.uuid)
		for _, block := range before.apart().blocks {
			if block.String("type") == "tool_use" {
				return false
			}
		}
	}
	return named
}
