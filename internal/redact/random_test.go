package redact

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Whatever a text is made of, it is masked in pieces as the whole.
func TestAnyTextIsMaskedInPiecesAsTheWhole(t *testing.T) {
	var bits []string
	all := forms()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		form := all[name]
		bits = append(bits, form, form[:len(form)/2], form[len(form)/2:])
	}
	bits = append(bits, "-----BEGIN ", "-----END ", "=", ":", `\n`, `\"`, `"`, " ", "\n", "eyJ", "价格", "\U0001f600", "[secret: token]", "TOKEN", "password", "://", "@", strings.Repeat("x1", 3000))
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		var text strings.Builder
		for text.Len() < 60_000 {
			if r.IntN(3) == 0 {
				text.WriteString(filler(r.IntN(3000)))
			}
			text.WriteString(bits[r.IntN(len(bits))])
		}
		same(t, text.String(), newReader(strings.NewReader(text.String()), 1+r.IntN(4<<10), 18<<10))
	}
}
