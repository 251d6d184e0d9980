package tokens

import (
	"bufio"
	"encoding/json"
	"fmt"
	"go/build"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
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
