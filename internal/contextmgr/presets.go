package contextmgr

// justBelowOne is the fraction of programs whose only rule is the reserve: 1 would turn compaction
// off.
const justBelowOne = 0.99999

// Presets that bring more than numbers.
const (
	presetGoose    = "goose"
	presetPi       = "pi"
	presetOpencode = "opencode"
	presetCodex    = "codex"
	presetMoltbot  = "moltbot"
)

// PresetNames lists the presets: three of sessiond's own, then those with another program's
// numbers.
func PresetNames() []string {
	return []string{"balanced", "conservative", "aggressive", presetGoose, presetPi, presetOpencode, presetCodex, presetMoltbot}
}

func presetSettings(name string) (Settings, bool) {
	switch name {
	case "balanced":
		return Settings{Fraction: ptr(0.8), KeepRecentMessages: ptr[int64](5)}, true
	case "conservative":
		return Settings{Fraction: ptr(0.9), KeepRecentMessages: ptr[int64](10)}, true
	case "aggressive":
		return Settings{Fraction: ptr(0.7), KeepRecentMessages: ptr[int64](3)}, true
	case presetGoose: // only a fraction; the last five messages stay
		return Settings{
			Fraction: ptr(0.8), ReserveTokens: ptr[int64](0), ReserveFloor: ptr[int64](0),
			KeepRecentTokens: ptr[int64](0), KeepRecentMessages: ptr[int64](5), PruneMinimum: ptr[int64](0),
		}, true
	case presetPi:
		return Settings{
			Fraction: ptr(justBelowOne), ReserveTokens: ptr[int64](16384), ReserveFloor: ptr[int64](0),
			KeepRecentTokens: ptr[int64](20000), KeepRecentMessages: ptr[int64](0), PruneMinimum: ptr[int64](0),
		}, true
	case presetOpencode: // room for the reply, less if the model's replies are shorter
		return Settings{
			Fraction: ptr(justBelowOne), ReserveTokens: ptr[int64](opencodeOutput), ReserveFloor: ptr[int64](0),
			KeepRecentMessages: ptr[int64](0),
			PruneMinimum:       ptr[int64](0), // off by default, as in opencode
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

// imitates reports whether a preset has another program's numbers.
func imitates(preset string) bool {
	switch preset {
	case presetGoose, presetPi, presetOpencode, presetCodex, presetMoltbot:
		return true
	}
	return false
}

// nearestPreset returns the preset that the nearest layer names.
func nearestPreset(layers []Layer) string {
	for i := range layers {
		if p := layers[i].Settings.Preset; p != nil && *p != "" {
			return *p
		}
	}
	return "balanced"
}

// opencodeOutput is the most that opencode keeps free for a reply, in tokens.
const opencodeOutput = 32000

// modelSettings returns what a preset takes from the model: opencode reserves the length of the
// model's longest reply. maxOutput is that length, 0 if unknown.
func modelSettings(preset string, maxOutput int64) Settings {
	if preset != presetOpencode || maxOutput <= 0 || maxOutput >= opencodeOutput {
		return Settings{}
	}
	return Settings{ReserveTokens: &maxOutput}
}

// compactsAtThreshold reports whether a preset's program compacts at its threshold already, not
// only above it.
func compactsAtThreshold(preset string) bool {
	return preset == presetGoose || preset == presetOpencode || preset == presetCodex
}

// How much opencode keeps behind a summary, in tokens: a quarter of what is usable, within these.
const (
	minOpencodeTail = 2000
	maxOpencodeTail = 15000
)

func opencodeTail(usable int64) int64 { return min(max(usable/4, minOpencodeTail), maxOpencodeTail) }

// moltbotSoft is how far under the limit openclaw asks for a memory flush, in tokens.
const moltbotSoft = 4000

// moltbotFlush returns the size at which openclaw asks for a memory flush. It is not positive if
// the window is too small for one.
func moltbotFlush(window, reserve, soft int64) int64 { return window - reserve - soft }

// MoltbotReserve returns the head-room of preset moltbot: the reserve, at least the floor (0:
// none), but the prompt keeps half of the window or 8,000 tokens, whichever is less. Rule:
// openclaw, newer versions.
func MoltbotReserve(reserve, floor, window int64) int64 {
	return min(max(reserve, floor), window-min(8000, window/2))
}

func ptr[T any](v T) *T { return &v }
