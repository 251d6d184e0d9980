package goose

import (
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// entry is one row of usage_ledger.
type entry struct {
	at                                   *session.Time
	model, costSource                    string
	input, output, cacheRead, cacheWrite int64
	cost                                 *int64
	compaction                           bool
	hash                                 string
}

func entryOf(c columns) entry {
	e := entry{
		model: c.text("model"), costSource: c.text("cost_source"), compaction: c.text("is_compaction") == "1",
		input: history.Count(c.number("input_tokens")), output: history.Count(c.number("output_tokens")),
		cacheRead: history.Count(c.number("cache_read_tokens")), cacheWrite: history.Count(c.number("cache_write_tokens")),
	}
	if e.input+e.output == 0 {
		e.input = history.Count(c.number("total_tokens"))
	}
	if at, ok := timeOf(c.number("created_timestamp")); ok {
		e.at = &at
	}
	if cost, ok := history.NanoUSD(c.number("cost")); ok {
		e.cost = &cost
	}
	var o history.Object
	for name, value := range c {
		if name != "id" && name != "session_id" && value != nil {
			o = append(o, history.Field{Key: name, Raw: raw(session.JSONOf(c.text(name)))})
		}
	}
	e.hash = history.Fingerprint(o)
	return e
}

// ledger is the rows of usage_ledger that belong to a session. There may be one for each reply:
// they are read again when they are counted.
type ledger struct {
	d             *database
	of            string
	rows          int
	input, output int64   // sums
	summaries     []entry // those of compactions
}

// look learns what there is.
func (l *ledger) look() error {
	return l.each(func(e *entry) error {
		l.rows++
		l.input, l.output = l.input+e.input, l.output+e.output
		if e.compaction {
			l.summaries = append(l.summaries, *e)
		}
		return nil
	})
}

func (l *ledger) each(yield func(*entry) error) error {
	return l.d.each(tableLedger, `WHERE session_id = ? ORDER BY id`, func(c columns) error {
		e := entryOf(c)
		return yield(&e)
	}, l.of)
}

// occurrences counts how often a name came before.
type occurrences struct {
	names *history.Names
	table history.Table[occurrence]
}

type occurrence struct {
	sum uint64 // of the name
	n   int32
}

func newOccurrences() *occurrences {
	o := &occurrences{}
	o.names = history.NewNames(func(i int32) uint64 { return o.table.At(i).sum })
	return o
}

func (o *occurrences) next(name string) int32 {
	sum := o.names.Sum(name)
	if i, again := o.names.Get(sum); again {
		at := o.table.At(i)
		at.n++
		return at.n
	}
	o.names.Set(sum, int32(o.table.Len()))
	o.table.Append(occurrence{sum: sum})
	return 0
}

func (o *occurrences) close() {
	o.table.Close()
	o.names.Close()
}
