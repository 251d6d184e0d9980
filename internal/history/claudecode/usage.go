package claudecode

import (
	"math"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// bill is the usage of one response: of each number the largest that its rows say, since they
// repeat it while it grows.
type bill struct {
	ID      string       `json:"id"`
	Key     string       `json:"key"` // of the response's newest message
	At      session.Time `json:"at"`
	Model   string       `json:"model,omitempty"`
	Version string       `json:"version,omitempty"`
	Dir     string       `json:"dir,omitempty"`
	Cost    *float64     `json:"cost,omitempty"`

	Input   int64 `json:"i,omitempty"`
	Written int64 `json:"w,omitempty"`
	Read    int64 `json:"r,omitempty"`
	Output  int64 `json:"o,omitempty"`
	Thought int64 `json:"t,omitempty"`
	Ended   bool  `json:"ended,omitempty"` // a stop reason was said
}

// add takes what a row says.
func (b *bill) add(usage []byte) bool {
	o, ok := history.Fields(usage)
	if !ok {
		return false
	}
	created, _ := history.Fields(o.Get("cache_creation"))
	written := max(count(o, "cache_creation_input_tokens"), count(created, "ephemeral_5m_input_tokens")+count(created, "ephemeral_1h_input_tokens"))
	details, _ := history.Fields(o.Get("output_tokens_details"))
	b.Input = max(b.Input, count(o, "input_tokens"))
	b.Written = max(b.Written, written)
	b.Read = max(b.Read, count(o, "cache_read_input_tokens"))
	b.Output = max(b.Output, count(o, "output_tokens"))
	b.Thought = max(b.Thought, count(details, "thinking_tokens"))
	return true
}

// call gives the ledger row. How far its output can be trusted depends on the version: some
// wrote what a stream began with, and never the end.
func (b *bill) call() history.Call {
	c := history.Call{MessageKey: b.Key, Call: session.Call{
		Purpose: session.PurposeChat, Status: session.CallOK, Provider: "anthropic", Model: b.Model,
		Source: session.SourceClaudeCode, ExternalID: "claude-code:" + b.ID, Directory: b.Dir, CreatedAt: b.At,
		InputTokens: b.Input, CacheWriteTokens: b.Written, CacheReadTokens: b.Read, OutputTokens: b.Output,
		ReasoningTokens: min(b.Thought, b.Output),
	}}
	if b.Cost != nil && *b.Cost >= 0 && *b.Cost < 1e9 {
		nano := int64(math.Round(*b.Cost * 1e9))
		c.CostNanoUSD, c.PriceSource = &nano, "reported"
	}
	if quality := qualityOf(b.Version); quality != "" {
		c.Metadata = session.JSONOf(map[string]string{"output_quality": quality})
	}
	return c
}

// qualityOf tells what a version's output tokens are: "placeholder" for the number that a
// stream begins with, "low" for one that stops short of the end, "" for the true one.
func qualityOf(version string) string {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 3 || parts[0] != "2" || parts[1] != "1" {
		return ""
	}
	digits := strings.TrimRight(parts[2], "abcdefghijklmnopqrstuvwxyz-.")
	switch n, err := strconv.Atoi(digits); {
	case err != nil, n < 8, n >= 97:
		return ""
	case n < 30:
		return "placeholder"
	}
	return "low"
}

// count reads a number of tokens; what is none, or negative, is 0.
func count(o history.Object, key string) int64 {
	n, ok := number(o.Get(key))
	if !ok || n < 0 || n > 1e15 {
		return 0
	}
	return int64(n)
}

func number(raw []byte) (float64, bool) {
	n, err := strconv.ParseFloat(string(raw), 64)
	return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
}
