package session

import "strings"

// PartKind is what a part holds.
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
	PartData       PartKind = "data" // anything that the other kinds do not hold
)

// MaxParts is the number of parts that one message can hold.
const MaxParts = 1024

// BlobThreshold is the size in bytes above which a text or bytes become a blob.
const BlobThreshold = 64 << 10

// Part is one piece of a message.
type Part struct {
	RowID      int64    `db:"id" json:"-"` // message_id << 10 | idx
	MessageID  int64    `db:"message_id" json:"-"`
	Idx        int64    `db:"idx" json:"-"`
	Kind       PartKind `db:"kind" json:"kind"`
	Text       string   `db:"text" json:"text,omitempty"`
	ToolName   string   `db:"tool_name" json:"tool_name,omitempty"`
	CallID     string   `db:"call_id" json:"call_id,omitempty"`
	CallPartID *int64   `db:"call_part_id" json:"-"`                    // of a result: the call it answers
	Arguments  string   `db:"arguments" json:"arguments,omitempty"`     // of a call: the bytes exactly as they came
	IsError    *bool    `db:"is_error" json:"is_error,omitempty"`       // of a result
	DurationMS *int64   `db:"duration_ms" json:"duration_ms,omitempty"` // of a result, milliseconds
	BlobSHA    *string  `db:"blob" json:"blob,omitempty"`               // hex sha-256
	Tokens     int64    `db:"tokens" json:"tokens"`
	Extra      JSON     `db:"extra" json:"extra,omitempty"`

	// Blob is the large text or the bytes behind BlobSHA, where they were read or are to be
	// stored. The store moves a Text over BlobThreshold here by itself.
	Blob *Blob `db:"-" json:"-"`
}

// TextBlob is the media type of a blob that is a part's text.
const TextBlob = "text/plain; charset=utf-8"

// HasBytes tells what a blob is in a part of this kind: its bytes, or its text. The blob's own
// media type does not tell, since it is that of the first part that held the content.
func (k PartKind) HasBytes() bool {
	return k == PartImage || k == PartAudio || k == PartFile || k == PartData
}

// Content gives the part's text, in its column or in the bytes of its blob; "" where those lie
// elsewhere.
func (p *Part) Content() string {
	if p.Text == "" && p.Blob != nil && !p.Kind.HasBytes() {
		return string(p.Blob.Data)
	}
	return p.Text
}

// MadeCallID begins the ids that were made for calls of a wire form without any.
const MadeCallID = "made_"

// MatchedByName tells whether the call of a result is found by its tool's name and its place
// where it is not found by its id, since the wire said none.
func (p *Part) MatchedByName() bool {
	return p.CallID == "" || strings.HasPrefix(p.CallID, MadeCallID)
}

// TextPart is a part of plain text.
func TextPart(text string) Part { return Part{Kind: PartText, Text: text} }
