package contextmgr

import "slices"

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

// preset is a set of numbers with a name.
type preset struct {
	name        string
	settings    Settings
	imitates    bool // they are another program's
	atThreshold bool // that program compacts at its threshold already, not only above it
}

// allPresets lists the presets: three of sessiond's own, then those with another program's numbers. Those have no
// pruning: the program has none, or leaves it off.
func allPresets() []preset {
	other := func(fraction float64, reserve, floor, keepMessages int64, keepTokens *int64) Settings {
		return Settings{
			Fraction: &fraction, ReserveTokens: &reserve, ReserveFloor: &floor,
			KeepRecentTokens: keepTokens, KeepRecentMessages: &keepMessages, PruneMinimum: ptr[int64](0),
		}
	}
	own := func(fraction float64, keepMessages int64) Settings {
		return Settings{Fraction: &fraction, KeepRecentMessages: &keepMessages}
	}
	return []preset{
		{name: "balanced", settings: own(0.8, 5)},
		{name: "conservative", settings: own(0.9, 10)},
		{name: "aggressive", settings: own(0.7, 3)},
		// only a fraction; the last five messages stay
		{name: presetGoose, settings: other(0.8, 0, 0, 5, ptr[int64](0)), imitates: true, atThreshold: true},
		{name: presetPi, settings: other(justBelowOne, 16384, 0, 0, ptr[int64](20000)), imitates: true},
		// room for the reply, less if the model's replies are shorter
		{name: presetOpencode, settings: other(justBelowOne, opencodeOutput, 0, 0, nil), imitates: true, atThreshold: true},
		// nine tenths of the window; 20000 tokens of the person's own words stay
		{name: presetCodex, settings: other(0.9, 0, 0, 0, ptr[int64](20000)), imitates: true, atThreshold: true},
		{
			name: presetMoltbot, settings: other(justBelowOne, 16384, DefaultReserveFloor, 0, ptr[int64](20000)),
			imitates: true,
		},
	}
}

// PresetNames lists the presets.
func PresetNames() []string {
	var names []string
	for _, p := range allPresets() {
		names = append(names, p.name)
	}
	return names
}

// findPreset returns the preset of a name.
func findPreset(name string) (p preset, known bool) {
	all := allPresets()
	if i := slices.IndexFunc(all, func(p preset) bool { return p.name == name }); i >= 0 {
		return all[i], true
	}
	return preset{}, false
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
