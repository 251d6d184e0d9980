package history

import "fmt"

// EachLine visits each line of the file, and says with At where it is. Lines that hold nothing to
// visit are counted here: blank ones, NULs and those over MaxLine, which are a problem too, and a torn last one.
//
// A line with several JSON objects, or with rubbish beside one, is visited once for each of them; rubbish before the
// first object of the file is only reported. An object with literal line feeds in its texts is one line.
//
// Lines behind what WaitFrom names wait.
//
// A JSON object at the end of the file is a line though its line feed is missing, once the file
// is quiet. Until then it waits. NULs behind it say that nothing follows on its line.
func (in *Intake) EachLine(visit func(FileLine)) {
	begun := false
	var early []Problem // before the first record: other files are none of the program
	report := func(l FileLine, reason, why string) {
		in.Skip(reason, 1)
		if begun {
			in.Problem(l.Number, why)
		} else {
			early = append(early, Problem{Line: l.Number, Error: why})
		}
	}
	for l, state := range in.lines {
		if in.err != nil {
			return
		}
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
		if in.repeats(l.Bytes) {
			in.Skip(SkipHandedOver, 1)
			continue
		}
		switch state {
		case lineTooLarge:
			in.Skip(SkipTooLarge, 1)
			in.Problem(l.Number, fmt.Sprintf("the line is over %d MiB; left out", MaxLine>>20))
		case lineBlank:
			in.Skip(SkipBlank, 1)
		case lineNULs:
			report(l, SkipNULs, fmt.Sprintf("%d NUL bytes, which a crash of the system leaves; skipped", len(l.Bytes)))
		case lineRubbish:
			if begun {
				visit(l)
				continue
			}
			report(l, SkipRubbish, fmt.Sprintf("%d bytes before the first JSON object are no JSON object; skipped",
				len(l.Bytes)))
		default:
			visit(l)
			if begun = true; in.err == nil {
				for _, p := range early {
					in.Problem(p.Line, p.Error)
				}
			}
			early = nil
		}
	}
}

// Survey yields the lines that EachLine visits, and one that waits, and counts nothing: for a
// look ahead.
func (in *Intake) Survey(yield func(FileLine) bool) {
	for l, state := range in.lines {
		if (state == lineWhole || state == lineWaits) && !in.repeats(l.Bytes) && !yield(l) {
			return
		}
	}
}

// Repeated yields the lines that repeat a conversation which was handed over. EachLine and Survey leave them out.
func (in *Intake) Repeated(yield func(FileLine) bool) {
	if in.origin == nil {
		return
	}
	for l, state := range in.lines {
		if state == lineWhole && in.repeats(l.Bytes) && !yield(l) {
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
	lineRubbish            // beside a record on its line
	lineNULs               // that a disk without power left
	lineTorn               // the last one, which is no JSON object yet
	lineWaits              // the last one, which is a JSON object but may go on
)

func (in *Intake) lines(yield func(FileLine, lineState) bool) {
	newLineSplitter(in.file, in.length).each(in.Lines(), func(l FileLine, kind pieceKind, open bool) bool {
		state := in.stateOf(l, kind, open)
		return yield(l, state) && (state != lineTorn || !l.Ended) // what lies behind it is a part of it
	})
}

func (in *Intake) stateOf(l FileLine, kind pieceKind, open bool) lineState {
	switch {
	case open && (!l.Ended || !in.Quiet()):
		return lineTorn
	case l.Bytes == nil:
		return lineTooLarge
	case kind == pieceNULs:
		return lineNULs
	case kind == pieceRubbish:
		return lineRubbish
	case len(trimmed(l.Bytes)) == 0:
		return lineBlank
	case !l.Ended && !in.Quiet():
		return lineWaits
	}
	return lineWhole
}
