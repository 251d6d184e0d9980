package tokens

import (
	"flag"
	"fmt"
	"go/build"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"
)

// The weights of o200k and cl100k come from
//
//	go test ./internal/tokens -run TestFit -fit
//
// which prints them. It is a test so that the exact tokenizers stay out of the binary. It
// reads testdata/fit, Go's own tree and the module cache; the tests of the error read others.
var fit = flag.Bool("fit", false, "fit the weights anew and print them")

func exact(t testing.TB, f Family) func(string) float64 {
	t.Helper()
	name := tokenizer.O200kBase
	if f == CL100k {
		name = tokenizer.Cl100kBase
	}
	codec, err := tokenizer.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return func(s string) float64 {
		n, err := codec.Count(s)
		if err != nil {
			t.Fatal(err)
		}
		return float64(n)
	}
}

// fitCorpus gives the texts for fitting by kind; every kind weighs the same.
func fitCorpus(t testing.TB) map[string][]string {
	corpus := map[string][]string{}
	texts, err := filepath.Glob("testdata/fit/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range texts {
		corpus["prose "+filepath.Base(path)] = []string{read(t, path)}
	}
	goroot := build.Default.GOROOT
	corpus["go"] = filesUnder(t, filepath.Join(goroot, "src"), ".go", 150, even)
	corpus["assembly"] = filesUnder(t, filepath.Join(goroot, "src"), ".s", 20, even)
	corpus["txt"] = filesUnder(t, filepath.Join(goroot, "src"), ".txt", 60, even)
	corpus["html"] = filesUnder(t, goroot, ".html", 30, even)
	cache := os.Getenv("GOMODCACHE")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), "go", "pkg", "mod")
	}
	for _, ext := range []string{".md", ".go", ".js", ".json", ".yml", ".yaml", ".proto", ".py", ".sh", ".c", ".h", ".sql"} {
		corpus["modules "+ext] = filesUnder(t, cache, ext, 60, even)
	}
	corpus["modules .ts"] = filesUnder(t, cache, ".ts", 60, even)
	corpus["tools"] = toolOutputs(append(corpus["go"], corpus["modules .js"]...))
	corpus["listings"] = listings(t, filepath.Join(goroot, "src"), 60, even)
	corpus["base64"], corpus["keys"] = noise(1)
	return corpus
}

// TestFit prints the weights that fit best, when it is asked to.
func TestFit(t *testing.T) {
	if !*fit {
		t.Skip("only with -fit: it prints weights and checks nothing")
	}
	corpus := fitCorpus(t)
	for _, f := range []Family{O200k, CL100k} {
		fmt.Printf("func %sWeights() weights {\n\treturn weights{\n", f)
		for i, v := range fitWeights(corpus, exact(t, f)) {
			switch {
			case i < wordBefore:
				if i%longestWord == 0 {
					fmt.Printf("\n\t\twordLength + %s*longestWord: ", shapeNames[i/longestWord])
				}
				fmt.Printf("%.3f, ", v)
			case i < wordLetters:
				if (i-wordBefore)%befores == 0 {
					fmt.Printf("\n\t\twordBefore + %s*befores: ", shapeNames[(i-wordBefore)/befores])
				}
				fmt.Printf("%.3f, ", v)
			default:
				fmt.Printf("\n\t\t%s: %.3f,", classNames[i-wordLetters], v)
			}
		}
		fmt.Println("\n\t}\n}")
	}
}

// fitWeights minimises the squared relative error over the chunks of a corpus. Each weight
// is drawn a little to a plain guess, so that classes that hardly occur stay sensible.
func fitWeights(corpus map[string][]string, count func(string) float64) []float64 {
	n := featureCount
	matrix := make([][]float64, n)
	for i := range matrix {
		matrix[i] = make([]float64, n+1)
	}
	guess := guessedWeights()
	for i := range n {
		const pull = 0.00003
		matrix[i][i] += pull
		matrix[i][n] += pull * float64(guess[i])
	}
	for kind, texts := range corpus {
		var parts []string
		size := 400
		if strings.HasPrefix(kind, "prose") {
			size = 300
		}
		for _, text := range texts {
			parts = append(parts, chunks(text, size)...)
		}
		for _, part := range parts {
			var f features
			f.scan(part)
			real := count(part)
			if real < 20 {
				continue
			}
			weight := kindWeight(kind) / (real * real * float64(len(parts)))
			for i := range n {
				if f[i] == 0 {
					continue
				}
				for j := range n {
					matrix[i][j] += weight * float64(f[i]) * float64(f[j])
				}
				matrix[i][n] += weight * float64(f[i]) * real
			}
		}
	}
	return solvePositive(matrix)
}

// mayBeNegative tells the classes that correct others: what stands before a word, marks
// with a space or a line break. Any other class costs nothing at least, so that a long run
// of anything never makes a text cheaper.
func mayBeNegative(class int) bool {
	return class >= wordBefore && class < wordLetters ||
		class == marksSpaced || class == marksBreak || class == breaksMany
}

// solvePositive solves, pins what came out negative to zero and solves again.
func solvePositive(m [][]float64) []float64 {
	for {
		copied := make([][]float64, len(m))
		for i := range m {
			copied[i] = append([]float64(nil), m[i]...)
		}
		x := solve(copied)
		again := false
		for i, v := range x {
			if v < -1e-6 && !mayBeNegative(i) {
				m[i][i] += 1e6
				m[i][len(m)] = 0
				again = true
			}
		}
		if !again {
			return x
		}
	}
}

// solve solves a symmetric positive system by Gauss's elimination.
func solve(m [][]float64) []float64 {
	n := len(m)
	for c := range n {
		pivot := c
		for r := c + 1; r < n; r++ {
			if math.Abs(m[r][c]) > math.Abs(m[pivot][c]) {
				pivot = r
			}
		}
		m[c], m[pivot] = m[pivot], m[c]
		for r := c + 1; r < n; r++ {
			if k := m[r][c] / m[c][c]; k != 0 {
				for j := c; j <= n; j++ {
					m[r][j] -= k * m[c][j]
				}
			}
		}
	}
	x := make([]float64, n)
	for r := n - 1; r >= 0; r-- {
		sum := m[r][n]
		for j := r + 1; j < n; j++ {
			sum -= m[r][j] * x[j]
		}
		x[r] = sum / m[r][r]
	}
	return x
}

// guessedWeights is what one would say without fitting.
func guessedWeights() (w weights) {
	for shape := range shapes {
		for n := range longestWord {
			w[wordLength+shape*longestWord+n] = 0.9 + float32(n)*0.06
		}
	}
	for i := wordAccents; i < featureCount; i++ {
		w[i] = 0.5
	}
	w[wordLetters], w[digits], w[digitGroups] = 0.25, 0, 1
	w[denseLetters], w[denseHex], w[hanRare] = 0.7, 0.6, 2.5
	w[emoji], w[broken], w[brahmic], w[otherLetters] = 1.8, 1, 0.7, 1.5
	w[breakLines], w[marksSame], w[indentsLong], w[symbolsSame] = 0.05, 0.06, 0.2, 0.05
	return w
}

// kindWeight makes what agents read most, programs of application code, count double.
func kindWeight(kind string) float64 {
	if kind == "modules .ts" || kind == "modules .js" {
		return 2
	}
	return 1
}

var shapeNames = []string{"shapeLower", "shapeTitle", "shapeUpper"}

var classNames = strings.Fields(`
	wordLetters wordAccents wordAccented contractions digitGroups digits digitSpaces marks1
	marks2 marks3 marks4 marksSpaced marksChanges marksSame marksBreak breaks
	breaksMany breakLines indents indentsLong tabs denseRuns denseLetters denseHex
	hanRuns hanRare hanChars hiragana katakana hangulRuns hangul widePunct
	cyrillicWords cyrillic cyrillicLong greekWords greek semiticWords semitic brahmicRuns
	brahmic otherLetters quotes symbolRuns symbols symbolsSame emoji joiners
	controls broken`)
