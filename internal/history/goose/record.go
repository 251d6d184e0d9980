package goose

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// row is one message as it is in a database or file.
type row struct {
	ID        int64  // of the row; of a file, its number there
	MessageID string `db:"message_id"`
	Role      string
	Created   []byte // a number: seconds, or milliseconds
	Content   []byte
	Metadata  []byte
	Large     bool // over 64 MiB: the content is missing

	line   int    // of a file of lines
	offset int64  // in a file
	broken string // why it is no message; content is all of it
}

// record is what is remembered of a row.
type record struct {
	row         *row
	messageID   string
	role        string // user, assistant; "": another one
	at          session.Time
	derived     bool // the row has no time: that of the one before
	print       string
	text        uint64 // of a prompt: a sum of its text
	why         string // it is kept raw, beside the path
	says        says
	user, agent bool // who sees it
	used        *usage
	key         string     // its external id
	copyOf      session.ID // the session that the original of a copy lies in
	known       bool       // it is stored
	reply       int        // index of the newest reply up to this record, -1: none
	shown
}

// shown is what the rest of the conversation makes of a record.
type shown struct {
	marker   bool        // a compaction's own row: its text is in the overlay
	made     *summarised // and what it made, a summary
	hidden   bool        // a compaction hides it
	again    string      // the key of the prompt that it repeats
	repeated bool        // another one repeats it
	paired   *pair       // it is a call or a result that a summary replaces, or that summary
	between  bool        // it is the summary: its text is in an overlay
}

// says is what kinds of blocks a message has.
type says struct {
	text, calls, results bool
	other                bool // anything but text
	model                bool // something for the model
}

// add remembers a row.
func (r *reader) add(in *row) {
	m := record{row: in, messageID: history.Plain(in.MessageID), reply: -1}
	if in.Role == "user" || in.Role == "assistant" {
		m.role = in.Role
	}
	m.at, _ = timeOf(in.Created)
	m.user, m.agent, m.used = metadataOf(in.Metadata)
	blocks, why := blocksOf(in)
	if why == "" && m.role == "" {
		why = "a message of role " + history.Plain(in.Role)
	}
	if m.why = why; why != "" {
		m.print = jsonx.Fingerprint(jsonx.Object{
			jsonx.MemberOf("role", in.Role),
			jsonx.MemberOf("raw", history.Plain(in.Content)),
		})
	} else {
		m.print = jsonx.Fingerprint(jsonx.Object{
			jsonx.MemberOf("role", in.Role),
			{Key: "at", Value: secondsOf(in.Created)},
			{Key: "content", Value: jsonx.Array(withoutPatches(blocks))},
		})
		m.says, m.text = r.sayings(blocks)
	}
	r.records = append(r.records, m)
}

type raw = jsontext.Value

// sayings returns what the blocks of a message are, and a sum of its text if it has nothing else.
func (r *reader) sayings(blocks []raw) (s says, sum uint64) {
	var text maphash.Hash
	text.SetSeed(r.seed)
	for _, block := range blocks {
		o, _ := jsonx.ReadFields(block)
		switch o.String("type") {
		case blockText:
			s.text = true
			s.model = s.model || forModel(o)
			text.WriteString(strings.TrimSpace(o.String("text")))
			continue
		case blockRequest, blockFrontend:
			s.calls, s.model = true, true
		case blockResponse:
			s.results, s.model = true, true
		case blockImage, blockDocument, blockThinking, blockRedacted, blockReasoning:
			s.model = true
		}
		s.other = true
	}
	if s.text && !s.other {
		sum = text.Sum64()
	}
	return s, sum
}

// blocksOf returns the blocks of a message's content, or why it has none.
func blocksOf(in *row) (blocks []raw, why string) {
	if in.broken != "" {
		return nil, in.broken
	}
	content := in.Content
	if !utf8.Valid(content) {
		content = bytes.ToValidUTF8(content, []byte(string(utf8.RuneError)))
	}
	if !json.Valid(content) {
		return nil, "its content is no JSON"
	}
	if jsonx.DeeperThan(content, history.MaxDepth) {
		return nil, "its content is nested too deep"
	}
	if text, exact := jsonx.Text(bytes.TrimSpace(content)); exact && json.Valid([]byte(text)) &&
		!jsonx.DeeperThan([]byte(text), history.MaxDepth) {
		content = []byte(text) // a list inside a string
	}
	blocks, ok := jsonx.ReadArray(content)
	if !ok {
		return nil, "its content is no list of blocks"
	}
	return blocks, ""
}

// withoutPatches leaves out what Goose patches into old tool calls.
func withoutPatches(blocks []raw) []raw {
	plain := make([]raw, len(blocks))
	for i, block := range blocks {
		plain[i] = block
		if o, ok := jsonx.ReadFields(block); ok && o.String("type") == blockRequest && o.Get("_meta") != nil {
			plain[i] = raw(o.Without("_meta").Column())
		}
	}
	return plain
}

// metadataOf parses who sees a message, both if it does not say, and what its call used.
func metadataOf(metadata []byte) (user, agent bool, u *usage) {
	o, ok := jsonx.ReadObject(metadata)
	if !ok {
		return true, true, nil
	}
	if user, agent = string(o.Get("userVisible")) != "false",
		string(o.Get("agentVisible")) != "false"; o.Get("userVisible") == nil || o.Get("agentVisible") == nil {
		user, agent = true, true
	}
	if usage := o.Inner("usage"); len(usage) > 0 {
		u = usageOfMessage(usage)
	}
	return user, agent, u
}

// newestSeconds is the largest number that can be seconds: above it are milliseconds.
const newestSeconds = 10_000_000_000

// timeOf parses seconds or milliseconds since 1970.
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

// secondsOf spells a time for a print: copies may have another unit.
func secondsOf(number []byte) raw {
	at, ok := timeOf(number)
	if !ok {
		return raw("null")
	}
	return raw(session.JSONOf(at.Unix()))
}
