package contextmgr

// justBelowOne stands for programs whose only rule is the reserve: a fraction of 1 would
// turn compaction off.
const justBelowOne = 0.99999

// Presets that bring more than numbers.
const (
	presetGoose    = "goose"
	presetPi       = "pi"
	presetOpencode = "opencode"
	presetCodex    = "codex"
	presetMoltbot  = "moltbot"
)

// PresetNames gives the presets: three of sessiond's own, then those that use the numbers of
// another program.
func PresetNames() []string {
	return []string{"balanced", "conservative", "aggressive", presetGoose, presetPi, presetOpencode, presetCodex, presetMoltbot}
}

func preset(name string) (Settings, bool) {
	switch name {
	case "balanced":
		return Settings{Fraction: ptr(0.8), KeepRecentMessages: ptr[int64](5)}, true
	case "conservative":
		return Settings{Fraction: ptr(0.9), KeepRecentMessages: ptr[int64](10)}, true
	case "aggressive":
		return Settings{Fraction: ptr(0.7), KeepRecentMessages: ptr[int64](3)}, true
	case presetGoose: // a fraction alone, and the last five messages stay
		return Settings{
			Fraction: ptr(0.8), ReserveTokens: ptr[int64](0), ReserveFloor: ptr[int64](0),
			KeepRecentTokens: ptr[int64](0), KeepRecentMessages: ptr[int64](5), PruneMinimum: ptr[int64](0),
		}, true
	case presetPi:
		return Settings{
			Fraction: ptr(justBelowOne), ReserveTokens: ptr[int64](16384), ReserveFloor: ptr[int64](0),
			KeepRecentTokens: ptr[int64](20000), KeepRecentMessages: ptr[int64](0), PruneMinimum: ptr[int64](0),
		}, true
	case presetOpencode: // the reply's room, less where the model gives less
		return Settings{
			Fraction: ptr(justBelowOne), ReserveTokens: ptr[int64](opencodeOutput), ReserveFloor: ptr[int64](0),
			KeepRecentMessages: ptr[int64](0),
			PruneMinimum:       ptr[int64](0), // off unless it is asked for, as there
		}, true
	case presetCodex: // nine tenths of the window; 20000 tokens of the person's own words stay
		return Settings{
			Fraction: ptr(0.9), ReserveTokens: ptr[int64](0), ReserveFloor: ptr[int64](0),
			KeepRecentTokens: ptr[int64](20000), KeepRecentMessages: ptr[int64](0), PruneMinimum: ptr[int64](0),
		}, true
	case presetMoltbot:
		return Settings{
			Fraction: ptr(justBelowOne), ReserveTokens: ptr[int64](16384), ReserveFloor: ptr[int64](DefaultReserveFloor),
			KeepRecentTokens: ptr[int64](20000), KeepRecentMessages: ptr[int64](0), PruneMinimum: ptr[int64](0),
		}, true
	}
	return Settings{}, false
}

// presetOf gives the preset that the nearest of the layers names.
func presetOf(layers []Layer) string {
	for i := range layers {
		if p := layers[i].Settings.Preset; p != nil && *p != "" {
			return *p
		}
	}
	return "balanced"
}

// opencodeOutput is the most that opencode keeps free for a reply, in tokens.
const opencodeOutput = 32000

// ofModel gives what a preset takes from the model itself: opencode keeps as much free as the
// model can reply. maxOutput is that, 0 where it is not known.
func ofModel(preset string, maxOutput int64) Settings {
	if preset != presetOpencode || maxOutput <= 0 || maxOutput >= opencodeOutput {
		return Settings{}
	}
	return Settings{ReserveTokens: &maxOutput}
}

// inclusive tells whether a preset's program compacts at its limit already: one token earlier
// than what is strictly above it.
func inclusive(preset string) bool {
	return preset == presetGoose || preset == presetOpencode || preset == presetCodex
}

func ptr[T any](v T) *T { return &v }
