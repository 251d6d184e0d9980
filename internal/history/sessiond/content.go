package sessiond

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// content adds a line of a session to the batch. known is false for a kind of a later program.
func (r *reader) content(kind string, raw []byte) (known bool, err error) {
	b := &r.batch
	switch kind {
	case lineBlob:
		err = r.blob(raw)
	case lineMessage:
		err = r.message(raw)
	case lineCompaction:
		err = r.compaction(raw)
	case lineUndo:
		var l undoLine
		err = json.Unmarshal(raw, &l)
		b.Undos = append(b.Undos, store.Undo{Compaction: l.Compaction.compaction(), At: l.At})
		r.have.Undos++
	case lineFrozen:
		var l frozenLine
		err = json.Unmarshal(raw, &l)
		b.Frozen = append(b.Frozen, store.RestoreFrozen{
			Frozen: session.Frozen{Kind: l.Kind, Content: l.Content}, Message: l.Message, Compaction: l.Compaction.compaction(),
		})
		r.have.Frozen++
	case lineBlock:
		var l blockLine
		err = json.Unmarshal(raw, &l)
		b.Blocks = append(b.Blocks, store.Block{Hash: l.Hash, Kind: l.Kind, Content: l.Content, CreatedAt: l.CreatedAt})
	case lineContext:
		err = r.context(raw)
	case lineCall:
		err = r.call(raw)
	case lineMark:
		var l markLine
		err = json.Unmarshal(raw, &l)
		b.Marks = append(b.Marks, store.Mark{Message: l.Message, Kind: l.Kind, Text: l.Text, At: l.At})
		r.have.Marks++
	case lineState:
		var l stateLine
		err = json.Unmarshal(raw, &l)
		b.States = append(b.States, store.State{Name: l.Name, Revision: l.Revision, Value: l.Value, UpdatedAt: l.UpdatedAt, DeletedAt: l.DeletedAt})
		r.have.States++
	case lineFlush:
		var l flushLine
		err = json.Unmarshal(raw, &l)
		b.Flushes = append(b.Flushes, store.Flush{Compaction: l.Compaction.compaction(), At: l.At, Outcome: l.Outcome})
		r.have.Flushes++
	default:
		return false, nil
	}
	r.size += len(raw)
	return true, err
}

func (r *reader) blob(raw []byte) error {
	var l blobLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	b := session.Blob{SHA256: l.SHA256, MediaType: l.MediaType, Data: l.Base64}
	if l.Text != nil {
		b.Data = []byte(*l.Text)
	}
	from, err := r.cuts.Content(b.Data)
	if err != nil {
		return err
	}
	if from != nil {
		b.Data, b.From = nil, from
	}
	bytes, err := b.Open()
	if err != nil {
		return err
	}
	sum := sha256.New()
	if b.Size, err = io.Copy(sum, bytes); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != l.SHA256 {
		return fmt.Errorf("the blob is not what its sha256 %q says", clip(l.SHA256))
	}
	r.blobs[l.SHA256] = &b
	return nil
}

func (r *reader) message(raw []byte) error {
	var l messageLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	if l.ID.Session != r.session.ID {
		return fmt.Errorf("message %s stands in session %s", l.ID, r.session.ID)
	}
	if l.ID.Seq <= r.last {
		return fmt.Errorf("message %s stands behind message %d", l.ID, r.last)
	}
	if l.Parent != nil && l.Parent.Session == l.ID.Session && l.Parent.Seq >= l.ID.Seq {
		return fmt.Errorf("message %s follows %s, which comes later", l.ID, *l.Parent)
	}
	if l.CreatedAt.IsZero() {
		return fmt.Errorf("message %s has no created_at", l.ID)
	}
	r.last = l.ID.Seq
	r.have.Messages++
	m := store.RestoreMessage{Message: session.Message{
		SessionID: l.ID.Session, Seq: l.ID.Seq, ID: l.ID, Parent: l.Parent, Kind: l.Kind, Role: l.Role, Origin: l.Origin, Finish: l.Finish,
		Author: l.Author, InContext: l.InContext, Display: l.Display, Provider: l.Provider, Model: l.Model, Dialect: l.Dialect,
		ExternalID: l.ExternalID, Day: l.Day, CreatedAt: l.CreatedAt, Metadata: l.Metadata, Extra: l.Extra, Parts: make([]session.Part, len(l.Parts)),
	}}
	for i := range l.Parts {
		in := &l.Parts[i]
		p := &m.Parts[i]
		*p = session.Part{
			Kind: in.Kind, Text: in.Text, ToolName: in.ToolName, CallID: in.CallID, Arguments: in.Arguments, IsError: in.IsError,
			DurationMS: in.DurationMS, BlobSHA: in.Blob, Extra: in.Extra,
		}
		if in.Blob != nil {
			p.Blob = r.blobs[*in.Blob]
		}
		if in.Answers != nil {
			if m.Answers == nil {
				m.Answers = map[int64]store.PartRef{}
			}
			m.Answers[int64(i)] = in.Answers.PartRef
		}
	}
	r.batch.Messages = append(r.batch.Messages, m)
	r.size += history.Size(&history.Message{Message: m.Message}) // with its blobs
	return nil
}

func (r *reader) compaction(raw []byte) error {
	var l compactionLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	r.have.Compactions++
	r.batch.Compactions = append(r.batch.Compactions, store.NumberedCompaction{
		Ref: l.ID.compaction(), From: l.Previous.compaction(),
		Compaction: session.Compaction{
			Strategy: l.Strategy, Trigger: l.Trigger, Status: l.Status, Reason: l.Reason, Through: l.Through, FirstKept: l.FirstKept,
			HiddenTokens: l.HiddenTokens, SummaryTokens: l.SummaryTokens, SpanSummary: l.SpanSummary, Summary: l.Summary, PrefixSummary: l.PrefixSummary,
			Replacement: l.Replacement, Details: l.Details, TokensBefore: l.TokensBefore, TokensAfter: l.TokensAfter, MessageCount: l.MessageCount,
			Provider: l.Provider, Model: l.Model, DurationMS: l.DurationMS, CreatedAt: l.CreatedAt, ActivatedAt: l.ActivatedAt,
		},
	})
	return nil
}

func (r *reader) context(raw []byte) error {
	var l contextLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	r.have.Contexts++
	r.batch.Contexts = append(r.batch.Contexts, store.RestoreContext{
		Context: session.Context{
			Epoch: l.Epoch, Model: l.Model, Dialect: l.Dialect, SystemHash: l.System, InitialHash: l.Initial, ToolsHash: l.Tools,
			OverheadTokens: l.OverheadTokens, Tokens: l.Tokens, CreatedAt: l.CreatedAt, Limits: l.Limits,
		},
		Head: l.Head, Compaction: l.Compaction.compaction(),
	})
	return nil
}

func (r *reader) call(raw []byte) error {
	var l callLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	r.have.Calls++
	c := store.RestoreCall{
		Call:    l.call(),
		Message: l.Message, Compaction: l.Compaction.compaction(),
	}
	if l.Context != nil {
		c.ContextN = l.Context.N
	}
	r.batch.Calls = append(r.batch.Calls, c)
	return nil
}
