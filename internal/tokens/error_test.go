package tokens

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"go/build"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"

	"github.com/tiktoken-go/tokenizer"
)

// exact returns the counter of a family's real tokenizer.
func exact(t testing.TB, f Family) func(string) float64 {
	t.Helper()
	name := tokenizer.O200kBase
	if f == CL100k {
		name = tokenizer.Cl100kBase
	}
	codec := testkit.Must(tokenizer.Get(name))(t)
	return func(s string) float64 {
		n := testkit.Must(codec.Count(s))(t)
		return float64(n)
	}
}

// heldOut returns texts by kind that were not used to fit the weights.
func heldOut(t testing.TB) map[string][]string {
	corpus := map[string][]string{}
	texts, err := filepath.Glob("testdata/heldout/*.txt")
	if err != nil || len(texts) == 0 {
		t.Fatal("no texts in testdata/heldout", err)
	}
	for _, path := range texts {
		corpus["prose "+filepath.Base(path)] = []string{read(t, path)}
	}
	goroot := build.Default.GOROOT
	corpus["go"] = filesUnder(t, filepath.Join(goroot, "src"), ".go", 60, heldOutFile)
	corpus["go tests"] = filesUnder(t, filepath.Join(goroot, "test"), ".go", 60, heldOutFile)
	corpus["assembly"] = filesUnder(t, filepath.Join(goroot, "src"), ".s", 20, heldOutFile)
	corpus["txt"] = filesUnder(t, filepath.Join(goroot, "src"), ".txt", 60, heldOutFile)
	corpus["html"] = filesUnder(t, goroot, ".html", 30, heldOutFile)
	corpus["markdown"] = filesUnder(t, goroot, ".md", 30, heldOutFile)
	corpus["tools"] = toolOutputs(append(corpus["go"], corpus["go tests"]...))
	corpus["listings"] = listings(t, filepath.Join(goroot, "src"), 60, heldOutFile)
	corpus["base64"], corpus["keys"] = noise(2)
	return corpus
}

// transcripts returns the texts of real histories by program.
func transcripts(t testing.TB) map[string][]string {
	corpus := map[string][]string{}
	dir := samples.Dir(t)
	for _, program := range []string{"pi", "claude-code", "codex", "openclaw"} {
		testkit.Check(t, filepath.WalkDir(filepath.Join(dir, program), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			lines := bufio.NewScanner(f)
			lines.Buffer(nil, 16<<20)
			for lines.Scan() {
				var v any
				if json.Unmarshal(lines.Bytes(), &v) == nil {
					corpus[program] = longStrings(v, "", corpus[program])
				}
			}
			return lines.Err()
		}))
	}
	for program, texts := range corpus {
		corpus[program] = spread(texts, 350<<10)
	}
	return corpus
}

// spread returns about size bytes of texts, evenly spread, so that the exact count is quick.
func spread(texts []string, size int) []string {
	total := 0
	for _, text := range texts {
		total += len(text)
	}
	var out []string
	for i := 0; i < len(texts); i += total/size + 1 {
		out = append(out, texts[i])
	}
	return out
}

// longStrings collects strings of some length, without signatures and data.
func longStrings(v any, key string, found []string) []string {
	switch v := v.(type) {
	case string:
		lower := strings.ToLower(key)
		opaque := strings.Contains(lower, "signature") || strings.Contains(lower, "encrypted") || lower == "data"
		if len(v) > 80 && len(v) < 64<<10 && !opaque {
			found = append(found, v)
		}
	case []any:
		for _, item := range v {
			found = longStrings(item, key, found)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			found = longStrings(v[k], k, found)
		}
	}
	return found
}

func TestErrorWithinSixPercent(t *testing.T) {
	corpus := heldOut(t)
	t.Run("held-out", func(t *testing.T) { checkError(t, corpus) })
	t.Run("transcripts", func(t *testing.T) { checkError(t, transcripts(t)) })
}

func checkError(t *testing.T, corpus map[string][]string) {
	for _, family := range []Family{O200k, CL100k} {
		counter, count := ForFamily(family), exact(t, family)
		for kind, texts := range corpus {
			var estimated, real float64
			for _, text := range texts {
				estimated += float64(counter.Text(text))
				real += count(text)
			}
			if real < 300 { // the samples of codex are redacted: hardly a text is left
				t.Logf("%-7s %-22s %8.0f tokens are too few to tell", family, kind, real)
				continue
			}
			wrong := 100 * (estimated - real) / real
			line := fmt.Sprintf("%-7s %-22s %8.0f tokens, off by %+.1f %%", family, kind, real, wrong)
			t.Log(line)
			if wrong < -6 || wrong > 6 {
				t.Error(line)
			}
		}
	}
}

// filesUnder returns up to limit texts with an extension, evenly spread over a tree.
func filesUnder(t testing.TB, root, ext string, limit int, take func(path string) bool) []string {
	t.Helper()
	var paths []string
	testkit.Check(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, ext) && take(path) {
			paths = append(paths, path)
		}
		return nil
	}))
	sort.Strings(paths)
	var texts []string
	step := max(1, len(paths)/limit)
	for i := 0; i < len(paths); i += step {
		b, err := os.ReadFile(paths[i])
		if err == nil && len(b) > 200 {
			texts = append(texts, string(b[:min(len(b), 12000)]))
		}
	}
	return texts
}

// heldOutFile reports files that were not used to fit the weights, by their name.
func heldOutFile(path string) bool {
	sum := 0
	for _, b := range []byte(filepath.Base(path)) {
		sum += int(b)
	}
	return sum%2 == 1
}

func read(t testing.TB, path string) string {
	t.Helper()
	b := testkit.Must(os.ReadFile(path))(t)
	return string(b)
}

// noise returns texts of random bytes: base64 as one long word, and lines with hexadecimal sums,
// identifiers and keys of many lengths.
func noise(seed uint64) (b64, keys []string) {
	r := rand.New(rand.NewPCG(seed, seed))
	b := make([]byte, 600)
	for range 20 {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		var lines strings.Builder
		for i := 0; i+40 <= len(b); i += 40 {
			n := 8 + r.IntN(24)
			digits := hex.EncodeToString(b[i : i+n])
			switch i / 40 % 3 {
			case 0:
				fmt.Fprintf(&lines, "%s  sum\n", digits)
			case 1:
				fmt.Fprintf(&lines, "\"id\": \"%s-%s-%s\",\n", digits[:8], digits[8:12], digits[12:16])
			default:
				fmt.Fprintf(&lines, "key_%s\n", base64.RawURLEncoding.EncodeToString(b[i:i+n]))
			}
		}
		b64 = append(b64, base64.StdEncoding.EncodeToString(b))
		keys = append(keys, lines.String())
	}
	return b64, keys
}

// toolOutputs returns texts as tools print them: with line numbers, as matches, as diffs.
func toolOutputs(texts []string) []string {
	forms := []func(n int, line string) string{
		func(n int, line string) string { return fmt.Sprintf("%6d→%s\n", n, line) },
		func(n int, line string) string { return fmt.Sprintf("%6d\t%s\n", n, line) },
		func(n int, line string) string { return fmt.Sprintf("%05d| %s\n", n, line) },
		func(n int, line string) string { return fmt.Sprintf("internal/page/view.go:%d:%s\n", n, line) },
		func(n int, line string) string { return fmt.Sprintf("%c%3d %s\n", "+- "[n%3], n, line) },
		func(n int, line string) string { return fmt.Sprintf("%c%s\n", "+- "[n%3], line) },
	}
	var out []string
	for i, text := range texts {
		var b strings.Builder
		for n, line := range strings.Split(text, "\n") {
			b.WriteString(forms[i%len(forms)](n+1+i*17, line))
		}
		out = append(out, b.String())
	}
	return out
}

// listings returns folders as tree and ls print them, one text per folder.
func listings(t testing.TB, root string, limit int, take func(path string) bool) []string {
	t.Helper()
	var out []string
	testkit.Check(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || len(out) >= limit || !take(path) {
			return err
		}
		entries, err := os.ReadDir(path)
		if err != nil || len(entries) < 5 {
			return err
		}
		var tree, long strings.Builder
		indent := strings.Repeat("│   ", len(out)%4)
		for i, e := range entries {
			fmt.Fprintf(&tree, "%s├── %s\n", indent, e.Name())
			fmt.Fprintf(&long, "-rw-r--r--  1 dev  staff %7d Mar %2d %02d:%02d %s\n",
				i*7919%100000, i%28+1, i%24, i*7%60, e.Name())
		}
		out = append(out, tree.String(), long.String())
		return nil
	}))
	return out
}
