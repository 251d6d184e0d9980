package history

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strconv"

	"sessiond/internal/session"
)

// mend puts back what was cut out of a batch's lines: a part's text, or its bytes, as a content
// that the store reads out of the file; anything else here. aside tells that there is such a
// content: the file must stay open until the batch is stored. Codes: Busy (the file changed, or
// a decoder could not do with a line that was cut: then it is errMangled).
func (c *Cuts) mend(b *Batch) (aside bool, err error) {
	if c == nil || len(c.at) == 0 {
		return false, nil
	}
	m := mending{Cuts: c, err: c.err}
	for i := range b.Messages {
		m.message(&b.Messages[i])
	}
	for i := range b.Compactions {
		o := &b.Compactions[i]
		m.texts(&o.Reason, &o.SpanSummary, &o.Summary, &o.PrefixSummary)
		m.values(&o.Replacement, &o.Details)
	}
	for i := range b.Marks {
		m.texts(&b.Marks[i].Text)
	}
	for i := range b.Calls {
		m.texts(&b.Calls[i].Error)
		m.values(&b.Calls[i].Metadata)
	}
	m.texts(&b.Session.Title, &b.Session.Directory)
	m.values(&b.Session.Metadata)
	if b.Title != nil {
		m.texts(b.Title)
	}
	if b.Fields != nil {
		m.values(&b.Fields.Metadata)
	}
	if b.Cursor != nil {
		m.values(&b.Cursor.State)
	}
	if errors.Is(m.err, errMangled) {
		m.err = session.Errorf(session.Busy, "%w", errMangled)
	}
	return m.aside, m.err
}

// mending carries a batch through mend.
type mending struct {
	*Cuts
	aside bool
	err   error
}

func (m *mending) message(in *Message) {
	m.texts(&in.Author, &in.Provider, &in.Model)
	m.values(&in.Metadata, &in.Extra)
	for i := range in.Parts {
		p := &in.Parts[i]
		m.texts(&p.ToolName, &p.CallID, &p.Arguments)
		m.values(&p.Extra)
		switch {
		case p.Blob != nil:
			m.texts(&p.Text)
			if from := m.content(p.Blob.Data); from != nil {
				p.Blob, p.BlobSHA = &session.Blob{MediaType: p.Blob.MediaType, From: from}, nil
			}
		case len(p.Text) > session.BlobThreshold:
			if from := m.content([]byte(p.Text)); from != nil {
				p.Text, p.Blob = "", &session.Blob{MediaType: session.TextBlob, From: from}
			}
		default:
			m.texts(&p.Text)
		}
	}
}

// Content gives what a text, or bytes that were decoded from base64, stand for: nil if that is b.
// For a source that makes blobs itself.
func (c *Cuts) Content(b []byte) (session.Content, error) {
	all, err := c.pieces(b)
	if err != nil || all == nil {
		return nil, err
	}
	return &spliced{c, all}, nil
}

// content gives what b stands for, nil if that is b.
func (m *mending) content(b []byte) session.Content {
	from, err := m.Content(b)
	if m.failed(err) || from == nil {
		return nil
	}
	m.aside = true
	return from
}

func (m *mending) texts(texts ...*string) {
	for _, text := range texts {
		if len(*text) <= markerSize {
			continue
		}
		whole, err := m.Whole([]byte(*text))
		if !m.failed(err) && len(whole) != len(*text) {
			*text = string(whole)
		}
	}
}

func (m *mending) values(values ...*session.JSON) {
	for _, value := range values {
		if len(*value) <= markerSize {
			continue
		}
		whole, err := m.Whole(*value)
		if !m.failed(err) {
			*value = whole
		}
	}
}

func (m *mending) failed(err error) bool {
	if m.err == nil {
		m.err = err
	}
	return err != nil
}

// dataSize gives the size of bytes, of which the middle may be cut out.
func dataSize(b []byte) int {
	if len(b) < usualKeep {
		return len(b)
	}
	at := bytes.Index(b, innerMarker)
	const inner = (markerSize + hintSize + nameSize + sizeSize) / 4 * 3
	if at < 0 || len(b) < at+inner {
		return len(b)
	}
	token := base64.StdEncoding.EncodeToString(b[at : at+inner])
	size, err := strconv.ParseInt(token[len(token)-sizeSize:], 16, 64)
	if err != nil {
		return len(b)
	}
	return len(b) - inner + int(size/4*3)
}
