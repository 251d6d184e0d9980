package store

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// compactions inserts overlays with the time they took effect in their program. Which one is
// effective is settled afterwards, from the head.
func (im *importer) compactions() error {
	for i := range im.batch.Compactions {
		if err := im.compaction(&im.batch.Compactions[i]); err != nil {
			return err
		}
	}
	return nil
}

func (im *importer) compaction(in *ImportCompaction) error {
	o := importedOverlay{importer: im, in: in, Compaction: in.Compaction}
	o.SessionID = im.sess.ID
	if err := o.places(); err != nil || o.ThroughID == nil {
		return err
	}
	if known, err := o.known(); known || err != nil {
		return err
	}
	if o.ActivatedAt == nil && o.Status == session.StatusDone {
		o.ActivatedAt = new(o.CreatedAt)
	}
	if o.Status == session.StatusDone {
		if worth, err := o.chain(); !worth || err != nil {
			return err
		}
	}
	if err := im.insertCompaction(&o.Compaction); err != nil {
		return err
	}
	if o.Status == session.StatusDone {
		im.sess.CompactionCount++
	}
	im.moved, im.turned = true, true
	return im.Exec(`UPDATE sessions SET compaction_count = ? WHERE id = ?`, im.sess.CompactionCount, im.sess.ID)
}

// importedOverlay is an overlay of another program on its way into the database.
type importedOverlay struct {
	*importer
	session.Compaction
	in *ImportCompaction

	pruned   []outputAt
	replaced []pieceAt
	furthest int64 // row of the last message that it says something of
	afresh   bool  // what it rests on keeps nothing
}

// outputAt is an output of a tool as it is stored.
type outputAt struct {
	name   string // session.OutputName
	row    int64  // of the message
	tokens int64
}

// pieceAt is a piece in the middle of a path as it is stored.
type pieceAt struct {
	session.Replaced
	refs        []session.MessageRef
	first, last int64 // rows
	tokens      int64 // of what is in the context of it
}

// places finds the messages that the overlay names. It ends with the last output that it
// hides where it says nothing else.
func (o *importedOverlay) places() error {
	if o.in.ThroughKey != "" {
		through, err := o.mustFindIn(o.in.ThroughSession, "a compaction", o.in.ThroughKey)
		if err != nil {
			return err
		}
		o.ThroughID, o.furthest = &through, through
		if err := o.Row(`SELECT path_tokens FROM messages WHERE id = ?`, []any{through}, &o.HiddenTokens); err != nil {
			return err
		}
	}
	if o.in.FirstKeptKey != "" {
		kept, err := o.mustFindIn(o.in.FirstKeptSession, "a compaction", o.in.FirstKeptKey)
		if err != nil {
			return err
		}
		o.FirstKeptID = &kept
	}
	for i := range o.in.Pruned {
		if err := o.output(&o.in.Pruned[i]); err != nil {
			return err
		}
	}
	if err := o.outputsOnPath(); err != nil {
		return err
	}
	for i := range o.in.Replaced {
		if err := o.piece(&o.in.Replaced[i]); err != nil {
			return err
		}
	}
	if o.ThroughID == nil && o.furthest != 0 {
		o.ThroughID = &o.furthest
	}
	return o.piecesOnPath()
}

// piecesOnPath leaves out the pieces that are not on the way to where the overlay took effect:
// it hides nothing there.
func (o *importedOverlay) piecesOnPath() error {
	if len(o.replaced) == 0 || o.ThroughID == nil {
		return nil
	}
	head, err := o.rowOf(o.in.At)
	if err != nil {
		return err
	}
	spans, err := pathSpans(o.Ctx, o.tx, new(max(head, *o.ThroughID)))
	if err != nil {
		return err
	}
	beside := func(ref session.MessageRef) bool {
		return !holds(spans, ref)
	}
	o.replaced = slices.DeleteFunc(o.replaced, func(piece pieceAt) bool { return slices.ContainsFunc(piece.refs, beside) })
	return nil
}

// outputsOnPath finds the results that are named by their calls alone: of each the nearest one
// before the overlay's end.
func (o *importedOverlay) outputsOnPath() error {
	want := map[string]bool{}
	for _, out := range o.in.Pruned {
		if out.Place.Key == "" {
			want[out.CallID] = true
		}
	}
	if len(want) == 0 || o.ThroughID == nil {
		return nil
	}
	calls := slices.Sorted(maps.Keys(want))
	type found struct {
		Row  int64  `db:"id"`
		Call string `db:"call_id"`
	}
	var all []found
	spans, err := pathSpans(o.Ctx, o.tx, o.ThroughID)
	if err != nil {
		return err
	}
	for _, sp := range spans {
		if err := engine.Each(o.Ctx, o, func(f *found) error {
			if want[f.Call] {
				delete(want, f.Call)
				all = append(all, *f)
			}
			return nil
		}, resultsInSpan, sp.Session, sp.From, sp.To, string(session.JSONOf(calls))); err != nil {
			return err
		}
		if len(want) == 0 {
			break
		}
	}
	slices.SortFunc(all, func(a, b found) int { return int(a.Row - b.Row) })
	for _, f := range all {
		if err := o.outputIn(f.Row, f.Call); err != nil {
			return err
		}
	}
	return nil
}

const resultsInSpan = `
	SELECT m.id, p.call_id FROM messages m JOIN parts p ON p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023
	WHERE m.session_id = ? AND m.seq BETWEEN ? AND ? AND p.kind = 'tool_result' AND p.call_id IN (SELECT value FROM json_each(?))
	ORDER BY m.seq DESC`

// output finds the result of a call, with its size.
func (o *importedOverlay) output(want *ImportOutput) error {
	row, err := o.rowOf(want.Place)
	if err != nil || row == 0 {
		return err
	}
	return o.outputIn(row, want.CallID)
}

func (o *importedOverlay) outputIn(row int64, call string) error {
	m, err := o.partsOf(row)
	if err != nil {
		return err
	}
	for j := range m.Parts {
		if p := &m.Parts[j]; p.Kind == session.PartToolResult && p.CallID == call {
			tokens, _ := m.Output(j)
			o.pruned = append(o.pruned, outputAt{session.OutputName(m.ID, j), row, tokens})
			o.furthest = max(o.furthest, row)
		}
	}
	return nil
}

func (o *importedOverlay) piece(want *ImportReplaced) error {
	var at pieceAt
	for _, place := range want.Messages {
		row, err := o.rowOf(place)
		if err != nil || row == 0 {
			return err
		}
		var tokens int64
		var ref session.MessageRef
		if err := o.importer.Row(`SELECT tokens * in_context, session_id || '.' || seq FROM messages WHERE id = ?`, []any{row}, &tokens, &ref); err != nil {
			return err
		}
		at.tokens += tokens
		at.refs, at.Messages = append(at.refs, ref), append(at.Messages, ref.String())
		if at.first == 0 {
			at.first = row
		}
		at.last = row
	}
	at.Text = want.Text
	if at.Saves = at.tokens; want.Text != "" {
		at.Saves -= o.opt.weigh(want.Text)
	}
	o.replaced = append(o.replaced, at)
	o.furthest = max(o.furthest, at.last)
	return nil
}

// sizeSummary sizes what a context holds in the place of hidden messages, if the program does
// not say it: the summaries, and the messages that it keeps as copies.
func (o *Options) sizeSummary(c *session.Compaction) {
	if c.SummaryTokens != 0 || o.Measure == nil {
		return
	}
	if c.Summary+c.PrefixSummary != "" {
		c.SummaryTokens = o.weigh(c.Summary + c.PrefixSummary)
	}
	var copies []session.Message
	if len(c.Replacement) == 0 || json.Unmarshal(c.Replacement, &copies) != nil {
		return
	}
	for i := range copies {
		o.Measure(&copies[i])
		c.SummaryTokens += copies[i].Tokens
	}
}

// weigh sizes a text as a message in the user's role, by the reference counter.
func (o *Options) weigh(text string) int64 {
	if o.Measure == nil {
		return 0
	}
	m := session.Message{Kind: session.KindMessage, Role: session.User, Parts: []session.Part{session.TextPart(text)}}
	o.Measure(&m)
	return m.Tokens
}

// rowOf finds a message, 0 when it is not there.
func (o *importedOverlay) rowOf(place ImportPlace) (int64, error) {
	if place.Key == "" {
		return 0, nil
	}
	row, err := o.mustFindIn(place.Session, "a compaction", place.Key)
	if session.CodeOf(err) == session.Invalid {
		return 0, nil
	}
	return row, err
}

// partsOf reads of a message's parts what tells outputs and their sizes.
func (o *importedOverlay) partsOf(row int64) (session.Message, error) {
	m, err := engine.Get[session.Message](o.Ctx, o, `SELECT session_id, seq, role FROM messages WHERE id = ?`, row)
	if err != nil {
		return m, err
	}
	m.ID = session.MessageRef{Session: m.SessionID, Seq: m.Seq}
	m.Parts, err = engine.List[session.Part](o.Ctx, o, outputsOfMessage, row, row)
	return m, err
}

const outputsOfMessage = `
	SELECT kind, call_id, tokens FROM parts WHERE id BETWEEN CAST(? AS BIGINT) << 10 AND (CAST(? AS BIGINT) << 10) + 1023 ORDER BY id`

// known reports whether the overlay is here: the session's own, or one that it inherits.
func (o *importedOverlay) known() (bool, error) {
	here, err := o.Exists(`SELECT 1 FROM compactions WHERE session_id = ? AND through_id = ? AND created_at = ? AND (status = 'done' OR ? <> 'done')`,
		o.SessionID, *o.ThroughID, o.CreatedAt, o.Status)
	if err != nil || here || o.Status != session.StatusDone {
		return here, err
	}
	all, err := overlaysOf(o.Ctx, o.tx, o.sess)
	return slices.ContainsFunc(all, func(c overlayRow) bool {
		return c.ThroughID != nil && *c.ThroughID == *o.ThroughID && c.ActivatedAt.Equal(o.CreatedAt.Time)
	}), err
}

// chain puts the overlay on the one that was in force when it was made, with what it hides of
// the messages that are kept. It is worth nothing when it hides nothing.
func (o *importedOverlay) chain() (worth bool, err error) {
	record, err := o.rowOf(o.in.Record)
	if err != nil {
		return false, err
	}
	before, err := o.overlayInForce(o.sess, max(o.furthest, record), o.ActivatedAt)
	if err != nil {
		return false, err
	}
	if before != nil {
		o.PreviousID = &before.ID
	}
	if o.MessageCount == 0 && o.Strategy == session.StrategySummarize {
		if o.MessageCount, err = o.countRepresented(before); err != nil {
			return false, err
		}
	}
	var details session.CompactionDetails
	if o.Strategy == session.StrategyPrune {
		if err := o.buildOn(before); err != nil {
			return false, err
		}
	}
	if o.Details != nil {
		if err := json.Unmarshal(o.Details, &details); err != nil {
			return false, fmt.Errorf("details of an overlay: %w", err)
		}
	}
	details.Afresh = details.Afresh || o.afresh
	if record != 0 {
		ref, err := refOf(o.Ctx, o.tx, record)
		if err != nil {
			return false, err
		}
		details.Record = ref.String()
	}
	n := o.hide(&details)
	if err := o.size(before); err != nil {
		return false, err
	}
	if n == 0 && details.Record == "" {
		return o.Strategy != session.StrategyPrune, nil
	}
	if details.ReadFiles == nil {
		details.ReadFiles = []string{}
	}
	if details.ModifiedFiles == nil {
		details.ModifiedFiles = []string{}
	}
	o.Details = session.JSONOf(details)
	return true, nil
}

// size returns how large the context was and became, by the reference counter.
func (o *importedOverlay) size(before *overlayRow) error {
	at, err := o.rowOf(o.in.At)
	if err != nil || at == 0 || o.TokensBefore != 0 || o.TokensAfter != 0 {
		return err
	}
	path, err := engine.Get[int64](o.Ctx, o, `SELECT path_tokens FROM messages WHERE id = ?`, at)
	if err != nil {
		return err
	}
	o.TokensBefore, o.TokensAfter = path, max(0, path+o.SummaryTokens-o.HiddenTokens)
	if before != nil {
		o.TokensBefore = max(0, path+before.Summary-before.Hidden)
	}
	return nil
}

// buildOn takes over what the overlay before hides, says and keeps. Rule: contextmgr, represent.
func (o *importedOverlay) buildOn(before *overlayRow) error {
	o.HiddenTokens, o.FirstKeptID = 0, nil
	if before != nil {
		c, err := readCompaction(o.Ctx, o.tx, before.ID)
		if err != nil {
			return err
		}
		o.Summary, o.PrefixSummary, o.Replacement, o.SummaryTokens = c.Summary, c.PrefixSummary, c.Replacement,
			c.SummaryTokens
		o.HiddenTokens, o.FirstKeptID, o.Details = c.HiddenTokens, c.FirstKeptID, c.Details
	}
	if o.FirstKeptID != nil {
		return nil
	}
	first, err := o.firstAfter(before)
	o.FirstKeptID, o.afresh = &first, before != nil
	return err
}

// firstAfter returns the first message of the path that comes after what an overlay represents.
func (o *importedOverlay) firstAfter(before *overlayRow) (row int64, err error) {
	spans, err := pathSpans(o.Ctx, o.tx, o.ThroughID)
	if err != nil {
		return 0, err
	}
	if before != nil {
		spans = spansAfter(spans, *before.Through, false)
	}
	if len(spans) == 0 { // it represents all of the path
		return *o.ThroughID + 1, nil
	}
	first := spans[len(spans)-1]
	return engine.Get[int64](o.Ctx, o, `SELECT id FROM messages WHERE session_id = ? AND seq = ?`, first.Session,
		first.From)
}

// hide adds to the details what is hidden of the messages that are kept, and gives how much
// is new.
func (o *importedOverlay) hide(details *session.CompactionDetails) (n int) {
	lowest := *o.ThroughID + 1
	if o.FirstKeptID != nil {
		lowest = *o.FirstKeptID
	}
	for _, out := range o.pruned {
		if out.row < lowest || slices.Contains(details.Pruned, out.name) {
			continue
		}
		details.Pruned = append(details.Pruned, out.name)
		o.HiddenTokens += session.PrunedSaves(out.tokens)
		n++
	}
	for _, piece := range o.replaced {
		same := func(have session.Replaced) bool { return slices.Equal(have.Messages, piece.Messages) }
		if piece.first < lowest || slices.ContainsFunc(details.Replaced, same) {
			continue
		}
		details.Replaced = append(details.Replaced, piece.Replaced)
		o.HiddenTokens += piece.Saves
		n++
	}
	return n
}

// countRepresented counts the messages of the context that a summary stands for and the overlay before
// it did not, where its program does not say how many. A pruning stands for what comes before the
// first message that it keeps.
func (o *importedOverlay) countRepresented(before *overlayRow) (n int64, err error) {
	var stood session.MessageRef // the newest that the one before stands for
	from := false                // stood is the oldest that it does not
	switch {
	case before == nil:
	case before.Strategy != session.StrategyPrune:
		if *before.ThroughID >= *o.ThroughID {
			return 0, nil
		}
		stood = *before.Through
	default:
		c, err := readCompaction(o.Ctx, o.tx, before.ID)
		if err != nil {
			return 0, err
		}
		if c.FirstKept != nil {
			stood, from = *c.FirstKept, true
		}
	}
	spans, err := pathSpans(o.Ctx, o.tx, o.ThroughID)
	if err != nil {
		return 0, err
	}
	for _, sp := range spansAfter(spans, stood, from) {
		here, err := engine.Get[int64](o.Ctx, o, countInSpan, sp.Session, sp.From, sp.To)
		if err != nil {
			return 0, err
		}
		n += here
	}
	return n, nil
}

const countInSpan = `SELECT COUNT(*) FROM messages WHERE session_id = ? AND seq BETWEEN ? AND ? AND in_context = 1`
