package session

import (
	"strings"
	"unicode/utf8"
)

// PartKind is the kind of a part's content.
type PartKind string

// The kinds of parts.
const (
	PartText       PartKind = "text"
	PartReasoning  PartKind = "reasoning"
	PartToolCall   PartKind = "tool_call"
	PartToolResult PartKind = "tool_result"
	PartImage      PartKind = "image"
	PartAudio      PartKind = "audio"
	PartFile       PartKind = "file"
	PartRefusal    PartKind = "refusal"
	PartData       PartKind = "data" // any other content
)

// MaxParts is the limit of a message's parts.
const MaxParts = 1024

// BlobThreshold is the size in bytes above which a text or bytes become a blob.
const BlobThreshold = 64 << 10

// Part is one piece of a message.
type Part struct {
	RowID      int64    `db:"id" json:"-"` // message_id << 10 | idx
	MessageID  int64    `db:"message_id" json:"-"`
	Idx        int64    `db:"idx" json:"-"`
	Kind       PartKind `db:"kind" json:"kind" doc:"text, reasoning, tool_call, tool_result, image, audio, file, refusal, data"`
	Text       string   `db:"text" json:"text,omitempty"`
	ToolName   string   `db:"tool_name" json:"tool_name,omitempty"`
	CallID     string   `db:"call_id" json:"call_id,omitempty" doc:"Of a tool call and its result: the call's id"`
	CallPartID *int64   `db:"call_part_id" json:"-"` // of a result: the call it answers
	Arguments  string   `db:"arguments" json:"arguments,omitempty" doc:"Of a tool call: the arguments as the model wrote them, usually JSON"`
	IsError    *bool    `db:"is_error" json:"is_error,omitempty" doc:"Of a tool result: the tool failed; missing: unknown"`
	DurationMS *int64   `db:"duration_ms" json:"duration_ms,omitempty" doc:"Of a tool result: milliseconds that the tool took"`
	BlobSHA    *string  `db:"blob" json:"blob,omitempty" doc:"SHA-256, in hex, of a text or of bytes over 64 KiB"`
	Tokens     int64    `db:"tokens" json:"tokens"`
	Extra      JSON     `db:"extra" json:"extra,omitempty" doc:"Fields of the provider's form that have no field of their own here"`

	// Cut is how many bytes of the part an answer leaves out.
	Cut int64 `db:"-" json:"cut,omitempty" doc:"Bytes that are left out here: read the message for the whole part"`

	// Blob is the large text or the bytes of BlobSHA, if they were read or will be stored. The store
	// moves a Text over BlobThreshold here.
	Blob *Blob `db:"-" json:"-"`
}

// TextBlob is the media type of a blob that is a part's text.
const TextBlob = "text/plain; charset=utf-8"

// HasBytes reports whether a blob in a part of this kind is bytes, not text. The blob's media type does
// not show it: it is that of the first part with the content.
func (k PartKind) HasBytes() bool {
	return k == PartImage || k == PartAudio || k == PartFile || k == PartData
}

// Content returns the part's text, from its column or from its blob.
func (p *Part) Content() string {
	if p.Text == "" && p.Blob != nil && !p.Kind.HasBytes() {
		return string(p.Blob.Data)
	}
	return p.Text
}

// Failed reports whether the part is a result that says that its call failed.
func (p *Part) Failed() bool { return p.IsError != nil && *p.IsError }

// Head is how much of a part is wanted, in bytes: the beginning of each of its texts, and bytes that are no text
// if they are not more.
type Head struct{ Text, Bytes int }

// Shorten drops what is not within the head. Cut counts it.
func (p *Part) Shorten(head Head) {
	for _, text := range []*string{&p.Text, &p.Arguments} {
		if len(*text) > head.Text {
			begin := beginning(*text, head.Text)
			p.Cut += int64(len(*text) - len(begin))
			*text = strings.Clone(begin) // so that the rest is freed
		}
	}
	if len(p.Extra) > head.Text {
		p.Cut += int64(len(p.Extra))
		p.Extra = nil
	}
	if p.Blob == nil {
		return
	}
	b := *p.Blob
	switch had := len(b.Data); {
	case p.Kind.HasBytes() && b.Size > int64(head.Bytes):
		b.Data = nil
		p.Cut += int64(had)
	case !p.Kind.HasBytes() && had > head.Text:
		b.Data = []byte(beginning(string(b.Data[:min(had, head.Text+utf8.UTFMax)]), head.Text))
		p.Cut += int64(had - len(b.Data))
	}
	p.Blob = &b
}

// beginning returns at most so many bytes of a text, without half a character.
func beginning(text string, most int) string {
	if len(text) <= most {
		return strings.ToValidUTF8(text, "")
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// MadeCallID is the prefix of ids that sessiond makes for calls of a wire form without ids.
const MadeCallID = "made_"

// MatchedByName reports whether the call of a result is found by its tool's name and its position,
// because the wire form had no id.
func (p *Part) MatchedByName() bool {
	return p.CallID == "" || strings.HasPrefix(p.CallID, MadeCallID)
}

// TextPart returns a part of plain text.
func TextPart(text string) Part { return Part{Kind: PartText, Text: text} }
