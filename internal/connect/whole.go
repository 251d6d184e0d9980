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

// whole is a file that sessiond writes whole: a skill or a plug-in.
type whole struct{ text string }

// mark identifies a file of sessiond. A plug-in has its settings in the lines after the mark.
const (
	mark       = "written by `sessiond connect`"
	binaryLine = "const sessiond = "
	eventsLine = "const events = "
)

func (f whole) find(old []byte) (Wanted, bool, error) {
	w := Wanted{}
	for line := range strings.Lines(string(old)) {
		if said, ok := strings.CutPrefix(line, binaryLine); ok {
			_ = json.Unmarshal([]byte(said), &w.Binary) // add replaces a damaged line
		}
		if said, ok := strings.CutPrefix(line, eventsLine); ok {
			_ = json.Unmarshal([]byte(said), &w.Events)
		}
	}
	return w, bytes.Contains(old, []byte(mark)), nil
}

func (f whole) add(old []byte, w Wanted) ([]byte, error) {
	have, found, _ := f.find(old)
	if old != nil && !found {
		return nil, errors.New("the file is not sessiond's; move it away and connect again")
	}
	text := strings.Replace(f.text, binaryLine+`""`, binaryLine+quoteJSON(w.Binary), 1)
	return []byte(strings.Replace(text, eventsLine+"[]", eventsLine+encode(w.merged(have).Events, "", ""), 1)), nil
}

func (f whole) cut([]byte) ([]byte, error) { return nil, nil }
