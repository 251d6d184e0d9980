package wire

import (
	"encoding/json"
	"slices"

	"sessiond/internal/session"
)

// KeepRaw makes a part that keeps a value as it came. One that is deep or large becomes the
// part's blob; any other is given back as small, for the part's extra.
func KeepRaw(raw json.RawMessage) (p session.Part, small json.RawMessage) {
	p = session.Part{Kind: session.PartData}
	if !IsLarge(raw) {
		return p, raw
	}
	Attach(&p, Blob("application/json", slices.Clone(raw)))
	return p, nil
}
