package store

import (
	"context"
	"fmt"
	"slices"

	"sessiond/internal/session"
)

// Contents of blobs that Along and EachOf leave where they lie: those over aside bytes, and
// what goes over asideOfOne in one message.
const (
	aside      = 1 << 20
	asideOfOne = 4 << 20
)

// alongBatch is how many messages Along reads at once, without blobs.
const alongBatch = 32

// Along goes from the root of a path to its head, oldest message first, and holds a few at a
// time. Large contents stay where they are: the From of their blobs reads them under the same
// ctx. A message is the caller's. Messages never change, so that it needs no transaction; but a
// purge may take them away meanwhile, which is told behind what was there. Codes: Busy.
func (s *Store) Along(ctx context.Context, head int64, yield func(*session.Message) error) error {
	spans, err := pathSpans(ctx, s, &head)
	if err != nil {
		return err
	}
	for _, sp := range slices.Backward(spans) {
		n, err := s.eachOf(ctx, sp.Session, sp.From, sp.To, yield)
		if err == nil && n <= sp.To-sp.From {
			err = goneMeanwhile(sp.Session)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// StillThere tells whoever read a session piece by piece whether it is there to its end: while
// it is purged its messages go one after the other. Codes: Busy.
func (s *Store) StillThere(ctx context.Context, id session.ID) error {
	_, err := s.Session(ctx, id)
	if session.CodeOf(err) == session.NotFound {
		err = session.Errorf(session.Busy, "session %s was purged while it was read: what was written is not all of it", id)
	}
	return err
}

// EachOf yields a session's own messages of seqs from … to, in order, as Along does.
func (s *Store) EachOf(ctx context.Context, id session.ID, from, to int64, yield func(*session.Message) error) error {
	_, err := s.eachOf(ctx, id, from, to, yield)
	return err
}

// eachOf is EachOf, and tells how many messages there are.
func (s *Store) eachOf(ctx context.Context, id session.ID, from, to int64, yield func(*session.Message) error) (int64, error) {
	return s.eachBatch(ctx, id, from, to, alongBatch, func(m *session.Message) error {
		if err := s.readAside(ctx, m); err != nil {
			return err
		}
		return yield(m)
	})
}

// eachBatch yields a session's own messages without blobs, of which it reads so many at once, and
// counts them. Codes: Busy (some were purged meanwhile).
func (s *Store) eachBatch(ctx context.Context, id session.ID, from, to, batch int64, yield func(*session.Message) error) (n int64, err error) {
	var before, after int64
	if err := s.get(ctx, &before, messagesInRange, id, from, to); err != nil {
		return 0, fmt.Errorf("messages of %s: %w", id, err)
	}
	for at := from; at <= to; at += batch {
		upto := min(to, at+batch-1)
		msgs, err := collectMessages(ctx, s, messagesOfRange, id, at, upto, 0)
		if err == nil && len(msgs) > 0 {
			_, err = handOutParts(ctx, s, msgs, partsOfRange, id, at, upto)
		}
		if err != nil {
			return n, fmt.Errorf("messages of %s: %w", id, err)
		}
		for i := range msgs {
			if err := yield(&msgs[i]); err != nil {
				return n, err
			}
			n++
		}
	}
	err = s.get(ctx, &after, messagesInRange, id, from, to)
	if err == nil && (n != before || after != before) { // one may have lost its parts before they were read
		err = goneMeanwhile(id)
	}
	return n, err
}

const messagesInRange = `SELECT COUNT(*) FROM messages WHERE session_id = ? AND seq BETWEEN ? AND ?`

func goneMeanwhile(id session.ID) error {
	return session.Errorf(session.Busy, "messages of session %s are gone, and what was read of it is not whole: it was purged meanwhile; if it was not, run `sessiond doctor`", id)
}

// readAside reads the blobs of a message, the large ones but for their contents. One that is
// not there is left out: doctor tells of that.
func (s *Store) readAside(ctx context.Context, m *session.Message) error {
	held := int64(0)
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.BlobSHA == nil {
			continue
		}
		b, err := s.blobFrom(ctx, *p.BlobSHA)
		if err == nil && b != nil && b.Size <= aside && held+b.Size <= asideOfOne {
			held += b.Size
			b, err = readBlob(ctx, s, *p.BlobSHA)
		}
		if err != nil {
			return err
		}
		p.Blob = b
	}
	return nil
}
