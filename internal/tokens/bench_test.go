package tokens

import (
	"go/build"
	"path/filepath"
	"strings"
	"testing"
)

func BenchmarkText(b *testing.B) {
	text := strings.Join(filesUnder(b, filepath.Join(build.Default.GOROOT, "src"), ".go", 100, heldOutFile), "")
	for name, s := range map[string]string{
		"go": text, "german": read(b, "testdata/heldout/german.txt"), "chinese": read(b, "testdata/heldout/chinese.txt"),
	} {
		b.Run(name, func(b *testing.B) {
			counter := Reference()
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				counter.Text(s)
			}
		})
	}
}
