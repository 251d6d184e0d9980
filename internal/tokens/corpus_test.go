package tokens

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"sessiond/internal/testkit"
)

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
