package digest

import (
	"slices"
	"strings"
	"testing"
)

func marks(text, said string) string { return markUnsaid(text, slices.Values([]string{said})) }

func TestSaidValuesHaveNoMark(t *testing.T) {
	for name, c := range map[string]struct{ said, text string }{
		"the same amount":   {"It costs $129.", "- It costs $129."},
		"a code for a sign": {"It costs $129.", "- It costs 129 USD, or USD 129."},
		"a sign for a code": {"129 EUR and 20 euros", "- €129 and 20 €."},
		"an amount in JSON": {`{"price":129,"currency":"USD"}`, "- CompanyB costs $129."},
		"escaped JSON": {
			`{"result":"{\"price\":\"$1299\"}\nhttps:\/\/a.example\/x"}`,
			"- $1,299 at https://a.example/x",
		},
		"thousands":               {"1,299 rows, $1,299.00", "- 1299 rows, $1299."},
		"thousands the other way": {"1299 rows for 1299 dollars", "- 1,299 rows for $1,299.00"},
		"German money":            {"Das kostet 1299 Euro.", "- Kostet €1.299,00 oder 1.299,00 €."},
		"German money said":       {"Das kostet 1.299,00 €.", "- It costs €1,299."},
		"thousands with spaces":   {"1 299 000 rows", "- 1299000 rows, 1,299,000 in words"},
		"Swiss thousands":         {"CHF 12'500", "- 12500 CHF"},
		"short thousands": {
			"It costs 1200 dollars, 3.5 million in all, 20k users",
			"- $1.2k, 3,500,000 in all, 20,000 users",
		},
		"units":                       {"64GB, 20 ms, 15 percent, 18.2 s, 5 km", "- 64 GB, 20ms, 15%, 18.2s, 5km"},
		"a share":                     {"threshold 0.15", "- 15%"},
		"a range":                     {"between $10 and $20", "- $10-$20, 10–20 USD"},
		"an amount over a line's end": {"It costs 129\nUSD, in all 1,299\nEUR.", "- $129, in all\n  1299 EUR."},
		"ordinals, small numbers":     {"nothing", "- The 1st, 2nd and 3rd of 412 tests, in 3 files, twice x2, 4x, v2, B12."},
		"prose with slashes": {
			"nothing",
			"- read/write/execute, and/or, TCP/IP, I/O, client/server, 24/7, he/she/they.",
		},
		"names": {
			"nothing",
			"- Acme Corp, Next.js, Node.js, README.md, Ada Lovelace, e.g. CompanyB, i.e. B.",
		},
		"a URL with a full stop": {"See https://example.com/docs.", "- Read https://example.com/docs."},
		"http, https, slash": {
			"http://www.example.com/docs/",
			"- https://example.com/docs and https://www.example.com/docs/",
		},
		"a host of a URL": {"https://example.com/docs/a?b=c", "- The host is https://example.com"},
		"a link": {
			"https://example.com/docs",
			"- [the docs](https://example.com/docs), <https://example.com/docs>",
		},
		"a link that names itself": {
			"https://example.com/docs",
			"- [https://example.com/docs](https://example.com/docs).",
		},
		"a URL with brackets": {
			"https://en.example.org/wiki/Go_(language)",
			"- (https://en.example.org/wiki/Go_(language))",
		},
		"an entity in a URL":     {"https://a.example/x?a=1&amp;b=2", "- https://a.example/x?a=1&b=2"},
		"a URL in bold and code": {"https://example.com/a_b", "- **https://example.com/a_b** `https://example.com/a_b`"},
		"a wrapped URL": {
			"https://example.com/a/long\n  /path/to/it",
			"- https://example.com/a/long/path/to/it",
		},
		"a Chinese sentence":         {"看 https://example.com/docs。", "- 见 https://example.com/docs。价格 129 元。"},
		"a path with and without ./": {"edit ./internal/store.go", "- internal/store.go, `./internal/store.go`"},
		"the end of a path": {
			"/home/u/shop/internal/store.go:12",
			"- internal/store.go:12 and ./internal/store.go",
		},
		"a path of a listing":     {"$ ls internal\nstore.go\nwriter.go", "- internal/store.go and internal/writer.go"},
		"a path below the folder": {"cwd /home/u/shop\n M internal/store.go", "- /home/u/shop/internal/store.go."},
		"a path in JSON": {
			`{"path":"/home/u/a.go","text":"x\n/etc/app/b.toml\n"}`,
			"- /home/u/a.go and /etc/app/b.toml",
		},
		"a path of Windows":  {`{"path":"C:\\Users\\u\\a.go"}`, `- C:\Users\u\a.go`},
		"a wrapped path":     {"/home/u/shop/inter\nnal/store.go", "- /home/u/shop/internal/store.go"},
		"home":               {"/home/u/notes/todo.txt", "- ~/notes/todo.txt"},
		"a hash in capitals": {"commit 1FE766A3", "- commit 1fe766a3"},
		"a short hash":       {"commit 1fe766a3d2c4b5a697887766554433221100ffee", "- commit `1fe766a`."},
		"an identifier": {
			"order abc-12345, #48213, user_10234",
			"- ABC-12345, order 48213 (#48213), `user_10234`.",
		},
		"a UUID":                   {"550E8400-E29B-41D4-A716-446655440000", "- 550e8400-e29b-41d4-a716-446655440000"},
		"a date written otherwise": {"on February 11, 2026 at 10:30", "- 2026-02-11"},
		"a date in a path":         {"2026-02-11T10:30:00Z", "- On 2026-02-11 in 2026"},
		"a phone number":           {"call (151) 234-5678", "- 151 234 5678, 1512345678, 151-234-5678"},
		"an address":               {"ssh 192.168.10.25", "- 192.168.10.25:"},
		"a year and a port":        {"since 2024, port 8081", "- 2024; 8081"},
		"code fences": {
			"```\ncurl https://a.example/v1 -d 4711\n```",
			"- Run:\n```sh\ncurl https://a.example/v1 -d 4711\n```",
		},
		"a table":                     {"| B | 129.00 | 48213 |", "| CompanyB | $129 | 48,213 |"},
		"a mark that the model wrote": {"It costs $129.", "- It costs $129 [not in the conversation]."},
		"nothing at all":              {"", "- The work is done."},
	} {
		t.Run(name, func(t *testing.T) {
			if got := marks(c.text, c.said); strings.Contains(got, unsaidMark) {
				t.Errorf("marked:\n%s\nsaid:\n%s", got, c.said)
			}
		})
	}
}

func TestValuesThatNobodySaidAreMarked(t *testing.T) {
	for name, c := range map[string]struct{ said, text, want string }{
		"an amount beside the true one": {"B costs $129.", "- B costs $999, not $129.", "- B costs $999 #, not $129."},
		"an amount in bold":             {"B costs $129.", "- B costs **$999**.", "- B costs **$999** #."},
		"part of a number":              {"B costs $1999.", "- B costs $999 and $19.", "- B costs $999 # and $19 #."},
		"another currency":              {"B costs €129.", "- B costs $129.", "- B costs $129 #."},
		"a code behind":                 {"B costs $129.", "- B costs 999 USD.", "- B costs 999 USD #."},
		"German":                        {"1299 Euro", "- €2.499,00 statt €1.299,00", "- €2.499,00 # statt €1.299,00"},
		"a unit":                        {"20 ms", "- 20 ms, 30 ms, 45%", "- 20 ms, 30 ms #, 45% #"},
		"a sum":                         {"$10 and $20", "- $10 + $20 = $30", "- $10 + $20 = $30 #"},
		"a URL": {
			"https://example.com/docs", "- https://example.com/admin.",
			"- https://example.com/admin #.",
		},
		"a longer URL": {
			"https://example.com/docs", "- https://example.com/docs/2",
			"- https://example.com/docs/2 #",
		},
		"a shorter last name": {
			"https://example.com/docs2", "- https://example.com/docs",
			"- https://example.com/docs #",
		},
		"a link": {
			"", "- [docs](https://x.example/d), <https://y.example/d>",
			"- [docs](https://x.example/d) #, <https://y.example/d> #",
		},
		"a path": {
			"internal/store.go", "- `internal/writer.go`, ./internal/store.go",
			"- `internal/writer.go` #, ./internal/store.go",
		},
		"a rooted path": {
			"/etc/app/a.toml", "- /etc/app/b.toml and /etc/shadow.",
			"- /etc/app/b.toml # and /etc/shadow #.",
		},
		"a hash":        {"1fe766a3", "- 1fe766b", "- 1fe766b #"},
		"an identifier": {"ABC-12345", "- ABC-12346, #48213", "- ABC-12346 #, #48213 #"},
		"a port":        {"8081", "- 8081 and 8082", "- 8081 and 8082 #"},
		"twice":         {"", "- 48213\n- 48213", "- 48213 #\n- 48213 #"},
		"a code fence":  {"", "```\ncurl https://a.example/v1\n```", "```\ncurl https://a.example/v1 #\n```"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.ReplaceAll(marks(c.text, c.said), unsaidMark, "#")
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if again := strings.ReplaceAll(marks(marks(c.text, c.said), c.said), unsaidMark, "#"); again != c.want {
				t.Errorf("marked twice: %q", again)
			}
		})
	}
}
