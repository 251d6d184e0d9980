package redact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"sessiond/internal/session"
)

// random is put together at run time, so that no scanner takes this file for a leak.
func random(prefix string, n int) string {
	const letters = "aB3dE6gH9jK2mN5pQ8rS"
	b := []byte(prefix)
	for i := range n {
		b = append(b, letters[(i*7+n)%len(letters)])
	}
	return string(b)
}

// forms are secrets of every shape that Mask knows, with what announces them.
func forms() map[string]string {
	v := random("", 40)
	armour := func(lines int) string {
		body := strings.Repeat(random("", 64)+"\n", lines)
		return "-----BEGIN RSA PRIVATE KEY-----\n" + body + "-----END RSA PRIVATE KEY-----"
	}
	all := map[string]string{
		"jwt":               "eyJ" + random("", 20) + ".eyJ" + random("", 90) + "." + random("", 43),
		"private key":       armour(3),
		"large private key": armour(50),
		"a key cut off":     "-----BEGIN PRIVATE KEY-----\n" + random("", 90) + " ",
		"a key as JSON":     strings.ReplaceAll(armour(2), "\n", `\n`),
		"bearer":            "Authorization: Bearer " + v,
		"basic":             "authorization: basic " + v,
		"URL":               "postgres://app:s3cr3t@db.local:5432/x",
		"env":               "AWS_SECRET_ACCESS_KEY=" + v,
		"quoted env":        "export API_KEY='" + v + "'",
		"password":          `{"password": "hunter2x9", "user": "bo"}`,
		"JSON inside":       `{\"client_secret\": \"` + v + `\"}`,
		"YAML":              "dbPassword: Tr0ub4dor3",
		"query":             "?access_token=" + v + "&page=2",
		"two together":      "TOKEN=" + v + " SECRET=" + v,
		"key":               "key: " + v,
		"a very long one":   "Bearer " + random("", 700),
	}
	for _, of := range shapes {
		for _, sh := range of {
			body := random("", max(sh.min, 20))
			if sh.class == upper {
				body = strings.ToUpper(body)[:sh.min]
			}
			all[sh.prefix] = sh.prefix + body
		}
	}
	return all
}

// TestTheFormsAreSecrets shows that the table of the tests below bites.
func TestTheFormsAreSecrets(t *testing.T) {
	for name, form := range forms() {
		if _, n := Mask("x " + form + " y"); n == 0 {
			t.Errorf("%s is none: %s", name, form)
		}
	}
}

// What was read in pieces is masked as the whole, wherever the border of a piece cuts a secret.
func TestASecretAcrossTheBorderOfPiecesIsMasked(t *testing.T) {
	const window, margin = 2 << 10, 18 << 10
	for name, form := range forms() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, border := range []int{window, window + margin + lookBack, window + 2*lookBack} {
				for at := border - len(form) - 3; at <= border+3; at++ {
					text := filler(max(0, at)) + " " + form + "\n" + filler(3*window)
					same(t, text, newReader(strings.NewReader(text), window, margin))
				}
			}
		})
	}
}

// The same with the sizes that are used.
func TestASecretAcrossABorderOfTheUsualSize(t *testing.T) {
	for _, form := range []string{forms()["private key"], forms()["env"], forms()["ghp_"]} {
		for _, border := range []int{readWindow + lookBack, readWindow + lookAhead + lookBack, 1 << 20} {
			for at := border - len(form); at <= border; at += 7 {
				text := filler(at) + " " + form + "\n" + filler(readWindow)
				same(t, text, NewReader(strings.NewReader(text)))
			}
		}
	}
}

func filler(n int) string { return strings.Repeat("a line of what a tool said\n", n/27+1)[:n] }

func same(t *testing.T, text string, r *Reader) {
	t.Helper()
	want, n := Mask(text)
	got, err := io.ReadAll(r)
	if err != nil || string(got) != want || r.Masked != n {
		at := 0
		for at < len(got) && at < len(want) && got[at] == want[at] {
			at++
		}
		t.Fatalf("%d masked, not %d (%v); from byte %d on\n got %.200q\nwant %.200q", r.Masked, n, err, at, got[at:], want[at:])
	}
}

// A secret of any length is dropped as it comes.
func TestASecretWithoutEndIsMaskedWithoutHoldingIt(t *testing.T) {
	for name, c := range map[string]struct{ before, unit, after string }{
		"bearer":       {"Bearer ", "abc123DEF", " end"},
		"token":        {"ghp_", "abc123DEF", " end"},
		"assignment":   {"SECRET=", "abc123DEF", "; end"},
		"jwt":          {"eyJ" + random("", 20) + ".eyJ", "abc123DEF", ".sig end"},
		"a lost PEM":   {"-----BEGIN PRIVATE KEY-----\n", "abc123DEF\n", "- end"},
		"to the end":   {"TOKEN=", "abc123DEF", ""},
		"two in a row": {"TOKEN=", "abc123DEF", " TOKEN=" + strings.Repeat("x1y2z3", 10) + " end"},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.before + strings.Repeat(c.unit, 100<<10) + c.after
			r := NewReader(strings.NewReader(text))
			same(t, text, r)
			if cap(r.buf) > readWindow+lookAhead+lookBack || cap(r.out) > 2*cap(r.buf) {
				t.Errorf("it held %d and %d bytes", cap(r.buf), cap(r.out))
			}
		})
	}
}

func TestAReaderSaysWhatFailed(t *testing.T) {
	broken := errors.New("broken")
	if _, err := io.ReadAll(NewReader(io.MultiReader(strings.NewReader("text"), iotest.ErrReader(broken)))); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	text := filler(1000) + forms()["env"]
	same(t, text, NewReader(iotest.OneByteReader(strings.NewReader(text))))
	same(t, "", NewReader(strings.NewReader("")))
}

type heldContent string

func (c heldContent) Open() (io.Reader, error) { return strings.NewReader(string(c)), nil }

// A content may be read several times: its secrets count once, when all of them were seen.
func TestSecretsOfAContentCountOnce(t *testing.T) {
	var m Masker
	if c := (*Masker)(nil).Content(heldContent("x")); c != session.Content(heldContent("x")) {
		t.Errorf("nobody masks, and it is %v", c)
	}
	c := m.Content(heldContent(forms()["env"] + " " + forms()["ghp_"]))
	for range 3 {
		from, err := c.Open()
		if err != nil {
			t.Fatal(err)
		}
		if m.Masked != 0 && m.Masked != 2 {
			t.Errorf("%d masked", m.Masked)
		}
		if got, err := io.ReadAll(from); err != nil || !bytes.Contains(got, []byte("[secret: github token]")) {
			t.Errorf("%s, %v", got, err)
		}
	}
	if m.Masked != 2 {
		t.Errorf("%d masked", m.Masked)
	}
}

func FuzzReader(f *testing.F) {
	for name, form := range forms() {
		f.Add(form, len(name))
	}
	f.Fuzz(func(t *testing.T, s string, at int) {
		const window, margin = 1 << 10, 18 << 10
		if len(s) > window {
			return
		}
		text := filler(uintOf(at)%(margin+window)) + s + filler(window)
		same(t, text, newReader(strings.NewReader(text), window, margin))
		text = fmt.Sprint(s, s, s, filler(margin), s)
		same(t, text, newReader(strings.NewReader(text), window, margin))
	})
}

func uintOf(n int) int { return int(uint(n) >> 1) }
