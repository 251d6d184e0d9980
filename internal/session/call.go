package session

// Purpose is the purpose of a model call.
type Purpose string

// The purposes.
const (
	PurposeChat          Purpose = "chat"
	PurposeSummary       Purpose = "summary"
	PurposeTitle         Purpose = "title"
	PurposeBranchSummary Purpose = "branch_summary"
	PurposeTool          Purpose = "tool"
	PurposeOther         Purpose = "other"
)

// Statuses of a call.
const (
	CallOK     = "ok"
	CallFailed = "failed"
)

// Call is one model call in the usage ledger. Each call counts once: Source and ExternalID together are
// unique if ExternalID is set.
type Call struct {
	RowID        int64   `db:"id" json:"-"`
	SessionID    ID      `db:"session_id" json:"session_id,omitempty"`
	MessageID    *int64  `db:"message_id" json:"-"`
	CompactionID *int64  `db:"compaction_id" json:"-"`
	ContextID    *int64  `db:"context_id" json:"-"`
	Purpose      Purpose `db:"purpose" json:"purpose"`
	Status       string  `db:"status" json:"status"`
	Error        string  `db:"error" json:"error,omitempty"`
	Provider     string  `db:"provider" json:"provider"`
	Model        string  `db:"model" json:"model"`
	Source       Source  `db:"source" json:"source,omitempty" doc:"The program that made the call"`
	ExternalID   string  `db:"external_id" json:"-"`
	Directory    string  `db:"directory" json:"directory,omitempty"`
	Day          string  `db:"day" json:"day,omitempty" doc:"Local day of the call, YYYY-MM-DD"`

	InputTokens      int64    `db:"input_tokens" json:"input_tokens"` // excluding cache
	CacheReadTokens  int64    `db:"cache_read_tokens" json:"cache_read_tokens"`
	CacheWriteTokens int64    `db:"cache_write_tokens" json:"cache_write_tokens"`
	CacheWrite1h     int64    `db:"cache_write_1h_tokens" json:"cache_write_1h_tokens,omitempty" doc:"The part of cache_write_tokens that stays in the cache for an hour"`
	OutputTokens     int64    `db:"output_tokens" json:"output_tokens"` // including reasoning
	ReasoningTokens  int64    `db:"reasoning_tokens" json:"reasoning_tokens"`
	ServiceTier      string   `db:"service_tier" json:"service_tier,omitempty" doc:"The provider's tier of service, as fast, priority, flex or batch; absent: the standard one"`
	Requests         int64    `db:"requests" json:"requests,omitempty" doc:"Requests that the call stands for where these have a price, as web searches"`
	CostNanoUSD      *int64   `db:"cost_nanousd" json:"-"` // nil: unknown, which is not free
	CostUSD          *float64 `db:"cost_usd" json:"cost_usd"`
	PriceSource      string   `db:"price_source" json:"price_source,omitempty" doc:"reported (by the provider or the program), catalogue, override (your own prices)"`
	LatencyMS        *int64   `db:"latency_ms" json:"latency_ms,omitempty"`
	CreatedAt        Time     `db:"created_at" json:"created_at" doc:"Time of the call, RFC 3339 in UTC"`
	Metadata         JSON     `db:"metadata" json:"metadata,omitempty"`

	Sum  bool         `db:"-" json:"-"` // the numbers of several requests: the length of no prompt is known
	Idem *Idempotency `db:"-" json:"-"` // of the request; nil: none
}

// PromptTokens returns the size of the prompt by the provider's count.
func (c *Call) PromptTokens() int64 { return c.InputTokens + c.CacheReadTokens + c.CacheWriteTokens }

// ContextTokens returns the size of the context after the call by the provider's count: its input and
// the reply.
func (c *Call) ContextTokens() int64 {
	return c.PromptTokens() + c.OutputTokens
}
