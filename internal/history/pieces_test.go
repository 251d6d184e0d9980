package history

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// visited reads a file as the importers do: the lines that they are given, what was reported, and the records that
// wait.
func visited(text string, quiet bool) (lines, problems []string, waiting int) {
	in := newIntake(context.Background(), "", Found{ModifiedAt: time.Unix(1, 0)}, nil, nil, nil)
	if !quiet {
		in.Now = time.Unix(1, 0)
	}
	in.open(bytes.NewReader([]byte(text)), int64(len(text)), nil)
	in.EachLine(func(l FileLine) { lines = append(lines, string(bytes.TrimSpace(l.Bytes))) })
	for _, p := range in.problems {
		problems = append(problems, fmt.Sprintf("%d: %s", p.Line, p.Error))
	}
	return lines, problems, in.records.Waiting
}

func TestRecordsBesideRubbish(t *testing.T) {
	const a, b = `{"id":"a","x":{"y":[1,"}\"{"]}}`, `{"id":"b","x":0}`
	nuls := strings.Repeat("\x00", 40)
	skipped := func(line int) string {
		return fmt.Sprintf("%d: 40 NUL bytes, which a crash of the system leaves; skipped", line)
	}
	for _, test := range []struct {
		name, text string
		lines      []string
		problems   []string
	}{
		{"lines", a + "\n" + b + "\n", []string{a, b}, nil},
		{"two on a line", a + b + "\n", []string{a, b}, nil},
		{"two on a line, apart", a + "  " + b + "\n", []string{a, b}, nil},
		{
			"behind a beginning that ends in a text", b + "\n" + `{"id":"a","x":"wor` + a + "\n",
			[]string{b, `{"id":"a","x":"wor`, a},
			nil,
		},
		{
			"behind one that ends in an escape", b + "\n" + `{"id":"a","x":"wor\` + a + "\n",
			[]string{b, `{"id":"a","x":"wor\`, a},
			nil,
		},
		{
			"behind one that holds objects", b + "\n" + `{"id":{"c":{}},"x":` + a + "\n",
			[]string{b, `{"id":{"c":{}},"x":`, a},
			nil,
		},
		{"behind words", b + "\n" + `error: {"c"} ` + a + "\n", []string{b, `error: {"c"}`, a}, nil},
		{"before words", a + ` what` + "\n" + b + "\n", []string{a, "what", b}, nil},
		{"around words", a + ` what` + b + "\n", []string{a, "what", b}, nil},
		{"before a beginning", a + `{"id":` + "\n" + b + "\n", []string{a, `{"id":`, b}, nil},
		{
			"behind a first beginning", `{"id":` + a + "\n",
			[]string{a},
			[]string{"1: 6 bytes before the first JSON object are no JSON object; skipped"},
		},
		{"behind NULs", nuls + a + "\n" + b + "\n", []string{a, b}, []string{skipped(1)}},
		{
			"between NULs", a + "\n" + nuls + b + nuls + "\n",
			[]string{a, b},
			[]string{skipped(2), skipped(2)},
		},
		{
			"behind a beginning and NULs", a + "\n" + `{"id":"c` + nuls + b + "\n",
			[]string{a, `{"id":"c`, b},
			[]string{skipped(2)},
		},
		{"NULs at the end", a + "\n" + nuls, []string{a}, []string{skipped(2)}},
		{"NULs behind the last", a + "\n" + b + nuls, []string{a, b}, []string{skipped(2)}},
		{"NULs behind a last beginning", a + "\n" + `{"id":` + nuls, []string{a, `{"id":`}, []string{skipped(2)}},
		{"NULs in a text", a + "\n" + `{"id":"` + nuls + `"}` + "\n", []string{a, `{"id":"` + nuls + `"}`}, nil},
		{
			"over lines", a + "\n" + "{\"id\":\"c\nd\r\n\te\",\"x\":1}\n" + b + "\n",
			[]string{a, `{"id":"c\nd\u000d\n\u0009e","x":1}`, b},
			nil,
		},
		{
			"over lines, indented", "{\n  \"id\": [\n    {\"x\":1}\n  ]\n}\n" + b + "\n",
			[]string{"{\n  \"id\": [\n    {\"x\":1}\n  ]\n}", b},
			nil,
		},
		{"over lines behind another", a + "{\"id\":\"c\n\"}\n" + b + "\n", []string{a, `{"id":"c\n"}`, b}, nil},
		{
			"a beginning before a record", a + "\n" + `{"id":"c` + "\n" + b + "\n" + a + "\n",
			[]string{a, `{"id":"c`, b, a},
			nil,
		},
		{
			"an open list before a record", a + "\n" + `{"id":[` + "\n" + b + "\n" + "]}\n" + a + "\n",
			[]string{a, `{"id":[`, b, "]}", a},
			nil,
		},
		{"a beginning at the end", a + "\n" + `{"id":"c` + "\n" + "d\n", []string{a, `{"id":"c`, "d"}, nil},
		{
			"in a record that was torn off", a + "\n" + `{"id":"c","x":{"y":{"z":1}` + "\n" + b + "\n",
			[]string{a, `{"id":"c","x":{"y":{"z":1}`, b},
			nil,
		},
		{
			"in UTF-16", a + "\n" + strings.Repeat("{\x00", 9_000) + "\n",
			[]string{a, strings.Repeat("{\x00", 9_000)},
			nil,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			lines, problems, waiting := visited(test.text, true)
			if !slices.Equal(lines, test.lines) || !slices.Equal(problems, test.problems) || waiting > 0 {
				t.Errorf("%q\n%q, %d wait", lines, problems, waiting)
			}
		})
	}
}

// What may still grow waits while the file is not quiet: a last line, and a record whose text goes on in the next line.
// NULs end a line.
func TestUnfinishedLinesWait(t *testing.T) {
	for text, want := range map[string]int{
		`{"id":"a"}` + "\n" + `{"id":"b`: 1, `{"id":"a"}` + "\n" + "{\"id\":\"b\nc": 1,
		`{"id":"a"}` + "\n" + "{\"id\":\"b\nc\n": 1, `{"id":"a"}` + "\n" + `{"id":"b"}`: 1,
		`{"id":"a"}` + "\n" + "\x00\x00": 0, `{"id":"a"}` + "\x00\x00": 0,
		`{"id":"a"}{"id":`: 1, `{"id":"a"}` + "\n" + `{"id":"b","x":{"id":"c"}`: 1,
	} {
		lines, _, waiting := visited(text, false)
		if len(lines) != 1 || lines[0] != `{"id":"a"}` || waiting != want {
			t.Errorf("%q: %q, %d wait", text, lines, waiting)
		}
	}
}

// Records come in whatever was torn off in front of them, and their order stays.
func TestRecordsBehindTornOnes(t *testing.T) {
	value := rapid.SampledFrom([]string{`"}{"`, `"\\"`, `"\""`, `[{"z":"{"}]`, `{}`, `1`, `"a\nb"`, `{"k":{"l":"\\\""}}`})
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		var records []string
		for i := range rapid.IntRange(1, 8).Draw(t, "lines") {
			record := fmt.Sprintf(`{"id":"%d","x":%s,"y":%s}`, i, value.Draw(t, "x"), value.Draw(t, "y"))
			text.WriteString(strings.Repeat("\x00", rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "NULs")))
			text.WriteString(record[:rapid.IntRange(0, len(record)-1).Draw(t, "torn")])
			text.WriteString(record)
			text.WriteString(rapid.SampledFrom([]string{"\n", "\n", "\r\n", "\x00\n"}).Draw(t, "end"))
			records = append(records, record)
		}
		lines, _, waiting := visited(text.String(), true)
		lines = slices.DeleteFunc(lines, func(line string) bool { return !slices.Contains(records, line) })
		if !slices.Equal(lines, records) || waiting > 0 {
			t.Errorf("%q gave %q", text.String(), lines)
		}
	})
}
