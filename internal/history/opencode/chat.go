package opencode

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

type raw = json.RawMessage

// message is one message with its parts, as the database holds them, from wherever it is.
type message struct {
	id      string
	created int64 // milliseconds; 0: what data says
	data    []byte
	parts   []part
	records int    // of the source, itself included
	broken  string // why data is no message; then data is kept as it is
	offset  int64  // in a file; of a row its rowid
	size    int64
	open    bool  // it is still being written, besides what data says
	second  bool  // it is a row of session_message
	seq     int   // its place among these, from 1; 0: it is not there
	order   int64 // the greatest time until this seq, in milliseconds
}

type part struct {
	id   string
	data []byte
}

// conversation gives the messages of one session.
type conversation interface {
	// scan yields all of them, in any order. What a message points to is good until the
	// next one.
	scan(ctx context.Context, yield func(*message) error) error
	// load reads a record again. Of those after it the ones that are not known are likely to
	// be asked for next.
	load(ctx context.Context, l *records, i int) (*message, error)
	close() error
}

// record is what there is to know of a message.
type record struct {
	id      string
	offset  int64
	size    int64
	second  bool // it is a row of session_message
	seq     int
	order   int64
	at      session.Time
	role    string
	hash    string
	records int
	why     string // not "": kept raw, and why
	open    bool   // not finished yet
	failed  bool
	answers string // the message that it answers
	request bool   // a compaction is asked for
	summary bool
	alone   bool   // a summary without a request, of the second engine
	tail    string // of a request: the first message that is kept
	parts   []string
	pruned  []pruned // outputs that the model does not see any more
	call    string   // the name of its call in the ledger

	key string // its external id
}

// maxDepth is how deep a value may be nested to be taken apart.
const maxDepth = history.MaxDepth

// parse reads one JSON object that is not nested too deep.
func parse(data []byte) (o history.Object, why string) {
	o, _, ok := history.ParseLine(data)
	switch {
	case !ok:
		return nil, "it is no JSON object"
	case history.Depth(data) > maxDepth:
		return nil, "it is nested too deep"
	}
	return o, ""
}

// recordOf learns what there is to know of a message, of which cuts may hold the middle of texts.
func recordOf(in *message, cuts *history.Cuts) record {
	r := record{
		id: in.id, offset: in.offset, size: in.size, second: in.second, seq: in.seq, order: in.order, records: in.records, why: in.broken,
	}
	o, why := parse(in.data)
	if r.why == "" {
		r.why = why
	}
	times, _ := history.Fields(o.Get("time"))
	r.at, _ = history.UnixMilli(times.Get("created"))
	if r.at.IsZero() && in.created > 0 {
		r.at, _ = history.UnixMilli([]byte(strconv.FormatInt(in.created, 10)))
	}
	if r.role = o.String("role"); r.why == "" && roleOf(r.role) == otherRole {
		r.why = "a message of role " + strconv.Quote(r.role)
	}
	r.answers = o.String("parentID")
	r.failed = isSet(o.Get("error"))
	r.summary = r.role == "assistant" && string(o.Get("summary")) == "true"
	r.alone = r.summary && o.String("type") == "compaction"
	r.open = in.open || r.role == "assistant" && times.Get("completed") == nil && !r.failed
	says := []json.RawMessage{raw(session.JSONOf(r.at.UnixMilli())), raw(session.JSONOf(r.role))}
	if r.why != "" {
		says = append(says, raw(session.JSONOf(history.Plain(in.data))))
	}
	for i := range in.parts {
		if text := r.look(&in.parts[i], cuts); text != nil {
			says = append(says, text)
		}
	}
	if r.why == "" && r.role == "assistant" {
		if c := callOf(&r, o, in.parts); c != nil {
			r.call = c.ExternalID
		}
	}
	r.hash = cuts.Fingerprint(history.Object{{Key: "says", Raw: history.Array(says)}})
	return r
}

func isSet(value []byte) bool { return value != nil && string(value) != "null" }

// look learns what a part is and returns what it says, the same in all generations: what is
// known beside it differs in them. It returns nil for a part that says nothing.
func (r *record) look(p *part, cuts *history.Cuts) raw {
	r.parts = append(r.parts, p.id)
	o, why := parse(p.data)
	if why != "" {
		return raw(session.JSONOf(history.Plain(p.data)))
	}
	switch o.String("type") {
	case "compaction":
		r.request = r.request || r.role == "user"
		r.tail = o.String("tail_start_id")
		return nil
	case "step-start", "step-finish", "snapshot", "patch", "retry":
		return nil
	case "text", "reasoning":
		o = only(o, "type", "text")
	case "file":
		o = only(o, "type", "mime", "url")
	case "tool":
		state, _ := history.Fields(o.Get("state"))
		status := state.String("status")
		r.open = r.open || (status == "streaming" || status == "pending" || status == "running") && !r.failed
		times, _ := history.Fields(state.Get("time"))
		if at := history.Count(times.Get("compacted")); at > 0 {
			r.pruned = append(r.pruned, pruned{at, clean(o.String("callID"))})
		}
		o = append(only(o, "type", "callID", "tool"), only(state, "input", "output", "error")...)
	}
	return raw(session.JSONOf(cuts.Fingerprint(o, "id", "messageID", "sessionID")))
}

// only returns some fields of an object.
func only(o history.Object, keys ...string) (some history.Object) {
	for _, key := range keys {
		if value := o.Get(key); value != nil {
			some = append(some, history.Field{Key: key, Raw: value})
		}
	}
	return some
}

func objectJSON(o history.Object) []byte {
	if len(o) == 0 {
		return []byte("{}")
	}
	return o.JSON()
}

// compareIDs compares two ids by the time in them. Its 48 bits wrap every 795 days: of two
// ids that are more than half of that apart, the smaller one is the newer.
func compareIDs(a, b string) int {
	x, okA := timeIn(a)
	y, okB := timeIn(b)
	if okA && okB && x != y {
		if (x < y) != (max(x, y)-min(x, y) > 1<<47) {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}

func timeIn(id string) (uint64, bool) {
	_, digits, ok := strings.Cut(id, "_")
	if !ok || len(digits) < 12 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits[:12], 16, 64)
	return n, err == nil
}

// clean gives text that the database can hold.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return history.Plain([]byte(s))
}
