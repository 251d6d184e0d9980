package history

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Lines are what lies between line feeds, at their offsets, whatever their lengths.
func TestLines(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var data []byte
		for range rapid.IntRange(0, 6).Draw(rt, "lines") {
			n := rapid.SampledFrom([]int{0, 1, 100, readSize - 1, readSize, readSize + 1, 3*readSize + 7}).Draw(rt, "length")
			data = append(append(data, bytes.Repeat([]byte{'x'}, n)...), '\n')
		}
		data = append(data, rapid.SampledFrom([]string{"", "tail", strings.Repeat("t", readSize)}).Draw(rt, "tail")...)
		var got []byte
		for line, err := range Lines(bytes.NewReader(data), int64(len(data))) {
			if err != nil || int(line.At) != len(got) {
				rt.Fatalf("at %d, %v", line.At, err)
			}
			if got = append(got, line.Bytes...); line.Ended {
				got = append(got, '\n')
			}
			if int(line.End) != len(got) {
				rt.Fatalf("end %d", line.End)
			}
		}
		if !bytes.Equal(got, data) {
			rt.Fatalf("%d bytes of %d", len(got), len(data))
		}
	})
}
