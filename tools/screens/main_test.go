package main

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Looks, places and special characters of a screen are in the picture, whose screens follow one another.
func TestScreensAreDrawn(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	for name, text := range map[string]string{
		first:  "\x1b[1m\x1b[35m❯ \x1b[0;2m\x1b[39m\x1b[49ma < b & c\n\n\x1b[0m  end\n\n",
		second: "$ sessiond\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := draw(&out, []string{"3", first, second}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`viewBox="0 0 120 82"`, // 11 columns, 3 rows
		`<text x="14.0" y="27.0" textLength="8.4" `, `fill="#d58fff" font-weight="700">❯</text>`,
		`<text x="30.8" y="27.0" textLength="75.6" `, `fill="#d5d8df" opacity="0.6">a &lt; b &amp; c</text>`,
		`<text x="30.8" y="63.0" textLength="25.2" `, `fill="#d5d8df">end</text>`,
		`style="animation-delay: 3s"`,
		"show 6s step-end infinite",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the picture lacks %s:\n%s", want, out.String())
		}
	}
	if err := xml.Unmarshal(out.Bytes(), new(struct{})); err != nil {
		t.Error(err)
	}
}

func TestWhatCannotBeDrawnIsAnError(t *testing.T) {
	name := filepath.Join(t.TempDir(), "screen")
	for text, want := range map[string]string{
		"\x1b[2Jgone": "not one of looks",
		"\x1b[41mred": "41",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := draw(new(bytes.Buffer), []string{"3", name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v", text, err)
		}
	}
	if err := draw(new(bytes.Buffer), []string{"none", name}); err == nil {
		t.Error("no error for a number that is none")
	}
}
