package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"sessiond/internal/session"
)

// pieceSize is the most that a row holds of a blob, in bytes: the driver copies what it binds
// and what it reads, and SQLite makes a copy of the row.
const pieceSize = 1 << 20

// pieceEnd gives how many bytes of a blob's rest are its next piece. A character is never cut,
// so that the pieces of a text are texts; bytes that are none are cut the same way.
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

// cutPieces yields the pieces of a blob that is to be stored, at least one. A piece is the
// caller's until it returns.
func cutPieces(b *session.Blob, yield func(n int64, piece []byte) error) error {
	if b.From == nil {
		rest := b.Data
		for n := int64(0); n == 0 || len(rest) > 0; n++ {
			end := pieceEnd(rest)
			if err := yield(n, rest[:end]); err != nil {
				return err
			}
			rest = rest[end:]
		}
		return nil
	}
	from, err := b.From.Open()
	if err != nil {
		return err
	}
	buf := make([]byte, pieceSize+1) // whether a piece ends in a character the byte behind it tells
	have := 0
	for n := int64(0); ; n++ {
		read, err := io.ReadFull(from, buf[have:])
		have += read
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return err
		}
		if n == 0 || have > 0 {
			end := pieceEnd(buf[:have])
			if err := yield(n, buf[:end]); err != nil {
				return err
			}
			have = copy(buf, buf[end:have])
		}
		if ended {
			return nil
		}
	}
}

// insertBlob stores content that is not here yet. What lies elsewhere must still be what was
// measured. Codes: Busy.
func (t *tx) insertBlob(b *session.Blob) error {
	if b == nil {
		return nil
	}
	var known int
	if err := t.row(`SELECT 1 FROM blobs WHERE sha256 = ?`, []any{b.SHA256}, &known); !noRows(err) {
		return err
	}
	sum, size := sha256.New(), int64(0)
	err := cutPieces(b, func(n int64, piece []byte) error {
		if size += int64(len(piece)); size > b.Size {
			return errChanged()
		}
		if b.From != nil {
			_, _ = sum.Write(piece) // a hash's writes do not fail
		}
		var err error
		if n == 0 {
			_, err = t.exec(`INSERT INTO blobs (sha256, size, media_type, data) VALUES (?, ?, ?, ?)`, b.SHA256, b.Size, b.MediaType, piece)
		} else {
			_, err = t.exec(`INSERT INTO blob_pieces (sha256, n, data) VALUES (?, ?, ?)`, b.SHA256, n, piece)
		}
		return err
	})
	if err == nil && b.From != nil && (size != b.Size || hex.EncodeToString(sum.Sum(nil)) != b.SHA256) {
		err = errChanged()
	}
	if err != nil {
		return fmt.Errorf("insert blob: %w", err)
	}
	return nil
}

// sizeOfBlob is what storing a blob is thought to take, in bytes, before it is measured.
func sizeOfBlob(b *session.Blob) int {
	if b == nil {
		return 0
	}
	return max(len(b.Data), int(b.Size))
}

func errChanged() error {
	return session.Errorf(session.Busy, "a large text or its bytes changed where they lie while they were being stored; nothing of it was: try again")
}

// Blob reads a blob. Codes: NotFound.
func (s *Store) Blob(ctx context.Context, sha string) (session.Blob, error) {
	return thereIs(sha)(readBlob(ctx, s, sha))
}

// BlobFrom reads a blob but for its bytes, which its From reads in pieces, under the same ctx:
// whoever copies a large one need not hold it. Codes: NotFound.
func (s *Store) BlobFrom(ctx context.Context, sha string) (session.Blob, error) {
	return thereIs(sha)(s.blobFrom(ctx, sha))
}

func thereIs(sha string) func(*session.Blob, error) (session.Blob, error) {
	return func(b *session.Blob, err error) (session.Blob, error) {
		if err == nil && b == nil {
			err = session.Errorf(session.NotFound, "there is no blob %s", sha)
		}
		if err != nil {
			return session.Blob{}, err
		}
		return *b, nil
	}
}

// blobFrom gives nil for a blob that is not there.
func (s *Store) blobFrom(ctx context.Context, sha string) (*session.Blob, error) {
	b := session.Blob{From: storedBlob{ctx, s, sha}}
	err := s.get(ctx, &b, `SELECT sha256, size, media_type FROM blobs WHERE sha256 = ?`, sha)
	if noRows(err) {
		return nil, nil
	}
	return &b, err
}

// readBlob gives nil for a blob that is not there: doctor tells of that, and the rest of the
// message can be read.
func readBlob(ctx context.Context, q queryer, sha string) (*session.Blob, error) {
	return readBlobUpTo(ctx, q, sha, wholeBlob)
}

// readBlobUpTo is readBlob of the first bytes; the size is that of all.
func readBlobUpTo(ctx context.Context, q queryer, sha string, most int64) (*session.Blob, error) {
	var data []byte
	b, err := eachPiece(ctx, q, sha, most, func(b *session.Blob, piece []byte) error {
		if data == nil {
			data = make([]byte, 0, max(int64(len(piece)), min(b.Size, most, MaxTextBytes)))
		}
		data = append(data, piece...)
		return nil
	})
	if b != nil {
		b.Data = data
	}
	return b, err
}

// wholeBlob is the limit of who reads all of a blob.
const wholeBlob = math.MaxInt64

// eachPiece yields a blob's pieces in order, up to so many bytes. A piece is valid until yield
// returns. It gives nil for a blob that is not there, or was purged while it was read; of one
// that lacks pieces it yields those before: doctor tells of that.
func eachPiece(ctx context.Context, q queryer, sha string, most int64, yield func(b *session.Blob, piece []byte) error) (*session.Blob, error) {
	var b *session.Blob
	size := int64(0)
	take := func(piece []byte) error {
		piece = piece[:min(int64(len(piece)), most-size)]
		size += int64(len(piece))
		return yield(b, piece)
	}
	query, args := firstPiece, []any{sha}
	if most < wholeBlob { // a blob of an earlier version is one piece, of any size
		query, args = beginningOfBlob, []any{most, sha}
	}
	err := q.each(ctx, func(row scanner) error {
		b = &session.Blob{SHA256: sha}
		var piece sql.RawBytes
		if err := row.Scan(&b.Size, &b.MediaType, &piece); err != nil {
			return err
		}
		return take(piece)
	}, query, args...)
	if err != nil || b == nil || size >= min(b.Size, most) {
		return b, err
	}
	err = q.each(ctx, func(row scanner) error {
		if size >= most {
			return errEnough
		}
		var piece sql.RawBytes
		if err := row.Scan(&piece); err != nil {
			return err
		}
		return take(piece)
	}, otherPieces, sha)
	if err == nil && size < min(b.Size, most) {
		var there bool
		if err = q.get(ctx, &there, `SELECT EXISTS (SELECT 1 FROM blobs WHERE sha256 = ?)`, sha); !there {
			return nil, err
		}
	}
	return b, err
}

const (
	firstPiece      = `SELECT size, media_type, data FROM blobs WHERE sha256 = ?`
	beginningOfBlob = `SELECT size, media_type, substr(data, 1, ?) FROM blobs WHERE sha256 = ?`
	otherPieces     = `SELECT data FROM blob_pieces WHERE sha256 = ? ORDER BY n`
	nthPiece        = `SELECT data FROM blob_pieces WHERE sha256 = ? AND n = ?`
)

// storedBlob is a blob's bytes in the database.
type storedBlob struct {
	ctx   context.Context
	store *Store
	sha   string
}

// Open implements session.Content.
func (b storedBlob) Open() (io.Reader, error) { return &pieceReader{storedBlob: b}, nil }

// pieceReader reads a blob piece by piece. Nothing changes a blob, so that it takes a
// statement for each of them and keeps no transaction open between two.
type pieceReader struct {
	storedBlob
	n          int64 // pieces read
	size, read int64
	held, rest []byte // the present piece, and what of it was not given yet
}

func (r *pieceReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.n > 0 && r.read >= r.size {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *pieceReader) next() error {
	there := false
	query, args := firstPiece, []any{r.sha}
	if r.n > 0 {
		query, args = nthPiece, append(args, r.n)
	}
	err := r.store.each(r.ctx, func(row scanner) error {
		there = true
		var mediaType string
		var piece sql.RawBytes
		to := []any{&r.size, &mediaType, &piece}
		if r.n > 0 {
			to = to[2:]
		}
		err := row.Scan(to...)
		r.held = append(r.held[:0], piece...)
		return err
	}, query, args...)
	if err != nil {
		return err
	}
	if !there {
		return session.Errorf(session.Busy, "the blob %s breaks off: it was purged while it was read, or else `sessiond doctor` says what is wrong", r.sha)
	}
	r.n, r.read, r.rest = r.n+1, r.read+int64(len(r.held)), r.held
	return nil
}
