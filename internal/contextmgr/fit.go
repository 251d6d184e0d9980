package contextmgr

import "sessiond/internal/session"

// Dialects is what the manager asks of the forms of request: what a provider accepts, counts and caches.
type Dialects interface {
	// Fit changes a context to what its provider accepts.
	Fit(in session.FitRequest) session.Fitted
	// ResendsReasoning reports whether replies go back in a dialect with their reasoning.
	ResendsReasoning(dialect string) bool
	// CacheReach returns in how many blocks before a mark a provider searches its cache; 0: it needs no marks for that.
	CacheReach(dialect string) int
}

// fit changes the items to what the provider accepts.
func (d *Draft) fit(in *Material) {
	if in.Dialects == nil {
		return
	}
	fitted := in.Dialects.Fit(session.FitRequest{
		Dialect: in.Dialect, Provider: in.Provider, Model: in.Model, Modalities: in.Modalities,
		Messages: d.Messages(), Shrink: in.Shrink,
	})
	for _, note := range fitted.Notes {
		text := note.Text
		if note.From >= 0 {
			text = d.Items[note.From].name() + ": " + text
		}
		if note.Loss {
			d.Losses = append(d.Losses, text)
		} else {
			d.Adjustments = append(d.Adjustments, text)
		}
	}
	items := d.Items[:0] // no item moves back, unless one is added in front
	if len(fitted.Messages) > 0 && fitted.Messages[0].From < 0 {
		items = make([]Item, 0, len(fitted.Messages))
	}
	for _, m := range fitted.Messages {
		item := Item{Kind: ItemLead}
		if m.From >= 0 {
			item = d.Items[m.From]
			item.ownsParts = false // the dialect may share parts
		}
		item.Message, item.Changed = *m.Message, item.Changed || m.Changed
		items = append(items, item)
	}
	d.Items = items
}

// shrinkImage implements session.Shrink. It caches its results: a stored image never changes.
func (m *Manager) shrinkImage(original *session.Blob, encode func([]byte) ([]byte, bool)) (*session.Blob, bool) {
	m.shrinks.Lock()
	defer m.shrinks.Unlock()
	small, ok := m.images.get(original.SHA256)
	if ok && original.SHA256 != "" {
		return small, small != nil
	}
	small, size := nil, imageEntrySize
	if data, ok := encode(original.Data); ok {
		small = &session.Blob{SHA256: hashOf(string(data)), Size: int64(len(data)), MediaType: "image/jpeg", Data: data}
		size += len(data)
	}
	m.images.put(original.SHA256, small, size)
	return small, small != nil
}
