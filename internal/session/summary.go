package session

import (
	"slices"
	"strings"
	"unicode"
)

// SummaryRequest is a request for the summary of a span of a conversation and for the running summary
// of everything before and in it.
type SummaryRequest struct {
	Messages []Message // the span, oldest first
	Previous string    // the running summary to update; "" for a first one
	// summaries of the spans before, oldest first; if set, the running summary is merged from them, without Previous
	Spans         []string
	Instructions  string   // the user's wishes for this session or compaction
	ReadFiles     []string // files read so far, for the index
	ModifiedFiles []string
	MaxTokens     int64   // of a summary, by the reference counter
	Purpose       Purpose // PurposeSummary or PurposeBranchSummary
	TurnPrefix    bool    // the span is the beginning of a turn whose end is kept

	Givers Givers // of standing rules
	// reads a message that Previous names, one without a session of this one; nil: none can be read
	Read func(MessageRef) (Message, error)
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
	return escapeTags(text, func(name string) bool { return isOneOf(name, tags) })
}

// escapeTags writes the "<" of the tags whose text, from their name on, is chosen as "&lt;".
func escapeTags(text string, chosen func(name string) bool) string {
	const longest = 60 // bytes of a tag that are read
	var b strings.Builder
	done := 0
	for i := range len(text) {
		if text[i] != '<' {
			continue
		}
		if chosen(strings.TrimLeft(text[i+1:min(len(text), i+longest)], " \t\r\n/")) {
			b.WriteString(text[done:i] + "&lt;")
			done = i + 1
		}
	}
	return b.String() + text[done:]
}

// isOneOf reports whether a text begins with one of the tags.
func isOneOf(text string, tags []string) bool {
	return slices.ContainsFunc(tags, func(tag string) bool {
		return len(text) >= len(tag) && strings.EqualFold(text[:len(tag)], tag)
	})
}

// blocks are the tags around what sessiond quotes to a model.
var blocks = []string{"conversation_summary", "pinned_message", "recalled_messages", "branch_summary", echoTag}

// speakers are the tags by which agent programs, and the models behind them, tell who speaks, what is thought and what
// is called.
var speakers = []string{
	"system", "developer", "user", "human", "assistant", "tool", "function", "invoke", "parameter",
	"instruction", "instructions", "important", "reminder", "rules", "thinking", "think",
}

// EscapeBlocks returns stored text as a model may be shown it between sessiond's own tags: without invisible
// characters, and without a tag that could end the quotation or speak as the program, like </system-reminder>. Markup
// and code stay.
func EscapeBlocks(text string) string {
	return escapeTags(WithoutInvisible(text), func(name string) bool { return isOneOf(name, blocks) || isAuthority(name) })
}

// isAuthority reports whether a tag's text, from its name on, is that of a tag to which a model may listen: a
// speaker's, the token of a chat template (<|im_start|>), or a name of several words, as programs choose for theirs and
// HTML and most languages do not.
func isAuthority(text string) bool {
	if strings.HasPrefix(text, "|") || strings.HasPrefix(text, "｜") {
		return true
	}
	name := text
	if end := strings.IndexFunc(text, func(r rune) bool { return r == '>' || r == '/' || unicode.IsSpace(r) }); end >= 0 {
		name = text[:end]
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) }) {
		return false // an expression: i<n-1;
	}
	return strings.ContainsAny(name, "-_:") ||
		slices.ContainsFunc(speakers, func(s string) bool { return strings.EqualFold(name, s) })
}

func isNameRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_:.\u200c\u200d", r)
}

// EscapeMarkup is EscapeBlocks for text that a model is shown unasked: nothing in it can be read as a tag.
func EscapeMarkup(text string) string {
	return strings.ReplaceAll(WithoutInvisible(text), "<", "&lt;")
}

// The tags around quoted messages.
const (
	QuotesOpen  = "<recalled_messages>\n"
	QuotesClose = "</recalled_messages>"
)

// Quote returns a message's text as a model is shown it between QuotesOpen and QuotesClose.
func Quote(message MessageRef, speaker, text string) string {
	return "[" + message.String() + " " + EscapeBlocks(speaker) + "] " + EscapeBlocks(text) + "\n"
}

const (
	branchOpen = "<branch_summary>\n" +
		"Another branch of this conversation was left, and it goes on from here. What happened on that branch:\n\n"
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
