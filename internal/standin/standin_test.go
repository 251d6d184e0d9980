package standin_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"sessiond/internal/session"
	"sessiond/internal/standin"
)

type text string

func (c text) Open() (io.Reader, error) {
	return iotest.HalfReader(strings.NewReader(string(c))), nil
}

const hostile = "\"quoted\" \\ back <b>&amp; \x1b[31m \u2028 价格 \U0001f600 end\n"

// Whatever the pieces are in which JSON is written, the contents stand where their words did.
func TestContentsStandWhereTheirWordsDid(t *testing.T) {
	long := strings.Repeat(hostile, 100)
	for size := 1; size < 200; size += 1 + size/8 {
		b := standin.New()
		said, bytes64 := b.Word(text(long), int64(len(long))), []byte(b.Word(text(long), int64(len(long))))
		var out bytes.Buffer
		w := b.Writer(&out)
		doc := session.JSONOf(map[string]any{
			"a": said, "b": "before " + said + said + " after", "c": base64.StdEncoding.EncodeToString(bytes64),
			"d": b.Slice(said, 10, 10), "e": b.Slice(b.Slice(said, 20, 400), 5, 300), "f": "data:image/png;base64," + base64.StdEncoding.EncodeToString(bytes64),
		})
		for rest := []byte(doc); len(rest) > 0; {
			n := min(size, len(rest))
			if _, err := w.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%v: %.200s", err, out.Bytes())
		}
		coded := base64.StdEncoding.EncodeToString([]byte(long))
		want := map[string]string{
			"a": long, "b": "before " + long + long + " after", "c": coded, "d": "", "e": long[25:320], "f": "data:image/png;base64," + coded,
		}
		for key := range want {
			if got[key] != want[key] {
				t.Fatalf("in pieces of %d bytes, %s is %.80q", size, key, got[key])
			}
		}
	}
}

func TestABookKnowsSizes(t *testing.T) {
	b := standin.New()
	word := b.Word(text("hello"), 5)
	if b.Size(word) != 5 || b.Size("hey") != 3 || b.Size(b.Slice(word, 1, 3)) != 2 || b.Slice("hello", 1, 3) != "el" || b.Size(b.Word(text("x"), -1)) != -1 {
		t.Error("sizes are wrong")
	}
	var none *standin.Book
	if none.Size(word) != len(word) || none.Slice("hello", 1, 3) != "el" {
		t.Error("without a book a word is a text")
	}
	if c, err := b.At(b.Slice(word, 1, 4), 2); c != 'l' || err != nil {
		t.Errorf("%c, %v", c, err)
	}
	if c, err := b.At("hey", 2); c != 'y' || err != nil {
		t.Errorf("%c, %v", c, err)
	}
}

type broken struct{ error }

func (b broken) Open() (io.Reader, error) { return iotest.ErrReader(b.error), nil }

func TestAContentThatCannotBeReadIsAnError(t *testing.T) {
	gone := errors.New("gone")
	b := standin.New()
	w := b.Writer(io.Discard)
	if _, err := w.Write(session.JSONOf(b.Word(broken{gone}, 5) + strings.Repeat(" ", 100))); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	if _, err := w.Write([]byte(standin.New().Word(text("x"), 1))); err != nil { // another book's
		t.Error(err)
	}
}

// What is written in pieces is, byte for byte, what would be written of the whole.
func TestJSONTextEscapesAsTheRestOfTheHouseDoes(t *testing.T) {
	var all strings.Builder
	for r := rune(0); r < 0x10ffff; r += 1 + r/100 {
		all.WriteRune(r)
	}
	all.WriteString("\x7f\u2027\u2028\u2029\u202a" + hostile)
	for _, size := range []int{1, 2, 3, 7, 4096} {
		var out bytes.Buffer
		w := standin.NewJSONText(&out)
		for rest := all.String(); rest != ""; {
			n := min(size, len(rest))
			if _, err := io.WriteString(w, rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if want := string(session.JSONOf(all.String())); `"`+out.String()+`"` != want {
			t.Errorf("in pieces of %d it is another text", size)
		}
	}
}
