package history

// Storable tells whether raw is JSON of which SQLite's json_valid says so, too: it gives up
// where more lies inside one another.
func Storable(raw []byte) bool { return Valid(raw) && !DeeperThan(raw, storableDepth) }

// storableDepth is SQLite's JSON_MAX_DEPTH.
const storableDepth = 1000
