package session

// Link is the link of a session to its parent.
type Link struct {
	Session ID          `db:"session_id" json:"session_id" doc:"The fork or child"`
	Kind    string      `db:"parent_kind" json:"kind" doc:"fork or child"`
	Parent  ID          `db:"parent_id" json:"parent_id"`
	Message *MessageRef `db:"message" json:"message_id,omitempty" doc:"Of a fork: the last message that it shares. Of a child: the message whose call started it"`
	Call    string      `db:"call_id" json:"call_id,omitempty" doc:"Of a child: the id of that call"`
	Title   string      `db:"title" json:"title,omitempty" doc:"Title of the fork or child, for people"`
}

// Measure is how large and how dear a session is now. Lists, pages and answers show these numbers and no others.
type Measure struct {
	Context ContextSize `json:"context" doc:"Size of the context at the head, now"`
	Rollup  *Rollup     `json:"rollup,omitempty" doc:"Sums of the session and its sub-agents, at any depth; missing: it started none"`
}

// ContextSize is the size of a context in tokens.
type ContextSize struct {
	Tokens   int64 `json:"tokens" doc:"By the provider's newest report and the messages since, else by sessiond's own count"`
	Reported bool  `json:"reported" doc:"false: no report of a provider holds for this context, the number is an estimate"`
	Window   int64 `json:"window,omitempty" doc:"Tokens that the model accepts; missing: not known"`
}

// Rollup is the sum over a session and its children at any depth. Each session counts only its own
// messages and calls.
type Rollup struct {
	Children         int64    `db:"children" json:"children" doc:"Sessions below it, at any depth"`
	MessageCount     int64    `db:"message_count" json:"message_count"`
	TotalTokens      int64    `db:"total_tokens" json:"total_tokens"`
	InputTokens      int64    `db:"input_tokens" json:"input_tokens"` // excluding cache
	OutputTokens     int64    `db:"output_tokens" json:"output_tokens"`
	CacheReadTokens  int64    `db:"cache_read_tokens" json:"cache_read_tokens"`
	CacheWriteTokens int64    `db:"cache_write_tokens" json:"cache_write_tokens"`
	CostNanoUSD      *int64   `db:"cost_nanousd" json:"-"`
	CostUSD          *float64 `db:"cost_usd" json:"cost_usd"` // of the priced calls; nil: none is
	UnpricedCalls    int64    `db:"unpriced_calls" json:"unpriced_calls"`
}
