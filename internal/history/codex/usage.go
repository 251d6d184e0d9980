package codex

import (
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// tokens is a usage object as Codex writes it: the input with what was cached, the output with
// the reasoning.
type tokens struct {
	Input     int64 `json:"input_tokens"`
	Cached    int64 `json:"cached_input_tokens"`
	Written   int64 `json:"cache_write_input_tokens"`
	Output    int64 `json:"output_tokens"`
	Reasoning int64 `json:"reasoning_output_tokens"`
	Total     int64 `json:"total_tokens"`
}

// parseTokens parses a usage object; ok is false for anything else. A negative number counts as 0.
func parseTokens(raw []byte) (t tokens, ok bool) {
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &t) != nil {
		return tokens{}, false
	}
	for _, n := range []*int64{&t.Input, &t.Cached, &t.Written, &t.Output, &t.Reasoning, &t.Total} {
		*n = max(*n, 0)
	}
	if t.Total == 0 {
		t.Total = t.Input + t.Output
	}
	return t, true
}

func (t tokens) minus(u tokens) tokens {
	return tokens{t.Input - u.Input, t.Cached - u.Cached, t.Written - u.Written, t.Output - u.Output, t.Reasoning - u.Reasoning, t.Total - u.Total}
}

func (t tokens) negative() bool {
	return t.Input < 0 || t.Cached < 0 || t.Written < 0 || t.Output < 0 || t.Reasoning < 0 || t.Total < 0
}

// call turns a usage into a ledger row: input without cache.
func (t tokens) call() session.Call {
	cached := min(t.Cached, t.Input)
	written := min(t.Written, t.Input-cached)
	return session.Call{
		Purpose: session.PurposeChat, Status: session.CallOK,
		InputTokens: t.Input - cached - written, CacheReadTokens: cached, CacheWriteTokens: written,
		OutputTokens: t.Output, ReasoningTokens: min(t.Reasoning, t.Output),
	}
}

func (t tokens) String() string {
	return fmt.Sprint(t.Input, t.Cached, t.Written, t.Output, t.Reasoning, t.Total)
}

// counted tells what a count of tokens adds. A cumulative total that did not change repeats the
// row before, whatever it says of the last response; one that does not grow by that response
// began anew.
func (s *state) counted(info history.Object) (used tokens, reset, ok bool) {
	total, is := parseTokens(info.Get("total_token_usage"))
	last, said := parseTokens(info.Get("last_token_usage"))
	switch {
	case !is && !said:
		return used, false, false
	case !is:
		return last, false, last != tokens{}
	case total == s.Total:
		return used, false, false
	}
	grown := total.minus(s.Total)
	s.Total = total
	switch {
	case !said:
		return grown, false, !grown.negative()
	case grown.negative() || grown.Total != last.Total:
		return last, true, last.Input+last.Output > 0
	}
	return last, false, true
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
