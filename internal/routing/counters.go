package routing

// Counters are how full the current generation's context is, as its model reported it: the
// last call's figures, never their sum. Nil is not known.
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

// Usage is what a provider reported of one call. Input is without cache.
type Usage struct {
	Input, Output, CacheRead, CacheWrite int64
	Total                                int64 // used where no prompt figure is there
	Provider, Model                      string
	Window                               *int64 // nil: as before
}

// Report takes a call's figures. One without any leaves the counters and says only that they
// are out of date, and so does one that tells nothing of the prompt.
func (c *Counters) Report(u Usage) {
	if u.Window != nil {
		c.Window = u.Window
	}
	c.Provider, c.Model = orElse(u.Provider, c.Provider), orElse(u.Model, c.Model)
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

// Compacted counts a compaction that took effect; after is the size it left, nil when that is
// not known.
func (c *Counters) Compacted(after *int64) {
	c.Compactions++
	c.InputTokens, c.OutputTokens = nil, nil
	c.Fresh = after != nil
	if after != nil {
		c.TotalTokens = after
	}
}

// Fullness is what lists show of the counters; nil is unknown.
type Fullness struct {
	TotalTokens     *int64 `json:"total_tokens"`
	Window          int64  `json:"window"`
	PercentUsed     *int64 `json:"percent_used"`
	RemainingTokens *int64 `json:"remaining_tokens"`
}

const mostPercent = 999

// DefaultWindow is assumed where nothing says how large a model's window is.
const DefaultWindow = 200_000

// Fullness measures the counters against a window: their own, else the given one. A total
// that is out of date is unknown; where there never was one, input and output stand in.
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
