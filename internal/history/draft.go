package history

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/folders"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Draft is a conversation to write as a session of a program. Its messages are those that handover.Carrier makes: texts
// in three roles, calls with their results behind them, and pictures. Writers know no others.
type Draft struct {
	ID        string // in the program
	Title     string
	Directory string
	GitBranch string
	Provider  string // that the program asks; "": not known
	Model     string
	CreatedAt session.Time
	Handover  *Handover

	// Labels are what people call messages, for a program that has a name of each.
	Labels map[session.MessageRef]string

	// Each yields the messages, oldest first.
	Each func(yield func(*session.Message) error) error
}

// Target is a program whose sessions sessiond writes.
type Target struct {
	Source    session.Source
	MediaType string // of the file
	Extension string // of an exported file

	// NewID makes the id of a session: of equal seeds an equal one.
	NewID func(at session.Time, seed string) string

	// Path returns the file of a new session in the program's usual place, "" where that is not known. It is nil for a
	// program that reads a file by a command of its own: Import, with the file behind it.
	Path   func(d *Draft) string
	Import []string

	// Prepare makes what the program needs beside the file before that is written, and TidyUp removes it after the file,
	// if nothing else is there. nil: it needs nothing.
	Prepare func(path string, d *Draft) error
	TidyUp  func(path string)

	// Write writes the file.
	Write func(out io.Writer, d *Draft) error

	// Kept has the commands of a program that keeps its sessions in a database. nil: each is a file.
	Kept *Kept
}

// Kept is how a program lists, shows and deletes the sessions of its database. An id stands behind Show and Delete.
type Kept struct {
	List, Show, Delete []string

	// Listed returns the ids and titles that List prints for a folder.
	Listed func(printed []byte) ([]KeptSession, error)

	// Handover parses what Show prints of a session: the conversation that sessiond wrote into it, nil if it wrote none,
	// and whether it has messages behind that.
	Handover func(printed []byte) (of *Handover, continued bool, err error)
}

// KeptSession is a session in a program's database.
type KeptSession struct{ ID, Title string }

// MarkOf returns what a record that repeats a message has under HandoverKey.
func (d *Draft) MarkOf(m *session.Message) string {
	if m.ID != (session.MessageRef{}) {
		return m.ID.String()
	}
	return string(d.Handover.Session)
}

// Origin returns what the first record has under HandoverKey.
func (d *Draft) Origin() jsontext.Value { return jsontext.Value(session.JSONOf(d.Handover)) }

// DashedFolder names the folder in which Claude Code and Qwen Code keep the sessions of a directory.
func DashedFolder(directory string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, folders.Resolved(directory))
}

// WriteNew writes a file that is not there yet: os.IsExist tells that it is.
func WriteNew(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}

// isoTime is how programs write times.
const isoTime = "2006-01-02T15:04:05.000Z"

// ISOTime formats a time as programs do.
func ISOTime(at session.Time) string { return at.UTC().Format(isoTime) }

// LineWriter writes a JSON object per line, or texts. It keeps its first error.
type LineWriter struct {
	out *bufio.Writer
	err error
}

// NewLineWriter returns a LineWriter.
func NewLineWriter(out io.Writer) *LineWriter { return &LineWriter{out: bufio.NewWriter(out)} }

// Line writes an object of the fields that jsonx.Encode takes.
func (w *LineWriter) Line(pairs ...any) error {
	if w.err == nil {
		_, w.err = w.out.Write(append(jsonx.Encode(pairs...), '\n'))
	}
	return w.err
}

// Print writes a text as it is.
func (w *LineWriter) Print(text string) {
	if w.err == nil {
		_, w.err = w.out.WriteString(text)
	}
}

// Err is the first error.
func (w *LineWriter) Err() error { return w.err }

// Flush writes what is buffered.
func (w *LineWriter) Flush() error {
	if w.err == nil {
		w.err = w.out.Flush()
	}
	return w.err
}

// UnknownName is written where a program requires a name and the history has none.
const UnknownName = "unknown"

// TextBlock is a text as Claude Code, pi and Goose have one in a list of blocks.
func TextBlock(text string) jsontext.Value { return jsonx.Encode("type", "text", "text", text) }

// ImageBlock is a picture as pi and Goose have one in a list of blocks.
func ImageBlock(b *session.Blob) jsontext.Value {
	return jsonx.Encode("type", "image", "data", base64.StdEncoding.EncodeToString(b.Data), "mimeType", b.MediaType)
}

// Int is a whole number in JSON.
func Int(n int64) jsontext.Value { return jsontext.Value(strconv.FormatInt(n, 10)) }

// DataURL returns the address of a picture that holds it.
func DataURL(b *session.Blob) string {
	return "data:" + b.MediaType + ";base64," + base64.StdEncoding.EncodeToString(b.Data)
}

// EachResult visits the results of a message with what belongs to each: the pictures behind it.
func EachResult(m *session.Message, visit func(result *session.Part, pictures []session.Part)) {
	for i := 0; i < len(m.Parts); i++ {
		if m.Parts[i].Kind != session.PartToolResult {
			continue
		}
		end := i + 1
		for end < len(m.Parts) && m.Parts[end].Kind == session.PartImage {
			end++
		}
		visit(&m.Parts[i], m.Parts[i+1:end])
	}
}

// UUID makes a UUID of a seed, in the form of random ones.
func UUID(seed string) string { return uuidOf(sha256.Sum256([]byte(seed)), '4') }

// TimedUUID makes a UUID of a time and a seed, in the form of version 7.
func TimedUUID(at session.Time, seed string) string {
	sum := sha256.Sum256([]byte(seed))
	binary.BigEndian.PutUint64(sum[:], uint64(at.UnixMilli())<<16|uint64(sum[6])<<8|uint64(sum[7]))
	return uuidOf(sum, '7')
}

func uuidOf(sum [sha256.Size]byte, version byte) string {
	sum[8] = sum[8]&0x3f | 0x80
	b := []byte(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
	b[14] = version
	return string(b)
}
