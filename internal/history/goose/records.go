package goose

import (
	"cmp"
	"encoding/hex"
	"hash/maphash"
	"strconv"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// brief is what is remembered of a record until the whole session was looked at: there may be
// millions of them, so that texts lie elsewhere, and seldom in memory.
type brief struct {
	id, offset, size int64
	at               int64 // milliseconds since 1970
	hash             [16]byte
	sum              uint64 // of a prompt: its text; of a reply: what it used; 0: none
	name             history.TextAt
	why, usage, key  history.TextAt // key: one that does not follow from name and occurrence
	occurrence       int32          // how often the name came before
	reply            int32          // the newest one up to this, -1: none
	within           int32          // in from, of a copy; 0: it is the session's own
	says             says
	role             role
	user, agent      bool
	derived          bool
	aside            bool // kept raw, beside the path
	known            bool
}

type role uint8

const (
	otherRole role = iota
	userRole
	assistantRole
)

func roleOf(name string) role {
	switch name {
	case "user":
		return userRole
	case "assistant":
		return assistantRole
	}
	return otherRole
}

// records are those of one session, in its order.
type records struct {
	table history.Table[brief]
	texts history.Texts
	names *history.Names
	from  []session.ID // sessions of which there are copies, from 1 on
	seed  maphash.Seed
}

func newRecords() *records {
	l := &records{from: []session.ID{""}, seed: maphash.MakeSeed()}
	l.names = history.NewNames(func(i int32) uint64 { return l.names.Sum(l.name(l.at(int(i)))) })
	return l
}

func (l *records) close() {
	l.table.Close()
	l.texts.Close()
	l.names.Close()
}

func (l *records) len() int { return l.table.Len() }

// at gives a record's place in the table, good until some others were asked for.
func (l *records) at(i int) *brief { return l.table.At(int32(i)) }

func (l *records) add(r *record) {
	b := brief{
		id: r.id, offset: r.offset, size: r.size, at: r.at.UnixMilli(), sum: r.text, reply: -1, says: r.says, role: roleOf(r.role), user: r.user,
		agent: r.agent, derived: r.derived, aside: r.why != "",
		name: l.texts.Put(r.messageID), why: l.texts.Put(r.why),
	}
	hex.Decode(b.hash[:], []byte(r.hash)) //nolint:errcheck // a fingerprint
	if r.usage != nil {
		b.usage = l.texts.Put(string(r.usage.JSON()))
	}
	if b.role == assistantRole {
		b.sum = l.used(r.usage)
	}
	l.table.Append(b)
}

// used gives the sum of the numbers by which a reply is found, 0 if it has none.
func (l *records) used(usage history.Object) uint64 {
	if usage == nil {
		return 0
	}
	return l.usedNumbers(history.Count(usage.Get("inputTokens")), history.Count(usage.Get("outputTokens")), history.Count(usage.Get("cacheReadTokens")))
}

func (l *records) usedNumbers(input, output, cacheRead int64) uint64 {
	return max(maphash.Comparable(l.seed, [3]int64{input, output, cacheRead}), 1)
}

// record gives all that is remembered of one.
func (l *records) record(i int) record {
	b := *l.at(i)
	return record{
		id: b.id, offset: b.offset, size: b.size, at: b.time(), derived: b.derived, hash: b.hex(), why: l.texts.Get(b.why), says: b.says,
		user: b.user, agent: b.agent, key: l.key(&b), role: [...]string{"", "user", "assistant"}[b.role], messageID: l.texts.Get(b.name),
	}
}

func (b *brief) time() session.Time { return session.At(time.UnixMilli(b.at)) }

func (b *brief) hex() string { return hex.EncodeToString(b.hash[:]) }

// name is what a record is known by, before it is told from others of that name.
func (l *records) name(b *brief) string {
	if b.name == 0 {
		return "h:" + b.hex()
	}
	return l.texts.Get(b.name)
}

// key gives a record's external id.
func (l *records) key(b *brief) string {
	if b.key != 0 {
		return l.texts.Get(b.key)
	}
	return l.name(b) + "#" + strconv.Itoa(int(b.occurrence))
}

// place gives where a record is stored.
func (l *records) place(i int) place {
	b := *l.at(i)
	return place{l.from[b.within], l.key(&b)}
}

// copied says that a record is a copy of what is stored elsewhere.
func (l *records) copied(b *brief, of place) {
	b.known, b.within, b.key = true, 0, l.texts.Put(of.key)
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

// uncopy takes back what copied said of some.
func (l *records) uncopy(from, to int) {
	for i := from; i < to; i++ {
		b := l.at(i)
		b.key, b.within, b.known = 0, 0, false
	}
}

// inOrder puts records in Goose's own order: by seconds, then as the rows were inserted.
func (l *records) inOrder() {
	l.table.Sort(func(a, b *brief) int {
		return cmp.Or(cmp.Compare(a.time().Unix(), b.time().Unix()), cmp.Compare(a.id, b.id))
	})
}

// after gives the next record on the path, -1 if there is none.
func (l *records) after(i int) int {
	for i++; i < l.len(); i++ {
		if !l.at(i).aside {
			return i
		}
	}
	return -1
}

// before gives the record on the path before one, -1 if there is none.
func (l *records) before(i int) int {
	for i--; i >= 0; i-- {
		if !l.at(i).aside {
			return i
		}
	}
	return -1
}
