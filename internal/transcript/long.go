package transcript

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"sessiond/internal/session"
)

// Long is a text that is too long to be held, and is read where it lies.
type Long struct {
	From session.Content
	Size int64 // bytes
}

// beginningSize is how many bytes of a long text stand in the place of its text.
const beginningSize = 4 << 10

// textOf gives a part's text; of a long one its beginning, and where the whole of it is. One
// that cannot be read has no beginning: whoever reads the whole is told why.
func textOf(p *session.Part) (string, *Long) {
	if p.Text != "" || p.Blob == nil || p.Blob.From == nil || p.Kind.HasBytes() {
		return p.Content(), nil
	}
	long := &Long{p.Blob.From, p.Blob.Size}
	from, err := long.From.Open()
	if err != nil {
		return "", long
	}
	beginning, _ := io.ReadAll(io.LimitReader(from, beginningSize))
	return strings.ToValidUTF8(string(beginning), ""), long
}

// pieceSize is how much of a long text is held, in bytes.
const pieceSize = 128 << 10

// each yields the text as Clean gives it, without the empty lines around it, in pieces.
func (l *Long) each(yield func(string) error) error {
	from, err := l.From.Open()
	if err != nil {
		return err
	}
	buf, have, ended := make([]byte, pieceSize), 0, false
	begun, blank := false, 0 // line ends that are written if something follows
	for !ended {
		n, err := io.ReadFull(from, buf[have:])
		have += n
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			ended = true
		default:
			return err
		}
		end := have
		if !ended {
			end = pieceEnd(buf[:have])
		}
		piece := Clean(string(buf[:end]))
		have = copy(buf, buf[end:have])
		inner := strings.TrimRight(piece, "\n")
		if inner == "" {
			blank += len(piece)
			continue
		}
		if begun {
			if err := lineEnds(blank, yield); err != nil {
				return err
			}
		} else {
			inner = strings.TrimLeft(inner, "\n")
		}
		begun, blank = true, len(piece)-len(strings.TrimRight(piece, "\n"))
		if err := yield(inner); err != nil {
			return err
		}
	}
	return nil
}

func lineEnds(n int, yield func(string) error) error {
	for ; n > 0; n -= pieceSize {
		if err := yield(strings.Repeat("\n", min(n, pieceSize))); err != nil {
			return err
		}
	}
	return nil
}

// pieceEnd tells where a full piece may end so that Clean does with its pieces as with the whole:
// behind a line, since no sequence goes on in the next one. In a line longer than a piece it is
// between two characters, and before what may be the beginning of a sequence.
func pieceEnd(b []byte) int {
	if at := bytes.LastIndexByte(b, '\n'); at >= 0 {
		return at + 1
	}
	end := len(b)
	for at := len(b) - 1; at > len(b)-utf8.UTFMax; at-- {
		if utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				end = at
			}
			break
		}
	}
	if b[end-1] == '\r' { // what follows it counts
		end--
	}
	const longest = 256
	if at := bytes.LastIndexAny(b[end-longest:end], "\x1b\u009b\u0090\u0098\u009d\u009e\u009f"); at >= 0 {
		end += at - longest
	}
	return end
}

// longestRun is that of a held text.
func (l *Long) longestRun(of byte) (int, error) {
	r := run{of: of}
	err := l.each(func(piece string) error {
		r.add(piece)
		return nil
	})
	return r.longest, err
}
