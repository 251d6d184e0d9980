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
// ctx. A message is the caller's.
func (s *Store) Along(ctx context.Context, head int64, yield func(*session.Message) error) error {
	spans, err := pathSpans(ctx, s, &head)
	if err != nil {
		return err
	}
	for _, sp := range slices.Backward(spans) {
		if err := s.EachOf(ctx, sp.Session, sp.From, sp.To, yield); err != nil {
			return err
		}
	}
	return nil
}

// EachOf yields a session's own messages of seqs from … to, in order, as Along does.
func (s *Store) EachOf(ctx context.Context, id session.ID, from, to int64, yield func(*session.Message) error) error {
	for ; from <= to; from += alongBatch {
		upto := min(to, from+alongBatch-1)
		msgs, err := collectMessages(ctx, s, messagesOfRange, id, from, upto, 0)
		if err == nil && len(msgs) > 0 {
			_, err = handOutParts(ctx, s, msgs, partsOfRange, id, from, upto)
		}
		if err != nil {
			return fmt.Errorf("messages of %s: %w", id, err)
		}
		for i := range msgs {
			if err := s.readAside(ctx, &msgs[i]); err != nil {
				return err
			}
			if err := yield(&msgs[i]); err != nil {
				return err
			}
		}
	}
	return nil
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
