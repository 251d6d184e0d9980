package sessiond

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"unicode/utf8"

	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Writer writes sessions as lines of JSON. It holds a few messages at a time.
type Writer struct {
	store    *store.Store
	mask     *redact.Masker
	out      *bufio.Writer
	begun    bool
	sessions int
	messages int
	blobs    map[string]bool // those written of the present session, by hash
	blocks   map[string]bool // a block may say the same as a blob
}

// NewWriter makes a writer, whose Close flushes it. A mask that is not nil masks what is
// written; ids, bytes and structure stay.
func NewWriter(out io.Writer, s *store.Store, mask *redact.Masker) *Writer {
	return &Writer{store: s, mask: mask, out: bufio.NewWriterSize(out, 64<<10)}
}

// Messages returns how many messages were written.
func (w *Writer) Messages() int { return w.messages }

// Session writes a session whole, after the sessions that it was forked from. Codes: NotFound,
// Busy (it was purged meanwhile).
func (w *Writer) Session(ctx context.Context, id session.ID) error {
	w.blobs, w.blocks = map[string]bool{}, map[string]bool{}
	return w.store.Save(ctx, id, func(row any) error {
		if err := w.prepare(ctx, row); err != nil {
			return err
		}
		return w.line(row)
	})
}

// StoreData writes what belongs to the store and to none of its sessions, after all of them.
func (w *Writer) StoreData(ctx context.Context) error {
	return w.store.EachStoreData(ctx, func(d *store.StoreData) error {
		for i := range d.Keys {
			d.Keys[i].Label = w.mask.Text(d.Keys[i].Label)
		}
		for i := range d.Calls {
			w.maskCall(&d.Calls[i])
		}
		return w.line(d)
	})
}

// Close writes the last line and flushes.
func (w *Writer) Close() error {
	return errors.Join(w.line(endLine{lineEnd, w.sessions}), w.out.Flush())
}

// line writes a line, and the export line before the first.
func (w *Writer) line(line any) error {
	if !w.begun {
		w.begun = true
		if err := w.line(exportLine{lineExport, string(session.SourceSessiond), Version}); err != nil {
			return err
		}
	}
	raw, err := marshal(line)
	if err != nil {
		return err
	}
	if _, err := w.out.Write(raw); err != nil {
		return err
	}
	return w.out.WriteByte('\n')
}

// prepare masks a row, and writes the blobs and blocks that must stand before it.
func (w *Writer) prepare(ctx context.Context, row any) error {
	switch row := row.(type) {
	case *store.SavedSession:
		w.sessions++
		w.mask.Session(&row.Session)
	case *store.SavedMessage:
		w.messages++
		return w.message(ctx, row)
	case *store.SavedCompaction:
		w.mask.Compaction(&row.Compaction)
	case *store.SavedFrozen:
		row.Content = w.mask.JSON(row.Content)
	case *store.SavedContext:
		for _, hash := range []*string{&row.System, &row.Initial, &row.Tools} {
			if err := w.block(ctx, hash); err != nil {
				return err
			}
		}
	case *store.SavedCall:
		w.maskCall(row)
	case *store.SavedMark:
		row.Text = w.mask.Text(row.Text)
	case *store.SavedState:
		row.Value = w.mask.JSON(row.Value)
	case *store.SavedFlush:
		row.Outcome = w.mask.Text(row.Outcome)
	}
	return nil
}

func (w *Writer) maskCall(c *store.SavedCall) {
	c.Error, c.Metadata = w.mask.Text(c.Error), w.mask.JSON(c.Metadata)
}

func (w *Writer) message(ctx context.Context, row *store.SavedMessage) error {
	masked := session.Message{Metadata: row.Metadata, Extra: row.Extra, Parts: make([]session.Part, len(row.Parts))}
	for i := range row.Parts {
		masked.Parts[i] = row.Parts[i].Part
	}
	w.mask.Message(&masked)
	row.Metadata, row.Extra = masked.Metadata, masked.Extra
	for i := range row.Parts {
		p := &row.Parts[i].Part
		*p = masked.Parts[i]
		if p.BlobSHA == nil {
			continue
		}
		if err := w.blob(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// blob writes the blob of a part once for the session. A lost one is named all the same: the rest
// of the message can be read.
func (w *Writer) blob(ctx context.Context, p *session.Part) error {
	if w.mask == nil && w.blobs[*p.BlobSHA] {
		return nil
	}
	b, err := w.store.Blob(ctx, *p.BlobSHA)
	if session.CodeOf(err) == session.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if redact.Masks(p.Kind) {
		w.mask.Blob(&b)
	}
	p.BlobSHA = &b.SHA256
	if w.blobs[b.SHA256] {
		return nil
	}
	w.blobs[b.SHA256] = true
	l := store.SavedBlob{Type: store.LineBlob, SHA256: b.SHA256, MediaType: b.MediaType}
	if b.MediaType == session.TextBlob && utf8.Valid(b.Data) {
		l.Text = new(string(b.Data))
	} else {
		l.Base64 = b.Data
	}
	return w.line(&l)
}

// block writes the block that a hash names once for the session.
func (w *Writer) block(ctx context.Context, hash *string) error {
	if *hash == "" || w.mask == nil && w.blocks[*hash] {
		return nil
	}
	b, err := w.store.Block(ctx, *hash)
	if err != nil {
		return err
	}
	if masked := w.mask.Arguments(b.Content); masked != b.Content {
		sum := sha256.Sum256([]byte(masked))
		b.Content, b.Hash = masked, hex.EncodeToString(sum[:])
		*hash = b.Hash
	}
	if w.blocks[b.Hash] {
		return nil
	}
	w.blocks[b.Hash] = true
	return w.line(&b)
}
