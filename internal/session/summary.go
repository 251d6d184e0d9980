package session

import "strings"

// SummaryRequest asks for a summary of a span of a conversation, and for the running summary
// of everything so far.
type SummaryRequest struct {
	Messages      []Message // the span, oldest first
	Previous      string    // the running summary to update; "" for a first one
	Spans         []string  // of the spans before, oldest first: the running summary is merged anew from them, and Previous is not used
	Instructions  string    // the user's wishes for this session or compaction
	ReadFiles     []string  // files that the conversation read so far, for the index
	ModifiedFiles []string
	MaxTokens     int64   // of a summary, by the reference counter
	Purpose       Purpose // PurposeSummary or PurposeBranchSummary
	TurnPrefix    bool    // the span is the beginning of a turn whose end is kept
}

// First tells whether nothing was summarised before the span.
func (r *SummaryRequest) First() bool {
	return len(r.Spans) == 0 && strings.TrimSpace(r.Previous) == ""
}

// Summary is what a summariser made. Calls holds one ledger row for each attempt, also the
// failed ones; a summariser that calls no model has none.
type Summary struct {
	Text     string   // the running summary, whole, its index included
	Span     string   // the summary of the span alone, with its index
	Index    []string // the entries of Text's index
	Note     string   // what the summary could not take in; "": nothing
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
