package store

import (
	"context"
	"database/sql"
	"io"
	"unicode/utf8"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// pieceSize is the most bytes of a blob in one row: the driver copies what it binds and reads,
// and SQLite copies the row.
const pieceSize = 1 << 20

// pieceEnd returns how many bytes of the rest of a blob are its next piece. It cuts between two
// characters, so that the pieces of a text are texts.
func pieceEnd(rest []byte) int {
	if len(rest) <= pieceSize {
		return len(rest)
	}
	for end := pieceSize; end > pieceSize-utf8.UTFMax; end-- {
		if utf8.RuneStart(rest[end]) {
			return end
		}
	}
	return pieceSize
}

// insertBlob stores a blob that is not in the database yet: its first piece in blobs, the others
// in blob_pieces.
func (t *tx) insertBlob(b *session.Blob) error {
	if b == nil {
		return nil
	}
	if known, err := t.Exists(`SELECT 1 FROM blobs WHERE sha256 = ?`, b.SHA256); err != nil || known {
		return err
	}
	end := pieceEnd(b.Data)
	err := t.Exec(`INSERT INTO blobs (sha256, size, media_type, data) VALUES (?, ?, ?, ?)`, b.SHA256, b.Size, b.MediaType, b.Data[:end])
	for n, rest := 1, b.Data[end:]; err == nil && len(rest) > 0; n, rest = n+1, rest[end:] {
		end = pieceEnd(rest)
		err = t.Exec(`INSERT INTO blob_pieces (sha256, n, data) VALUES (?, ?, ?)`, b.SHA256, n, rest[:end])
	}
	return session.Wrap(err, "insert blob")
}

// Blob reads a blob. Codes: NotFound.
func (s *Store) Blob(ctx context.Context, sha string) (session.Blob, error) {
	b, err := readBlob(ctx, s, sha)
	if err == nil && b == nil {
		err = session.Errorf(session.NotFound, "there is no blob %s", sha)
	}
	if err == nil {
		err = checkComplete(b)
	}
	if err != nil {
		return session.Blob{}, err
	}
	return *b, nil
}

func checkComplete(b *session.Blob) error {
	if b == nil || int64(len(b.Data)) == b.Size {
		return nil
	}
	return session.Errorf(session.Internal, "the blob %s lacks %d of its %d bytes: run `sessiond doctor`", b.SHA256,
		b.Size-int64(len(b.Data)), b.Size)
}

// blobPiece is a piece of a blob; the first one has the blob's size and type.
type blobPiece struct {
	Size      int64        `db:"size"`
	MediaType string       `db:"media_type"`
	Data      sql.RawBytes `db:"data"`
}

// readBlob returns nil for a blob that is not in the database, and as much as there is of one
// that lacks pieces: doctor reports both, and the rest of the message can be read.
func readBlob(ctx context.Context, q engine.Queryer, sha string) (*session.Blob, error) {
	var b *session.Blob
	err := engine.Each(ctx, q, func(p *blobPiece) error {
		if b == nil {
			b = &session.Blob{
				SHA256: sha, Size: p.Size, MediaType: p.MediaType,
				Data: make([]byte, 0, min(p.Size, MaxTextBytes)),
			}
		}
		b.Data = append(b.Data, p.Data...)
		return nil
	}, piecesOfBlob, sha)
	return b, err
}

// readBlobHead is readBlob of about the first most bytes: up to a piece more.
func readBlobHead(ctx context.Context, q engine.Queryer, sha string, most int) (*session.Blob, error) {
	var b *session.Blob
	err := engine.Each(ctx, q, func(p *blobPiece) error {
		if b == nil {
			b = &session.Blob{SHA256: sha, Size: p.Size, MediaType: p.MediaType}
		}
		b.Data = append(b.Data, p.Data...)
		if len(b.Data) >= most {
			return engine.ErrEnough
		}
		return nil
	}, piecesOfBlob, sha)
	return b, err
}

// One statement reads all pieces, so that a purge cannot delete some of them meanwhile.
const piecesOfBlob = `
	SELECT size, media_type, data FROM blobs WHERE sha256 = ?1
	UNION ALL SELECT * FROM (SELECT 0, '', data FROM blob_pieces WHERE sha256 = ?1 ORDER BY n) AS pieces`

// readBlobs reads the blobs of a message's parts.
func readBlobs(ctx context.Context, q engine.Queryer, m *session.Message) error {
	for i := range m.Parts {
		if p := &m.Parts[i]; p.BlobSHA != nil {
			var err error
			if p.Blob, err = readBlob(ctx, q, *p.BlobSHA); err != nil {
				return err
			}
		}
	}
	return nil
}

func readAllBlobs(ctx context.Context, q engine.Queryer, msgs []session.Message) error {
	for i := range msgs {
		if err := readBlobs(ctx, q, &msgs[i]); err != nil {
			return err
		}
	}
	return nil
}

// readHeads reads the beginnings of a message's blobs and shortens its parts.
func readHeads(ctx context.Context, q engine.Queryer, m *session.Message, head session.Head) (err error) {
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.BlobSHA != nil {
			most := head.Text
			if p.Kind.HasBytes() {
				most = head.Bytes
			}
			if p.Blob, err = readBlobHead(ctx, q, *p.BlobSHA, most); err != nil {
				return err
			}
			if p.Blob != nil {
				p.Cut = p.Blob.Size - int64(len(p.Blob.Data))
			}
		}
		p.Shorten(head)
	}
	return nil
}

// WritePart writes the content of a message's part: its text or bytes, and the arguments of a call. It reads a large
// one piece by piece, so that no statement is open while out is slow. begin is called before, with the beginning.
// Codes: NotFound.
func (s *Store) WritePart(ctx context.Context, ref session.MessageRef, idx int, out io.Writer,
	begin func(p *session.Part, head []byte),
) error {
	msgs, err := readRangeRows(ctx, s, ref.Session, ref.Seq, ref.Seq)
	if err != nil {
		return err
	}
	if len(msgs) == 0 || idx < 0 || idx >= len(msgs[0].Parts) {
		return session.Errorf(session.NotFound, "there is no part %d of message %s", idx, ref)
	}
	p := &msgs[0].Parts[idx]
	text := p.Text + p.Arguments
	if text == "" && p.BlobSHA == nil {
		text = string(p.Extra)
	}
	if p.BlobSHA == nil {
		begin(p, []byte(text))
		_, err := io.WriteString(out, text)
		return err
	}
	for n := 0; ; n++ {
		piece, err := engine.First[[]byte](ctx, s, `SELECT data FROM blobs WHERE sha256 = ?1 AND ?2 = 0
			UNION ALL SELECT data FROM blob_pieces WHERE sha256 = ?1 AND n = ?2`, *p.BlobSHA, n)
		if err != nil || piece == nil {
			return err
		}
		if n == 0 {
			begin(p, *piece)
			_, err = io.WriteString(out, text)
		}
		if err == nil {
			_, err = out.Write(*piece)
		}
		if err != nil {
			return err
		}
	}
}

// readCompleteBlobs is readBlobs for an export. Codes: Internal (a blob lacks bytes).
func readCompleteBlobs(ctx context.Context, q engine.Queryer, m *session.Message) error {
	err := readBlobs(ctx, q, m)
	for i := range m.Parts {
		if err == nil {
			err = checkComplete(m.Parts[i].Blob)
		}
	}
	return err
}

// SizeOf is about how many bytes a message takes in memory and in the database.
func SizeOf(m *session.Message) int {
	size := len(m.Extra)
	for i := range m.Parts {
		p := &m.Parts[i]
		size += len(p.Text) + len(p.Arguments) + len(p.Extra)
		if p.Blob != nil {
			size += max(len(p.Blob.Data), int(p.Blob.Size))
		}
	}
	return size
}
