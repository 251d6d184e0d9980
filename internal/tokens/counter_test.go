package tokens

import (
	"go/build"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnlyEmptyTextCostsNothing(t *testing.T) {
	for _, f := range []Family{O200k, CL100k, Claude, Gemini, Default, "unheard of"} {
		c := ForFamily(f)
		if c.Text("") != 0 {
			t.Errorf("%s: the empty text costs %d", f, c.Text(""))
		}
		for _, s := range []string{" ", "a", "\n", "\x00", "\xff", ".", "7", "é", "字", "🎉"} {
			if c.Text(s) < 1 {
				t.Errorf("%s: %q costs %d", f, s, c.Text(s))
			}
		}
	}
}

func TestUnknownFamilyCountsAsDefault(t *testing.T) {
	const text = "Some words, to be counted."
	if ForFamily("unheard of").Text(text) != ForFamily(Default).Text(text) || ForFamily("unheard of").Family() != Default {
		t.Error("it does not")
	}
}

// The reference is frozen: its numbers stand in databases. These must never change.
func TestReferenceIsFrozen(t *testing.T) {
	for text, want := range map[string]int64{
		"Hello, world!": 4,
		"The quick brown fox jumps over the lazy dog. ":           10,
		"func (s *Store) Close() error { return s.db.Close() }\n": 16,
		"Größenwahn und Straßenbahnhaltestellen":                  13,
		"数据库里保存着所有的消息。":                                           9,
		`{"id":"5f2b9c0e7a614d38","n":1250000,"ok":true}`:         25,
	} {
		if got := Reference().Text(text); got != want {
			t.Errorf("%q costs %d, was %d", text, got, want)
		}
	}
}

// Repeating anything never makes a text cheaper, nor dearer than a token a byte.
func TestLongerRunsNeverCostLess(t *testing.T) {
	for _, unit := range []string{
		"\n", " ", "\t", "-", "─", "=", "a", "A", "Aa", "aA1", "7", "字", "あ", "ж", "🎉", "\xff",
		". ", "\n\t", "a1B2", "\u200d", "’",
	} {
		for _, f := range []Family{O200k, CL100k, Claude, Gemini} {
			c, last := ForFamily(f), int64(0)
			for _, n := range []int{1, 2, 5, 10, 15, 16, 17, 50, 200, 1000, 5000} {
				got := c.Text(strings.Repeat(unit, n))
				// One token less is rounding, and a word that is longer can be a commoner one.
				if got < last-2 || got > int64(2*n*len(unit)+2) {
					t.Errorf("%s: %d times %q costs %d, fewer %d", f, n, unit, got, last)
				}
				last = got
			}
		}
	}
}

func TestTextDoesNotAllocate(t *testing.T) {
	text := read(t, "testdata/heldout/german.txt") + read(t, "testdata/heldout/japanese.txt")
	c := Reference()
	if n := testing.AllocsPerRun(10, func() { c.Text(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The scan advances past an accented letter, whatever sign or script follows it.
func TestScanAdvancesPastAccentedLetters(t *testing.T) {
	for _, letter := range []string{"à", "É", "ß", "ẞ", "e\u0301", "\u0301"} {
		for _, sign := range []string{"…", "—", "×", "÷", "中", "я", "😀", "\u00a0", "\xff", "\xc3", "\xe1\xb8"} {
			for _, next := range []string{"", "v", "V", "7", " ", letter, sign} {
				text := letter + sign + next
				if n := Reference().Text(text); n < 1 || n > int64(6*len(text)+2) {
					t.Errorf("%q has %d tokens", text, n)
				}
			}
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("Hello, wörld! 你好 \xff\xfe 🎉\r\n\t x1y2z3")
	f.Fuzz(func(t *testing.T, s string) {
		for _, family := range []Family{O200k, Claude, Gemini} {
			if n := ForFamily(family).Text(s); (n == 0) != (s == "") || n < 0 || n > int64(6*len(s)+2) {
				t.Errorf("%s: %q costs %d", family, s, n)
			}
		}
	})
}

func TestZeroScaleHasFactorOne(t *testing.T) {
	var s Scale
	if s.Factor() != 1 || s.Doubt() != 0.06 {
		t.Errorf("factor %v, in doubt %v", s.Factor(), s.Doubt())
	}
}

func TestScaleConvergesToReportedRatio(t *testing.T) {
	var s Scale
	for range 40 {
		s = s.Learn(1000, 1250)
	}
	if math.Abs(s.Factor()-1.25) > 0.03 {
		t.Errorf("factor %.3f after 40,000 tokens that count 1.25", s.Factor())
	}
	if d := s.Doubt(); d > 0.02 || d < 0.01 {
		t.Errorf("%.4f are in doubt", d)
	}
}

func TestScaleForgetsWithItsHalfLife(t *testing.T) {
	s := Scale{Ratio: 2, Weight: 1e9}
	s = s.Learn(HalfLife, HalfLife)
	if math.Abs(s.Weight-(0.5e9+HalfLife)) > 1 {
		t.Errorf("weight %.0f after one half-life, want half of it and the new tokens", s.Weight)
	}
	s = Scale{}
	for range 100 {
		s = s.Learn(1000, 1500)
	}
	for range 100 {
		s = s.Learn(1000, 1000)
	}
	if s.Factor() > 1.03 {
		t.Errorf("factor %.3f, five half-lives after the model changed", s.Factor())
	}
}

func TestScaleIgnoresImplausibleReports(t *testing.T) {
	learned := Scale{}.Learn(1000, 1100)
	for _, c := range []struct {
		name                string
		estimated, reported int64
	}{
		{"nothing grew", 0, 0},
		{"too little to tell", 49, 60},
		{"the context shrank", -5000, -5000},
		{"the report shrank", 1000, -200},
		{"far too few", 1000, 400},
		{"far too many", 1000, 9000},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := learned.Learn(c.estimated, c.reported); got != learned {
				t.Errorf("learned %+v from it", got)
			}
		})
	}
}

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
