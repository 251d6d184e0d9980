package store

import "sessiond/internal/session"

// spot is a stored message of the batch's session, as far as its children need it.
type spot struct{ id, seq, depth, pathTokens int64 }

// find returns the place of an external id; its id is 0 when it is not in the session.
func (im *importer) find(key string) (spot, error) {
	if at, ok := im.spots[key]; ok || key == "" || im.res.Created {
		return at, nil
	}
	var at spot
	err := im.row(`SELECT id, seq, depth, path_tokens FROM messages WHERE session_id = ? AND external_id = ? AND external_id <> ''`,
		[]any{string(im.sess.ID), key}, &at.id, &at.seq, &at.depth, &at.pathTokens)
	if err != nil && !noRows(err) {
		return spot{}, err
	}
	if at.id != 0 {
		im.spots[key] = at
	}
	return at, nil
}

func (im *importer) mustFind(what, key string) (int64, error) {
	at, err := im.find(key)
	if err == nil && at.id == 0 {
		err = session.Errorf(session.Invalid, "%s names message %q, which is not in session %s", what, key, im.sess.ID)
	}
	return at.id, err
}

// mustFindIn is mustFind in another session; "" is the batch's own.
func (im *importer) mustFindIn(in session.ID, what, key string) (id int64, err error) {
	if in == "" || in == im.sess.ID {
		return im.mustFind(what, key)
	}
	var doomed bool
	err = im.row(`SELECT id, EXISTS (SELECT 1 FROM purging WHERE session_id = m.session_id) FROM messages m
		WHERE session_id = ? AND external_id = ? AND external_id <> ''`, []any{in, key}, &id, &doomed)
	if doomed {
		return 0, session.Errorf(session.Conflict, "%s names message %q of session %s, which is being purged: import again when it is gone", what, key, in)
	}
	if noRows(err) {
		err = session.Errorf(session.Invalid, "%s names message %q, which is not in session %s", what, key, in)
	}
	return id, err
}

// messages stores the messages that are not in the database.
func (im *importer) messages() error {
	var line []*session.Message // each follows the one before it
	for i := range im.batch.Messages {
		given := &im.batch.Messages[i]
		m := &given.Message
		if known, err := im.find(m.ExternalID); err != nil {
			return err
		} else if known.id != 0 {
			im.res.Duplicates += max(given.Records, 1)
			continue
		}
		at, err := im.placeOf(given)
		if err != nil {
			return err
		}
		if !sameID(at.id, im.sess.HeadID) {
			im.turned = true
		}
		if n := len(line); n > 0 && !sameID(at.id, &line[n-1].RowID) {
			line = line[:0]
		}
		if err := im.insertMessage(&im.sess, at, m, line); err != nil {
			return err
		}
		line = append(line, m)
		if m.ExternalID != "" {
			im.spots[m.ExternalID] = spot{id: m.RowID, seq: m.Seq, depth: m.Depth, pathTokens: m.PathTokens}
		}
		im.res.Messages++
	}
	return nil
}

// placeOf finds the place after a message's parent.
func (im *importer) placeOf(m *ImportMessage) (place, error) {
	if m.ParentKey == "" {
		return place{}, nil
	}
	if m.ParentSession == "" || m.ParentSession == im.sess.ID {
		at, err := im.find(m.ParentKey)
		if err != nil || at.id != 0 {
			return place{id: &at.id, session: im.sess.ID, seq: at.seq, depth: at.depth + 1, pathTokens: at.pathTokens}, err
		}
	}
	parent, err := im.mustFindIn(m.ParentSession, "the parent of "+m.ExternalID, m.ParentKey)
	if err != nil {
		return place{}, err
	}
	ref, err := refOf(im.ctx, im.tx, parent)
	if err != nil {
		return place{}, err
	}
	if err := im.extendSharedPath(im.sess, parent); err != nil {
		return place{}, err
	}
	return im.placeAfter(ref)
}

// calls counts the batch's model calls, each once wherever it was seen before.
func (im *importer) calls() error {
	var sum usageDelta
	for i := range im.batch.Calls {
		given := &im.batch.Calls[i]
		c := &given.Call
		c.SessionID = im.sess.ID
		if given.MessageKey != "" {
			id, err := im.mustFind("a call", given.MessageKey)
			if err != nil {
				return err
			}
			c.MessageID = &id
		}
		if err := im.insertCall(c, &im.sess); err != nil {
			return err
		}
		if c.RowID == 0 {
			im.res.Duplicates += given.Records
			continue
		}
		sum.addCall(c)
		im.res.Calls++
	}
	if im.res.Calls == 0 {
		return nil
	}
	return im.countCalls(&im.sess, &sum)
}

// forkLink notes where an imported fork left its origin: at the parent of its first own
// message, or at its head while it has none. It inherits what was in force when it was made.
func (im *importer) forkLink() error {
	if im.sess.ParentKind != session.ParentFork {
		return nil
	}
	what, key, in := "the head", "", im.batch.HeadSession
	if im.batch.Head != nil {
		key = *im.batch.Head
	}
	for i := range im.batch.Messages {
		if m := &im.batch.Messages[i]; m.ParentSession != "" && m.ParentSession != im.sess.ID {
			what, key, in = "the parent of "+m.ExternalID, m.ParentKey, m.ParentSession
			break
		}
	}
	if key == "" || in == "" || in == im.sess.ID {
		return nil
	}
	l, err := readLink(im.ctx, im.tx, im.sess.ID)
	if err != nil || l.MessageID != nil {
		return err
	}
	id, err := im.mustFindIn(in, what, key)
	if err != nil {
		return err
	}
	if l.CompactionID == 0 { // its link is not here yet
		made := importedFork(im.sess.CreatedAt)
		l.CompactionID, l.ActivatedAt = made.CompactionID, made.ActivatedAt
	}
	l.MessageID = &id
	return im.saveLink(im.sess.ID, l)
}
