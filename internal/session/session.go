package session

// Kinds of a session's link to its parent_id.
const (
	ParentFork  = "fork"  // its path begins in the parent
	ParentChild = "child" // the parent started it: a sub-agent
)

// KindSubagent is the kind of a session that another one started; the others are chat, cron, hook and other.
const KindSubagent = "subagent"

// Kinds of sessions that lists show. An automated one was begun by a program: lists leave it out.
const (
	KindChat      = "chat"
	KindAutomated = "other"
)

// Session is one conversation. Counts are of its own messages; shared messages of a fork count in its
// parent. Tokens of calls are the provider's, all others the reference counter's.
type Session struct {
	ID          ID     `db:"id" json:"id" doc:"The session's id, YYYYMMDD_NNN: the day of creation and a counter; it is never used again"`
	Day         string `db:"day" json:"day"` // of its creation, in the service's zone
	Title       string `db:"title" json:"title"`
	TitleSource string `db:"title_source" json:"title_source,omitempty" doc:"given, first_message, model (a model wrote the title) or source (the source program did)"`
	Kind        string `db:"kind" json:"kind" doc:"chat, subagent, cron, hook, other"`
	Draft       bool   `db:"draft" json:"draft,omitempty" doc:"Hidden from lists until its first reply"`
	Settings    JSON   `db:"settings" json:"settings,omitempty" doc:"Its own settings of the context manager; they override the configuration"`
	Key         string `db:"key" json:"key,omitempty"`
	Generation  int64  `db:"generation" json:"generation,omitempty"`

	Source    Source `db:"source" json:"source"`
	SourceID  string `db:"source_id" json:"source_id,omitempty" doc:"Its id in the source program"`
	Directory string `db:"directory" json:"directory,omitempty"`
	Project   string `db:"project" json:"project,omitempty" doc:"Git root of the directory, else the directory"`
	GitBranch string `db:"git_branch" json:"git_branch,omitempty"`

	Owner string `db:"owner" json:"owner,omitempty" doc:"Whose it is; missing: the person's who runs the daemon"`
	Host  string `db:"host" json:"host,omitempty" doc:"Name of the host on which it began"`

	// ForeignFrom marks what is not known to be the user's own history.
	ForeignFrom string `db:"foreign_from" json:"foreign_from,omitempty" doc:"The file, given by hand, from which it was imported; hooks leave such a session out. Missing: it is the user's own"`

	Provider string `db:"provider" json:"provider,omitempty"`
	Model    string `db:"model" json:"model,omitempty"`
	Window   *int64 `db:"window" json:"window,omitempty"` // tokens; nil: the model's in the catalogue

	ParentID   ID     `db:"parent_id" json:"parent_id,omitempty"`
	ParentKind string `db:"parent_kind" json:"parent_kind,omitempty" doc:"fork (it shares the parent's path up to a message) or child (a sub-agent)"`

	HeadID       *int64      `db:"head_id" json:"-"`
	Head         *MessageRef `db:"head" json:"head"`
	LastSeq      int64       `db:"last_seq" json:"last_seq" doc:"The highest seq so far"`
	CompactionID *int64      `db:"compaction_id" json:"-"` // cache of the effective overlay
	Epoch        int64       `db:"epoch" json:"epoch"`
	Revision     int64       `db:"revision" json:"revision"`

	MessageCount int64 `db:"message_count" json:"message_count" doc:"Number of its own messages; a fork does not count the messages that it shares"`
	SaidCount    int64 `db:"said_count" json:"said_count" doc:"How many of its own messages are words of a person or a model: without calls, results and rows of the program"`
	TotalTokens  int64 `db:"total_tokens" json:"total_tokens" doc:"Size of its own messages, in reference tokens"`
	// of the context at the head, by the reference counter
	ContextTokens    int64    `db:"context_tokens" json:"context_tokens"`
	CompactionCount  int64    `db:"compaction_count" json:"compaction_count" doc:"Compactions that took effect in it"`
	InputTokens      int64    `db:"input_tokens" json:"input_tokens"` // excluding cache
	OutputTokens     int64    `db:"output_tokens" json:"output_tokens"`
	CacheReadTokens  int64    `db:"cache_read_tokens" json:"cache_read_tokens"`
	CacheWriteTokens int64    `db:"cache_write_tokens" json:"cache_write_tokens"`
	CostNanoUSD      *int64   `db:"cost_nanousd" json:"-"`    // nil: no call has a known price
	CostUSD          *float64 `db:"cost_usd" json:"cost_usd"` // the same in dollars
	UnpricedCalls    int64    `db:"unpriced_calls" json:"unpriced_calls"`

	TurnOrigin Origin `db:"turn_origin" json:"-"` // of the message that began the newest turn
	CreatedAt  Time   `db:"created_at" json:"created_at"`
	UpdatedAt  Time   `db:"updated_at" json:"updated_at"`           // any change
	ActiveAt   Time   `db:"active_at" json:"active_at"`             // last message of a turn that a person began
	InboundAt  *Time  `db:"inbound_at" json:"inbound_at,omitempty"` // last message of a person
	ArchivedAt *Time  `db:"archived_at" json:"archived_at,omitempty" doc:"Time it was archived"`
	StarredAt  *Time  `db:"starred_at" json:"starred_at,omitempty" doc:"Time a person starred it"`
	DeletedAt  *Time  `db:"deleted_at" json:"deleted_at,omitempty" doc:"Time it was put into the trash"`
	EndedAt    *Time  `db:"ended_at" json:"ended_at,omitempty" doc:"Time a reset ended it"`
	EndReason  string `db:"end_reason" json:"end_reason,omitempty" doc:"Why it ended: daily, idle, command, rpc, run, overflow, role_order, corrupt"`

	Tags     Tags `db:"tags" json:"tags,omitempty" doc:"Its tags, in the order in which they were set"`
	Metadata JSON `db:"metadata" json:"metadata"`
}
