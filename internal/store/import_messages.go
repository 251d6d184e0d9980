package store

import (
	"fmt"
	"slices"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// spot is a stored message of the batch's session, as far as its children need it.
type spot struct{ id, seq, depth, pathTokens int64 }

// find gives the place of an external id; its id is 0 when it is not in the session.
func (im *importer) find(key string) (spot, error) {
	if at, ok := im.rows[key]; ok || key == "" {
		return at, nil
	}
	var at spot
	err := im.row(`SELECT id, seq, depth, path_tokens FROM messages WHERE session_id = ? AND external_id = ? AND external_id <> ''`,
		[]any{string(im.sess.ID), key}, &at.id, &at.seq, &at.depth, &at.pathTokens)
	if err != nil && !noRows(err) {
		return spot{}, err
	}
	if at.id != 0 {
		im.rows[key] = at
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

// lookUp finds at once which of the batch's messages are here, and their parents.
func (im *importer) lookUp() error {
	keys := make([]string, 0, len(im.batch.Messages)+1)
	want := func(key string) {
		if _, ok := im.rows[key]; !ok && key != "" {
			im.rows[key] = spot{}
			keys = append(keys, key)
		}
	}
	for i := range im.batch.Messages {
		m := &im.batch.Messages[i]
		want(m.ExternalID)
		if m.ParentSession == "" {
			want(m.ParentKey)
		}
	}
	if im.res.Created || len(keys) == 0 {
		return nil
	}
	return im.each(im.ctx, func(row scanner) error {
		var key string
		var at spot
		err := row.Scan(&key, &at.id, &at.seq, &at.depth, &at.pathTokens)
		im.rows[key] = at
		return err
	}, messagesByKeys, string(im.sess.ID), string(session.JSONOf(keys)))
}

const messagesByKeys = `
	SELECT m.external_id, m.id, m.seq, m.depth, m.path_tokens FROM json_each(?2) k
	CROSS JOIN messages m ON m.session_id = ?1 AND m.external_id = k.value AND m.external_id <> ''`

// messages stores the messages that are not here. Their rows are numbered here and inserted
// many at a time; so nothing reads them before they are flushed.
func (im *importer) messages() error {
	if err := im.lookUp(); err != nil {
		return err
	}
	var last int64
	if err := im.row(`SELECT seq FROM sqlite_sequence WHERE name = 'messages'`, nil, &last); err != nil && !noRows(err) {
		return fmt.Errorf("number the messages: %w", err)
	}
	in := inserter{
		importer: im, last: last,
		rows:    bulk{tx: im.tx, table: "messages", columns: "id, " + messageInsertColumns, checked: im.opt.Storable != nil},
		parts:   bulk{tx: im.tx, table: "parts", columns: partInsertColumns, checked: im.opt.Storable != nil},
		touched: bulk{tx: im.tx, table: "touched_files", columns: touchedInsertColumns, unless: " ON CONFLICT DO NOTHING", checked: im.opt.Storable != nil},
	}
	for i := range im.batch.Messages {
		if err := in.message(i); err != nil {
			return err
		}
	}
	return in.flush()
}

// inserter numbers the messages of a batch and inserts them.
type inserter struct {
	*importer
	last                 int64 // row
	rows, parts, touched bulk
	run                  run
}

func (in *inserter) flush() error {
	for _, b := range []*bulk{&in.rows, &in.parts, &in.touched} {
		if err := b.flush(); err != nil {
			return err
		}
	}
	return nil
}

func (in *inserter) message(i int) error {
	given := &in.batch.Messages[i]
	m := &given.Message
	if at, err := in.find(m.ExternalID); err != nil {
		return err
	} else if at.id != 0 {
		in.res.Duplicates += max(given.Records, 1)
		return nil
	}
	at, err := in.placeOf(given)
	if err != nil {
		return err
	}
	if !sameID(at.id, in.sess.HeadID) {
		in.turned = true
	}
	m.CreatedAt = live(in.tx, m)
	in.settle(&in.sess, at, m)
	in.last++
	m.RowID = in.last
	in.rows.values = addMessage(append(in.rows.values, engine.Int(m.RowID)), m)
	if err := in.rows.end(); err != nil {
		return err
	}
	in.run.next(m)
	for j := range m.Parts {
		if err := in.part(m, j); err != nil {
			return err
		}
	}
	if err := in.touch(i); err != nil {
		return err
	}
	progress(&in.sess, m)
	if m.ExternalID != "" {
		in.importer.rows[m.ExternalID] = spot{id: m.RowID, seq: m.Seq, depth: m.Depth, pathTokens: m.PathTokens}
	}
	in.res.Messages++
	return nil
}

func (in *inserter) placeOf(m *ImportMessage) (place, error) {
	if m.ParentKey == "" {
		return place{}, nil
	}
	if m.ParentSession == "" || m.ParentSession == in.sess.ID {
		at, err := in.find(m.ParentKey)
		if err != nil || at.id != 0 {
			return place{id: &at.id, session: in.sess.ID, seq: at.seq, depth: at.depth + 1, pathTokens: at.pathTokens}, err
		}
	}
	parent, err := in.mustFindIn(m.ParentSession, "the parent of "+m.ExternalID, m.ParentKey)
	if err != nil {
		return place{}, err
	}
	ref, err := refOf(in.ctx, in.tx, parent)
	if err != nil {
		return place{}, err
	}
	if err := in.share(in.sess, parent); err != nil {
		return place{}, err
	}
	return in.placeAfter(ref)
}

func (in *inserter) part(m *session.Message, j int) error {
	placePart(m, j)
	p := &m.Parts[j]
	switch p.Kind {
	case session.PartToolCall:
		in.run.called(p)
	case session.PartToolResult:
		var found bool
		if p.CallPartID, found = in.run.callOf(p.CallID); !found && p.CallID != "" {
			if err := in.flush(); err != nil { // the path may lead through rows that wait
				return err
			}
			var err error
			if p.CallPartID, _, err = in.callOnPath(in.run.before, sought{id: p.CallID}, in.run.answered); err != nil {
				return fmt.Errorf("find call %q: %w", p.CallID, err)
			}
		}
		in.run.answer(p)
	}
	if err := in.insertBlob(p.Blob); err != nil {
		return err
	}
	in.parts.values = addPart(in.parts.values, p)
	return in.parts.end()
}

func (in *inserter) touch(i int) error {
	if in.opt.Touched == nil {
		return nil
	}
	m, files := &in.batch.Messages[i].Message, in.batch.Messages[i].files
	if in.sess.Directory != in.batch.Session.Directory { // it is the stored one that counts
		files = in.opt.Touched(m, in.sess.Directory)
	}
	for _, f := range files {
		if !slices.Contains(fileOps(), f.Op) {
			return refused("op")
		}
		in.touched.values = append(in.touched.values, text(f.Path), engine.Int(m.RowID), text(f.Op), text(in.sess.ID))
		if err := in.touched.end(); err != nil {
			return err
		}
	}
	return nil
}

// run is a line of messages of one batch, each following the one before it, in which results
// find their calls as tx.callOf does: the nearest that is not answered, and of several in one
// message the first.
type run struct {
	before   *session.MessageRef // the line's first message follows it
	last     *session.MessageRef
	calls    map[string][]callAt // by call id, in order
	answered map[int64]bool      // parts
}

type callAt struct{ message, part int64 }

// next takes the line on to m, or begins another one.
func (r *run) next(m *session.Message) {
	if r.last == nil || m.Parent == nil || *m.Parent != *r.last {
		*r = run{before: m.Parent, calls: map[string][]callAt{}, answered: map[int64]bool{}}
	}
	r.last = &m.ID
}

func (r *run) called(p *session.Part) {
	if p.CallID != "" {
		r.calls[p.CallID] = append(r.calls[p.CallID], callAt{p.MessageID, p.RowID})
	}
}

func (r *run) answer(p *session.Part) {
	if p.CallPartID != nil {
		r.answered[*p.CallPartID] = true
	}
}

func (r *run) callOf(id string) (part *int64, found bool) {
	calls := r.calls[id]
	var best *callAt
	for i := len(calls) - 1; i >= 0; i-- {
		c := &calls[i]
		if best != nil && best.message != c.message {
			break
		}
		if !r.answered[c.part] {
			best = c
		}
	}
	if best == nil {
		return nil, false
	}
	return &best.part, true
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
	if err != nil || l.messageID != nil {
		return err
	}
	id, err := im.mustFindIn(in, what, key)
	if err != nil {
		return err
	}
	if l.compactionID == 0 { // its link is not here yet
		made := importedFork(im.sess.CreatedAt)
		l.compactionID, l.activatedAt = made.compactionID, made.activatedAt
	}
	l.messageID = &id
	return im.saveLink(im.sess.ID, l)
}
