package session

import "strings"

// SummaryRequest asks for a summary of a span of a conversation.
type SummaryRequest struct {
	Messages     []Message // the span, oldest first
	Previous     string    // the running summary to update; "" for a first one
	Instructions string    // the user's wishes for this session or compaction
	MaxTokens    int64     // of the summary, by the reference counter
	Purpose      Purpose   // PurposeSummary or PurposeBranchSummary
	TurnPrefix   bool      // the span is the beginning of a turn whose end is kept
}

// Summary is what a summariser made. Calls holds one ledger row for each attempt, also the
// failed ones; a summariser that calls no model has none.
type Summary struct {
	Text     string   // whole, its index included
	Index    []string // the entries of the index
	Provider string
	Model    string
	Calls    []Call
}

// BranchSummary is what became of a branch that was left, to be told where the session went on.
type BranchSummary struct {
	Session ID
	After   *MessageRef // where the head was moved to; nil: before the first message
	Message Message
	Calls   []Call // of the model that was asked, also those that failed
}

const (
	branchOpen  = "<branch_summary>\nAnother branch of this conversation was left, and it goes on from here. What happened on that branch:\n\n"
	branchClose = "\n</branch_summary>"
)

// FrameBranch gives the text of a branch summary's message. It stands in the user's role, so
// it says what it is and where it ends; text must not hold the closing tag.
func FrameBranch(text string) string { return branchOpen + text + branchClose }

// UnframeBranch gives what FrameBranch was given, of the beginning of a message too; a text
// of another program comes back as it is.
func UnframeBranch(message string) string {
	return strings.TrimSuffix(strings.TrimPrefix(message, branchOpen), branchClose)
}
