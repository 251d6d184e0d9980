package routing

import "cmp"

// Counters are the sizes of the current generation's context as its model reported them: the last
// call's figures, never their sum. Nil is unknown.
type Counters struct {
	InputTokens  *int64 `json:"input_tokens"`
	OutputTokens *int64 `json:"output_tokens"`
	TotalTokens  *int64 `json:"total_tokens"` // size of the last call's prompt
	Fresh        bool   `json:"fresh"`        // false: the total is out of date
	Window       *int64 `json:"window"`       // of the model, tokens
	Provider     string `json:"provider,omitempty"`
	Model        string `json:"model,omitempty"`
	Compactions  int64  `json:"compactions"`
}

// Usage is a provider's report on one call. Input excludes cache.
type Usage struct {
	Input, Output, CacheRead, CacheWrite int64
	Total                                int64 // used when no prompt figure is known
	Provider, Model                      string
	Window                               *int64 // nil: unchanged
}

// Report updates the counters with a call's figures. A call without a prompt figure marks them as
// out of date; one without any figure changes nothing else.
func (c *Counters) Report(u Usage) {
	if u.Window != nil {
		c.Window = u.Window
	}
	c.Provider, c.Model = cmp.Or(u.Provider, c.Provider), cmp.Or(u.Model, c.Model)
	prompt := u.Input + u.CacheRead + u.CacheWrite
	if prompt == 0 {
		prompt = u.Total
	}
	c.Fresh = prompt > 0
	if prompt == 0 && u.Output == 0 {
		return
	}
	c.InputTokens, c.OutputTokens = &u.Input, &u.Output
	if prompt > 0 {
		c.TotalTokens = &prompt
	}
}

// Compacted counts a compaction; after is the size that it left, nil when unknown.
func (c *Counters) Compacted(after *int64) {
	c.Compactions++
	c.InputTokens, c.OutputTokens = nil, nil
	c.Fresh = after != nil
	c.TotalTokens = cmp.Or(after, c.TotalTokens)
}

// Fullness is the part of the counters that lists show; nil is unknown.
type Fullness struct {
	TotalTokens     *int64 `json:"total_tokens" doc:"Size of the last call's prompt, in tokens of the model; null: unknown"`
	Window          int64  `json:"window" doc:"The model's window, in tokens"`
	PercentUsed     *int64 `json:"percent_used" doc:"total_tokens in percent of the window; null: unknown"`
	RemainingTokens *int64 `json:"remaining_tokens" doc:"Tokens left in the window; null: unknown"`
}

const mostPercent = 999

// DefaultWindow is the assumed window of a model whose window is unknown.
const DefaultWindow = 200_000

// Fullness compares the counters with a window: their own, else the given one. A total that is out
// of date counts as unknown; without any total, input plus output is used.
func (c *Counters) Fullness(window int64) Fullness {
	f := Fullness{Window: window}
	if c.Window != nil && *c.Window > 0 {
		f.Window = *c.Window
	}
	var total int64
	switch {
	case c.TotalTokens != nil && !c.Fresh:
		return f
	case c.TotalTokens != nil:
		total = *c.TotalTokens
	case c.InputTokens != nil || c.OutputTokens != nil:
		total = valueOf(c.InputTokens) + valueOf(c.OutputTokens)
	default:
		return f
	}
	remaining := max(0, f.Window-total)
	f.TotalTokens, f.RemainingTokens = &total, &remaining
	if f.Window > 0 {
		percent := min(mostPercent, (200*total+f.Window)/(2*f.Window)) // rounded half up
		f.PercentUsed = &percent
	}
	return f
}

func valueOf(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
