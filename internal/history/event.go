package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"strconv"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Event is a line of a file that only grows: one JSON object, which becomes at most one message. A
// program embeds it, with `json:"-"`, in the type of its lines.
type Event struct {
	Line  FileLine
	Key   string       // its name in the session
	Time  session.Time // its own, else that of the event before it
	Timed bool         // Time is its own
	Note  string       // what is odd about it
	Wrong string       // why the line is no event of the program; "": it is one
	exact bool         // text can hold all that the line says
}

// eventOf is a program's type of lines.
type eventOf[T any] interface {
	*T
	// Head returns what names an event. ok is false for an object that is no event of the program.
	Head() (e *Event, id, timestamp string, ok bool)
}

// decodeEvent decodes a line. Bytes that are no UTF-8, NUL and halves of surrogate pairs become U+FFFD.
func decodeEvent[T any, P eventOf[T]](l FileLine) (p P, id string) {
	line := Unmarked(l.Bytes)
	exact := utf8.Valid(line) && !bytes.Contains(line, []byte(`\u0000`))
	if !exact {
		line = bytes.ToValidUTF8(line, []byte(string(utf8.RuneError)))
	}
	p = new(T)
	err := jsonv2.Unmarshal(line, p)
	if err != nil {
		exact, p = false, new(T)
		err = jsonx.Unmarshal(line, p)
	}
	e, id, timestamp, ok := p.Head()
	e.Line, e.exact = l, exact
	e.Time, e.Timed = ParseTime(timestamp)
	switch {
	case err != nil || !ok:
		e.Wrong = "not a JSON object of a known form, or a name occurs twice"
	case jsonx.DeeperThan(l.Bytes, MaxDepth):
		e.Wrong = "nested too deep"
	}
	return p, Plain(id)
}

// headLines is how many lines FirstEvent searches.
const headLines = 256

// FirstEvent returns the first event in the first lines of a file that is wanted, nil if there is none.
func FirstEvent[T any, P eventOf[T]](in *Intake, wanted func(P) bool) P {
	for l := range in.Survey {
		p, _ := decodeEvent[T, P](l)
		if e, _, _, _ := p.Head(); e.Wrong == "" && wanted(p) {
			return p
		}
		if l.Number >= headLines {
			break
		}
	}
	return nil
}

// EachEvent visits the events of a file, and the lines that are none, for which Wrong is set. begun is
// the time of events before the first one that has its own. An event is named by its id, one without
// an id by its content; events with one id are numbered. An event that is there twice is skipped.
func EachEvent[T any, P eventOf[T]](in *Intake, begun session.Time, visit func(P)) {
	seed, seen, times := maphash.MakeSeed(), map[string]uint64{}, map[string]int{}
	in.EachLine(func(l FileLine) {
		p, id := decodeEvent[T, P](l)
		e, _, _, _ := p.Head()
		if e.Wrong != "" || id == "" {
			id = LineKey(l.Bytes)
		}
		hash := maphash.Bytes(seed, l.Bytes)
		e.Key = id
		for before, again := seen[id]; again; before, again = seen[e.Key] {
			if before == hash {
				in.Skip(SkipDuplicate, 1)
				return
			}
			times[id]++
			e.Key = fmt.Sprintf("%s#%d", id, times[id]+1)
		}
		seen[e.Key] = hash
		if e.Timed {
			begun = e.Time
		}
		e.Time = begun
		visit(p)
	})
}

// Repeats counts how often each key was asked for.
type Repeats map[string]int

// Key returns a key, with a number behind it from the second time on.
func (r Repeats) Key(key string) string {
	if r[key]++; r[key] > 1 {
		return key + "#" + strconv.Itoa(r[key])
	}
	return key
}

// LineKey names a line that has no name of its own after its content.
func LineKey(line []byte) string {
	sum := sha256.Sum256(line)
	return "line:" + hex.EncodeToString(sum[:16])
}

// Message begins the message of an event. rest has what neither columns nor parts hold.
func (e *Event) Message(kind session.Kind, role session.Role, origin session.Origin, source session.Source,
	rest jsonx.Object,
) session.Message {
	if e.Note != "" {
		rest = append(rest, jsonx.MemberOf("note", e.Note))
	}
	if !e.exact {
		rest = append(rest, jsonx.MemberOf("bytes", base64.StdEncoding.EncodeToString(e.Line.Bytes)))
	}
	return session.Message{
		Kind: kind, Role: role, Origin: origin, InContext: kind == session.KindMessage, Display: kind != session.KindCustom,
		Dialect: string(source), CreatedAt: e.Time, Extra: rest.Column(),
	}
}

// Entry makes the entry of an event with one message that follows another.
func (e *Event) Entry(parent string, decode func() Decoded) Entry {
	return Entry{Key: e.Key, Parent: parent, At: e.Line.At, Line: e.Line.Number, Decode: func() Decoded {
		d := decode()
		for i := range d.Messages {
			if m := &d.Messages[i]; len(m.Parts) > session.MaxParts {
				m.Parts, d.Problem = m.Parts[:session.MaxParts], "a message of more than 1,024 parts; the rest was left out"
			}
		}
		return d
	}}
}

// Alone is an entry that holds one message and nothing else.
func Alone(m session.Message) Decoded { return Decoded{Messages: []Message{{Message: m}}} }

// KeepRaw is an entry of a line that could not be taken apart, which is a problem.
func KeepRaw(line []byte, why string, source session.Source, at session.Time) Decoded {
	m := Verbatim(line, why)
	m.CreatedAt, m.Dialect = at, string(source)
	d := Alone(m)
	d.Raw, d.Problem = true, fmt.Sprintf("%s; %d bytes kept raw", why, len(line))
	return d
}

// Raw keeps the line of an event as text, out of the context. If it is Wrong that is a problem.
func (e *Event) Raw(why string, source session.Source) Decoded {
	d := KeepRaw(e.Line.Bytes, why, source, e.Time)
	if e.Wrong == "" {
		d.Problem = ""
	}
	return d
}
