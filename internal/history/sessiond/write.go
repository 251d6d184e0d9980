package sessiond

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"unicode/utf8"

	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Writer writes sessions as lines of JSON. It holds a few messages or one blob at a time.
type Writer struct {
	store    *store.Store
	mask     *redact.Masker
	out      *bufio.Writer
	begun    bool
	sessions int
	written  int // messages
	session  session.ID
	blobs    map[string]string // written for the present session, and under which hash
	blocks   map[string]bool
	contexts []int64                      // rows of the present session's contexts, in order
	rows     map[int64]session.MessageRef // of the newest messages, for the results that answer them
	recent   []int64
}

// NewWriter makes a writer, whose Close flushes it. A mask that is not nil masks what is
// written; ids, bytes and structure stay.
func NewWriter(out io.Writer, s *store.Store, mask *redact.Masker) *Writer {
	return &Writer{store: s, mask: mask, out: bufio.NewWriterSize(out, 64<<10)}
}

// Session writes a session whole, after the sessions that it was forked from. Codes: NotFound,
// Busy (it was purged meanwhile).
func (w *Writer) Session(ctx context.Context, id session.ID) error {
	snap, err := w.store.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	if err := w.begin(); err != nil {
		return err
	}
	w.sessions++
	w.session, w.blobs, w.blocks, w.contexts = id, map[string]string{}, map[string]bool{}, nil
	w.rows, w.recent = map[int64]session.MessageRef{}, nil
	w.mask.Session(&snap.Session)
	if err := w.line(sessionLineOf(snap)); err != nil {
		return err
	}
	for _, write := range []func(context.Context, *store.Snapshot) error{w.messages, w.compactions, w.frozen, w.handedOut, w.calls, w.sets} {
		if err := write(ctx, snap); err != nil {
			return err
		}
	}
	if snap.PurgedAt != nil {
		return nil
	}
	return w.store.CheckNotPurged(ctx, id)
}

// StoreData writes what belongs to the store and to none of its sessions, after all of them.
func (w *Writer) StoreData(ctx context.Context) error {
	if err := w.begin(); err != nil {
		return err
	}
	return w.store.EachStoreData(ctx, func(d *store.StoreData) error {
		l := storeLine{Type: lineStore, StoreData: *d}
		for i := range d.Keys {
			l.Keys[i].Label = w.mask.Text(d.Keys[i].Label)
		}
		for i := range d.Calls {
			l.Calls = append(l.Calls, w.callFields(&d.Calls[i]))
		}
		return w.line(l)
	})
}

// begin writes the first line, once.
func (w *Writer) begin() error {
	if w.begun {
		return nil
	}
	w.begun = true
	return w.line(exportLine{lineExport, string(session.SourceSessiond), Version})
}

// Close writes the last line and flushes.
func (w *Writer) Close() error {
	if err := w.begin(); err != nil {
		return err
	}
	return errors.Join(w.line(endLine{lineEnd, w.sessions}), w.out.Flush())
}

func (w *Writer) line(v any) error {
	raw, err := session.MarshalPlain(v)
	if err != nil {
		return err
	}
	if _, err := w.out.Write(raw); err != nil {
		return err
	}
	return w.out.WriteByte('\n')
}

func (w *Writer) messages(ctx context.Context, snap *store.Snapshot) error {
	return w.store.EachMessage(ctx, w.session, snap.Session.LastSeq, func(m *session.Message) error {
		w.mask.Message(m)
		l := messageLine{
			Type: lineMessage, ID: m.ID, Parent: m.Parent, Kind: m.Kind, Role: m.Role, Origin: m.Origin, Finish: m.Finish, Author: m.Author,
			Tokens: m.Tokens, InContext: m.InContext, Display: m.Display, Provider: m.Provider, Model: m.Model, Dialect: m.Dialect,
			ExternalID: m.ExternalID, Day: m.Day, CreatedAt: m.CreatedAt, Metadata: m.Metadata, Extra: m.Extra, Parts: make([]partLine, len(m.Parts)),
		}
		w.remember(m)
		for i := range m.Parts {
			p := &m.Parts[i]
			l.Parts[i] = partLine{
				Kind: p.Kind, Text: p.Text, ToolName: p.ToolName, CallID: p.CallID, Arguments: p.Arguments, IsError: p.IsError,
				DurationMS: p.DurationMS, Blob: p.BlobSHA, Extra: p.Extra,
			}
			if p.CallPartID != nil {
				call, err := w.refOf(ctx, *p.CallPartID>>10)
				if err != nil {
					return err
				}
				l.Parts[i].Answers = &partRef{store.PartRef{Message: call, Idx: *p.CallPartID & (session.MaxParts - 1)}}
			}
			if p.BlobSHA != nil {
				sha, err := w.blob(ctx, *p.BlobSHA, p.Kind)
				if err != nil {
					return err
				}
				l.Parts[i].Blob = &sha
			}
		}
		w.written++
		return w.line(l)
	})
}

// Messages tells how many messages were written.
func (w *Writer) Messages() int { return w.written }

// nearby is how many messages back a call is known without looking it up.
const nearby = 256

func (w *Writer) remember(m *session.Message) {
	if len(w.recent) == nearby {
		delete(w.rows, w.recent[0])
		w.recent = slices.Delete(w.recent, 0, 1)
	}
	w.rows[m.RowID] = m.ID
	w.recent = append(w.recent, m.RowID)
}

func (w *Writer) refOf(ctx context.Context, row int64) (session.MessageRef, error) {
	if ref, ok := w.rows[row]; ok {
		return ref, nil
	}
	return w.store.RefOf(ctx, row)
}

func (w *Writer) refOfOptional(ctx context.Context, row *int64) (*session.MessageRef, error) {
	if row == nil {
		return nil, nil
	}
	ref, err := w.refOf(ctx, *row)
	return &ref, err
}

func (w *Writer) nameOf(ctx context.Context, compaction *int64) (*numbered, error) {
	if compaction == nil {
		return nil, nil
	}
	ref, err := w.store.RefOfCompaction(ctx, *compaction)
	return compactionName(ref), err
}

// blob writes a blob once for the session and gives the hash under which it stands. One that
// is lost is named all the same: the rest of the message can be read.
func (w *Writer) blob(ctx context.Context, sha string, kind session.PartKind) (string, error) {
	if written, ok := w.blobs[w.blobKey(sha, kind)]; ok {
		return written, nil
	}
	b, err := w.store.Blob(ctx, sha)
	if session.CodeOf(err) == session.NotFound {
		return sha, nil
	}
	if err != nil {
		return "", err
	}
	written := sha
	if redact.Masks(kind) {
		w.mask.Blob(&b)
		if b.SHA256 != sha && w.blobs[w.blobKey(b.SHA256, kind)] != "" {
			return b.SHA256, nil // two became one
		}
		written = b.SHA256
	}
	err = w.writeBlob(&b, kind)
	w.blobs[w.blobKey(sha, kind)], w.blobs[w.blobKey(written, kind)] = written, written
	return written, err
}

// blobKey tells what is masked from what is not: one content may be a text in one part and
// bytes in another.
func (w *Writer) blobKey(sha string, kind session.PartKind) string {
	if w.mask != nil && !redact.Masks(kind) {
		return sha + " bytes"
	}
	return sha
}

func (w *Writer) writeBlob(b *session.Blob, kind session.PartKind) error {
	l := blobLine{Type: lineBlob, SHA256: b.SHA256, MediaType: b.MediaType}
	if mayBeText(b, kind) && utf8.Valid(b.Data) {
		text := string(b.Data)
		l.Text = &text
	} else {
		l.Base64 = b.Data
	}
	return w.line(l)
}

// mayBeText tells whether a blob is written as text where it is one.
func mayBeText(b *session.Blob, kind session.PartKind) bool {
	return !kind.HasBytes() || b.MediaType == session.TextBlob
}

func (w *Writer) compactions(_ context.Context, snap *store.Snapshot) error {
	for i := range snap.Compactions {
		c := &snap.Compactions[i]
		w.mask.Compaction(&c.Compaction)
		if err := w.line(compactionLine{
			Type: lineCompaction, ID: *compactionName(c.Ref), Previous: compactionName(c.From), Strategy: c.Strategy, Trigger: c.Trigger,
			Status: c.Status, Reason: c.Reason, Through: c.Through, FirstKept: c.FirstKept, HiddenTokens: c.HiddenTokens, SummaryTokens: c.SummaryTokens,
			SpanSummary: c.SpanSummary, Summary: c.Summary, PrefixSummary: c.PrefixSummary, Replacement: c.Replacement, Details: c.Details,
			TokensBefore: c.TokensBefore, TokensAfter: c.TokensAfter, MessageCount: c.MessageCount, Provider: c.Provider, Model: c.Model,
			DurationMS: c.DurationMS, CreatedAt: c.CreatedAt, ActivatedAt: c.ActivatedAt,
		}); err != nil {
			return err
		}
	}
	for _, u := range snap.Undos {
		if err := w.line(undoLine{lineUndo, *compactionName(u.Compaction), u.At}); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) frozen(ctx context.Context, snap *store.Snapshot) error {
	return w.store.EachFrozen(ctx, snap.Frozen, func(f *session.Frozen) error {
		message, err := w.refOf(ctx, f.MessageID)
		if err != nil {
			return err
		}
		compaction, err := w.nameOf(ctx, f.CompactionID)
		if err != nil {
			return err
		}
		return w.line(frozenLine{lineFrozen, message, f.Kind, compaction, w.mask.JSON(f.Content)})
	})
}

// handedOut writes the contexts, and before each the blocks that were not written yet.
func (w *Writer) handedOut(ctx context.Context, snap *store.Snapshot) error {
	return w.store.EachContext(ctx, w.session, snap.Contexts.Last, func(c *session.Context) error {
		w.contexts = append(w.contexts, c.RowID)
		l := contextLine{
			Type: lineContext, ID: numbered{w.session, lineContext, int64(len(w.contexts))}, Epoch: c.Epoch, Model: c.Model, Dialect: c.Dialect,
			OverheadTokens: c.OverheadTokens, Tokens: c.Tokens, CreatedAt: c.CreatedAt, Limits: c.Limits,
		}
		var err error
		for _, block := range []struct {
			hash string
			to   *string
		}{{c.SystemHash, &l.System}, {c.InitialHash, &l.Initial}, {c.ToolsHash, &l.Tools}} {
			if *block.to, err = w.block(ctx, block.hash); err != nil {
				return err
			}
		}
		if l.Head, err = w.refOfOptional(ctx, c.HeadID); err != nil {
			return err
		}
		if l.Compaction, err = w.nameOf(ctx, c.CompactionID); err != nil {
			return err
		}
		return w.line(l)
	})
}

func (w *Writer) block(ctx context.Context, hash string) (string, error) {
	if hash == "" || w.mask == nil && w.blocks[hash] {
		return hash, nil
	}
	b, err := w.store.Block(ctx, hash)
	if err != nil {
		return "", err
	}
	if masked := w.mask.Arguments(b.Content); masked != b.Content {
		b.Content, b.Hash = masked, hashOf(masked)
	}
	if w.blocks[b.Hash] {
		return b.Hash, nil
	}
	w.blocks[b.Hash] = true
	return b.Hash, w.line(blockLine{lineBlock, b.Hash, b.Kind, b.Content, b.CreatedAt})
}

func (w *Writer) calls(ctx context.Context, snap *store.Snapshot) error {
	return w.store.EachCall(ctx, w.session, snap.Calls.Last, func(c *session.Call) error {
		l := callLine{Type: lineCall, callFields: w.callFields(c)}
		var err error
		if l.Message, err = w.refOfOptional(ctx, c.MessageID); err != nil {
			return err
		}
		if l.Compaction, err = w.nameOf(ctx, c.CompactionID); err != nil {
			return err
		}
		if c.ContextID != nil {
			if at, found := slices.BinarySearch(w.contexts, *c.ContextID); found {
				l.Context = &numbered{w.session, lineContext, int64(at) + 1}
			}
		}
		return w.line(l)
	})
}

func (w *Writer) sets(_ context.Context, snap *store.Snapshot) error {
	for _, m := range snap.Marks {
		if err := w.line(markLine{lineMark, m.Message, m.Kind, w.mask.Text(m.Text), m.At}); err != nil {
			return err
		}
	}
	for _, s := range snap.States {
		if err := w.line(stateLine{lineState, s.Name, s.Revision, w.mask.JSON(s.Value), s.UpdatedAt, s.DeletedAt}); err != nil {
			return err
		}
	}
	for _, f := range snap.Flushes {
		if err := w.line(flushLine{lineFlush, compactionName(f.Compaction), f.At, w.mask.Text(f.Outcome)}); err != nil {
			return err
		}
	}
	return nil
}
