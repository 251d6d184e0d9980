package opencode

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// brief is what is remembered of a record until the whole session was looked at: there may be
// millions of them, so that texts lie elsewhere, and seldom in memory.
type brief struct {
	offset, size int64
	at           int64  // milliseconds since 1970
	order        int64  // of a row in session_message: the greatest at until its seq
	sum          uint64 // of the name that tells it from others
	hash         [16]byte
	id           history.TextAt
	rest         history.TextAt // why, answers, tail, call, and what was pruned
	parts        history.TextAt
	key, last    history.TextAt // 0: as the id says, and as the key
	records      int32
	within       int32 // in from, of a copy; 0: it is the session's own
	plain        int32 // the newest record on the path before it; -1: none
	seq          int32 // in session_message, from 1; 0: it is not there
	role         role
	aside        bool // kept raw, beside the path
	open, failed bool
	request      bool
	summary      bool
	alone        bool
	called       bool // the ledger has a call of it
	pruned       bool
	known        bool
	second       bool // it is a row of session_message
}

type role uint8

const (
	otherRole role = iota
	userRole
	assistantRole
	systemRole
	markerRole
)

func roleOf(name string) role {
	for r := userRole; r <= markerRole; r++ {
		if r.String() == name {
			return r
		}
	}
	return otherRole
}

func (r role) String() string { return [...]string{"", "user", "assistant", "system", "marker"}[r] }

// records are those of one session, in its order.
type records struct {
	table history.Table[brief]
	texts history.Texts
	names *history.Names // of keys
	from  []session.ID   // sessions of which there are copies, from 1 on
	n     int            // those behind are unfinished
}

func newRecords() *records {
	l := &records{from: []session.ID{""}}
	l.names = history.NewNames(func(i int32) uint64 { return l.at(int(i)).sum })
	return l
}

func (l *records) close() {
	l.table.Close()
	l.texts.Close()
	l.names.Close()
}

// at gives a record's place in the table, good until some others were asked for.
func (l *records) at(i int) *brief { return l.table.At(int32(i)) }

func (l *records) add(r *record) {
	b := brief{
		offset: r.offset, size: r.size, at: r.at.UnixMilli(), id: l.texts.Put(r.id), parts: l.texts.Put(joined(r.parts)), records: int32(r.records), plain: -1,
		role: roleOf(r.role), aside: r.why != "", open: r.open, failed: r.failed, request: r.request, summary: r.summary, alone: r.alone,
		called: r.call != "", pruned: len(r.pruned) > 0, second: r.second, seq: int32(r.seq), order: r.order,
	}
	if r.why != "" || r.answers != "" || r.tail != "" || r.call != "" || b.pruned {
		rest := []string{r.why, r.answers, r.tail, r.call}
		for _, p := range r.pruned {
			rest = append(rest, strconv.FormatInt(p.at, 10), p.call)
		}
		b.rest = l.texts.Put(joined(rest))
	}
	hex.Decode(b.hash[:], []byte(r.hash)) //nolint:errcheck // a fingerprint
	l.table.Append(b)
	l.n++
}

// joined writes texts, whatever they hold, as one.
func joined(texts []string) string {
	var b []byte
	for _, text := range texts {
		b = appendText(b, text)
	}
	return string(b)
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func divided(all string) (texts []string) {
	b := []byte(all)
	for len(b) > 0 {
		n, head := binary.Uvarint(b)
		texts = append(texts, string(b[head:head+int(n)]))
		b = b[head+int(n):]
	}
	return texts
}

// record gives all that is remembered of one, but for its parts.
func (l *records) record(i int) record {
	b := *l.at(i)
	r := record{
		id: l.texts.Get(b.id), offset: b.offset, size: b.size, at: b.time(), role: b.role.String(), hash: b.hex(), records: int(b.records), open: b.open,
		failed: b.failed, request: b.request, summary: b.summary, alone: b.alone, key: l.key(&b),
		second: b.second, seq: int(b.seq), order: b.order,
	}
	if rest := divided(l.texts.Get(b.rest)); len(rest) > 0 {
		r.why, r.answers, r.tail, r.call = rest[0], rest[1], rest[2], rest[3]
		for marks := rest[4:]; len(marks) > 1; marks = marks[2:] {
			at, _ := strconv.ParseInt(marks[0], 10, 64) // as it was written
			r.pruned = append(r.pruned, pruned{at, marks[1]})
		}
	}
	return r
}

func (b *brief) time() session.Time { return session.At(time.UnixMilli(b.at)) }

func (b *brief) hex() string { return hex.EncodeToString(b.hash[:]) }

// named gives the external id that a record has by its own id.
func (l *records) named(b *brief) string {
	if name := strings.ReplaceAll(clean(l.texts.Get(b.id)), "#", "_"); name != "" {
		return name
	}
	return "h:" + b.hex()
}

// key gives a record's external id.
func (l *records) key(b *brief) string {
	if b.key != 0 {
		return l.texts.Get(b.key)
	}
	return l.named(b)
}

// last gives where the last of the messages is stored that a record became.
func (l *records) last(i int) place {
	b := *l.at(i)
	if b.last == 0 {
		return place{l.from[b.within], l.key(&b)}
	}
	return place{l.from[b.within], l.texts.Get(b.last)}
}

// copied says that a record is a copy of what is stored elsewhere.
func (l *records) copied(i int, of place, last string) {
	key, end := l.texts.Put(of.key), l.texts.Put(last)
	b := l.at(i)
	b.known, b.key, b.last = true, key, end
	for i, id := range l.from {
		if i > 0 && id == of.session {
			b.within = int32(i)
		}
	}
	if b.within == 0 {
		b.within = int32(len(l.from))
		l.from = append(l.from, of.session)
	}
}

// uncopy takes back what copied said of the first ones.
func (l *records) uncopy(to int) {
	for i := range to {
		b := l.at(i)
		b.key, b.last, b.within, b.known = 0, 0, 0, false
	}
}

// inOrder puts records in the order of messages in a session: by time, then by seq, then by id.
// Rows of session_message stay in the order of their seq, whatever their times say.
func (l *records) inOrder() {
	l.table.Sort(func(a, b *brief) int {
		if c := cmp.Or(cmp.Compare(a.sortTime(), b.sortTime()), cmp.Compare(a.seq, b.seq)); c != 0 {
			return c
		}
		return compareIDs(l.texts.Get(a.id), l.texts.Get(b.id))
	})
}

// sortTime returns the time by which a record is ordered.
func (b *brief) sortTime() int64 {
	if b.seq > 0 {
		return b.order
	}
	return b.at
}

// count adds up the records of the source that some stand for.
func (l *records) count(from, to int) (n int) {
	for i := from; i < to; i++ {
		n += int(l.at(i).records)
	}
	return n
}
