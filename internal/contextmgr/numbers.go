package contextmgr

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/spelling"
)

// StrategyAsk leaves the choice of a strategy to the caller: between threshold and limit the
// context carries a directive, above the limit there is none until the caller has chosen.
const StrategyAsk session.Strategy = "ask"

// Settings are the numbers that one place sets. A nil field is not set there, and the next place
// decides. Sizes are in tokens of the model.
type Settings struct {
	Preset             *string           `json:"preset,omitempty" doc:"A named set of numbers; a number set beside it wins. Default balanced"`
	Fraction           *float64          `json:"fraction,omitempty" doc:"Compact above this part of the window, 0 to 1; 0 and 1: no automatic compaction. Default 0.8"`
	ReserveTokens      *int64            `json:"reserve_tokens,omitempty" doc:"Tokens to keep free for the reply; default 16384"`
	ReserveFloor       *int64            `json:"reserve_floor,omitempty" doc:"Smallest reserve, in tokens; 0: none. Default 20000"`
	KeepRecentTokens   *int64            `json:"keep_recent_tokens,omitempty" doc:"Tokens to keep verbatim; default: a twentieth of the threshold, at least 20000, at most a fifth of the threshold"`
	KeepRecentMessages *int64            `json:"keep_recent_messages,omitempty" doc:"Messages to keep verbatim; default 5"`
	SummaryMaxTokens   *int64            `json:"summary_max_tokens,omitempty" doc:"Longest summary, in tokens; default: a fiftieth of the threshold, at least 4000, at most 8000 and three tenths of the threshold"`
	PruneProtect       *int64            `json:"prune_protect,omitempty" doc:"The newest tool outputs, of so many tokens, are not pruned; default 40000"`
	PruneMinimum       *int64            `json:"prune_minimum,omitempty" doc:"Prune only if it saves so many tokens; 0: never. Default 20000"`
	ProtectedTools     *[]string         `json:"protected_tools,omitempty" doc:"Tools whose output is never pruned; default [\"skill\"]"`
	PartMaxTokens      *int64            `json:"part_max_tokens,omitempty" doc:"A larger output of a tool is sent as head, marker and tail; default: a quarter of the window, at most 50000"`
	RecallTokens       *int64            `json:"recall_tokens,omitempty" doc:"Tokens to recall for each message of a person; 0: no recall. Default: at most 1000"`
	CacheSlots         *int64            `json:"cache_slots,omitempty" doc:"Marks for the provider's cache, 0 to 4"`
	Strategy           *session.Strategy `json:"strategy,omitempty" doc:"summarize (the default), truncate, clear, or ask: the caller chooses"`
	Summarizer         *string           `json:"summarizer,omitempty" doc:"Which of the configured summarizers writes summaries; default: the one with the preset's name, else the configuration's summarizer"`
	Instructions       *string           `json:"instructions,omitempty" doc:"What each summary must keep; at most 8000 bytes"`
}

// ParseSettings parses the settings that a caller gives as JSON. A name that no setting has is an error
// that says which one is meant, unless its value is null. Codes: Invalid; a value of the wrong type is a
// *json.SemanticError.
func ParseSettings(raw session.JSON) (Settings, error) {
	var given map[string]jsontext.Value
	if len(raw) > 0 {
		if err := jsonx.Unmarshal(raw, &given); err != nil {
			return Settings{}, session.Errorf(session.Invalid, "compaction settings: %w", err)
		}
	}
	known := settingNames()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(known, name) || string(given[name]) == "null" {
			continue
		}
		right := cmp.Or(SettingCalled(name), spelling.Nearest(name, known))
		return Settings{}, session.Errorf(session.Invalid, "there is no setting %q; the most similar one is %q", name, right).
			At(name, "unknown setting; the most similar one is %s", right)
	}
	return StoredSettings(raw)
}

// StoredSettings parses the settings that a session holds as JSON. It ignores names that it does not know:
// earlier versions stored them. Codes: as ParseSettings.
func StoredSettings(raw session.JSON) (Settings, error) {
	var s Settings
	if len(raw) == 0 {
		return s, nil
	}
	if err := jsonx.Unmarshal(raw, &s); err != nil {
		return s, session.Errorf(session.Invalid, "compaction settings: %w", err)
	}
	return s, s.Check()
}

// settingNames lists the names of all settings.
func settingNames() (names []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Settings]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// SettingCalled returns the setting that other programs, or people, call name; "" if there is none.
func SettingCalled(name string) string {
	switch strings.ToLower(name) {
	case "threshold", "compaction_threshold", "auto_compact_threshold":
		return "fraction"
	case "keep_recent", "keep_last", "keep_messages":
		return "keep_recent_messages"
	case "reserve":
		return "reserve_tokens"
	case "max_summary_tokens":
		return "summary_max_tokens"
	case "summary_model", "summarizer_model":
		return "summarizer"
	}
	return ""
}

// Check validates each number. Codes: Invalid, with the fields.
func (s *Settings) Check() error {
	var bad []session.FieldError
	reject := func(path, format string, args ...any) {
		bad = append(bad, session.FieldError{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if f := s.Fraction; f != nil && !(*f >= 0 && *f <= 1) {
		reject("fraction", "is %v and must be between 0 and 1; 0 or 1 turns automatic compaction off", *f)
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
	} {
		if n.value != nil && (*n.value < 0 || *n.value > maxNumber) {
			reject(n.name, "is %d and must be between 0 and %d", *n.value, int64(maxNumber))
		}
	}
	if n := s.CacheSlots; n != nil && (*n < 0 || *n > maxCacheSlots) {
		reject("cache_slots", "is %d and must be between 0 and %d; 0 sends no cache marks", *n, maxCacheSlots)
	}
	if s.Instructions != nil && len(*s.Instructions) > maxInstructions {
		reject("instructions", "has %d bytes and may have %d: say in a few sentences what summaries must keep",
			len(*s.Instructions), maxInstructions)
	}
	if s.Preset != nil && *s.Preset != "" {
		if _, known := findPreset(*s.Preset); !known {
			reject("preset", "%q is not one of %s", *s.Preset, strings.Join(PresetNames(), ", "))
		}
	}
	if s.Strategy != nil {
		if err := checkStrategy(*s.Strategy, session.StrategySummarize, session.StrategyTruncate, session.StrategyClear,
			StrategyAsk); err != nil {
			reject("strategy", "%s", err.Error())
		}
	}
	if len(bad) == 0 {
		return nil
	}
	err := session.Errorf(session.Invalid, "compaction settings: %s: %s", bad[0].Path, bad[0].Message)
	err.Fields = bad
	return err
}

const (
	maxInstructions = 8000    // bytes: they go into each prompt for a summary
	maxNumber       = 1 << 40 // keeps sums of settings far from overflow
)

func checkStrategy(s session.Strategy, known ...session.Strategy) error {
	if slices.Contains(known, s) {
		return nil
	}
	names := make([]string, len(known))
	for i, name := range known {
		names[i] = string(name)
	}
	return session.Errorf(session.Invalid, "strategy %q is not one of %s", s, strings.Join(names, ", "))
}

// Layer is one place that sets numbers. Source is request, session, file, model, preset NAME or
// default, as explain shows it.
type Layer struct {
	Source   string
	Settings Settings
}

// Setting is a number in force, with the place that set it.
type Setting struct {
	Name   string `json:"name" doc:"The setting's name"`
	Value  any    `json:"value" doc:"The value in force"`
	Source string `json:"source" doc:"Who set it: request, session, file, model, preset NAME, default"`
}

// Numbers are the resolved numbers for one model. Sizes are in tokens of the model.
type Numbers struct {
	Window    int64
	Reserve   int64 // effective head-room: floor, caps and the request's max_output applied
	Limit     int64 // window − reserve: no context passes it
	Threshold int64 // compact strictly above it; if Off it equals Limit
	Soft      int64 // stage summaries above it; of a small window, softThreshold lowers it
	Flush     int64 // ask for a memory flush from here on
	Off       bool  // no automatic compaction

	KeepTokens     int64
	KeepMessages   int64
	SummaryMax     int64
	PruneProtect   int64
	PruneMinimum   int64
	ProtectedTools []string
	PartMax        int64
	ShownMax       int64 // of a hidden message that is shown again; independent of the request's max_output
	RecallMax      int64 // for each message of a person
	RecallEpoch    int64 // for all messages under one overlay
	CacheSlots     int
	Strategy       session.Strategy
	Summarizer     string
	Instructions   string
	Preset         string
	Settings       []Setting // all of them, for explain
	Capped         string    // says so if the reserve lowers the threshold below the fraction
}

// Resolve returns the numbers in force: each from the nearest layer that sets it, else from the
// nearest preset, else the default. maxOutput is the request's own, 0 for none. Codes: Invalid.
func Resolve(layers []Layer, window, maxOutput int64) (Numbers, error) {
	if window <= 0 {
		return Numbers{}, session.Errorf(session.Invalid, "window is %d: it must be the model's window in tokens",
			window).At("window", "must be positive")
	}
	if maxOutput < 0 || maxOutput >= window {
		return Numbers{}, session.Errorf(session.Invalid, "max_output is %d: it must leave room in the window of %d tokens",
			maxOutput, window).At("max_output", "must be below the window")
	}
	for i := range layers {
		if err := layers[i].Settings.Check(); err != nil {
			return Numbers{}, fmt.Errorf("%s: %w", layers[i].Source, err)
		}
	}
	name := nearestPreset(layers)
	own, _ := findPreset(name)
	all := append(append([]Layer{}, layers...), Layer{"preset " + name, own.settings})

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
	if wanted, _ := Threshold(window, fraction, 0); !n.Off && n.Threshold < wanted {
		n.Capped = fmt.Sprintf("fraction %v of the window is %d tokens; "+
			"the reserve of %d lowers the threshold to %d (%.2g of the window)",
			fraction, wanted, n.Reserve, n.Threshold, float64(n.Threshold)/float64(window))
	}
	if own.atThreshold {
		n.Threshold--
	}
	if n.Limit <= 0 {
		return Numbers{}, session.Errorf(session.Invalid,
			"the reserve of %d tokens fills the window of %d: lower reserve_tokens or max_output", n.Reserve, window)
	}
	if n.Off {
		n.Threshold = n.Limit
	}
	if name == presetOpencode {
		all[len(all)-1].Settings.KeepRecentTokens = ptr(opencodeTail(n.Limit))
	}
	t := n.Threshold
	n.Soft = t * 9 / 10
	n.Flush = t - min(4000, t/20)
	keep, summary := defaultSizes(own.imitates, t)
	n.KeepTokens = choose(&n, all, "keep_recent_tokens", func(s *Settings) *int64 { return s.KeepRecentTokens }, keep)
	n.KeepMessages = choose(&n, all, "keep_recent_messages", func(s *Settings) *int64 { return s.KeepRecentMessages }, 5)
	n.SummaryMax = choose(&n, all, "summary_max_tokens", func(s *Settings) *int64 { return s.SummaryMaxTokens }, summary)
	n.PruneProtect = choose(&n, all, "prune_protect", func(s *Settings) *int64 { return s.PruneProtect }, 40000)
	n.PruneMinimum = choose(&n, all, "prune_minimum", func(s *Settings) *int64 { return s.PruneMinimum }, 20000)
	n.ProtectedTools = choose(&n, all, "protected_tools", func(s *Settings) *[]string {
		return s.ProtectedTools
	}, []string{"skill"})
	n.PartMax = choose(&n, all, "part_max_tokens", func(s *Settings) *int64 {
		return s.PartMaxTokens
	}, min(window/4, 50000))
	n.RecallMax = choose(&n, all, "recall_tokens", func(s *Settings) *int64 { return s.RecallTokens }, min(1000, t/20))
	n.RecallEpoch = max(6*n.RecallMax, min(10*n.RecallMax, t/20)) // a large window has more questions between compactions
	n.CacheSlots = int(choose(&n, all, "cache_slots", func(s *Settings) *int64 { return s.CacheSlots }, defaultCacheSlots))
	n.Strategy = choose(&n, all, "strategy", func(s *Settings) *session.Strategy {
		return s.Strategy
	}, session.StrategySummarize)
	n.Summarizer = choose(&n, all, "summarizer", func(s *Settings) *string { return s.Summarizer }, "")
	n.Instructions = choose(&n, all, "instructions", func(s *Settings) *string { return s.Instructions }, "")
	if name == presetMoltbot {
		n.Flush = moltbotFlush(window, n.Reserve, moltbotSoft)
	}
	return n, nil
}

// defaultSizes returns how much a compaction keeps and how long its summary may be, for a threshold. They are chosen
// together: a summary of three tenths of a small window holds most of what was said before, and keeping a fifth instead
// of three tenths pays for it, so that compactions stay as rare. docs/performance.md has the measurements. Another
// program's preset has that program's own keep, beside which a larger summary would make compactions more frequent.
func defaultSizes(imitates bool, t int64) (keep, summary int64) {
	if imitates {
		return min(max(20000, t/20), t*3/10), min(8000, max(2000, t/100), t/10)
	}
	return min(max(20000, t/20), t/5), min(8000, max(4000, t/50), t*3/10)
}

// smallestLateStart is the window from which on 0.9 of the threshold leaves a model enough time.
const smallestLateStart = 32000

// turnsAhead is how many turns before the threshold a small window stages summaries, so that a model can answer.
const turnsAhead = 3

// softThreshold returns the size above which summaries are staged. Under a window of 32,000 tokens it is three
// mean turns of the path below the threshold: at most three quarters of the threshold, at least half of it. A turn
// is one request to the model and what was appended until the next.
func softThreshold(n *Numbers, path []Entry) int64 {
	if n.Window >= smallestLateStart {
		return n.Soft
	}
	var tokens, turns int64
	for i := range path {
		if !path[i].InContext {
			continue
		}
		tokens += path[i].Tokens
		if path[i].Role == session.Assistant {
			turns++
		}
	}
	return min(max(n.Threshold-turnsAhead*tokens/max(1, turns), n.Threshold/2), n.Threshold*3/4)
}

// fractionIsChosen reports whether a request, the session or the file sets the fraction.
func (n *Numbers) fractionIsChosen() bool {
	return slices.ContainsFunc(n.Settings, func(s Setting) bool {
		return s.Name == "fraction" && slices.Contains([]string{"request", "session", "file"}, s.Source)
	})
}

// shownShare is the part of the threshold that a hidden message which is shown again may fill.
const shownShare = 4

// choose returns a setting from the nearest layer that sets it, and notes that layer.
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

// DefaultReserveFloor is the smallest head-room unless a setting says otherwise. Rule: openclaw.
const DefaultReserveFloor = 20000

// smallWindow is the window below which the reserve is at most a quarter of it, so that a small
// model keeps room for a conversation.
const smallWindow = 64000

// EffectiveReserve returns the head-room: the reserve, at least the floor (0: none), both capped
// at a quarter of a small window.
func EffectiveReserve(reserve, floor, window int64) int64 {
	r := max(reserve, floor)
	if window < smallWindow {
		r = min(r, window/4)
	}
	return r
}

// Threshold returns the size above which, strictly, a context is compacted. A fraction that is
// not between 0 and 1 turns automatic compaction off.
func Threshold(window int64, fraction float64, reserve int64) (t int64, off bool) {
	if !(fraction > 0 && fraction < 1) {
		return 0, true
	}
	// 1e-6 keeps an integer that only the binary fraction missed.
	return min(int64(math.Floor(fraction*float64(window)+1e-6)), window-reserve), false
}
