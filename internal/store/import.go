package store

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sessiond/internal/engine"
	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// ImportBatch is a piece of another program's history, stored in one transaction. Messages
// name one another by their external ids. One that names no session stores its cursor alone:
// of a file that was read and holds nothing to keep.
type ImportBatch struct {
	Session     NewSession // used when the source's session is not here yet
	ID          session.ID // of a session that is here; "" to find it by source and source id, else make it
	Messages    []ImportMessage
	Compactions []ImportCompaction
	Marks       []ImportMark
	Calls       []ImportCall
	Copied      []string      // external ids of another session's calls that an earlier import may have counted here
	Title       *string       // the source's name for the session, when it is known now
	Head        *string       // external id of the message that is the head after this batch
	HeadSession session.ID    // of a head that lies in the session that this one was forked from; "": in this one
	KeepHead    bool          // the head stays where it is, if there is one: the messages are older than that
	Fields      *ImportFields // what the source says of the session now, beside its title
	Cursor      *ImportCursor // how far the source was read with this batch
	Purged      bool          // bring the session back though it was purged here
	// the file, if it is not known to be the user's own: a session that gets something of it is marked
	Foreign string
	Limits  []session.Limit // of the program, as records that are new said
	// the stored transcript that the batch was read from; 0: none
	Transcript int64
}

// ImportMessage is a message with its place on the source's tree.
type ImportMessage struct {
	session.Message
	ParentKey     string     // external id of the parent; "" for a root
	ParentSession session.ID // of a parent that lies in another session: this one is its fork; "": in this one
	Records       int        // of the source, that it stands for; 0: one
}

// ImportFields are what a source changes of a session after it was imported. What is empty
// stays as it is.
type ImportFields struct {
	Kind        string // chat or automated: of a session that is no sub-agent
	Provider    string
	Model       string
	Directory   string                  // unless it has one
	GitBranch   string                  // unless it has one
	Metadata    session.JSON            // replaces what the session's metadata hold under the source's name
	States      map[string]session.JSON // documents of the session, by names that are the source's own
	FirstTitle  string                  // made of the first message, for a session that has such a title
	ArchivedAt  *session.Time           // unless it is archived here already
	Key         string                  // with Generation
	Generation  int64
	ParentID    session.ID // with ParentKind, unless it has a parent that is not Instead
	ParentKind  string
	Instead     session.ID          // the parent that stood in for the one that is named, "" if none did
	Started     *session.MessageRef // with a parent that it is a child of: the message that started it
	StartedCall string              // and the call in that
	Inherits    *session.Time       // of a fork: NewSession.Inherits, if it is later than what it had
	EndedAt     *session.Time       // with EndReason
	EndReason   string
}

// ImportCompaction is an overlay that the source made. It is known again by its CreatedAt and
// its last represented message, so CreatedAt must be the source's. Key names the record there.
type ImportCompaction struct {
	session.Compaction
	Key          string
	ThroughKey   string // external id of the last represented message
	FirstKeptKey string // "": nothing was kept

	// The sessions that the two lie in, if this one is forked from there; "": this one.
	ThroughSession, FirstKeptSession session.ID

	// Record is the program's own record of it, where it counts on no branch but those that hold
	// the record; without a key it counts wherever its last represented message is.
	Record ImportPlace

	// What of the messages that it keeps it hides besides. Of strategy prune it hides nothing
	// else: it rests on the overlay that was in force when it was made, and what that hid,
	// said and kept stays. Then ThroughKey may be empty.
	Pruned   []ImportOutput
	Replaced []ImportReplaced

	// At is what the head was when it took effect: the context is sized there, where the
	// source does not say how large it was.
	At ImportPlace
}

// ImportOutput names the output of a tool. One that is not there is left out.
type ImportOutput struct {
	Place  ImportPlace // of the message that holds it; without a key it is the nearest on the way to the overlay's end
	CallID string
}

// ImportReplaced is a piece in the middle of a path that a text stands for; an empty one: that
// is hidden. One of which a message is not there, or not on the path, is left out.
type ImportReplaced struct {
	Messages []ImportPlace // in the order of the path
	Text     string
}

// ImportPlace names a message.
type ImportPlace struct {
	Key     string     // external id
	Session session.ID // that it lies in, if this one is forked from there; "": this one
}

// ImportMark labels or pins a message; a label with an empty text is taken away.
type ImportMark struct {
	MessageKey     string
	MessageSession session.ID // that it lies in, if this one is forked from there; "": this one
	Kind           string
	Text           string
}

// ImportCall is a ledger row. Its ExternalID must be the same wherever the call is seen again.
type ImportCall struct {
	session.Call
	MessageKey string // "": the session's only
	Records    int    // of the source, that stand for nothing but the call
}

// ImportCursor remembers how far a source's file was read.
type ImportCursor struct {
	Source     session.Source `db:"source"`
	Path       string         `db:"path"`
	SessionID  session.ID     `db:"session_id"`
	Size       int64          `db:"size"`
	ModifiedAt *session.Time  `db:"modified_at"`
	Offset     int64          `db:"offset"`
	Hash       string         `db:"hash"` // hex sha-256 of the bytes before Offset
	Counts     session.JSON   `db:"counts"`
	State      session.JSON   `db:"state"`
	Mine       *int64         `db:"mine"` // 1: the user's own, 0: not known to be; nil: nobody decided
}

// ImportResult tells what a batch changed.
type ImportResult struct {
	Session    session.Session
	Created    bool
	Messages   int  // stored
	Duplicates int  // records of messages and calls that are known already by their external ids
	Calls      int  // counted
	Purged     bool // it was purged here before: nothing was stored but the cursor
}

// prepareImport measures and checks a batch's messages, which needs no transaction.
// Codes: Invalid, TooLarge.
func (s *Store) prepareImport(b *ImportBatch) error {
	for i := range b.Messages {
		m := &b.Messages[i]
		if err := s.prepare(&m.Message); err != nil {
			return fmt.Errorf("message %q: %w", m.ExternalID, err)
		}
	}
	for i := range b.Compactions {
		s.opt.sizeSummary(&b.Compactions[i].Compaction)
	}
	return nil
}

// Split divides a batch into some of at most so many messages and about so many bytes, which
// can be stored one after the other. All but the messages and their calls comes with the last.
func (b *ImportBatch) Split(messages, bytes int) []ImportBatch {
	runs := splitMessages(b.Messages, messages, bytes, func(m *ImportMessage) int { return SizeOf(&m.Message) })
	pieces, last := make([]ImportBatch, len(runs)), len(runs)-1
	piece := map[string]int{} // of a message
	for i, run := range runs {
		pieces[i] = ImportBatch{ID: b.ID, Session: b.Session, KeepHead: b.KeepHead}
		if i == last {
			pieces[i] = *b
		}
		pieces[i].Messages, pieces[i].Calls = run, nil
		for j := range run {
			piece[run[j].ExternalID] = i
		}
	}
	for _, c := range b.Calls {
		at, ok := piece[c.MessageKey]
		if !ok {
			at = last
		}
		pieces[at].Calls = append(pieces[at].Calls, c)
	}
	return pieces
}

// splitMessages cuts messages into runs of at most so many and about so many bytes, at least one run.
func splitMessages[T any](all []T, most, bytes int, sizeOf func(*T) int) (runs [][]T) {
	begin, size := 0, 0
	for i := range all {
		if n := i - begin; n == most || n > 0 && size > bytes {
			runs = append(runs, all[begin:i:i])
			begin, size = i, 0
		}
		size += sizeOf(&all[i])
	}
	return append(runs, all[begin:])
}

// Import stores a batch. What is known already (messages by external id, calls by theirs,
// compactions by key) is left as it is, so that importing twice changes nothing.
// Codes: Invalid (a parent, mark, call or head names a message that is not there), TooLarge.
func (s *Store) Import(ctx context.Context, b ImportBatch) (ImportResult, error) {
	if err := s.prepareImport(&b); err != nil {
		return ImportResult{}, err
	}
	if b.ID == "" {
		b.Session.Project = folders.Project(orElse(b.Session.Project, b.Session.Directory))
	}
	return write(ctx, s, func(t *tx) (ImportResult, error) {
		var res ImportResult
		im := importer{tx: t, batch: &b, res: &res, spots: map[string]spot{}}
		err := im.run()
		return res, err
	})
}

// importer carries one batch through its transaction.
type importer struct {
	*tx
	batch  *ImportBatch
	res    *ImportResult
	sess   session.Session
	spots  map[string]spot // by external id, as far as looked up
	moved  bool            // the session's row changed in another way than by messages
	turned bool            // the context changed elsewhere than at its end
	keyed  bool            // the session has another key or generation
}

func (im *importer) run() error {
	if err := im.checkTranscript(); err != nil {
		return err
	}
	if im.batch.ID == "" && im.batch.Session.Source == "" {
		return im.saveCursor()
	}
	if err := im.openSession(); err != nil {
		return err
	}
	if im.res.Purged {
		if im.batch.Cursor != nil {
			im.batch.Cursor.State = nil // it may quote what was said
		}
		return im.saveCursor()
	}
	if err := im.noteTranscript(); err != nil {
		return err
	}
	if err := im.saveLimits(); err != nil {
		return err
	}
	first, draft := im.sess.LastSeq+1, im.sess.Draft
	for _, step := range []func() error{
		im.messages, im.forkLink, im.dropCopied, im.calls, im.moveHead, im.compactions, im.marks, im.title, im.fields,
		im.keepOneGenerationOpen,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := im.markForeign(); err != nil {
		return err
	}
	changed := im.res.Created || im.res.Messages > 0 || im.res.Calls > 0 || im.moved
	if changed {
		if err := im.updateOverlay(&im.sess); err != nil {
			return err
		}
		if im.turned {
			im.sess.Epoch++
		}
		if draft && !im.sess.Draft {
			if err := im.countSession(&im.sess, 1); err != nil {
				return err
			}
		}
		if err := im.saveProgress(&im.sess); err != nil {
			return err
		}
	}
	if im.res.Messages > 0 {
		if err := im.event(im.sess.ID, EventMessagesAppended, im.sess.LastSeq,
			session.JSON(fmt.Sprintf(`{"from":%d}`, first))); err != nil {
			return err
		}
	}
	im.res.Session = im.sess
	return im.saveCursor()
}

func (im *importer) openSession() error {
	id := im.batch.ID
	var err error
	if id == "" {
		if id, err = sessionOfSource(im.Ctx, im, im.batch.Session.Source, im.batch.Session.SourceID); err != nil {
			return err
		}
	}
	if id == "" {
		if im.res.Purged, err = im.purgedHere(im.batch.Purged); err != nil || im.res.Purged {
			return err
		}
		im.res.Created = true
		im.batch.Session.ForeignFrom = im.batch.Foreign
		if im.sess, err = im.createSession(im.batch.Session); err == nil {
			err = im.ownTitle()
		}
	} else {
		im.sess, err = readSession(im.Ctx, im.tx, id)
		if here := im.opt.Host; err == nil && im.IsPostgres() && im.batch.Cursor != nil && im.batch.Transcript == 0 &&
			here != "" && im.sess.Host != "" && im.sess.Host != here {
			return session.Errorf(session.Conflict,
				"session %s has the same id in %s and was imported from host %s: if that is this host under an earlier name, "+
					"or shares its files, set `host: %s` in config.yaml; else import this history into a database of its own",
				im.sess.ID, im.sess.Source, im.sess.Host, im.sess.Host)
		}
	}
	if session.CodeOf(err) != session.NotFound {
		return err
	}
	if _, limited := session.ScopeOf(im.Ctx); limited {
		return session.Errorf(session.Conflict, "another owner has a session with this id: begin one with another id")
	}
	// It may have been purged since the batch before this one, or since its reader looked it up.
	gone, asked := im.purgedHere(false)
	if asked != nil {
		return asked
	}
	if im.res.Purged = gone; gone {
		return nil
	}
	return err
}

// ownTitle replaces a title that is the copied prompt of the session that this one was forked from or started by: a
// fork is called after that one until a person says something of its own, a sub-agent not at all.
func (im *importer) ownTitle() error {
	s := &im.sess
	if s.ParentID == "" || s.TitleSource != "first_message" {
		return nil
	}
	parent, err := readSession(im.Ctx, im, s.ParentID)
	switch {
	case session.CodeOf(err) == session.NotFound:
		return nil
	case err != nil:
		return err
	case s.ParentKind == session.ParentFork:
		if s.Title, s.TitleSource = "", ""; parent.Title != "" {
			s.Title = session.CutTitle(parent.Title + " (fork)")
		}
	case s.Title == parent.Title:
		s.Title, s.TitleSource = "", ""
	}
	return nil
}

// purgedHere reports whether the session was here and was purged: it does not come back by itself.
func (im *importer) purgedHere(bringBack bool) (bool, error) {
	in := &im.batch.Session
	names := sourceTombstones(in.Source, in.SourceID, in.CreatedAt)
	if of := in.WrittenOf; of != nil {
		names = append(names, ownTombstone(of.ID, of.CreatedAt))
		names = append(names, sourceTombstones(of.Source, of.SourceID, &of.CreatedAt)...)
	}
	return im.tx.purgedHere(names, bringBack)
}

func (im *importer) moveHead() error {
	if im.batch.Head == nil {
		return nil
	}
	id, err := im.mustFindIn(im.batch.HeadSession, "the head", *im.batch.Head)
	if err != nil || sameID(im.sess.HeadID, &id) {
		return err
	}
	ref, err := refOf(im.Ctx, im.tx, id)
	im.sess.HeadID, im.sess.Head, im.moved, im.turned = &id, &ref, true, true
	if err != nil || ref.Session == im.sess.ID {
		return err
	}
	return im.extendSharedPath(im.sess, id)
}

func (im *importer) marks() error {
	for _, m := range im.batch.Marks {
		id, err := im.mustFindIn(m.MessageSession, "a mark", m.MessageKey)
		if err != nil {
			return err
		}
		switch {
		case m.Kind == MarkPin:
			err = im.setMark(im.sess.ID, id, MarkPin, "", 0, 0)
		case m.Text != "":
			err = im.setLabel(im.sess.ID, id, m.Text)
		default:
			err = im.removeMark(im.sess.ID, id, MarkTag, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (im *importer) saveCursor() error {
	c := im.batch.Cursor
	if c == nil {
		return nil
	}
	c.SessionID = im.sess.ID
	if c.Counts == nil {
		c.Counts = session.JSON(`{}`)
	}
	return im.Exec(`INSERT INTO imports (source, path, session_id, size, modified_at, "offset", hash, counts, state, mine, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (source, path) DO UPDATE SET session_id = excluded.session_id, size = excluded.size, modified_at = excluded.modified_at,
		"offset" = excluded."offset", hash = excluded.hash, counts = excluded.counts, state = excluded.state,
		mine = COALESCE(excluded.mine, imports.mine), updated_at = excluded.updated_at`,
		c.Source, hostPath(im.File(), im.opt.Host, c.Path), c.SessionID, c.Size, c.ModifiedAt, c.Offset, c.Hash, c.Counts,
		c.State, c.Mine, im.Now)
}

const readCursor = `SELECT source, path, session_id, size, modified_at, "offset", hash, counts, state, mine FROM imports WHERE source = ? AND `

// ImportCursor reads how far a source's file was read; nil when it never was.
func (s *Store) ImportCursor(ctx context.Context, source session.Source, path string) (*ImportCursor, error) {
	c, err := engine.First[ImportCursor](ctx, s, readCursor+`path IN (?, ?) ORDER BY path DESC LIMIT 1`, source, path,
		hostPath(s.File(), s.opt.Host, path))
	if c != nil {
		c.Path = path
	}
	return c, err
}

// EachImportCursor visits the cursors of a source's files with paths from first to last, in one statement, in the
// order of the paths. Of two cursors of one path the last one counts.
func (s *Store) EachImportCursor(ctx context.Context, source session.Source, first, last string,
	visit func(c *ImportCursor),
) error {
	own := func(path string) string { return hostPath(s.File(), s.opt.Host, path) }
	prefix := own("")
	return engine.Each(ctx, s, func(c *ImportCursor) error {
		c.Path = strings.TrimPrefix(c.Path, prefix)
		visit(c)
		return nil
	}, readCursor+`(path BETWEEN ? AND ? OR path BETWEEN ? AND ?) ORDER BY path`, source, first, last, own(first), own(last))
}

// hostPath returns the name of a file in imports. On PostgreSQL, which several hosts share, it begins with the
// host's, as in alpha:/home/ana/.codex; without one it is of the only host, or of a copied file.
func hostPath(database, host, path string) string {
	if !engine.IsPostgres(database) || host == "" || strings.HasPrefix(path, TranscriptPaths) {
		return path
	}
	return host + ":" + path
}

// MessageByKey names the message of a session that has this external id, nil if there is none.
func (s *Store) MessageByKey(ctx context.Context, id session.ID, externalID string) (*session.MessageRef, error) {
	return engine.First[session.MessageRef](ctx, s, `SELECT session_id || '.' || seq FROM messages
		WHERE session_id = ? AND external_id = ? AND external_id <> ''`, id, externalID)
}

// ExternalIDs yields the external ids of a session's own messages, in no order that matters.
func (s *Store) ExternalIDs(ctx context.Context, id session.ID, yield func(externalID string)) error {
	return engine.Each(ctx, s, func(externalID *string) error {
		yield(*externalID)
		return nil
	}, `SELECT external_id FROM messages WHERE session_id = ? AND external_id <> ''`, id)
}

// Untitled lists the sessions of a project that a program has not named, nor a person, in no order that matters.
func (s *Store) Untitled(ctx context.Context, source session.Source, project string) ([]session.ID, error) {
	return engine.List[session.ID](ctx, s, `SELECT id FROM sessions WHERE project = ? AND source = ? AND title_source IN ('', 'first_message')
		AND parent_kind <> 'child' AND purged_at IS NULL`, project, source)
}

// SessionOfCall returns the session that owns the call that has this external id, "" if there is
// none.
func (s *Store) SessionOfCall(ctx context.Context, source session.Source, externalID string) (session.ID, error) {
	id, err := engine.Get[session.ID](ctx, s, `SELECT session_id FROM calls WHERE source = ? AND external_id = ? AND external_id <> ''`, source, externalID)
	if engine.NoRows(err) {
		return "", nil
	}
	return id, err
}

// RefusedState is the state of a cursor that says nothing but that its path could not be read.
const RefusedState = `{"refused":true}`

// RootState is the state of a cursor that stands for a folder in which new histories are imported.
const RootState = `{"root":true}`

// ImportedPaths lists the folders in which new histories of a source are imported, none inside another, and the
// imported files that lie in none of them. It does not read the thousands that do: the daemon asks at each scan.
func (s *Store) ImportedPaths(ctx context.Context, source session.Source) (paths []string, err error) {
	roots, err := engine.List[string](ctx, s, importedRoots, source)
	if err != nil {
		return nil, err
	}
	own, begin := hostPath(s.File(), s.opt.Host, ""), ""
	add := func(path string) {
		if path = strings.TrimPrefix(path, own); strings.HasPrefix(path, "/") { // else it is another host's
			paths = append(paths, path)
		}
	}
	outside := func(end string) error {
		return engine.Each(ctx, s, func(path *string) error {
			add(*path)
			return nil
		}, importedOutside, source, begin, end)
	}
	for _, root := range roots {
		below := strings.TrimSuffix(root, "/") + "/"
		if begin > root {
			continue // it lies in the one before
		}
		if err := outside(below); err != nil { // with the root itself
			return nil, err
		}
		begin = below[:len(below)-1] + "0" // the character behind a slash
	}
	return paths, outside("\U0010ffff")
}

const (
	importedRoots   = `SELECT path FROM imports WHERE source = ? AND CAST(state AS TEXT) = '` + RootState + `' ORDER BY path`
	importedOutside = `SELECT path FROM imports WHERE source = ? AND path >= ? AND path < ?
		AND CAST(state AS TEXT) IS DISTINCT FROM '` + RefusedState + `'`
)

// SessionBySource reads the session that was imported from a source's session. Codes: NotFound.
func (s *Store) SessionBySource(ctx context.Context, source session.Source, sourceID string) (session.Session, error) {
	id, err := sessionOfSource(ctx, s, source, sourceID)
	if err == nil && id == "" {
		err = session.Errorf(session.NotFound, "no session of %s with id %q was imported", source, sourceID)
	}
	if err != nil {
		return session.Session{}, err
	}
	return s.Session(ctx, id)
}

// sessionOfSource finds the session that was imported from a source's session, "" if none was.
func sessionOfSource(ctx context.Context, q engine.Queryer, source session.Source,
	sourceID string,
) (session.ID, error) {
	id, err := engine.Get[session.ID](ctx, q, `SELECT id FROM sessions WHERE source = ? AND source_id = ? AND source_id <> ''`, source, sourceID)
	if engine.NoRows(err) {
		return "", nil
	}
	return id, err
}

// spot is a stored message of the batch's session, as far as its children need it.
type spot struct{ id, seq, depth, pathTokens int64 }

// find returns the place of an external id; its id is 0 when it is not in the session.
func (im *importer) find(key string) (spot, error) {
	if at, ok := im.spots[key]; ok || key == "" || im.res.Created {
		return at, nil
	}
	var at spot
	err := im.Row(`SELECT id, seq, depth, path_tokens FROM messages WHERE session_id = ? AND external_id = ? AND external_id <> ''`,
		[]any{string(im.sess.ID), key}, &at.id, &at.seq, &at.depth, &at.pathTokens)
	if err != nil && !engine.NoRows(err) {
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
	by, value := "external_id = ? AND external_id <> ''", any(key)
	if seq := session.SeqOfKey(key); seq > 0 {
		by, value = "seq = ?", seq
	}
	err = im.Row(`SELECT id, EXISTS (SELECT 1 FROM purging WHERE session_id = m.session_id) FROM messages m
		WHERE session_id = ? AND `+by, []any{in, value}, &id, &doomed)
	if doomed {
		return 0, session.Errorf(session.Conflict,
			"%s names message %q of session %s, which is being purged: import again when it is gone", what, key, in)
	}
	if engine.NoRows(err) {
		err = session.Errorf(session.Invalid, "%s names message %q, which is not in session %s", what, key, in)
	}
	return id, err
}

// messages stores the messages that are not in the database.
func (im *importer) messages() error {
	if id, ref, turned := im.sess.HeadID, im.sess.Head, im.turned; im.batch.KeepHead && id != nil {
		defer func() { im.sess.HeadID, im.sess.Head, im.turned = id, ref, turned }()
	}
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
	ref, err := refOf(im.Ctx, im.tx, parent)
	if err != nil {
		return place{}, err
	}
	if err := im.extendSharedPath(im.sess, parent); err != nil {
		return place{}, err
	}
	return im.placeAfter(ref)
}

// dropCopied drops the calls that an earlier import counted for this session though they are another one's.
func (im *importer) dropCopied() error {
	for _, key := range im.batch.Copied {
		dropped, err := im.dropCall(im.sess.Source, key, &im.sess)
		if err != nil {
			return err
		}
		im.moved = im.moved || dropped
	}
	return nil
}

// calls counts the batch's model calls, each once wherever it was seen before.
func (im *importer) calls() error {
	var sum usageSum
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
			if err := im.linkCall(c); err != nil {
				return err
			}
			continue
		}
		sum.add(usageOfCall(c), 1)
		im.res.Calls++
	}
	if im.res.Calls == 0 {
		return nil
	}
	return im.countCalls(&im.sess, &sum)
}

// linkCall links a call that was counted before its message came, or with a shorter version of it, which is a
// sibling.
func (im *importer) linkCall(c *session.Call) error {
	if c.MessageID == nil {
		return nil
	}
	return im.Exec(`UPDATE calls SET message_id = ?1 WHERE source = ?2 AND external_id = ?3 AND external_id <> '' AND session_id = ?4
		AND (message_id IS NULL OR message_id < ?1 AND EXISTS (SELECT 1 FROM messages a, messages b
			WHERE a.id = calls.message_id AND b.id = ?1 AND a.session_id = ?4 AND b.session_id = ?4 AND a.parent_id IS NOT DISTINCT FROM b.parent_id))`,
		c.MessageID, c.Source, c.ExternalID, c.SessionID)
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
	l, err := readLink(im.Ctx, im.tx, im.sess.ID)
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

// title takes the source's name, unless a person gave the session another one here.
func (im *importer) title() error {
	if im.batch.Title == nil || im.sess.TitleSource == "given" || im.sess.Title == *im.batch.Title {
		return nil
	}
	im.sess.Title, im.sess.TitleSource, im.moved = *im.batch.Title, "source", true
	return nil
}

// fields updates what the source says of the session now, where it says something else.
func (im *importer) fields() error {
	f, s, was := im.batch.Fields, &im.sess, im.sess
	if f == nil {
		return nil
	}
	s.Kind = orElse(f.Kind, s.Kind)
	s.Model, s.Provider = orElse(f.Model, s.Model), orElse(f.Provider, s.Provider)
	if s.Directory == "" && f.Directory != "" {
		s.Directory, s.Project = f.Directory, folders.Project(f.Directory)
	}
	s.GitBranch = orElse(s.GitBranch, f.GitBranch)
	if f.FirstTitle != "" && s.ParentKind != session.ParentFork && (s.TitleSource == "first_message" || s.Title == "") {
		s.Title, s.TitleSource = f.FirstTitle, "first_message"
	}
	if s.ArchivedAt == nil {
		s.ArchivedAt = f.ArchivedAt
	}
	if f.Key != "" {
		s.Key, s.Generation = f.Key, f.Generation
	}
	if f.ParentID != "" && (s.ParentID == "" || s.ParentID == f.Instead) {
		if err := im.setParent(f); err != nil {
			return err
		}
	}
	if f.Inherits != nil {
		if err := im.inheritUntil(*s, *f.Inherits); err != nil {
			return err
		}
	}
	if f.EndedAt != nil && (s.EndedAt == nil || !s.EndedAt.Equal(f.EndedAt.Time) || s.EndReason != f.EndReason) {
		s.EndedAt, s.EndReason = f.EndedAt, f.EndReason
	}
	if f.Metadata != nil {
		if err := im.Row(`SELECT json_set(?, ?, json(?))`, []any{s.Metadata, `$."` + string(s.Source) + `"`, f.Metadata},
			&s.Metadata); err != nil {
			return err
		}
	}
	if err := im.states(f.States); err != nil {
		return err
	}
	if reflect.DeepEqual(*s, was) {
		return nil
	}
	im.moved, im.keyed = true, s.Key != was.Key || s.Generation != was.Generation
	return im.moveUsage(s.ID, nil, func() error {
		return im.Exec(`UPDATE sessions SET kind = ?, directory = ?, project = ?, git_branch = ?, archived_at = ?, key = ?, generation = ?,
			parent_id = ?, parent_kind = ?, ended_at = ?, end_reason = ?, metadata = ? WHERE id = ?`,
			s.Kind, s.Directory, s.Project, s.GitBranch, s.ArchivedAt, s.Key, s.Generation,
			s.ParentID, s.ParentKind, s.EndedAt, s.EndReason, s.Metadata, s.ID)
	})
}

// states writes the source's documents of the session where they changed.
func (im *importer) states(documents map[string]session.JSON) error {
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		st, err := readState(im.Ctx, im, im.sess.ID, name)
		if err != nil {
			return err
		}
		value := documents[name]
		err = im.changeState(StateChange{Session: im.sess.ID, Name: name, Change: func(session.JSON) (session.JSON, error) {
			return value, nil
		}}, &st)
		if err != nil {
			return fmt.Errorf("state %s of the source: %w", name, err)
		}
	}
	return nil
}

// keepOneGenerationOpen sees to it that a key has one open generation after a session came in under it. Of
// one program's the later one goes on, as the program numbers them. A conversation that was
// begun here, or by another program, goes on as before: what comes in beside it has ended.
func (im *importer) keepOneGenerationOpen() error {
	s := &im.sess
	if !im.keyed && !im.res.Created || s.Key == "" || s.EndedAt != nil || s.DeletedAt != nil {
		return nil
	}
	open, err := im.openGenerations(s.Key, s.ID)
	if err != nil {
		return err
	}
	for i := range open {
		other := &open[i]
		if other.Source == s.Source && other.Generation < s.Generation {
			if err := im.endGeneration(other.ID, endedByProgram, other.ActiveAt); err != nil {
				return err
			}
			continue
		}
		if s.EndedAt == nil {
			at := s.ActiveAt
			s.EndedAt, s.EndReason, im.moved = &at, endedByProgram, true
			if err := im.endGeneration(s.ID, endedByProgram, at); err != nil {
				return err
			}
		}
		if other.Source != s.Source {
			if err := im.renumberGeneration(other, s.Generation); err != nil {
				return err
			}
		}
	}
	return nil
}

// setParent links a session that was here before its parent.
func (im *importer) setParent(f *ImportFields) error {
	if err := im.checkNoCycle(im.sess.ID, f.ParentID); err != nil {
		return err
	}
	im.sess.ParentID, im.sess.ParentKind = f.ParentID, f.ParentKind
	l := link{CallID: f.StartedCall}
	switch {
	case f.ParentKind == session.ParentFork:
		l = importedFork(im.sess.CreatedAt)
	case f.Started != nil:
		parent, err := readSession(im.Ctx, im.tx, f.ParentID)
		if err != nil {
			return err
		}
		at, err := im.placeOnTree(parent, *f.Started, "parent_message")
		if err != nil {
			return err
		}
		l.MessageID = at.id
	}
	return im.saveLink(im.sess.ID, l)
}
