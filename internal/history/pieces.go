package history

import (
	"bytes"
	"slices"

	"sessiond/internal/jsonx"
)

// A program that is killed while it writes, or a disk that loses power, leaves lines that are no single record: two
// records glued together, a record behind the torn beginning of another one or behind NULs, and a record that a
// literal line feed in a text spreads over lines. This file finds the records of such lines.

// pieceKind tells what a piece of a line is.
type pieceKind uint8

const (
	pieceRecord  pieceKind = iota // one JSON object, or a line that holds none
	pieceRubbish                  // beside an object on its line
	pieceNULs
)

// piece is a stretch of a line. The pieces of a line are the whole line.
type piece struct {
	kind pieceKind
	end  int // of it in the line
}

// space is the white space of JSON.
const space = " \t\r\n"

// shape is the first names of an object, by which a record is told from an object within it.
type shape [3]string

// isOneObject reports whether a line is one JSON object, as its braces and quotes say it. Nearly every line is.
func isOneObject(line []byte) bool {
	line = trimmed(line)
	end, _ := scanObject(line)
	return end > 0 && end == len(line)
}

// trimmed returns a line without what may stand around its record.
func trimmed(line []byte) []byte { return bytes.Trim(Unmarked(line), space) }

// names are where the first names of an object lie.
type names [len(shape{})]struct{ from, to int }

func (n names) of(text []byte) (s shape) {
	for i, name := range n {
		s[i] = string(text[name.from:name.to])
	}
	return s
}

// scanObject returns the offset behind the object that a text begins with, as braces and quotes say it, and where its
// first names lie. The offset is 0 where it does not end.
func scanObject(text []byte) (end int, first names) {
	depth, named := 0, 0
	if len(text) == 0 || text[0] != '{' {
		return 0, first
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			from := i + 1
			if i = closingQuote(text, from); i < 0 || i+1 < len(text) && !mayFollowString(text[i+1]) {
				return 0, first
			}
			if depth == 1 && named < len(first) && i+1 < len(text) && text[i+1] == ':' {
				first[named].from, first[named].to = from, i
				named++
			}
		case '\\':
			return 0, first
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1, first
			}
		}
	}
	return 0, first
}

// mayFollowString reports whether a character may stand behind a string. Behind a torn text the quotes of a record
// begin strings where they end them.
func mayFollowString(c byte) bool {
	switch c {
	case ':', ',', '}', ']', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

// closingQuote returns the offset of the first quote from an offset on that no backslash escapes, -1 if there is none.
func closingQuote(text []byte, from int) int {
	for i := from; ; i++ {
		at := bytes.IndexByte(text[i:], '"')
		if at < 0 {
			return -1
		}
		if i += at; backslashes(text[from:i])%2 == 0 {
			return i
		}
	}
}

// openingQuote returns the offset of the last quote that no backslash escapes, -1 if there is none.
func openingQuote(text []byte) int {
	at := bytes.LastIndexByte(text, '"')
	for at >= 0 && backslashes(text[:at])%2 == 1 {
		at = bytes.LastIndexByte(text[:at], '"')
	}
	return at
}

// backslashes counts the backslashes that a text ends with.
func backslashes(text []byte) (n int) {
	for n < len(text) && text[len(text)-1-n] == '\\' {
		n++
	}
	return n
}

// objectStart returns the offset of the object that a text ends with, as braces and quotes say it; -1: there is none.
func objectStart(text []byte) int {
	depth := 0
	for i := len(text) - 1; i >= 0; i-- {
		switch text[i] {
		case '"':
			if i = openingQuote(text[:i]); i < 0 {
				return -1
			}
		case '}':
			depth++
		case '{':
			if depth--; depth == 0 {
				return i
			}
		}
		if depth == 0 {
			return -1 // the text does not end with an object
		}
	}
	return -1
}

// isObject reports whether a text is one whole JSON object, if perhaps one that is kept raw.
func isObject(text []byte) bool {
	return jsonx.IsObject(Unmarked(text))
}

// maxPieces is how many pieces a line may have before the first object: text in UTF-16 has NULs everywhere.
const maxPieces = 1024

// split splits a line that is not one object into the objects that it begins and ends with, what lies between
// them, and NULs. A line without an object is one piece, but for the NULs around it. At its end only objects of known
// shapes count: others belong to a record that was torn off behind them. ended says that the line does not go on.
func split(line []byte, ended bool, known func(shape) bool) (pieces []piece) {
	add := func(kind pieceKind, end int) {
		pieces = append(pieces, piece{kind, end})
	}
	records := false
	for at := 0; at < len(line); {
		if !records && len(pieces) > maxPieces {
			return []piece{{pieceRecord, len(line)}}
		}
		end := at + len(line[at:]) - len(bytes.TrimLeft(line[at:], "\x00"))
		if end > at {
			add(pieceNULs, end)
			at = end
			continue
		}
		if end = bytes.IndexByte(line[at:], 0); end < 0 {
			end = len(line) - at
		}
		if last := at+end == len(line); last && !ended {
			known = nil
		}
		for _, p := range splitText(line[at:at+end], known) {
			records = records || p.kind == pieceRecord
			add(p.kind, at+p.end)
		}
		at += end
	}
	if records || len(pieces) == 1 && pieces[0].kind == pieceNULs {
		return pieces
	}
	return undivided(pieces)
}

// undivided makes the pieces between the NULs around a line one, which holds no object.
func undivided(pieces []piece) []piece {
	first, last := 0, len(pieces)-1
	if pieces[first].kind == pieceNULs {
		first++
	}
	if pieces[last].kind == pieceNULs {
		last--
	}
	pieces[last].kind = pieceRecord
	return slices.Delete(pieces, first, last)
}

// splitText splits a text without NULs. known is nil where it may go on.
func splitText(text []byte, known func(shape) bool) (pieces []piece) {
	at := 0
	for at < len(text) { // the objects that it begins with
		rest := bytes.TrimLeft(text[at:], space)
		if at == 0 {
			rest = bytes.TrimLeft(Unmarked(rest), space)
		}
		end, _ := scanObject(rest)
		if end == 0 || !isObject(rest[:end]) {
			break
		}
		at = len(text) - len(rest) + end
		pieces = append(pieces, piece{pieceRecord, at})
	}
	end := len(bytes.TrimRight(text, space))
	var behind []piece
	for end > at && known != nil { // those that it ends with
		from := objectStart(text[at:end])
		if from < 0 {
			break
		}
		object := text[at+from : end]
		if _, first := scanObject(object); !known(first.of(object)) || !isObject(object) {
			break
		}
		behind = append(behind, piece{pieceRecord, end})
		end = at + len(bytes.TrimRight(text[at:at+from], space))
	}
	if end > at {
		pieces = append(pieces, piece{pieceRubbish, end})
	}
	slices.Reverse(behind)
	pieces = append(pieces, behind...)
	if len(pieces) == 0 {
		return []piece{{pieceRubbish, len(text)}}
	}
	pieces[len(pieces)-1].end = len(text)
	return pieces
}
