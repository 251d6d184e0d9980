package transcript

import (
	"cmp"
	"time"

	"sessiond/internal/session"
)

// ItemKind says what an item of a transcript is.
type ItemKind string

// The kinds of items.
const (
	ItemMessage    ItemKind = "message"
	ItemMarker     ItemKind = "marker"     // a change of model, a title, a label: one line
	ItemCompaction ItemKind = "compaction" // a compaction cut here and represents the items above
	ItemBranch     ItemKind = "branch"     // the next item does not continue the one above
)

// Item is one thing to show. Texts are as stored, without the tags of programs: writers make them safe.
type Item struct {
	Kind   ItemKind
	Ref    session.MessageRef // of a compaction: the last message it represents
	Label  string             // the speaker, or the marker: user, assistant, shell …
	Role   session.Role
	Origin session.Origin
	Author string
	Model  string
	Finish session.Finish
	At     session.Time
	Tokens int64
	Hidden bool // not meant for people, like an agent's NO_REPLY
	Talk   session.Talk
	Blocks []Block

	Compaction *session.Compaction
	Branch     *Branch
	Started    session.ID // of a marker: the sub-agent that was started there
}

// Branch says which message an item continues, if not the one above.
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
	Rest       *Rest
}

// Rest is what is not shown of a part, because the transcript was made of its beginning.
type Rest struct {
	Message session.MessageRef
	Part    int64
	Bytes   int64
}

func restOf(m *session.Message, p *session.Part) *Rest {
	if p.Cut == 0 {
		return nil
	}
	return &Rest{m.ID, p.Idx, p.Cut}
}

// ToolUse is a call with its result.
type ToolUse struct {
	Name       string
	Arguments  string // as they came
	Result     string
	ResultRef  session.MessageRef // zero: no result is here
	IsError    bool
	DurationMS *int64
	Orphan     bool    // a result whose call is not here
	Far        bool    // written before its result was read
	Rests      []*Rest // of its arguments and its result

	row int64  // of the call's part
	id  string // the wire's, of the call
}

// Answered reports whether there is a result.
func (t *ToolUse) Answered() bool { return t.ResultRef != session.MessageRef{} }

// toolName returns the tool's name in at most width columns.
func (t *ToolUse) toolName(width int) string { return cmp.Or(OneLine(t.Name, width), "tool") }

// shortArguments returns the call's arguments in at most width columns; a result without its call
// has none.
func (t *ToolUse) shortArguments(width int) string {
	if t.Orphan {
		return "(its call is not here)"
	}
	return ShortArguments(t.Arguments, width)
}

// unreadable stands for reasoning without a text.
const unreadable = "(reasoning, not readable)"

// clock formats times, with the day of the first one of each day.
type clock struct {
	zone *time.Location
	day  string
}

func (c *clock) format(at session.Time) string {
	t := at.In(c.zone)
	day := t.Format(time.DateOnly)
	if day == c.day {
		return t.Format("15:04")
	}
	c.day = day
	return t.Format("2006-01-02 15:04")
}

// Attachment is an image, audio or a file.
type Attachment struct {
	Kind      session.PartKind
	MediaType string // "" when it is not known
	Name      string // a file's name or an address, "" when it is not known
	Size      int64  // bytes, 0 when it is not here
	Data      []byte // nil when it is not here
}
