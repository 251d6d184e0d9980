package session

import "strings"

// SummaryRequest is a request for the summary of a span of a conversation and for the running summary
// of everything before and in it.
type SummaryRequest struct {
	Messages      []Message // the span, oldest first
	Previous      string    // the running summary to update; "" for a first one
	Spans         []string  // summaries of the spans before, oldest first; if set, the running summary is merged from them, without Previous
	Instructions  string    // the user's wishes for this session or compaction
	ReadFiles     []string  // files read so far, for the index
	ModifiedFiles []string
	MaxTokens     int64   // of a summary, by the reference counter
	Purpose       Purpose // PurposeSummary or PurposeBranchSummary
	TurnPrefix    bool    // the span is the beginning of a turn whose end is kept

	Givers Givers                            // of standing rules
	Read   func(MessageRef) (Message, error) // reads a message that Previous names, one without a session of this one; nil: none can be read
}

// Givers says who gives standing rules in a conversation. With the zero value each person does.
type Givers struct {
	Group bool                     // nobody gives rules but who is named. Messages of two authors make a group too
	Named func(author string) bool // nil: nobody
}

// First reports whether nothing before the span is summarised.
func (r *SummaryRequest) First() bool {
	return len(r.Spans) == 0 && strings.TrimSpace(r.Previous) == ""
}

// Summary is the result of a summariser. Calls has a ledger row for each attempt, also for failed ones;
// it is empty for a summariser without a model.
type Summary struct {
	Text     string   // the running summary with its index
	Span     string   // the summary of the span alone, with its index
	Index    []string // the entries of Text's index
	Note     string   // limitations of the summary; "": none
	Provider string
	Model    string
	Calls    []Call
}

// BranchSummary is the summary of an abandoned branch, for the branch on which the session continues.
type BranchSummary struct {
	Session ID
	After   *MessageRef // the new head; nil: before the first message
	Message Message
	Calls   []Call // of the model, also failed ones
}

// EscapeTags writes the "<" of the named tags in quoted text as "&lt;", however a tag is written, so
// that the text cannot close its block or open another. Other markup stays.
func EscapeTags(text string, tags ...string) string {
	var b strings.Builder
	done := 0
	for i := range len(text) {
		if text[i] != '<' {
			continue
		}
		rest := strings.TrimLeft(text[i+1:min(len(text), i+60)], " \t\r\n/")
		for _, tag := range tags {
			if len(rest) >= len(tag) && strings.EqualFold(rest[:len(tag)], tag) {
				b.WriteString(text[done:i] + "&lt;")
				done = i + 1
				break
			}
		}
	}
	return b.String() + text[done:]
}

// EscapeBlocks escapes the tags of all blocks in which a model is shown quoted text.
func EscapeBlocks(text string) string {
	return EscapeTags(text, "conversation_summary", "pinned_message", "recalled_messages", "branch_summary")
}

// The tags around quoted messages.
const (
	QuotesOpen  = "<recalled_messages>\n"
	QuotesClose = "</recalled_messages>"
)

// Quote returns a message's text as a model is shown it between QuotesOpen and QuotesClose.
func Quote(message MessageRef, speaker, text string) string {
	return "[" + message.String() + " " + speaker + "] " + EscapeBlocks(text) + "\n"
}

const (
	branchOpen  = "<branch_summary>\nAnother branch of this conversation was left, and it goes on from here. What happened on that branch:\n\n"
	branchClose = "\n</branch_summary>"
)

// FrameBranch returns the text of a branch summary's message. The message has the user's role, so the
// text says what it is and where it ends. text must not contain the closing tag.
func FrameBranch(text string) string { return branchOpen + text + branchClose }

// UnframeBranch reverses FrameBranch, also for the beginning of a message. It returns a text of another
// program unchanged.
func UnframeBranch(message string) string {
	return strings.TrimSuffix(strings.TrimPrefix(message, branchOpen), branchClose)
}
