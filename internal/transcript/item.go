package transcript

import "sessiond/internal/session"

// ItemKind says what an item of a transcript is.
type ItemKind string

// The kinds of items.
const (
	ItemMessage    ItemKind = "message"
	ItemMarker     ItemKind = "marker"     // a change of model, a title, a label: one line
	ItemCompaction ItemKind = "compaction" // here a compaction cut: what is above is represented by it
	ItemBranch     ItemKind = "branch"     // what follows does not continue what is above
)

// Item is one thing to show. Texts are as they were stored: who shows them makes them safe.
type Item struct {
	Kind   ItemKind
	Ref    session.MessageRef // of a compaction: the last message it represents
	Label  string             // who speaks, or what a marker is: user, assistant, shell …
	Role   session.Role
	Origin session.Origin
	Author string
	Model  string
	Finish session.Finish
	At     session.Time
	Tokens int64
	Hidden bool // not meant for people, like an agent's NO_REPLY
	Blocks []Block

	Compaction *session.Compaction
	Branch     *Branch
}

// Branch says how an item comes to stand under one that it does not continue.
type Branch struct {
	From session.MessageRef // the message that is continued; zero: a new beginning
	Fork session.ID         // the session that begins here, when it is another one
}

// BlockKind says what a block holds.
type BlockKind string

// The kinds of blocks.
const (
	BlockText       BlockKind = "text"
	BlockRefusal    BlockKind = "refusal"
	BlockReasoning  BlockKind = "reasoning"
	BlockTool       BlockKind = "tool"
	BlockAttachment BlockKind = "attachment"
	BlockData       BlockKind = "data"
)

// Block is a piece of a message.
type Block struct {
	Kind       BlockKind
	Text       string // of text, refusal, reasoning and data; reasoning may have none that can be read
	Tool       *ToolUse
	Attachment *Attachment
}

// ToolUse is a call with what came back.
type ToolUse struct {
	Name       string
	Arguments  string // as they came
	Result     string
	ResultRef  session.MessageRef // zero: no result is here
	IsError    bool
	DurationMS *int64
	Orphan     bool // a result whose call is not here
	Far        bool // it was written before all that could answer it was read

	row int64  // of the call's part
	id  string // the wire's, of the call
}

// Answered tells whether a result came back.
func (t *ToolUse) Answered() bool { return t.ResultRef != session.MessageRef{} }

// Attachment is an image, a sound or a file.
type Attachment struct {
	Kind      session.PartKind
	MediaType string // "" when it is not known
	Name      string // a file's name or an address, "" when it is not known
	Size      int64  // bytes, 0 when it is not here
	Data      []byte // nil when it is not here
}
