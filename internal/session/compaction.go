package session

import (
	"strconv"
	"strings"
)

// Strategy says how a compaction makes room.
type Strategy string

// The strategies.
const (
	StrategySummarize Strategy = "summarize" // a summary stands for the prefix
	StrategyPrune     Strategy = "prune"     // old tool outputs are replaced by a line
	StrategyTruncate  Strategy = "truncate"  // the prefix is hidden
	StrategyClear     Strategy = "clear"     // everything is hidden
)

// Trigger says what asked for a compaction.
type Trigger string

// The triggers.
const (
	TriggerThreshold Trigger = "threshold"
	TriggerOverflow  Trigger = "overflow"
	TriggerManual    Trigger = "manual"
	TriggerImport    Trigger = "import"
)

// Status of a compaction. Only a done one can be effective.
type Status string

// The statuses.
const (
	StatusRunning Status = "running"
	StatusStaged  Status = "staged" // ready, waiting for the moment it is needed
	StatusDone    Status = "done"
	StatusFailed  Status = "failed"
	StatusSkipped Status = "skipped"
)

// Reasons of a failed record that say nothing against its model.
const (
	ReasonCancelled = "it was cancelled"
	ReasonBrokenOff = "it was broken off: sessiond ended before the summary was made"
)

// Compaction is an overlay: a record saying that the prefix of a path up to through_id is
// represented by a summary (or hidden). No message is changed by it.
type Compaction struct {
	RowID      int64    `db:"id" json:"-"`
	ID         string   `db:"-" json:"id"` // cmp_12
	SessionID  ID       `db:"session_id" json:"session_id"`
	PreviousID *int64   `db:"previous_id" json:"-"` // the overlay that was effective when it was made
	Previous   string   `db:"-" json:"previous,omitempty"`
	Strategy   Strategy `db:"strategy" json:"strategy"`
	Trigger    Trigger  `db:"trigger" json:"trigger"`
	Status     Status   `db:"status" json:"status"`
	Reason     string   `db:"reason" json:"reason,omitempty"` // why it was skipped or failed

	ThroughID   *int64      `db:"through_id" json:"-"` // last message that is represented
	Through     *MessageRef `db:"-" json:"through,omitempty"`
	FirstKeptID *int64      `db:"first_kept_id" json:"-"` // nil: nothing before the record's time was kept
	FirstKept   *MessageRef `db:"-" json:"first_kept,omitempty"`

	HiddenTokens  int64  `db:"hidden_tokens" json:"hidden_tokens"` // path_tokens of the last represented message
	SummaryTokens int64  `db:"summary_tokens" json:"summary_tokens"`
	SpanSummary   string `db:"span_summary" json:"span_summary,omitempty"`
	Summary       string `db:"summary" json:"summary,omitempty"`
	PrefixSummary string `db:"prefix_summary" json:"prefix_summary,omitempty"`
	Replacement   JSON   `db:"replacement" json:"replacement,omitempty"`
	Details       JSON   `db:"details" json:"details,omitempty"` // CompactionDetails

	TokensBefore int64  `db:"tokens_before" json:"tokens_before"` // the context before and after
	TokensAfter  int64  `db:"tokens_after" json:"tokens_after"`
	MessageCount int64  `db:"message_count" json:"message_count"` // messages newly represented
	Provider     string `db:"provider" json:"provider,omitempty"`
	Model        string `db:"model" json:"model,omitempty"`
	DurationMS   int64  `db:"duration_ms" json:"duration_ms"`
	CreatedAt    Time   `db:"created_at" json:"created_at"`
	ActivatedAt  *Time  `db:"activated_at" json:"activated_at,omitempty"`
	Undone       bool   `db:"undone" json:"undone,omitempty"` // in the session it was read for
	UndoneAt     *Time  `db:"-" json:"undone_at,omitempty"`

	Idem *Idempotency `db:"-" json:"-"` // of the request that asks for it; nil: none
}

// CompactionDetails is what a compaction knows without a model: the files that the hidden
// messages read and modified (cumulative over the chain) and its mechanical index.
type CompactionDetails struct {
	ReadFiles     []string      `json:"read_files"`
	ModifiedFiles []string      `json:"modified_files"`
	Index         []string      `json:"index,omitempty"`
	Pruned        []string      `json:"pruned,omitempty"` // outputs that are hidden, by OutputName
	Instructions  string        `json:"instructions,omitempty"`
	TurnStart     string        `json:"turn_start,omitempty"`  // the user message of a split turn
	Afresh        bool          `json:"afresh,omitempty"`      // the summary that it rests on kept nothing: no turn's beginning is shown again
	LastPerson    string        `json:"last_person,omitempty"` // the person's newest message, where nothing that is kept holds it
	System        *HiddenSystem `json:"system,omitempty"`      // system messages in the middle of the path that are hidden
	Replaced      []Replaced    `json:"replaced,omitempty"`    // pieces in the middle of what is kept
	Record        string        `json:"record,omitempty"`      // the message that the overlay came with: it counts where that is on the path, too

	Words   bool `json:"words,omitempty"`    // the replacement holds the person's newest words, which stand before the summary (preset codex)
	MidTurn bool `json:"mid_turn,omitempty"` // of such a one: a turn went on, so initial blocks stand among the words
}

// Replaced is a piece in the middle of a path that a text stands for, in the user's role. Goose
// does so with old calls of tools and their results. Nothing stands for a piece without a text:
// Claude Code withdraws messages after a refusal.
type Replaced struct {
	Messages []string `json:"messages"` // in the order of the path: the text stands where the last one stood
	Text     string   `json:"text"`
	Saves    int64    `json:"saves,omitempty"` // tokens, by the reference counter
}

// HiddenSystem is what system messages that an overlay hides say: no summary does. Whole: it is
// all of the system text when the overlay was made, the messages that the path begins with included.
type HiddenSystem struct {
	Texts []string `json:"texts"`
	Whole bool     `json:"whole,omitempty"`
}

// CompactionName is how a compaction is named outside the database.
func CompactionName(rowID int64) string { return "cmp_" + strconv.FormatInt(rowID, 10) }

// ContextName is how a context is named outside the database.
func ContextName(rowID int64) string { return "ctx_" + strconv.FormatInt(rowID, 10) }

// ParseName reads a name that CompactionName or ContextName made. Codes: Invalid.
func ParseName(prefix, s string) (int64, error) {
	digits, ok := strings.CutPrefix(s, prefix+"_")
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n <= 0 {
		return 0, Errorf(Invalid, "%q is no id of this kind: it looks like %s_12", clip(s, 60), prefix)
	}
	return n, nil
}
