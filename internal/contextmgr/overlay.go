package contextmgr

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// overlayInput says how an overlay is to be made.
type overlayInput struct {
	strategy     session.Strategy
	trigger      session.Trigger
	summarizer   Summarizer
	instructions string
	summary      string              // a ready one
	keep         *int64              // tokens, instead of the numbers'
	serve        bool                // the summariser is the digest: where even that fails, a plain note serves
	forced       bool                // make room even where the summary is larger than what it replaces
	fixed        int64               // tokens of what no compaction can hide
	before       int64               // tokens of the context now
	like         *session.Compaction // cut where this one does; nil: by the rules
	excess       float64             // what a provider counted more than sessiond; what is kept must fit by its count. 0: nothing
}

// made is an overlay that no store holds yet, with the plan it came from.
type madeOverlay struct {
	record session.Compaction
	plan   Plan
	calls  []session.Call
}

// plan finds what a compaction of what was read would hide.
func (r *reading) plan(in overlayInput) Plan {
	if in.strategy == session.StrategyClear {
		return r.planClear(in.trigger)
	}
	n := r.numbers
	rule := CutRule{KeepTokens: n.KeepTokens, KeepMessages: n.KeepMessages, KeepMost: max(n.KeepTokens, n.Threshold/2), MetadataSplits: n.Preset == "pi"}
	if in.keep != nil {
		rule.KeepTokens = *in.keep
		if in.trigger == session.TriggerOverflow {
			rule.KeepMessages = 0
		}
	}
	room := PlanRoom{Threshold: n.Threshold, Fixed: in.fixed, Summary: n.SummaryMax}
	if in.excess > 1 {
		for _, of := range []*int64{&rule.KeepTokens, &rule.KeepMost, &room.Threshold} {
			*of = int64(float64(*of) / in.excess)
		}
	}
	if in.strategy == session.StrategySummarize {
		switch n.Preset {
		case presetCodex:
			return planWords(r.entries(), rule.KeepTokens, room)
		case presetOpencode:
			return planTail(r.entries(), rule.KeepTokens, room)
		}
	}
	if at, ok := r.cutOf(in.like); ok {
		return planAt(r.entries(), at, rule.KeepTokens)
	}
	return MakePlan(r.entries(), rule, room)
}

// cutOf gives where a record that follows the effective overlay cuts what was read.
func (r *reading) cutOf(c *session.Compaction) (Cut, bool) {
	if c == nil || c.FirstKeptID == nil {
		return Cut{}, false
	}
	var details session.CompactionDetails
	decode(c.Details, &details)
	at := Cut{-1, -1}
	for i := range r.path {
		if r.path[i].ID.String() == details.TurnStart {
			at.TurnStart = i
		}
		if r.path[i].RowID == *c.FirstKeptID {
			at.First = i
		}
	}
	return at, at.First > 0
}

// planClear hides everything. Where nobody asked for it just now, what waits for an answer stays.
func (r *reading) planClear(trigger session.Trigger) Plan {
	path := r.entries()
	cut := Cut{len(path), -1}
	if trigger != session.TriggerManual {
		cut = cutAt(path, unanswered(path))
	}
	p := planAt(path, cut, 0)
	if p.Person >= 0 { // it is not shown again
		p.KeptTokens, p.Person = p.KeptTokens-path[p.Person].Tokens, -1
	}
	if p.NoGain = ""; p.Hidden == 0 {
		p.NoGain = "there is nothing to clear"
	}
	return p
}

// entries gives the path as cutting sees it, each message with the weight that it is sent with.
func (r *reading) entries() []Entry {
	entries, tools := make([]Entry, len(r.path)), map[string]string{}
	most := r.numbers.PartMax
	for i := range r.path {
		m := &r.path[i]
		e := Entry{Outputs: r.outputsOf(m, tools), RowID: m.RowID, Kind: m.Kind, Role: m.Role, InContext: m.InContext, Person: fromPerson(m), Reasoning: len(m.Parts) > 0}
		var over int64
		shown := 0 // of the parts: behind an output that is hidden
		for j := range m.Parts {
			p := &m.Parts[j]
			switch p.Kind {
			case session.PartToolCall:
				e.Calls = append(e.Calls, p.CallID)
				tools[p.CallID] = p.ToolName
			case session.PartToolResult:
				e.Results = append(e.Results, p.CallID)
			}
			e.Reasoning = e.Reasoning && p.Kind == session.PartReasoning
			switch {
			case j < shown:
			case p.Kind == session.PartToolResult && r.pruned[outputName(m, j)]:
				var tokens int64
				tokens, shown = m.Output(j)
				over += session.PrunedSaves(tokens)
			case most > 0 && p.Tokens > most && trimmable(p, false):
				over += p.Tokens - most
			}
		}
		e.Tokens = max(1, r.weigh.Message(m, r.edited[m.RowID])-r.weigh.scaled(over))
		entries[i] = e
	}
	return entries
}

// makeOverlay plans an overlay and gives it its summary. It writes nothing.
func (m *Manager) makeOverlay(ctx context.Context, r *reading, in overlayInput) (madeOverlay, error) {
	started := m.cfg.Now()
	in.instructions = strings.TrimSpace(r.numbers.Instructions + "\n\n" + in.instructions)
	out := madeOverlay{plan: r.plan(in)}
	c := &out.record
	*c = session.Compaction{SessionID: r.sess.ID, Strategy: in.strategy, Trigger: in.trigger, TokensBefore: in.before, MessageCount: int64(out.plan.Hidden)}
	if r.overlay != nil {
		c.PreviousID = &r.overlay.RowID
	}
	if out.plan.NoGain != "" {
		return out, nil
	}
	through := r.path[out.plan.First-1]
	c.ThroughID, c.Through, c.HiddenTokens = &through.RowID, &through.ID, through.PathTokens
	if out.plan.First < len(r.path) {
		kept := r.path[out.plan.First]
		c.FirstKeptID, c.FirstKept = &kept.RowID, &kept.ID
	}
	details, err := m.detailsOf(ctx, r, out.plan, in)
	if err != nil {
		return out, err
	}
	var saved int64
	if in.strategy != session.StrategyClear {
		details.System = r.hiddenSystem(out.plan.First)
	}
	details.Pruned, saved = r.stillPruned(out.plan.First)
	c.HiddenTokens += saved
	details.Replaced, saved = r.stillReplaced(out.plan.First)
	c.HiddenTokens += saved
	if out.calls, err = m.summarise(ctx, r, out.plan, in, c, &details); err != nil {
		return out, err
	}
	if p := &out.plan; p.Words != nil {
		kept, size := m.keepWords(r, *p, &details)
		details.Words, details.MidTurn = true, p.Split() && in.trigger != session.TriggerManual
		c.Replacement = session.JSONOf(list(kept))
		c.SummaryTokens += size
	}
	c.Details = session.JSONOf(details)
	c.DurationMS = m.cfg.Now().Sub(started).Milliseconds()
	after := r.under(c)
	d := after.assemble()
	c.TokensAfter = d.Total
	if !in.forced && in.strategy != session.StrategyClear && c.TokensAfter >= r.whole().Total {
		out.plan.NoGain = "the context would not become smaller: what would be hidden is no larger than its summary"
	}
	return out, nil
}

// whole assembles the context with nothing cut to fit, as the one after an overlay is.
func (r *reading) whole() Draft {
	if !r.limits.isCut() {
		return r.assemble()
	}
	whole := *r
	whole.limits.Cuts = nil
	return whole.assemble()
}

// summaryTokens is what the summary's message weighs, by the reference counter.
func (m *Manager) summaryTokens(c *session.Compaction) int64 {
	item, ok := summaryItem(c)
	if !ok {
		return 0
	}
	m.cfg.Counter(m.cfg.Reference).Measure(&item.Message)
	return item.Message.Tokens
}

// clipSummary cuts the end off a summary that passes its budget in spite of what was asked.
func (m *Manager) clipSummary(text string, limit int64) string {
	counter := m.cfg.Counter(m.cfg.Reference)
	for range 8 {
		n := counter.Text(text)
		if limit <= 0 || n <= limit {
			return text
		}
		runes := []rune(text)
		text = string(runes[:int(int64(len(runes))*limit/n)])
	}
	return text
}

// detailsOf gathers what is known without a model: files, cumulative over the chain of
// overlays, and the beginning of a split turn.
func (m *Manager) detailsOf(ctx context.Context, r *reading, p Plan, in overlayInput) (session.CompactionDetails, error) {
	d := session.CompactionDetails{Instructions: in.instructions}
	var before int64
	if r.cutOff && r.overlay != nil {
		last, err := m.lastHidden(ctx, r.overlay)
		if err != nil {
			return d, err
		}
		before = last
	} else if !r.cutOff && r.path[0].ParentID != nil {
		before = *r.path[0].ParentID
	}
	files, err := m.store.TouchedFiles(ctx, before, r.path[p.First-1].RowID)
	if err != nil {
		return d, fmt.Errorf("files of the span: %w", err)
	}
	var earlier session.CompactionDetails
	if r.overlay != nil {
		decode(r.overlay.Details, &earlier)
	}
	d.ReadFiles, d.ModifiedFiles = sortFiles(files, earlier.ReadFiles, earlier.ModifiedFiles)
	switch {
	case p.Split():
		d.TurnStart = r.path[p.TurnStart].ID.String()
	case r.turnStart != nil && p.First < len(r.path) && r.path[p.First].Role == session.Assistant:
		d.TurnStart = r.turnStart.ID.String() // still the same turn
	}
	switch {
	case in.strategy == session.StrategyClear:
	case p.Person >= 0:
		d.LastPerson = r.path[p.Person].ID.String()
	case r.newestOf(fromPerson) == nil: // what the overlay before shows is still the newest
		for _, m := range []*session.Message{r.turnStart, r.person} {
			if m != nil && fromPerson(m) && m.ID.String() != d.TurnStart {
				d.LastPerson = m.ID.String()
				break
			}
		}
	}
	return d, nil
}

// sortFiles adds files to those that were read and modified before. What was read and modified
// counts as modified.
func sortFiles(files []session.TouchedFile, readBefore, modifiedBefore []string) (read, modified []string) {
	all := slices.Clone(readBefore)
	modified = append([]string{}, modifiedBefore...)
	for _, f := range files {
		if f.Op == session.OpRead {
			all = append(all, f.Path)
		} else {
			modified = append(modified, f.Path)
		}
	}
	modified, read = unique(modified), []string{}
	for _, path := range unique(all) {
		if _, too := slices.BinarySearch(modified, path); !too {
			read = append(read, path)
		}
	}
	return read, modified
}

func unique(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}

// under gives what a context is made from once an overlay on this path is in force.
func (r *reading) under(c *session.Compaction) *reading {
	next := *r
	next.overlay, next.fresh, next.turnStart, next.person = c, true, nil, nil
	next.limits.Cuts = nil
	next.readDetails()
	next.warnings = slices.Clip(r.warnings)
	next.frozen = slices.Clip(r.frozen)
	if c.RowID != 0 {
		next.sess.CompactionID = &c.RowID
	}
	next.path = nil
	var details session.CompactionDetails
	decode(c.Details, &details)
	for i := range r.path {
		if r.path[i].RowID >= next.lowest() {
			next.path = r.path[i:]
			break
		}
		next.showAgain(&r.path[i], &details)
	}
	for _, m := range []*session.Message{r.turnStart, r.person} {
		if m != nil {
			next.showAgain(m, &details)
		}
	}
	next.settleSystem()
	return &next
}

// showAgain notes a hidden message that an overlay's details name.
func (r *reading) showAgain(m *session.Message, details *session.CompactionDetails) {
	switch id := m.ID.String(); {
	case r.turnStart == nil && id == details.TurnStart:
		r.turnStart = m
	case r.person == nil && id == details.LastPerson:
		r.person = m
	}
}
