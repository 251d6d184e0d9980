package history

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"sessiond/internal/session"
)

// Talk is a line of a transcript in which somebody may speak, {"message": {"content": [{…},
// …], …}, …}, taken apart down to the blocks, in one pass.
type Talk struct {
	Object          // the line
	Message Object  // nil where there is none
	Blocks  []Block // of its content, if that is a list of no more than a message can have; else nil
}

// Block is an element of a content.
type Block struct {
	Object // nil for one that is no object, or empty
	Raw    json.RawMessage
}

// ParseTalk reads a line as ParseLine does.
func ParseTalk(line []byte) (t Talk, exact, ok bool) {
	line = Unmarked(line)
	exact = utf8.Valid(line)
	if !exact {
		line = bytes.ToValidUTF8(line, []byte(string(utf8.RuneError)))
	}
	at := space(line, 0)
	if at >= len(line) || line[at] != '{' {
		return Talk{}, exact, false
	}
	fields, end := t.check(line, at, 1)
	if end < 0 || space(line, end) != len(line) {
		return Talk{}, exact, false
	}
	t.Object = fields
	return t, exact, true
}

// TalkOf is the Talk of an object that was taken apart before; what is in its message was not.
func TalkOf(o Object) Talk {
	message, _ := Fields(o.Get("message"))
	return Talk{Object: o, Message: message}
}

// The levels of a Talk are the line, its message and the blocks.
const (
	levelLine = iota + 1
	levelMessage
	levelBlock
)

// check goes over the object of a level, as checkFields does.
func (t *Talk) check(raw []byte, at, level int) (o Object, end int) {
	var few [usualFields]Field
	var fields []Field
	if level == levelBlock {
		fields, end = checkFields(raw, at, level+1, few[:0], nil)
	} else {
		fields, end = checkFields(raw, at, level, few[:0], func(key string, at int) (end int) {
			switch {
			case level == levelLine && key == "message":
				t.Message, t.Blocks = nil, nil // of equal names the last one counts
				if at < len(raw) && raw[at] == '{' {
					t.Message, end = t.check(raw, at, levelMessage)
					return end
				}
			case level == levelMessage && key == "content":
				t.Blocks = nil
				if at < len(raw) && raw[at] == '[' {
					return t.checkBlocks(raw, at)
				}
			}
			return checkValue(raw, at, level)
		})
	}
	if end < 0 {
		return nil, end
	}
	return ownFields(fields), end
}

func (t *Talk) checkBlocks(raw []byte, at int) int {
	begin, few := at, [8]Block{}
	blocks := few[:0]
	if at = space(raw, at+1); at < len(raw) && raw[at] == ']' {
		return at + 1
	}
	for {
		block := Block{}
		end := 0
		if at < len(raw) && raw[at] == '{' {
			block.Object, end = t.check(raw, at, levelBlock)
		} else {
			end = checkValue(raw, at, levelBlock)
		}
		if end < 0 || len(blocks) == session.MaxParts {
			return checkMembers(raw, begin, levelBlock)
		}
		block.Raw = raw[at:end:end]
		blocks = append(blocks, block)
		if at = space(raw, end); at >= len(raw) {
			return -1
		}
		switch raw[at] {
		case ']':
			t.Blocks = append([]Block(nil), blocks...)
			return at + 1
		case ',':
			at = space(raw, at+1)
		default:
			return -1
		}
	}
}
