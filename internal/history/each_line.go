package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// EachLine visits each line of the file, and says with At where it is. Lines that hold nothing to
// visit are counted here: blank ones, those over MaxLine, which are a problem too, and a torn last one.
//
// Lines behind what WaitFrom names wait.
//
// A JSON object at the end of the file is a line though its line feed is missing, once the file
// is quiet. Until then it waits.
func (in *Intake) EachLine(visit func(FileLine)) {
	for l, state := range in.lines {
		if state == lineWaits || in.waitFrom > 0 && l.At >= in.waitFrom && state != lineTorn {
			in.Wait(l.At, 1)
			continue
		}
		if state == lineTorn {
			in.held = true
			in.records.Wait(1)
			continue
		}
		in.At(l.At, l.End)
		switch state {
		case lineTooLarge:
			in.Skip(SkipTooLarge, 1)
			in.Problem(l.Number, fmt.Sprintf("the line is over %d MiB; left out", MaxLine>>20))
		case lineBlank:
			in.Skip(SkipBlank, 1)
		default:
			visit(l)
		}
	}
}

// Survey yields the lines that EachLine visits, and one that waits, and counts nothing: for a
// look ahead.
func (in *Intake) Survey(yield func(FileLine) bool) {
	for l, state := range in.lines {
		if (state == lineWhole || state == lineWaits) && !yield(l) {
			return
		}
	}
}

// WaitWhole leaves every line to a later reading, instead of EachLine.
func (in *Intake) WaitWhole() {
	n := 0
	for range in.lines {
		n++
	}
	in.Wait(0, n)
}

// lineState tells what a line is.
type lineState int

const (
	lineWhole    lineState = iota
	lineBlank              // white space
	lineTooLarge           // its bytes were not read
	lineTorn               // the last one, which is no JSON object yet
	lineWaits              // the last one, which is a JSON object but may go on
)

func (in *Intake) lines(yield func(FileLine, lineState) bool) {
	for l := range in.Lines() {
		state := in.stateOf(l)
		pieces := [][]byte{l.Bytes}
		if state == lineWhole || state == lineWaits {
			pieces = Objects(l.Bytes)
		}
		for i, piece := range pieces {
			line := FileLine{Number: l.Number, At: l.At, End: l.At + int64(len(piece)), Bytes: piece}
			if l.At = line.End; i == len(pieces)-1 {
				line.End = l.End
			}
			if !yield(line, state) {
				return
			}
		}
	}
}

// Objects splits a line that holds several whole JSON objects, as a program writes them that goes
// on after a line without its end. Any other line is one piece.
func Objects(line []byte) (pieces [][]byte) {
	if !bytes.Contains(line, []byte("}{")) && !bytes.Contains(line, []byte("} {")) {
		return [][]byte{line}
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(line), lenient, jsontext.AllowDuplicateNames(true))
	for from := 0; ; {
		value, err := d.ReadValue()
		if errors.Is(err, io.EOF) && len(pieces) > 1 {
			return pieces
		}
		if err != nil || value.Kind() != '{' {
			return [][]byte{line}
		}
		end := int(d.InputOffset())
		pieces, from = append(pieces, line[from:end]), end
	}
}

// isObject reports whether a line is one whole JSON object, if perhaps one that is kept raw.
func isObject(line []byte) bool {
	value := jsontext.Value(Unmarked(line))
	return value.Kind() == '{' && value.IsValid(lenient, jsontext.AllowDuplicateNames(true))
}

func (in *Intake) stateOf(l FileLine) lineState {
	tooLarge := l.Bytes == nil
	if !l.Ended {
		switch {
		case tooLarge || !isObject(l.Bytes) && len(Objects(l.Bytes)) == 1:
			return lineTorn
		case !in.Quiet():
			return lineWaits
		}
	}
	switch {
	case tooLarge:
		return lineTooLarge
	case len(bytes.TrimSpace(Unmarked(l.Bytes))) == 0:
		return lineBlank
	}
	return lineWhole
}
