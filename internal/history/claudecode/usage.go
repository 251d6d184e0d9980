package claudecode

import (
	"math"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// bill is the usage of one response: of each number the largest that its rows say, wherever they
// lie in the file, since they repeat it while it grows.
type bill struct {
	model, version string // of its last row
	cost           *float64
	told           bool // a row has usage

	input, written, writtenHour, read, output, thought int64
}

// add reads the usage of a row.
func (b *bill) add(w *row) {
	b.model, b.version = plain(w.message.String("model")), plain(w.String("version"))
	if cost, ok := history.Number(w.Get("costUSD")); ok && (b.cost == nil || *b.cost < cost) {
		b.cost = &cost
	}
	usage, ok := history.Fields(w.message.Get("usage"))
	if !ok {
		return
	}
	b.told = true
	created := usage.Inner("cache_creation")
	details := usage.Inner("output_tokens_details")
	hour := tokens(created, "ephemeral_1h_input_tokens")
	written := max(tokens(usage, "cache_creation_input_tokens"), tokens(created, "ephemeral_5m_input_tokens")+hour)
	b.input = max(b.input, tokens(usage, "input_tokens"))
	b.written, b.writtenHour = max(b.written, written), max(b.writtenHour, hour)
	b.read = max(b.read, tokens(usage, "cache_read_input_tokens"))
	b.output = max(b.output, tokens(usage, "output_tokens"))
	b.thought = max(b.thought, tokens(details, "thinking_tokens"))
}

// openCall is a response of a stream that may still get more rows.
type openCall struct {
	id    string
	key   string // of its newest message
	at    session.Time
	dir   string
	ended bool // a stop reason was said
}

// call returns the ledger row. How far its output can be trusted depends on the version: some
// wrote the number that a stream begins with, and never the end.
func (b *bill) call(of *openCall) history.Call {
	c := history.Call{MessageKey: of.key, Call: session.Call{
		Provider: "anthropic", Model: b.model, ExternalID: "claude-code:" + of.id, Directory: of.dir, CreatedAt: of.at,
		InputTokens: b.input, CacheWriteTokens: b.written, CacheWrite1h: b.writtenHour, CacheReadTokens: b.read, OutputTokens: b.output,
		ReasoningTokens: min(b.thought, b.output),
	}}
	if b.cost != nil && *b.cost >= 0 && *b.cost < 1e9 {
		c.CostNanoUSD = new(int64(math.Round(*b.cost * 1e9)))
	}
	if quality := qualityOf(b.version); quality != "" {
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

// tokens reads a number of tokens, 0 for anything else.
func tokens(o history.Object, key string) int64 { return history.Count(o.Get(key)) }
