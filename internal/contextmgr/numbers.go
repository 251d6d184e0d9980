package contextmgr

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"sessiond/internal/session"
)

// StrategyAsk leaves the choice of a strategy to the caller: between threshold and limit the
// context carries a directive, above the limit there is none until the caller has chosen.
const StrategyAsk session.Strategy = "ask"

// Settings are numbers of the context manager as one place gave them. What is nil was not
// given there, and the next place decides. Sizes are in tokens of the model.
type Settings struct {
	Preset             *string           `json:"preset,omitempty"`
	Fraction           *float64          `json:"fraction,omitempty"` // 0…1; 0 and 1: off
	ReserveTokens      *int64            `json:"reserve_tokens,omitempty"`
	ReserveFloor       *int64            `json:"reserve_floor,omitempty"` // 0: none
	KeepRecentTokens   *int64            `json:"keep_recent_tokens,omitempty"`
	KeepRecentMessages *int64            `json:"keep_recent_messages,omitempty"`
	SummaryMaxTokens   *int64            `json:"summary_max_tokens,omitempty"`
	PruneProtect       *int64            `json:"prune_protect,omitempty"`
	PruneMinimum       *int64            `json:"prune_minimum,omitempty"` // 0: nothing is pruned
	ProtectedTools     *[]string         `json:"protected_tools,omitempty"`
	PartMaxTokens      *int64            `json:"part_max_tokens,omitempty"`
	RecallTokens       *int64            `json:"recall_tokens,omitempty"` // for each message of a person; 0: no recall
	RecallMS           *int64            `json:"recall_ms,omitempty"`     // milliseconds after which a recall stops looking
	CacheSlots         *int64            `json:"cache_slots,omitempty"`   // marks for the provider's cache, 0…4
	Strategy           *session.Strategy `json:"strategy,omitempty"`
	Instructions       *string           `json:"instructions,omitempty"` // what each summary must keep
}

// ParseSettings reads the settings that a session, a request or a file holds as JSON. Keys
// that are no settings of the context manager are left to others. Codes: Invalid.
func ParseSettings(raw session.JSON) (Settings, error) {
	var s Settings
	if len(raw) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, session.Errorf(session.Invalid, "compaction settings: %w", err)
	}
	return s, s.Check()
}

// Check tells whether each number is one that can be used. Codes: Invalid, with the fields.
func (s *Settings) Check() error {
	var bad []session.FieldError
	refuse := func(path, format string, args ...any) {
		bad = append(bad, session.FieldError{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if f := s.Fraction; f != nil && !(*f >= 0 && *f <= 1) {
		refuse("fraction", "is %v and must be between 0 and 1; 0 or 1 turns automatic compaction off", *f)
	}
	for _, n := range []struct {
		name  string
		value *int64
	}{
		{"reserve_tokens", s.ReserveTokens},
		{"reserve_floor", s.ReserveFloor},
		{"keep_recent_tokens", s.KeepRecentTokens},
		{"keep_recent_messages", s.KeepRecentMessages},
		{"summary_max_tokens", s.SummaryMaxTokens},
		{"prune_protect", s.PruneProtect},
		{"prune_minimum", s.PruneMinimum},
		{"part_max_tokens", s.PartMaxTokens},
		{"recall_tokens", s.RecallTokens},
		{"recall_ms", s.RecallMS},
	} {
		if n.value != nil && (*n.value < 0 || *n.value > maxNumber) {
			refuse(n.name, "is %d and must be between 0 and %d", *n.value, int64(maxNumber))
		}
	}
	if n := s.CacheSlots; n != nil && (*n < 0 || *n > mostCacheSlots) {
		refuse("cache_slots", "is %d and must be between 0 and %d; 0 sends no cache marks", *n, mostCacheSlots)
	}
	if s.Instructions != nil && len(*s.Instructions) > longestInstructions {
		refuse("instructions", "has %d bytes and may have %d: say in a few sentences what summaries must keep", len(*s.Instructions), longestInstructions)
	}
	if s.Preset != nil && *s.Preset != "" {
		if _, known := preset(*s.Preset); !known {
			refuse("preset", "%q is none of %s", *s.Preset, strings.Join(PresetNames(), ", "))
		}
	}
	if s.Strategy != nil {
		if err := checkStrategy(*s.Strategy, true); err != nil {
			refuse("strategy", "%s", err.Error())
		}
	}
	if len(bad) == 0 {
		return nil
	}
	err := session.Errorf(session.Invalid, "compaction settings: %s: %s", bad[0].Path, bad[0].Message)
	err.Fields = bad
	return err
}

// longestInstructions is in bytes: they go into each prompt for a summary.
const longestInstructions = 8000

// maxNumber keeps sums of settings far from overflow.
const maxNumber = 1 << 40

func checkStrategy(s session.Strategy, automatic bool) error {
	switch s {
	case session.StrategySummarize, session.StrategyTruncate, session.StrategyClear:
		return nil
	case StrategyAsk:
		if automatic {
			return nil
		}
	case session.StrategyPrune: // stands before every summary by itself
		if !automatic {
			return nil
		}
	}
	if automatic {
		return session.Errorf(session.Invalid, "strategy %q is none of summarize, truncate, clear, ask", s)
	}
	return session.Errorf(session.Invalid, "strategy %q is none of summarize, prune, truncate, clear", s)
}

// Layer is one place that settings come from. Source is request, session, file, preset NAME
// or default, as explain shows it.
type Layer struct {
	Source   string
	Settings Settings
}

// Setting is a number that counts, with the place that it came from.
type Setting struct {
	Name   string `json:"name"`
	Value  any    `json:"value"`
	Source string `json:"source"`
}

// Numbers are the resolved numbers for one model. Sizes are in tokens of the model.
type Numbers struct {
	Window    int64
	Reserve   int64 // effective head-room: floor, caps and the request's max_output applied
	Limit     int64 // window − reserve: no context passes it
	Threshold int64 // compact strictly above it; when Off it equals Limit
	Soft      int64 // summaries are made ready from here
	Flush     int64 // the memory-flush directive goes out from here
	Off       bool  // nothing compacts unasked

	KeepTokens     int64
	KeepMessages   int64
	SummaryMax     int64
	PruneProtect   int64
	PruneMinimum   int64
	ProtectedTools []string
	PartMax        int64
	ShownMax       int64 // one hidden message that is shown again; the request's max_output does not move it
	RecallMax      int64 // for each message of a person
	RecallEpoch    int64 // for all of them under one overlay
	RecallTime     time.Duration
	CacheSlots     int
	Strategy       session.Strategy
	Instructions   string
	Preset         string
	Settings       []Setting // all of them, for explain
}

// Resolve finds each number: the nearest of the layers that gives it, then the preset that
// the nearest layer names, then the default. maxOutput is the request's own, 0 for none.
// Codes: Invalid.
func Resolve(layers []Layer, window, maxOutput int64) (Numbers, error) {
	if window <= 0 {
		return Numbers{}, session.Errorf(session.Invalid, "window is %d: it must be the model's number of tokens", window).At("window", "must be positive")
	}
	if maxOutput < 0 || maxOutput >= window {
		return Numbers{}, session.Errorf(session.Invalid, "max_output is %d: it must leave room in the window of %d tokens", maxOutput, window).At("max_output", "must be below the window")
	}
	for i := range layers {
		if err := layers[i].Settings.Check(); err != nil {
			return Numbers{}, fmt.Errorf("%s: %w", layers[i].Source, err)
		}
	}
	name := presetOf(layers)
	own, _ := preset(name)
	all := append(append([]Layer{}, layers...), Layer{"preset " + name, own})

	n := Numbers{Window: window, Preset: name}
	fraction := choose(&n, all, "fraction", func(s *Settings) *float64 { return s.Fraction }, 0.8)
	reserve := choose(&n, all, "reserve_tokens", func(s *Settings) *int64 { return s.ReserveTokens }, 16384)
	floor := choose(&n, all, "reserve_floor", func(s *Settings) *int64 { return s.ReserveFloor }, DefaultReserveFloor)
	n.Reserve = EffectiveReserve(reserve, floor, window)
	if name == presetMoltbot {
		n.Reserve = MoltbotReserve(reserve, floor, window)
	}
	n.ShownMax = window - n.Reserve
	if t, off := Threshold(window, fraction, n.Reserve); !off {
		n.ShownMax = t
	}
	n.ShownMax /= shownShare
	n.Reserve = max(n.Reserve, maxOutput)
	n.Limit = window - n.Reserve
	n.Threshold, n.Off = Threshold(window, fraction, n.Reserve)
	if inclusive(name) {
		n.Threshold--
	}
	if n.Limit <= 0 {
		return Numbers{}, session.Errorf(session.Invalid, "the reserve of %d tokens leaves nothing of the window of %d: lower reserve_tokens or max_output", n.Reserve, window)
	}
	if n.Off {
		n.Threshold = n.Limit
	}
	if name == presetOpencode {
		all[len(all)-1].Settings.KeepRecentTokens = ptr(tailBudget(n.Limit))
	}
	t := n.Threshold
	n.Soft = t * 9 / 10
	n.Flush = t - min(4000, t/20)
	n.KeepTokens = choose(&n, all, "keep_recent_tokens", func(s *Settings) *int64 { return s.KeepRecentTokens }, min(max(20000, t/20), t*3/10))
	n.KeepMessages = choose(&n, all, "keep_recent_messages", func(s *Settings) *int64 { return s.KeepRecentMessages }, 5)
	n.SummaryMax = choose(&n, all, "summary_max_tokens", func(s *Settings) *int64 { return s.SummaryMaxTokens }, min(8000, max(2000, t/100), t/10))
	n.PruneProtect = choose(&n, all, "prune_protect", func(s *Settings) *int64 { return s.PruneProtect }, 40000)
	n.PruneMinimum = choose(&n, all, "prune_minimum", func(s *Settings) *int64 { return s.PruneMinimum }, 20000)
	n.ProtectedTools = choose(&n, all, "protected_tools", func(s *Settings) *[]string { return s.ProtectedTools }, []string{"skill"})
	n.PartMax = choose(&n, all, "part_max_tokens", func(s *Settings) *int64 { return s.PartMaxTokens }, min(window/4, 50000))
	n.RecallMax = choose(&n, all, "recall_tokens", func(s *Settings) *int64 { return s.RecallTokens }, min(1000, t/20))
	n.RecallEpoch = 4 * n.RecallMax
	n.RecallTime = time.Duration(choose(&n, all, "recall_ms", func(s *Settings) *int64 { return s.RecallMS }, defaultRecallMS)) * time.Millisecond
	n.CacheSlots = int(choose(&n, all, "cache_slots", func(s *Settings) *int64 { return s.CacheSlots }, defaultCacheSlots))
	n.Strategy = choose(&n, all, "strategy", func(s *Settings) *session.Strategy { return s.Strategy }, session.StrategySummarize)
	n.Instructions = choose(&n, all, "instructions", func(s *Settings) *string { return s.Instructions }, "")
	if name == presetMoltbot {
		n.Flush = moltbotFlush(window, n.Reserve, moltbotSoft)
	}
	return n, nil
}

// shownShare is the part of the threshold that a message which began a split turn may fill.
const shownShare = 4

// choose takes a setting from the nearest layer that has it and notes where that was.
func choose[T any](n *Numbers, layers []Layer, name string, get func(*Settings) *T, fallback T) T {
	value, source := fallback, "default"
	for i := range layers {
		if v := get(&layers[i].Settings); v != nil {
			value, source = *v, layers[i].Source
			break
		}
	}
	n.Settings = append(n.Settings, Setting{name, value, source})
	return value
}

// floorOf rounds down, but not below an integer that only binary fractions missed.
func floorOf(x float64) int64 { return int64(math.Floor(x + 1e-6)) }
