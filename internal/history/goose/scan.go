package goose

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// row is one message as a database or file holds it.
type row struct {
	id        int64 // of the row; of a file, the line
	offset    int64 // in a file
	size      int64
	messageID string
	role      string
	created   []byte // a number: seconds, or milliseconds
	content   []byte
	long      int64 // bytes of a content that was not read with its row
	metadata  []byte
	broken    string // why a file's line is no message; content is the line
}

// record is what there is to know of a message.
type record struct {
	id, offset, size int64
	messageID, role  string
	at               session.Time
	derived          bool // the row has no time: that of the one before
	hash             string
	text             uint64 // of its text blocks; 0: it has none, or others beside them
	why              string // not "": kept raw, and why
	says             says
	user, agent      bool // who sees it
	usage            history.Object

	key string // its external id
}

// says tells what kinds of blocks a message has.
type says struct {
	text, calls, results bool
	other                bool // anything but text
	model                bool // something for the model
}

// raw tells whether a message is kept as it is, beside the path.
func (r *record) raw() bool { return r.why != "" }

// maxDepth is how deep content may be nested to be taken apart. SQLite's JSON ends at 1000.
const maxDepth = 256

// scanner turns rows into records, in the order of the source.
type scanner struct {
	records *records
	cuts    *history.Cuts
	last    session.Time // for rows without a time
}

// add takes one row; what it points to is not kept.
func (s *scanner) add(in *row) {
	r := record{id: in.id, offset: in.offset, size: in.size, messageID: in.messageID, role: in.role}
	if at, ok := timeOf(in.created); ok {
		s.last = at
	} else {
		r.derived = true
	}
	r.at = s.last
	r.user, r.agent, r.usage = metadataOf(in.metadata)
	blocks, why := blocksOf(in)
	switch {
	case why != "":
		r.why = why
	case in.role != "user" && in.role != "assistant":
		r.why = "a message of role " + history.Plain([]byte(in.role))
	}
	if r.why != "" {
		r.hash = s.cuts.Fingerprint(history.Object{
			{Key: "role", Raw: raw(session.JSONOf(in.role))}, {Key: "raw", Raw: raw(session.JSONOf(history.Plain(in.content)))},
		})
	} else {
		r.hash = s.cuts.Fingerprint(history.Object{
			{Key: "role", Raw: raw(session.JSONOf(in.role))}, {Key: "at", Raw: secondsOf(in.created)}, {Key: "content", Raw: history.Array(withoutPatches(blocks))},
		})
		s.look(&r, blocks)
	}
	s.records.add(&r)
}

type raw = json.RawMessage

// look learns what the blocks of a message are.
func (s *scanner) look(r *record, blocks []json.RawMessage) {
	var text maphash.Hash
	text.SetSeed(s.records.seed)
	for _, block := range blocks {
		o, _ := history.Fields(block)
		switch kind := o.String("type"); kind {
		case blockText:
			r.says.text = true
			r.says.model = r.says.model || forModel(o)
			text.WriteString(strings.TrimSpace(o.String("text")))
			continue
		case blockRequest, blockFrontend:
			r.says.calls, r.says.model = true, true
		case blockResponse:
			r.says.results, r.says.model = true, true
		case blockImage, blockDocument, blockThinking, blockRedacted, blockReasoning:
			r.says.model = true
		}
		r.says.other = true
	}
	if r.says.text && !r.says.other {
		r.text = text.Sum64()
	}
}

// blocksOf gives the blocks of a message's content; else why it has none.
func blocksOf(in *row) (blocks []json.RawMessage, why string) {
	if in.broken != "" {
		return nil, in.broken
	}
	content := in.content
	if !utf8.Valid(content) {
		content = bytes.ToValidUTF8(content, []byte(string(utf8.RuneError)))
	}
	if !json.Valid(content) {
		return nil, "its content is no JSON"
	}
	if history.Depth(content) > maxDepth {
		return nil, "its content is nested too deep"
	}
	if text, exact := history.Text(bytes.TrimSpace(content)); exact && json.Valid([]byte(text)) && history.Depth([]byte(text)) <= maxDepth {
		content = []byte(text) // a list inside a string
	}
	blocks, ok := history.Elements(content)
	if !ok {
		return nil, "its content is no list of blocks"
	}
	return blocks, ""
}

// withoutPatches leaves out what Goose patches into old tool calls.
func withoutPatches(blocks []json.RawMessage) []json.RawMessage {
	plain := make([]json.RawMessage, len(blocks))
	for i, block := range blocks {
		plain[i] = block
		if o, ok := history.Fields(block); ok && o.String("type") == blockRequest && o.Get("_meta") != nil {
			plain[i] = raw(o.Without("_meta").JSON())
		}
	}
	return plain
}

// metadataOf reads who sees a message, and its usage. What is not said is both.
func metadataOf(metadata []byte) (user, agent bool, usage history.Object) {
	o, ok := history.ParseObject(metadata)
	if !ok {
		return true, true, nil
	}
	if user, agent = string(o.Get("userVisible")) != "false", string(o.Get("agentVisible")) != "false"; o.Get("userVisible") == nil || o.Get("agentVisible") == nil {
		user, agent = true, true
	}
	if fields, ok := history.Fields(o.Get("usage")); ok {
		usage, _ = history.Fields(bytes.Clone(fields.JSON()))
	}
	return user, agent, usage
}

// newestSeconds is the largest number that can be seconds: above it are milliseconds.
const newestSeconds = 10_000_000_000

// timeOf reads seconds or milliseconds since 1970.
func timeOf(number []byte) (session.Time, bool) {
	n, ok := history.Number(number)
	switch {
	case !ok || n <= 0 || n > 253402300799999: // the year 9999, in milliseconds
		return session.Time{}, false
	case n > newestSeconds:
		return session.At(time.UnixMilli(int64(n))), true
	}
	return session.At(time.UnixMilli(int64(math.Round(n * 1000)))), true
}

// secondsOf spells a time for a hash: copies may have another unit.
func secondsOf(number []byte) raw {
	at, ok := timeOf(number)
	if !ok {
		return raw("null")
	}
	return raw(session.JSONOf(at.Unix()))
}
