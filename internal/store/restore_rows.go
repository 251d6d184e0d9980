package store

import (
	"fmt"
	"slices"

	"sessiond/internal/session"
)

// messages compares those that are here and inserts the others.
func (r *restorer) messages() error {
	batch := r.batch.Messages
	known := 0
	for known < len(batch) && batch[known].ID.Seq <= r.sess.LastSeq {
		known++
	}
	most := len(batch)
	if r.isShell() {
		most = 1 // of its messages not all are there
	}
	for run := range slices.Chunk(batch[:known], max(1, most)) {
		if err := r.compare(run); err != nil {
			return err
		}
	}
	if r.now.mode == restoreVerify || !r.now.changed {
		if known < len(batch) {
			return r.conflict(batch[known].ID)
		}
		return nil
	}
	for i := known; i < len(batch); i++ {
		if err := r.message(&batch[i]); err != nil {
			return err
		}
	}
	return nil
}

// compare refuses a session whose messages are others than the file's.
func (r *restorer) compare(batch []RestoreMessage) error {
	if len(batch) == 0 {
		return nil
	}
	from, to := batch[0].ID.Seq, batch[len(batch)-1].ID.Seq
	here, err := collectMessages(r.ctx, r.tx, messagesOfRange, r.now.id, from, to, 0)
	if err == nil && len(here) > 0 {
		err = collectPartRows(r.ctx, r.tx, here, partsOfRange, r.now.id, from, to)
	}
	if err != nil {
		return err
	}
	for i := range batch {
		if i >= len(here) || !r.same(&batch[i].Message, &here[i]) {
			return r.conflict(batch[i].ID)
		}
		r.res.Duplicates++
	}
	return nil
}

func (r *restorer) conflict(ref session.MessageRef) error {
	return session.Errorf(session.Conflict, "session %s is here with other content, from message %s on; --as-copy brings the file's in under a new id", ref.Session, ref)
}

// same tells whether a message of the file is the one that is here, in everything that was said.
func (r *restorer) same(in, here *session.Message) bool {
	if in.Seq != here.Seq || (in.Parent == nil) != (here.Parent == nil) || in.Parent != nil && r.here(*in.Parent) != *here.Parent {
		return false
	}
	if in.Kind != here.Kind || in.Role != here.Role || in.Origin != here.Origin || in.Finish != here.Finish || in.Author != here.Author ||
		in.InContext != here.InContext || in.Display != here.Display || in.ExternalID != here.ExternalID ||
		!in.CreatedAt.Equal(here.CreatedAt.Time) || !equalJSON(in.Extra, here.Extra) || len(in.Parts) != len(here.Parts) {
		return false
	}
	for i := range in.Parts {
		a, b := &in.Parts[i], &here.Parts[i]
		if a.Kind != b.Kind || a.Text != b.Text || a.ToolName != b.ToolName || a.CallID != b.CallID || a.Arguments != b.Arguments ||
			!sameText(a.BlobSHA, b.BlobSHA) || !equalJSON(a.Extra, b.Extra) {
			return false
		}
	}
	return true
}

func sameText(a, b *string) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

func (r *restorer) message(in *RestoreMessage) error {
	m := &in.Message
	if m.ID.Seq <= r.sess.LastSeq {
		return session.Errorf(session.Invalid, "message %s does not stand in order of seq", m.ID)
	}
	var at place
	if m.Parent != nil {
		var err error
		if at, err = r.placeAfter(r.here(*m.Parent)); session.CodeOf(err) == session.NotFound {
			return session.Errorf(session.Invalid, "message %s follows message %s, which is neither in the file before it nor here", m.ID, *m.Parent)
		} else if err != nil {
			return err
		}
	}
	named := m.ID
	r.sess.LastSeq = named.Seq - 1
	if err := r.insertRow(&r.sess, at, m); err != nil {
		return fmt.Errorf("message %s: %w", named, err)
	}
	err := r.insertParts(&r.sess, m, func(i int) (*int64, error) {
		call, ok := in.Answers[int64(i)]
		if !ok {
			return nil, nil
		}
		if call.Message == named {
			row := m.RowID<<10 | call.Idx
			return &row, nil
		}
		id, err := r.mustFind("a result", call.Message)
		row := id<<10 | call.Idx
		return &row, err
	})
	if err != nil {
		return fmt.Errorf("message %s: %w", named, err)
	}
	progress(&r.sess, m)
	r.res.Messages++
	return nil
}

// compactions inserts those that are not here; one is known again by its time of creation.
func (r *restorer) compactions() error {
	for i := range r.batch.Compactions {
		in := &r.batch.Compactions[i]
		var known int64
		err := r.row(`SELECT id FROM compactions WHERE session_id = ? AND created_at = ? ORDER BY id LIMIT 1`, []any{r.now.id, in.CreatedAt}, &known)
		if err == nil && r.now.mode != restoreNew && !r.taken(known) {
			r.newCompactions[in.Ref] = known
			if err := r.outcome(known, in); err != nil {
				return err
			}
			continue
		} else if err != nil && !noRows(err) {
			return err
		}
		if r.now.mode == restoreVerify {
			continue
		}
		if err := r.compaction(in); err != nil {
			return err
		}
	}
	return nil
}

// taken tells whether a row stands for a compaction of the file already.
func (r *restorer) taken(row int64) bool {
	for _, known := range []map[CompactionRef]int64{r.newCompactions, r.batch.Into.compactions} {
		for _, have := range known {
			if have == row {
				return true
			}
		}
	}
	return false
}

// outcome takes the file's word on a compaction that was still going on when it was written here.
func (r *restorer) outcome(row int64, in *NumberedCompaction) error {
	if r.now.mode != restoreForward {
		return nil
	}
	through, err := r.findOptional("a compaction", in.Through)
	if err != nil {
		return err
	}
	kept, err := r.findOptional("a compaction", in.FirstKept)
	if err != nil {
		return err
	}
	res, err := r.exec(`UPDATE compactions SET status = ?, reason = ?, activated_at = ?, through_id = ?, first_kept_id = ?, hidden_tokens = ?, summary_tokens = ?, summary = ?, span_summary = ?,
		prefix_summary = ?, replacement = ?, details = ?, tokens_before = ?, tokens_after = ?, message_count = ?, provider = ?, model = ?, duration_ms = ?
		WHERE id = ? AND status IN ('running', 'staged') AND status <> ?`,
		in.Status, in.Reason, in.ActivatedAt, through, kept, in.HiddenTokens, in.SummaryTokens, in.Summary, in.SpanSummary,
		in.PrefixSummary, in.Replacement, r.detailsHere(in.Details), in.TokensBefore, in.TokensAfter, in.MessageCount, in.Provider, in.Model, in.DurationMS,
		row, in.Status)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		r.now.changed = true
		return err
	}
	return nil
}

func (r *restorer) compaction(in *NumberedCompaction) (err error) {
	c := in.Compaction
	c.SessionID, c.Details = r.now.id, r.detailsHere(c.Details)
	if c.PreviousID, err = r.findCompaction(in.From); err != nil {
		return err
	}
	if c.ThroughID, err = r.findOptional("a compaction", c.Through); err != nil {
		return err
	}
	if c.FirstKeptID, err = r.findOptional("a compaction", c.FirstKept); err != nil {
		return err
	}
	if err := r.insertCompaction(&c); err != nil {
		return err
	}
	r.newCompactions[in.Ref], r.now.changed = c.RowID, true
	return nil
}

func (r *restorer) frozen() error {
	if r.now.mode == restoreVerify {
		return nil
	}
	for i := range r.batch.Frozen {
		f := r.batch.Frozen[i]
		var err error
		f.SessionID = r.now.id
		if f.MessageID, err = r.mustFind("what was frozen", f.Message); err != nil {
			return err
		}
		if f.CompactionID, err = r.findCompaction(f.Compaction); err != nil {
			return err
		}
		if err := r.freeze(f.Frozen); err != nil {
			return err
		}
	}
	return nil
}

// contexts inserts those beyond the ones that are here, with the blocks that they are made of.
func (r *restorer) contexts() error {
	if r.now.mode == restoreVerify {
		return nil
	}
	for _, b := range r.batch.Blocks {
		if b.Hash != hash([]byte(b.Content)) {
			return session.Errorf(session.Invalid, "the block %s of session %s is not what its hash says", b.Hash, r.batch.Session.ID)
		}
		if err := r.keepBlock(b); err != nil {
			return err
		}
	}
	for i := range r.batch.Contexts {
		in := r.batch.Contexts[i]
		if r.now.seen++; r.now.seen <= int64(len(r.now.contexts)) {
			continue
		}
		c := in.Context
		c.SessionID = r.now.id
		if err := r.madeOf(&c); err != nil {
			return err
		}
		var err error
		if c.HeadID, err = r.findOptional("a context", in.Head); err != nil {
			return err
		}
		if c.CompactionID, err = r.findCompaction(in.Compaction); err != nil {
			return err
		}
		if err := r.insertContext(&c); err != nil {
			return err
		}
		r.now.contexts, r.now.changed = append(r.now.contexts, c.RowID), true
	}
	return nil
}

// calls counts those beyond the ones that are here. One that is known by its source's id is
// counted nowhere again.
func (r *restorer) calls() error {
	if r.now.mode == restoreVerify {
		return nil
	}
	for i := range r.batch.Calls {
		in := r.batch.Calls[i]
		if r.now.calls++; r.now.calls <= r.now.known {
			continue
		}
		c := in.Call
		c.SessionID, c.RowID = r.now.id, 0
		var err error
		if c.MessageID, err = r.findOptional("a call", in.Message); err != nil {
			return err
		}
		if c.CompactionID, err = r.findCompaction(in.Compaction); err != nil {
			return err
		}
		switch n := in.ContextN; {
		case n == 0:
		case n < 0 || n > int64(len(r.now.contexts)):
			return session.Errorf(session.Invalid, "a call names context %d of session %s, which has %d", n, r.batch.Session.ID, len(r.now.contexts))
		default:
			c.ContextID = &r.now.contexts[n-1]
		}
		if err := r.addCall(&c, &r.sess); err != nil {
			return err
		}
		if c.RowID != 0 {
			r.res.Calls++
			r.now.changed = true
		}
	}
	return nil
}

// finish replaces the sets and takes what the session says of itself.
func (r *restorer) finish() error {
	if err := r.sets(); err != nil {
		return err
	}
	if err := r.link(); err != nil {
		return err
	}
	in, s := r.batch.Session, &r.sess
	if s.HeadID = nil; in.Head != nil {
		id, err := r.mustFind("the head", *in.Head)
		if err != nil {
			return err
		}
		ref := r.here(*in.Head)
		s.HeadID, s.Head = &id, &ref
	}
	s.ParentID, s.ParentKind, s.CreatedAt = r.hereID(in.ParentID), in.ParentKind, in.CreatedAt
	if err := r.settleOverlay(s); err != nil {
		return err
	}
	if in.Metadata == nil {
		in.Metadata = session.JSON(`{}`)
	}
	if err := r.oneOpen(&in); err != nil {
		return err
	}
	_, err := r.exec(`UPDATE sessions SET title = ?, title_source = ?, kind = ?, draft = ?, settings = ?, key = ?, generation = ?,
		project = ?, git_branch = ?, provider = ?, model = ?, window = ?, parent_id = ?, parent_kind = ?, head_id = ?, last_seq = ?,
		compaction_id = ?, epoch = ?, revision = ?, message_count = ?, total_tokens = ?, context_tokens = ?, compaction_count = (`+countedCompactions+`),
		turn_origin = ?, created_at = ?, updated_at = ?, active_at = ?, inbound_at = ?, archived_at = ?, deleted_at = ?, ended_at = ?,
		end_reason = ?, metadata = ? WHERE id = ?`,
		in.Title, in.TitleSource, orElse(in.Kind, "chat"), in.Draft, in.Settings, in.Key, in.Generation,
		in.Project, in.GitBranch, in.Provider, in.Model, in.Window, s.ParentID, s.ParentKind, s.HeadID, s.LastSeq,
		s.CompactionID, in.Epoch, in.Revision, s.MessageCount, s.TotalTokens, s.ContextTokens, s.ID, s.ID,
		in.TurnOrigin, in.CreatedAt, in.UpdatedAt, in.ActiveAt, in.InboundAt, in.ArchivedAt, in.DeletedAt, in.EndedAt,
		in.EndReason, in.Metadata, s.ID)
	if err != nil {
		return fmt.Errorf("update session: %w", err)
	}
	switch {
	case r.draft && !in.Draft:
		r.usage.at(s.Day, s.Source, "").sessions++
	case !r.draft && in.Draft:
		r.usage.at(s.Day, s.Source, "").sessions--
	}
	if !r.isShell() {
		if err := r.event(s.ID, EventSessionChanged, 0, nil); err != nil {
			return err
		}
	}
	r.sess, err = readAncestor(r.ctx, r.tx, s.ID)
	return err
}

const countedCompactions = `SELECT COUNT(*) FROM compactions c WHERE c.session_id = ? AND c.status = 'done'
	AND NOT EXISTS (SELECT 1 FROM compaction_undos u WHERE u.session_id = ? AND u.compaction_id = c.id)`

// oneOpen sees to it that the session's key has one open generation: a conversation that goes on
// under it here goes on, and the one that comes in has ended where it was.
func (r *restorer) oneOpen(in *session.Session) error {
	if in.Key == "" || in.EndedAt != nil || in.DeletedAt != nil || r.isShell() {
		return nil
	}
	open, err := r.openBeside(in.Key, r.now.id)
	if err != nil || len(open) == 0 {
		return err
	}
	at := in.ActiveAt
	in.EndedAt, in.EndReason = &at, endedByProgram
	return r.keepOpen(&open[len(open)-1], in.Generation)
}

// sets replaces undos, marks, states and flushes.
func (r *restorer) sets() error {
	id := r.now.id
	for _, empty := range []string{
		`DELETE FROM compaction_undos WHERE session_id = ?`,
		`DELETE FROM marks WHERE session_id = ?`,
		`DELETE FROM states WHERE session_id = ?`,
		`DELETE FROM flushes WHERE session_id = ?`,
	} {
		if _, err := r.exec(empty, id); err != nil {
			return err
		}
	}
	for _, u := range r.batch.Undos {
		row, err := r.findCompaction(u.Compaction)
		if err != nil {
			return err
		}
		if _, err := r.exec(`INSERT INTO compaction_undos (session_id, compaction_id, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, id, row, u.At); err != nil {
			return fmt.Errorf("undo: %w", err)
		}
	}
	for _, m := range r.batch.Marks {
		row, err := r.mustFind("a mark", m.Message)
		if err != nil {
			return err
		}
		if _, err := r.exec(`INSERT INTO marks (session_id, message_id, kind, text, created_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			id, row, m.Kind, m.Text, m.At); err != nil {
			return fmt.Errorf("mark: %w", err)
		}
	}
	for _, st := range r.batch.States {
		if _, err := r.exec(`INSERT INTO states (session_id, name, revision, value, updated_at, deleted_at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			id, st.Name, st.Revision, st.Value, st.UpdatedAt, st.DeletedAt); err != nil {
			return fmt.Errorf("state: %w", err)
		}
	}
	for _, f := range r.batch.Flushes {
		row, err := r.findCompaction(f.Compaction)
		if err != nil {
			return err
		}
		none := int64(0)
		if row == nil {
			row = &none
		}
		if _, err := r.exec(`INSERT INTO flushes (session_id, compaction_id, at, outcome) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			id, *row, f.At, f.Outcome); err != nil {
			return fmt.Errorf("flush: %w", err)
		}
	}
	return nil
}

// texts lists what is stored as text beside the messages.
func (b *RestoreBatch) texts() []field {
	s := &b.Session
	all := []field{
		{"title", s.Title},
		{"key", s.Key},
		{"source", string(s.Source)},
		{"source_id", s.SourceID},
		{"directory", s.Directory},
		{"project", s.Project},
		{"git_branch", s.GitBranch},
		{"provider", s.Provider},
		{"model", s.Model},
		{"parent", string(s.ParentID)},
		{"settings", string(s.Settings)},
		{"metadata", string(s.Metadata)},
		{"turn_origin", string(s.TurnOrigin)},
	}
	for i := range b.Compactions {
		c := &b.Compactions[i]
		all = append(all, field{"compaction", c.Reason}, field{"compaction", c.Summary}, field{"compaction", c.SpanSummary}, field{"compaction", c.PrefixSummary},
			field{"compaction", c.Provider}, field{"compaction", c.Model}, field{"compaction", string(c.Details)}, field{"compaction", string(c.Replacement)})
	}
	for i := range b.Frozen {
		all = append(all, field{"frozen", string(b.Frozen[i].Content)})
	}
	for _, x := range b.Blocks {
		all = append(all, field{"block", x.Content})
	}
	for i := range b.Contexts {
		c := &b.Contexts[i]
		all = append(all, field{"context", c.Model}, field{"context", c.Dialect}, field{"context", c.SystemHash + c.InitialHash + c.ToolsHash}, field{"context", string(c.Limits)})
	}
	for i := range b.Calls {
		all = append(all, textsOfCall(&b.Calls[i].Call)...)
	}
	for _, m := range b.Marks {
		all = append(all, field{"mark", m.Text})
	}
	for _, st := range b.States {
		all = append(all, field{"state", st.Name}, field{"state", string(st.Value)})
	}
	for _, f := range b.Flushes {
		all = append(all, field{"flush", f.Outcome})
	}
	return all
}

func textsOfCall(c *session.Call) []field {
	return []field{
		{"call", c.Error},
		{"call", c.Provider},
		{"call", c.Model},
		{"call", string(c.Source)},
		{"call", c.ExternalID},
		{"call", c.Directory},
		{"call", c.Day},
		{"call", string(c.Metadata)},
	}
}
