package api

import (
	"context"
	"slices"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// conversationItems is what a conversation shows of its session.
type conversationItems struct {
	s      *Server
	sess   session.Session
	hidden store.Hidden
	on     []session.ID // the sessions of its path, the newest first
}

func (s *Server) viewOf(ctx context.Context, sess session.Session) (*conversationItems, error) {
	v := &conversationItems{s: s, sess: sess, on: []session.ID{sess.ID}}
	var err error
	if v.hidden, err = s.Store.Hidden(ctx, sess.HeadID); err != nil || sess.ParentKind != session.ParentFork ||
		sess.HeadID == nil {
		return v, err
	}
	spans, err := s.Store.Spans(ctx, *sess.HeadID)
	for i := range spans {
		if !slices.Contains(v.on, spans[i].Session) {
			v.on = append(v.on, spans[i].Session)
		}
	}
	return v, err
}

// nameKeys sets the external ids of new items that came with ids of their own. Codes: Invalid.
func (v *conversationItems) nameKeys(ctx context.Context, msgs []session.Message) (err error) {
	for i := range msgs {
		if id := msgs[i].ExternalID; id != "" && err == nil {
			msgs[i].ExternalID, err = v.keyFor(ctx, id)
		}
	}
	return err
}

// keyFor returns the external id of a new item with an id of its own. Codes: Invalid (an item has it, or will have it).
func (v *conversationItems) keyFor(ctx context.Context, id string) (string, error) {
	if ref, is := parseMadeID(id); is && ref.Session == v.sess.ID && ref.Seq > v.sess.LastSeq {
		return "", session.Errorf(session.Invalid, "The conversation will give the id %s to another item: leave it out.", id).
			At("items", "not free")
	}
	at, err := v.find(ctx, id)
	switch {
	case err != nil && session.CodeOf(err) != session.NotFound:
		return "", err
	case err == nil && at.shown:
		return "", duplicateItem(id)
	}
	for n := 1; ; n++ {
		key := store.NumberedKey(id, n)
		if taken, err := v.s.Store.MessageByKey(ctx, v.sess.ID, key); err != nil || taken == nil {
			return key, err
		}
	}
}

// foundItem is an item and its place.
type foundItem struct {
	item
	n     int             // in its message
	of    session.Message // which it is of
	row   int64
	on    bool // its message is on the path
	shown bool // and the item is not left out
}

// find returns the item with an id, one that is shown before one that was deleted. Codes: NotFound.
func (v *conversationItems) find(ctx context.Context, id string) (*foundItem, error) {
	var refs []session.MessageRef
	for _, sess := range v.on {
		of, err := v.s.Store.MessagesByWireID(ctx, sess, id)
		if err != nil {
			return nil, err
		}
		refs = append(refs, of...)
	}
	if ref, is := parseMadeID(id); is && slices.Contains(v.on, ref.Session) {
		refs = append(refs, ref)
	}
	var deleted *foundItem
	for _, ref := range refs {
		at, err := v.itemOf(ctx, ref, id)
		switch {
		case err != nil:
			return nil, err
		case at != nil && at.shown:
			return at, nil
		case at != nil && deleted == nil:
			deleted = at
		}
	}
	if deleted == nil {
		return nil, noItem(id)
	}
	return deleted, nil
}

// itemOf returns the item of a message that has an id; nil: there is none.
func (v *conversationItems) itemOf(ctx context.Context, ref session.MessageRef, id string) (*foundItem, error) {
	m, err := v.s.Store.LargeTreeMessage(ctx, v.sess.ID, ref, v.s.reserveLarge)
	if session.CodeOf(err) == session.NotFound || session.CodeOf(err) == session.Invalid {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := itemsOf(&m)
	n := slices.IndexFunc(all, func(it item) bool { return it.id == id })
	if err != nil || n < 0 {
		return nil, err
	}
	at := &foundItem{item: all[n], n: n, of: m, row: m.RowID}
	if v.sess.HeadID != nil {
		at.on, err = v.s.Store.OnPath(ctx, *v.sess.HeadID, at.row)
	}
	at.shown = at.on && !hides(v.hidden, &at.item)
	return at, err
}

func noItem(id string) error {
	return session.Errorf(session.NotFound, "Item with id '%s' not found.", jsonx.Clip(id))
}

// itemPage collects a page of a conversation's items.
type itemPage struct {
	v     *conversationItems
	most  int
	page  store.MessagePage
	items []item
	size  int
	more  bool // others follow
	ended bool // no message is left to read
}

// begin continues behind an item. Where that is no longer on the path, older and newer ones are told apart by its age.
// Codes: NotFound.
func (l *itemPage) begin(ctx context.Context, after string) error {
	at, err := l.v.find(ctx, after)
	if err != nil {
		return err
	}
	if at.on {
		all, err := itemsOf(&at.of)
		if err != nil {
			return err
		}
		rest := all[at.n+1:]
		if l.page.Descending {
			rest = all[:at.n]
		}
		l.from(at.message)
		l.add(rest)
		return nil
	}
	nearest, err := l.v.s.Store.NearestOn(ctx, l.v.sess.HeadID, at.row)
	switch {
	case err != nil:
		return err
	case nearest == nil:
		l.ended = l.page.Descending
		return nil
	case l.page.Descending:
		m, err := l.v.s.Store.LargeTreeMessage(ctx, l.v.sess.ID, *nearest, l.v.s.reserveLarge)
		if err != nil {
			return err
		}
		all, err := itemsOf(&m)
		if err != nil {
			return err
		}
		l.from(*nearest)
		l.add(all)
		return nil
	}
	l.from(*nearest)
	return nil
}

// from begins the next reading behind a message.
func (l *itemPage) from(ref session.MessageRef) {
	if l.page.Descending {
		l.page.BeforeRef = &ref
	} else {
		l.page.AfterRef = &ref
	}
}

// add adds the items of a message that are shown, in the order of the page.
func (l *itemPage) add(all []item) {
	if l.page.Descending {
		all = slices.Clone(all)
		slices.Reverse(all)
	}
	for i := range all {
		switch {
		case hides(l.v.hidden, &all[i]):
		case len(l.items) == l.most || l.size >= itemsSize:
			l.more = true
			return
		default:
			l.items = append(l.items, all[i])
			l.size += len(all[i].json)
		}
	}
}

func (l *itemPage) read(ctx context.Context) error {
	for l.page.Limit = l.most + 1; !l.more && !l.ended; l.page.Limit = mostListedItems {
		if l.size >= itemsSize { // what follows may be as large: the next page says whether it is shown
			l.more = true
			return nil
		}
		msgs, more, err := l.v.s.Store.Messages(ctx, l.v.sess.ID, l.page)
		if err != nil {
			return err
		}
		for i := range msgs {
			all, err := itemsOf(&msgs[i])
			if err != nil {
				return err
			}
			if l.add(all); l.more {
				return nil
			}
		}
		if l.ended = !more; more {
			l.from(msgs[len(msgs)-1].ID)
		}
	}
	return nil
}
