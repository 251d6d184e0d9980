package history

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strconv"
	"strings"

	"sessiond/internal/session"
)

// Cuts shortens the very long lines of one file, so that nobody holds them. In the place of the
// middle of a long string in them stands a token; beginning and end of the string stay, so that
// what looks at these finds what stands there. Before a batch is stored, mend puts back what the
// tokens stand for: as the From of a blob, which is read out of the file when it is stored, and
// anywhere else in memory.
//
// A string is cut only where a decoder sees no difference: it is valid, its field is one of
// those that the program says hold content, it is longer by far than session.BlobThreshold, and
// so is what is left of it. What a decoder must still ask here are sizes (Size, TextSize) and
// sums (Write, Fingerprint, Sum).
//
// A nil Cuts cuts nothing, and the methods are about the bytes as they are.
type Cuts struct {
	file io.ReaderAt
	rule CutRule
	at   map[cutID]cut
	err  error // of a sum that could not be made
}

// CutRule says what may be cut in a program's lines.
type CutRule struct {
	Fields []string               // names of the fields, and of lists of strings, that may be cut
	Whole  func(line []byte) bool // a line, a JSON object, that must stay whole; nil: none must
	Stay   []string               // texts that hold one of these stay whole
	Skip   bool                   // a line over MaxLine is not kept: it comes without its bytes
	Limits CutLimits              // zero: the usual
}

// CutLimits are sizes in bytes.
type CutLimits struct {
	Line   int // up to which a line is never cut
	String int // up to which a string is never cut
	Keep   int // of a string that is cut: what stays of it, at its beginning and at its end
}

// usualLimits: what stays of a string, once at each end, is more than session.BlobThreshold, so
// that what asks whether it is large gets the same answer. Codex looks at the first 80,000 bytes.
const (
	usualLine   = 1 << 20
	usualString = 256 << 10
	usualKeep   = 96 << 10
)

// cutID names a cut by what it holds: equal strings have equal tokens, wherever they stand.
type cutID [16]byte

// cut is where the middle of a string lies.
type cut struct {
	offset, size int64 // of its bytes in the file
	text         int64 // bytes of what they say
	usual        bool  // an encoder writes what they say as it stands there
	sum          [sha256.Size]byte
}

// NewCuts makes an empty one for a file; nil, which cuts nothing, if found is to be read whole.
func NewCuts(file io.ReaderAt, found Found, rule CutRule) *Cuts {
	if found.Whole {
		return nil
	}
	l := &rule.Limits
	if l.Line == 0 {
		l.Line, l.String, l.Keep = usualLine, usualString, usualKeep
	}
	return &Cuts{file: file, rule: rule, at: map[cutID]cut{}}
}

// Len is how many strings were cut.
func (c *Cuts) Len() int {
	if c == nil {
		return 0
	}
	return len(c.at)
}

// within tells whether JSON of a size may hold a token.
func (c *Cuts) within(size int) bool { return c.Len() > 0 && size > 2*c.rule.Limits.Keep }

// A token is the marker, which no file holds since it is another one in each process, a hint,
// the name of the cut, and the size of what it says, in hexadecimal digits:
//
//	marker 24 · hint 4 · name 32 · size 12
//
// The hint keeps what a decoder may ask of the whole string: whether it is base64, whether there
// is an escape in it, and whether an encoder would write it as it stands. Where an escape stands
// in it, it also tells how often the token was decoded and encoded since.
const (
	markerSize = 24
	hintSize   = 4
	nameSize   = 2 * len(cutID{})
	sizeSize   = 12
	tokenSize  = markerSize + len(hintOther) + nameSize + sizeSize // at most
)

// The hints.
const (
	hintWord    = "0000"   // letters and digits alone
	hintStd     = "+000"   // the alphabet of base64
	hintURL     = "-000"   // that of base64 for URLs
	hintEither  = "+-00"   // both
	hintPlain   = " 000"   // anything that needs no escape
	hintEscaped = `\t`     // escapes, as an encoder writes them
	hintOther   = `\u0009` // escapes, as it does not
)

// marker begins every token.
var marker = newMarker()

// innerMarker is the marker where it was taken for base64.
var innerMarker = unmarked()

func newMarker() []byte {
	random := make([]byte, 12)
	_, _ = rand.Read(random) // never fails
	return []byte(hex.EncodeToString(random))
}

func unmarked() []byte {
	inner, err := base64.StdEncoding.DecodeString(string(marker))
	if err != nil {
		panic(err) // digits are base64
	}
	return inner
}

// errMangled says that a decoder took a token apart.
var errMangled = errors.New("a long line was not read as it should be")

// stretch is a piece of something that holds tokens: bytes as they are, or a cut and what is
// to be done with it.
type stretch struct {
	literal []byte
	cut     *cut
	decode  bool // the escapes
	base64  bool // decode that
}

func (p *stretch) size() int64 {
	switch {
	case p.cut == nil:
		return int64(len(p.literal))
	case p.base64:
		return p.cut.size / 4 * 3
	case p.decode:
		return p.cut.text
	}
	return p.cut.size
}

// pieces takes apart what holds tokens. It is nil for what holds none.
func (c *Cuts) pieces(b []byte) ([]stretch, error) {
	if c == nil || len(c.at) == 0 {
		return nil, nil
	}
	var all []stretch
	for {
		at := bytes.Index(b, marker)
		inner := -1
		if at < 0 {
			inner = bytes.Index(b, innerMarker)
		}
		var p stretch
		var n int
		var err error
		switch {
		case at >= 0:
			p, n, err = c.token(b[at:])
		case inner >= 0:
			at = inner
			p, n, err = c.inner(b[at:])
		default:
			if all != nil {
				all = append(all, stretch{literal: b})
			}
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, stretch{literal: b[:at]}, p)
		b = b[at+n:]
	}
}

// token reads the token that b begins with. n is its size.
func (c *Cuts) token(b []byte) (p stretch, n int, err error) {
	n = markerSize
	encode := 0 // how often what it says was written as JSON
	hint := b[n:]
	slashes := 0
	for slashes < len(hint) && hint[slashes] == '\\' {
		slashes++
	}
	switch rest := hint[slashes:]; {
	case slashes == 0 && len(rest) > 0 && rest[0] == '\t':
		p.decode = true
		n++
	case slashes == 0 && len(rest) > hintSize:
		n += hintSize
	case len(rest) > 0 && rest[0] == 't' && slashes&(slashes-1) == 0:
		p.decode = true
		for encode = 1; 1<<(encode-1) < slashes; encode++ {
		}
		n += slashes + 1
	case bytes.HasPrefix(rest, []byte(hintOther[1:])) && slashes&(slashes-1) == 0:
		for ; 1<<encode < slashes; encode++ {
		}
		n += slashes + len(hintOther) - 1
	default:
		return p, 0, errMangled
	}
	if len(b) < n+nameSize+sizeSize {
		return p, 0, errMangled
	}
	if p.cut, err = c.named(b[n : n+nameSize]); err != nil {
		return p, 0, err
	}
	n += nameSize + sizeSize
	if p.decode && p.cut.usual && encode > 0 {
		p.decode = false
		encode--
	}
	if encode == 0 {
		return p, n, nil
	}
	text, err := io.ReadAll(c.open([]stretch{p}))
	if err != nil {
		return p, 0, err
	}
	for range encode {
		quoted := session.JSONOf(string(text))
		text = quoted[1 : len(quoted)-1]
	}
	return stretch{literal: text}, n, nil
}

// inner reads a token that was decoded as base64.
func (c *Cuts) inner(b []byte) (p stretch, n int, err error) {
	n = (markerSize + hintSize + nameSize + sizeSize) / 4 * 3
	if len(b) < n {
		return p, 0, errMangled
	}
	token := base64.StdEncoding.EncodeToString(b[:n])
	p.base64 = true
	p.cut, err = c.named([]byte(token[markerSize+hintSize:][:nameSize]))
	return p, n, err
}

func (c *Cuts) named(name []byte) (*cut, error) {
	var id cutID
	if _, err := hex.Decode(id[:], name); err != nil {
		return nil, errMangled
	}
	found, ok := c.at[id]
	if !ok {
		return nil, errMangled
	}
	return &found, nil
}

// tokenOf writes the token of a cut.
func tokenOf(b []byte, c *cut, hint string) []byte {
	b = append(append(b, marker...), hint...)
	b = hex.AppendEncode(b, c.sum[:len(cutID{})])
	size := strconv.FormatInt(c.text, 16)
	b = append(b, "000000000000"[len(size):]...)
	return append(b, size...)
}

// TextSize gives the size of a text, of which the middle may be cut out, in bytes.
func TextSize(text string) int {
	n := len(text)
	if n <= session.BlobThreshold { // less than is left of any
		return n
	}
	for at := 0; ; {
		i := strings.Index(text[at:], string(marker))
		if i < 0 {
			return n
		}
		at += i + markerSize
		hint := 1 // a tabulator
		if at < len(text) && text[at] != '\t' {
			hint = hintSize
		}
		if len(text) < at+hint+nameSize+sizeSize {
			return n
		}
		at += hint + nameSize
		size, err := strconv.ParseInt(text[at:at+sizeSize], 16, 64)
		if err != nil {
			return n
		}
		at += sizeSize
		n += int(size) - markerSize - hint - nameSize - sizeSize
	}
}

// Size gives the size of JSON as it stands in the file, in bytes.
func (c *Cuts) Size(raw []byte) int {
	all, err := c.pieces(raw)
	if all == nil || err != nil {
		return len(raw)
	}
	n := int64(0)
	for i := range all {
		n += all[i].size()
	}
	return int(n)
}

// Write writes text or JSON as it stands in the file. An error is kept until the next batch is
// given.
func (c *Cuts) Write(w io.Writer, b []byte) {
	all, err := c.pieces(b)
	switch {
	case err != nil:
	case all == nil:
		_, err = w.Write(b)
	default:
		_, err = io.Copy(w, c.open(all))
	}
	if err != nil && c != nil && c.err == nil {
		c.err = err
	}
}

// Whole gives text or JSON with everything in it. Codes: Busy (the file has changed).
func (c *Cuts) Whole(b []byte) ([]byte, error) {
	all, err := c.pieces(b)
	if all == nil || err != nil {
		return b, err
	}
	n := int64(bytes.MinRead)
	for i := range all {
		n += all[i].size()
	}
	whole := bytes.NewBuffer(make([]byte, 0, n))
	_, err = whole.ReadFrom(c.open(all))
	return whole.Bytes(), err
}

// ReadAgain reads a line of a size that was read before, shortened as then; into buffer, if it
// has room. Codes: as the function's.
func (c *Cuts) ReadAgain(file io.ReaderAt, buffer []byte, at, size int64) ([]byte, error) {
	if c != nil && size > int64(c.rule.Limits.Line) {
		if line, err := c.shorten(at, size); line != nil || err != nil {
			return line, err
		}
	}
	if int64(cap(buffer)) < size {
		buffer = make([]byte, size)
	}
	return buffer[:size], ReadAgain(file, buffer[:size], at)
}

// Text gives a text with everything in it. An error is kept as by Write.
func (c *Cuts) Text(text string) string {
	if c.Len() == 0 {
		return text
	}
	var b strings.Builder
	c.Write(&b, []byte(text))
	return b.String()
}

// open reads pieces one after the other.
func (c *Cuts) open(all []stretch) io.Reader {
	readers := make([]io.Reader, len(all))
	for i := range all {
		p := &all[i]
		if p.cut == nil {
			readers[i] = bytes.NewReader(p.literal)
			continue
		}
		var r io.Reader = &checked{Reader: io.NewSectionReader(c.file, p.cut.offset, p.cut.size), cut: p.cut, sum: sha256.New()}
		switch {
		case p.base64:
			r = base64.NewDecoder(base64.StdEncoding, r)
		case p.decode:
			r = &unescaping{from: r}
		}
		readers[i] = r
	}
	return io.MultiReader(readers...)
}

// spliced is a content that lies in a file, but for the beginning and end of a string.
type spliced struct {
	cuts *Cuts
	all  []stretch
}

// Open implements session.Content.
func (s *spliced) Open() (io.Reader, error) { return s.cuts.open(s.all), nil }

// errChanged is within the error of a content that is not what was cut out any more.
var errChanged = errors.New("the file changed while it was read")

func changed() error { return session.Errorf(session.Busy, "%w: import again", errChanged) }

// checked gives the bytes of a cut, and in the end an error if they are not those that were cut
// out.
type checked struct {
	io.Reader
	cut  *cut
	sum  hash.Hash
	read int64
}

func (c *checked) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.sum.Write(b[:n])
	c.read += int64(n)
	if errors.Is(err, io.EOF) && (c.read != c.cut.size || !bytes.Equal(c.sum.Sum(nil), c.cut.sum[:])) {
		err = changed()
	}
	return n, err
}
