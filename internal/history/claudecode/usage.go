package claudecode

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/usage"
)

// tally is the usage of a model in tokens, and the searches of Anthropic's server.
type tally struct {
	input, written, writtenHour, read, output, thought, searches int64
}

// numbers lists the fields, so that each is treated alike.
func (t *tally) numbers() []*int64 {
	return []*int64{&t.input, &t.written, &t.writtenHour, &t.read, &t.output, &t.thought, &t.searches}
}

// each sets each number to what combine makes of it and of the same number of another tally.
func (t *tally) each(other *tally, combine func(mine, other int64) int64) {
	for i, n := range t.numbers() {
		*n = combine(*n, *other.numbers()[i])
	}
}

func larger(a, b int64) int64 { return max(a, b) }
func plus(a, b int64) int64   { return a + b }
func minus(a, b int64) int64  { return max(0, a-b) }

// parseTally reads a usage object.
func parseTally(usage jsonx.Object) tally {
	created := usage.Inner("cache_creation")
	hour := tokens(created, "ephemeral_1h_input_tokens")
	return tally{
		input:       tokens(usage, "input_tokens"),
		written:     max(tokens(usage, "cache_creation_input_tokens"), tokens(created, "ephemeral_5m_input_tokens")+hour),
		writtenHour: hour,
		read:        tokens(usage, "cache_read_input_tokens"),
		output:      tokens(usage, "output_tokens"),
		thought:     tokens(usage.Inner("output_tokens_details"), "thinking_tokens"),
		searches:    tokens(usage.Inner("server_tool_use"), "web_search_requests"),
	}
}

// bill is the usage of one response: of each number the largest that its rows say, wherever they
// lie in the file, since they repeat it while it grows.
type bill struct {
	model, version string // of its last row
	tier           string // of service; "": the standard one
	cost           *float64
	told           bool         // a row has usage
	at             int64        // offset of its first row
	time           session.Time // of the same
	inherited      bool         // it is the call of the session that this one was forked off

	tally
	beside []besideCall // requests that the response made and its own numbers leave out
}

// besideCall is what another model was asked within a response, or the response's own compaction of its context.
type besideCall struct {
	kind, model string
	tally
}

// kinds of a response's iterations that its own numbers leave out.
const (
	iterationAdvisor    = "advisor_message"
	iterationCompaction = "compaction"
)

// add reads the usage of a row.
func (b *bill) add(w *row) {
	if !b.told {
		b.at, b.time = w.offset, w.at
	}
	b.model, b.version = plain(w.message.String("model")), plain(w.String("version"))
	if _, ok := jsonx.ReadFields(w.Get("forkedFrom")); ok {
		b.inherited = true
	}
	if cost, ok := history.Number(w.Get("costUSD")); ok && (b.cost == nil || *b.cost < cost) {
		b.cost = &cost
	}
	said, ok := jsonx.ReadFields(w.message.Get("usage"))
	if !ok {
		return
	}
	b.told = true
	now := parseTally(said)
	b.tally.each(&now, larger)
	for _, tier := range []string{said.String("service_tier"), said.String("speed")} { // the speed names the price
		if tier = usage.ServiceTier(plain(tier)); tier != "" {
			b.tier = tier
		}
	}
	b.addBeside(said)
}

func (b *bill) addBeside(said jsonx.Object) {
	iterations, _ := jsonx.ReadArray(said.Get("iterations"))
	n := 0
	for _, raw := range iterations {
		o, ok := jsonx.ReadFields(raw)
		kind := o.String("type")
		if !ok || kind != iterationAdvisor && kind != iterationCompaction {
			continue
		}
		if n == len(b.beside) {
			b.beside = append(b.beside, besideCall{kind: kind})
		}
		now := parseTally(o)
		b.beside[n].tally.each(&now, larger)
		if model := plain(o.String("model")); model != "" {
			b.beside[n].model = model
		}
		n++
	}
}

// openCall is a response of a stream that may still get more rows.
type openCall struct {
	id    string
	key   string // of its newest message
	at    session.Time
	dir   string
	ended bool // a stop reason was said
}

// calls returns the ledger rows: the response's own, then those of the requests that it made and of its searches. How
// far its output can be trusted depends on the version: some wrote the number that a stream begins with, and never
// the end.
func (b *bill) calls(of *openCall) []history.Call {
	base := session.Call{Provider: "anthropic", Directory: of.dir, CreatedAt: of.at}
	own := b.tally.call(base)
	own.Model, own.ExternalID, own.ServiceTier = b.model, "claude-code:"+of.id, b.tier
	if b.cost != nil && *b.cost >= 0 && *b.cost < 1e9 {
		own.CostNanoUSD = new(int64(math.Round(*b.cost * 1e9)))
	}
	if quality := qualityOf(b.version); quality != "" {
		own.Metadata = session.JSONOf(map[string]string{"output_quality": quality})
	}
	all := []session.Call{own}
	searches := b.searches
	for i := range b.beside {
		beside := b.beside[i].tally.call(base)
		beside.Model, beside.ExternalID = b.beside[i].modelOr(b.model),
			fmt.Sprintf("claude-code:%s#%s-%d", of.id, b.beside[i].kind, i+1)
		beside.Purpose = session.PurposeTool
		if b.beside[i].kind == iterationCompaction {
			beside.Purpose = session.PurposeSummary
		}
		all = append(all, beside)
		searches += b.beside[i].searches
	}
	if searches > 0 {
		call := searchCall(base, searches)
		call.ExternalID = "claude-code:" + of.id + "#" + usage.WebSearch
		all = append(all, call)
	}
	calls := make([]history.Call, len(all))
	for i := range all {
		calls[i] = history.Call{MessageKey: of.key, Call: all[i]}
	}
	return calls
}

func (c *besideCall) modelOr(model string) string {
	if c.model != "" {
		return c.model
	}
	return model
}

// call returns a call with the numbers of a tally, without its searches.
func (t *tally) call(base session.Call) session.Call {
	base.InputTokens, base.CacheReadTokens, base.OutputTokens = t.input, t.read, t.output
	base.CacheWriteTokens, base.CacheWrite1h = t.written, t.writtenHour
	base.ReasoningTokens = min(t.thought, t.output)
	return base
}

// searchCall returns the call that stands for searches, which have a price by the piece.
func searchCall(base session.Call, searches int64) session.Call {
	base.Model, base.Purpose, base.Requests = usage.WebSearch, session.PurposeTool, searches
	return base
}

// qualityOf returns what a version's output tokens are: "placeholder" for the number that a
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
func tokens(o jsonx.Object, key string) int64 { return history.Count(o.Get(key)) }
