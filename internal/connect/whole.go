package connect

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"
)

var (
	//go:embed files/SKILL.md
	skillText string
	//go:embed files/opencode.js
	opencodeText string
	//go:embed files/pi.ts
	piText string
)

// whole is a file that sessiond writes whole: a skill or a plug-in. Its settings stand in lines of their own.
type whole struct{ text, program string }

// mark identifies a file of sessiond.
const mark = "written by `sessiond connect`"

// The lines of the settings, up to the value, which is JSON.
const (
	binaryLine  = "const sessiond = "
	eventsLine  = "const events = "
	programLine = "const program = "
)

// plugin is a plug-in, which runs sessiond's hooks of a program.
func plugin(file, text, program string) File { return File{Hooks, file, whole{text, program}} }

func (whole) place() string { return "the whole file" }

func (f whole) find(old []byte) (Wanted, bool, error) {
	w := Wanted{}
	for line := range strings.Lines(string(old)) {
		for start, value := range map[string]any{binaryLine: &w.Binary, eventsLine: &w.Events} {
			if said, ok := strings.CutPrefix(line, start); ok {
				_ = json.Unmarshal([]byte(said), value) // add replaces a damaged line
			}
		}
	}
	return w, bytes.Contains(old, []byte(mark)), nil
}

func (f whole) add(old []byte, w Wanted) ([]byte, error) {
	have, found, _ := f.find(old)
	if old != nil && !found {
		return nil, errors.New("the file is not sessiond's; move it away and connect again")
	}
	text := f.text
	for start, value := range map[string]any{
		binaryLine: w.Binary, eventsLine: w.merged(have).Events, programLine: f.program,
	} {
		for _, empty := range []string{`""`, "[]"} {
			text = strings.Replace(text, start+empty, start+encode(value, "", ""), 1)
		}
	}
	return []byte(text), nil
}

func (f whole) cut([]byte) ([]byte, error) { return nil, nil }
