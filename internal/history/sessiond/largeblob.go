package sessiond

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/standin"
)

// largeBlob is the size in bytes above which a blob is not held to be written: its line is the
// same as if it were.
const largeBlob = 1 << 20

// streamBlob writes the line of a large blob while it is read, a second time: the first time
// tells whether it is a text.
func (w *Writer) streamBlob(b *session.Blob, kind session.PartKind) error {
	l := blobLine{Type: lineBlob, SHA256: b.SHA256, MediaType: b.MediaType}
	text := mayBeText(b, kind)
	if text {
		var check session.TextCheck
		if _, err := copyBlob(&check, b); err != nil {
			return err
		}
		text = check.UTF8()
	}
	if !text {
		l.Base64 = []byte{0}
		return w.lineAround(l, `AA=="}`, func() error {
			enc := base64.NewEncoder(base64.StdEncoding, w.out)
			_, err := copyBlob(enc, b)
			return errors.Join(err, enc.Close())
		})
	}
	l.Text = new(string)
	return w.lineAround(l, `"}`, func() error {
		_, err := copyBlob(standin.NewJSONText(w.out), b)
		return err
	})
}

func copyBlob(to io.Writer, b *session.Blob) (size int64, err error) {
	from, err := b.Open()
	if err != nil {
		return 0, err
	}
	return io.Copy(to, from)
}

// cutRule tells that what blobs hold is read out of the file when it is stored.
func cutRule() history.CutRule {
	return history.CutRule{
		Fields: []string{"text", "base64"},
		Whole: func(line []byte) bool {
			kind, ok := typeOf(line)
			return !ok || kind != lineBlob
		},
	}
}

// lineAround writes a line whose last string is another one: end is how the given one ends.
func (w *Writer) lineAround(l blobLine, end string, write func() error) error {
	raw, err := session.MarshalPlain(l)
	if err != nil {
		return err
	}
	if _, err := w.out.Write(bytes.TrimSuffix(raw, []byte(end))); err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	_, err = w.out.WriteString("\"}\n")
	return err
}
