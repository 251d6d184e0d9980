package contextmgr

// justBelowOne stands for programs whose only rule is the reserve: a fraction of 1 would
// turn compaction off.
const justBelowOne = 0.99999

// Presets that bring more than numbers.
const (
	presetMoltbot = "moltbot"
	presetCodex   = "codex"
)

// PresetNames gives the presets: three of sessiond's own, then those that use the numbers of
// another program.
func PresetNames() []string {
	return []string{"balanced", "conservative", "aggressive", "goose", "pi", "opencode", presetCodex, presetMoltbot}
}

func preset(name string) (Settings, bool) {
	switch name {
	case "balanced":
		return Settings{Fraction: ptr(0.8), KeepRecentMessages: ptr[int64](5)}, true
	case "conservative":
		return Settings{Fraction: ptr(0.9), KeepRecentMessages: ptr[int64](10)}, true
	case "aggressive":
		return Settings{Fraction: ptr(0.7), KeepRecentMessages: ptr[int64](3)}, true
	case "goose": // a fraction alone
		return Settings{Fraction: ptr(0.8), ReserveTokens: ptr[int64](0), ReserveFloor: ptr[int64](0)}, true
	case "pi":
		return Settings{
			Fraction: ptr(justBelowOne), ReserveTokens: ptr[int64](16384), ReserveFloor: ptr[int64](0),
			KeepRecentTokens: ptr[int64](20000), KeepRecentMessages: ptr[int64](0),
		}, true
	case "opencode": // the reply's room, 32000 where nothing else is known
		return Settings{
			Fraction: ptr(justBelowOne), ReserveTokens: ptr[int64](32000), ReserveFloor: ptr[int64](0),
			PruneMinimum: ptr[int64](0), // off unless it is asked for, as there
		}, true
	case presetCodex: // nine tenths of the window; 20000 tokens of the person's own words stay
		return Settings{
			Fraction: ptr(0.9), ReserveTokens: ptr[int64](0), ReserveFloor: ptr[int64](0),
			KeepRecentTokens: ptr[int64](20000), KeepRecentMessages: ptr[int64](0),
		}, true
	case presetMoltbot:
		return Settings{
			Fraction: ptr(justBelowOne), ReserveTokens: ptr[int64](16384), ReserveFloor: ptr[int64](DefaultReserveFloor),
			KeepRecentTokens: ptr[int64](20000), KeepRecentMessages: ptr[int64](0),
		}, true
	}
	return Settings{}, false
}

func ptr[T any](v T) *T { return &v }
