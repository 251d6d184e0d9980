package store

import "sessiond/internal/session"

// represents counts the messages of the context that a summary stands for and the overlay before
// it did not, where its program does not say how many. A pruning stands for what comes before the
// first message that it keeps.
func (o *importedOverlay) represents(before *overlayRow) (n int64, err error) {
	var stood session.MessageRef // the newest that the one before stands for
	own := int64(0)              // 1: stood is the oldest that it does not
	switch {
	case before == nil:
	case before.strategy != session.StrategyPrune:
		if *before.through >= *o.ThroughID {
			return 0, nil
		}
		stood = before.throughRef
	default:
		c, err := readCompaction(o.ctx, o.tx, before.id)
		if err != nil {
			return 0, err
		}
		if c.FirstKept != nil {
			stood, own = *c.FirstKept, 1
		}
	}
	spans, err := pathSpans(o.ctx, o.tx, o.ThroughID)
	if err != nil {
		return 0, err
	}
	for _, sp := range spans {
		ends := sp.holds(stood)
		if ends {
			sp.From = stood.Seq + 1 - own
		}
		var here int64
		if err := o.importer.row(countInSpan, []any{sp.Session, sp.From, sp.To}, &here); err != nil {
			return 0, err
		}
		if n += here; ends {
			break
		}
	}
	return n, nil
}

const countInSpan = `SELECT COUNT(*) FROM messages WHERE session_id = ? AND seq BETWEEN ? AND ? AND in_context = 1`
