package codex

import (
	"math"
	"regexp"
	"strconv"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// result adds to a tool's output what it says of its run: whether it failed and how long it
// took; else the time since the call was written is taken for that.
func result(rec *record, m *session.Message, began map[string]int64) {
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != session.PartToolResult {
			continue
		}
		code, known, seconds := runOf(p.Content())
		if known && p.IsError == nil {
			failed := code != 0
			p.IsError = &failed
		}
		at, open := began[p.CallID]
		switch {
		case seconds >= 0:
			ms := int64(math.Round(seconds * 1000))
			p.DurationMS = &ms
		case open && rec.timed:
			if ms := rec.at.UnixMilli() - at; ms >= 0 {
				p.DurationMS = &ms
			}
		}
	}
}

// headOf is how far into an output its run is looked for.
const headOf = 400

// runOf reads what Codex writes of a command's run: older versions {"output", "metadata":
// {"exit_code", "duration_seconds"}}, newer ones lines before the output. seconds is -1 where
// it is not said.
func runOf(output string) (code int64, known bool, seconds float64) {
	if o, ok := history.ParseObject([]byte(output)); ok {
		metadata, is := history.Fields(o.Get("metadata"))
		if !is {
			return 0, false, -1
		}
		exit, said := number(metadata.Get("exit_code"))
		took, timed := number(metadata.Get("duration_seconds"))
		if !timed || took < 0 || took > maxSeconds {
			took = -1
		}
		return int64(exit), said, took
	}
	head := output[:min(len(output), headOf)]
	seconds = -1
	if found := wallTimeLine.FindStringSubmatch(head); found != nil {
		if n, err := strconv.ParseFloat(found[1], 64); err == nil && n <= maxSeconds {
			seconds = n
		}
	}
	if found := exitCodeLine.FindStringSubmatch(head); found != nil {
		n, err := strconv.ParseInt(found[1], 10, 32)
		return n, err == nil, seconds
	}
	return 0, false, seconds
}

const maxSeconds = 1e7

var (
	wallTimeLine = regexp.MustCompile(`(?m)^Wall time: ([0-9]+(?:\.[0-9]+)?) seconds`)
	exitCodeLine = regexp.MustCompile(`(?m)^(?:Process exited with code|Exit code:) (-?[0-9]+)`)
)
