package session

import (
	"strconv"
	"strings"
)

// Strategy is the way in which a compaction makes room.
type Strategy string

// The strategies.
const (
	StrategySummarize Strategy = "summarize" // a summary replaces the prefix
	StrategyPrune     Strategy = "prune"     // a line replaces each old tool output
	StrategyTruncate  Strategy = "truncate"  // the prefix is hidden
	StrategyClear     Strategy = "clear"     // everything is hidden
)

// Trigger is the reason for a compaction.
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
	StatusStaged  Status = "staged" // ready, but not yet needed
	StatusDone    Status = "done"
	StatusFailed  Status = "failed"
	StatusSkipped Status = "skipped"
)

// Reasons of failures that are not the model's fault.
const (
	ReasonCancelled = "it was cancelled"
	ReasonBrokenOff = "it was broken off: sessiond ended before the summary was made"
)

// Compaction is an overlay: a record that a summary represents the prefix of a path up to through_id (or
// that the prefix is hidden). It changes no message.
type Compaction struct {
	RowID      int64    `db:"id" json:"-"`
	ID         string   `db:"-" json:"id" doc:"The compaction's id, like cmp_12; empty in a dry run"`
	SessionID  ID       `db:"session_id" json:"session_id"`
	PreviousID *int64   `db:"previous_id" json:"-"` // the effective overlay at its creation
	Previous   string   `db:"-" json:"previous,omitempty" doc:"The compaction that was in effect before it"`
	Strategy   Strategy `db:"strategy" json:"strategy"`
	Trigger    Trigger  `db:"trigger" json:"trigger" doc:"threshold, overflow, manual, import"`
	Status     Status   `db:"status" json:"status" doc:"running, staged (ready, not in effect yet), done, failed, skipped"`
	Reason     string   `db:"reason" json:"reason,omitempty" doc:"Why it failed or was skipped"`

	ThroughID   *int64      `db:"through_id" json:"-"` // the last represented message
	Through     *MessageRef `db:"through" json:"through,omitempty"`
	FirstKeptID *int64      `db:"first_kept_id" json:"-"` // nil: no message before the record was kept
	FirstKept   *MessageRef `db:"first_kept" json:"first_kept,omitempty"`

	HiddenTokens  int64  `db:"hidden_tokens" json:"hidden_tokens"` // path_tokens of the last represented message
	SummaryTokens int64  `db:"summary_tokens" json:"summary_tokens" doc:"Size of the summary, in reference tokens"`
	SpanSummary   string `db:"span_summary" json:"span_summary,omitempty" doc:"Summary of the newly hidden messages alone"`
	Summary       string `db:"summary" json:"summary,omitempty" doc:"The summary that contexts show"`
	PrefixSummary string `db:"prefix_summary" json:"prefix_summary,omitempty" doc:"Summary of the hidden beginning of a split turn"`
	Replacement   JSON   `db:"replacement" json:"replacement,omitempty" doc:"Messages that stand in place of the hidden ones, of an imported compaction"`
	Details       JSON   `db:"details" json:"details,omitempty" doc:"Read and modified files, pruned outputs and other details of how it was made"`

	TokensBefore int64  `db:"tokens_before" json:"tokens_before"` // the context before and after
	TokensAfter  int64  `db:"tokens_after" json:"tokens_after"`
	MessageCount int64  `db:"message_count" json:"message_count" doc:"Number of newly hidden messages"`
	Provider     string `db:"provider" json:"provider,omitempty" doc:"Provider of the summary's model; missing: no model was used"`
	Model        string `db:"model" json:"model,omitempty" doc:"Model of the summary; missing: no model was used"`
	DurationMS   int64  `db:"duration_ms" json:"duration_ms" doc:"Milliseconds it took"`
	CreatedAt    Time   `db:"created_at" json:"created_at"`
	ActivatedAt  *Time  `db:"activated_at" json:"activated_at,omitempty" doc:"Time it took effect; missing: never"`
	Undone       bool   `db:"undone" json:"undone,omitempty"` // in the session of the query
	UndoneAt     *Time  `db:"-" json:"undone_at,omitempty" doc:"Time of the undo"`

	Idem *Idempotency `db:"-" json:"-"` // of the request; nil: none
}

// CompactionDetails are the facts of a compaction that need no model: the files that the hidden messages
// read and modified (cumulative over the chain), its index, and the pieces that it hides.
type CompactionDetails struct {
	ReadFiles     []string `json:"read_files"`
	ModifiedFiles []string `json:"modified_files"`
	Index         []string `json:"index,omitempty"`
	// summaries of spans that the running one was merged from; 0: it updates the one before
	Spans        int      `json:"spans,omitempty"`
	Pruned       []string `json:"pruned,omitempty"` // hidden outputs, by OutputName
	Instructions string   `json:"instructions,omitempty"`
	TurnStart    string   `json:"turn_start,omitempty"` // the user message of a split turn
	// tokens that each message which is shown again may have; 0: a quarter of the threshold
	Shown int64 `json:"shown,omitempty"`
	// its previous summary kept nothing, so no beginning of a turn is shown again
	Afresh     bool          `json:"afresh,omitempty"`
	LastPerson string        `json:"last_person,omitempty"` // the person's newest message, if it is not kept otherwise
	System     *HiddenSystem `json:"system,omitempty"`      // hidden system messages in the middle of the path
	Replaced   []Replaced    `json:"replaced,omitempty"`    // replaced pieces among the kept messages
	// the message of an imported overlay: the overlay counts where that message is on the path
	Record string `json:"record,omitempty"`

	// the replacement contains the person's newest texts before the summary (preset codex)
	Words   bool `json:"words,omitempty"`
	MidTurn bool `json:"mid_turn,omitempty"` // with Words: a turn continued, so initial blocks are among the texts
}

// Replaced is a piece in the middle of a path that a text in the user's role replaces. Goose does so with
// old tool calls and their results. Without a text the piece is only hidden: Claude Code withdraws
// messages after a refusal.
type Replaced struct {
	Messages []string `json:"messages"` // in the order of the path; the text replaces the last one
	Text     string   `json:"text"`
	Saves    int64    `json:"saves,omitempty"` // tokens, by the reference counter
}

// HiddenSystem is the texts of system messages that an overlay hides; summaries leave them out. Whole:
// they are all system texts at the time of the overlay, including those at the beginning of the path.
type HiddenSystem struct {
	Texts []string `json:"texts"`
	Whole bool     `json:"whole,omitempty"`
}

// CompactionName returns a compaction's name outside the database.
func CompactionName(rowID int64) string { return "cmp_" + strconv.FormatInt(rowID, 10) }

// ContextName returns a context's name outside the database.
func ContextName(rowID int64) string { return "ctx_" + strconv.FormatInt(rowID, 10) }

// ParseName parses a name by CompactionName or ContextName. Codes: Invalid.
func ParseName(prefix, s string) (int64, error) {
	digits, ok := strings.CutPrefix(s, prefix+"_")
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n <= 0 {
		return 0, Errorf(Invalid, "%q is not an id of this kind; it looks like %s_12", clip(s, 60), prefix)
	}
	return n, nil
}
