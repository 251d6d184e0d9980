package contextmgr

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// overlayInput says how to make an overlay.
type overlayInput struct {
	strategy     session.Strategy
	trigger      session.Trigger
	summarizer   Summarizer
	instructions string
	summary      string              // the caller's own
	keep         *int64              // tokens; nil: as the numbers say
	mustSucceed  bool                // the summarizer is the digest: if it fails, a plain note serves
	forced       bool                // hide even if the context does not become smaller
	fixed        int64               // tokens that no compaction can hide
	before       int64               // tokens of the context now
	sameCut      *session.Compaction // cut where this record does; nil: by the rules
	excess       float64             // provider's count per own count, by which the kept messages must fit; 0: none
}

// madeOverlay is an overlay that is not stored yet.
type madeOverlay struct {
	record session.Compaction
	plan   Plan
	calls  []session.Call
}

func (s *snapshot) newRecord(strategy session.Strategy, in overlayInput) session.Compaction {
	c := session.Compaction{SessionID: s.sess.ID, Strategy: strategy, Trigger: in.trigger, TokensBefore: in.before}
	if s.Overlay != nil {
		c.PreviousID = &s.Overlay.RowID
	}
	return c
}

// plan returns what a compaction of the snapshot hides. Messages that are shown again stay whole if the
// context fits with less of the others; if it does not, they have their share of the threshold.
func (s *snapshot) plan(in overlayInput) Plan {
	path, n := s.entries(), &s.numbers
	room := PlanRoom{Threshold: n.Threshold, Fixed: in.fixed, Summary: n.SummaryMax}
	if in.strategy == session.StrategyClear {
		_, shows := summaryItem(s.Overlay)
		room.Summary = 0
		p := planClear(path, room, shows || len(replaced(s.Overlay)) > 0 || s.Person != nil)
		p.ShownMax = max(n.ShownMax, room.Threshold-room.Fixed-(p.KeptTokens-p.ShownTokens))
		return p
	}
	if in.excess > 1 {
		room.Threshold = int64(float64(room.Threshold) / in.excess)
	}
	var stays int64 // shown by the overlay before, and by this one
	if s.TurnStart != nil && !slices.ContainsFunc(path, func(e Entry) bool { return e.startsTurn() }) {
		stays = s.Weigh.Message(s.TurnStart, false)
	}
	room.Fixed += stays
	left := func(p *Plan) int64 { // outputs are cut first
		rest := room.Threshold - in.fixed - room.Summary - (p.KeptTokens - p.ShownTokens)
		for _, e := range path[p.First:] {
			for _, o := range e.Outputs {
				rest += max(0, min(o.Tokens, n.PartMax)-s.scales.scaled(minPart))
			}
		}
		return rest
	}
	p := s.planWithin(path, room, in)
	if !room.holds(&p) && p.ShownTokens+stays > max(n.ShownMax, left(&p)) {
		room.Shown, room.Fixed = n.ShownMax, room.Fixed-max(0, stays-n.ShownMax)
		p = s.planWithin(path, room, in)
	}
	p.ShownMax = max(n.ShownMax, left(&p))
	return p
}

// planWithin returns what a compaction hides so that the rest has room.
func (s *snapshot) planWithin(path []Entry, room PlanRoom, in overlayInput) Plan {
	n := &s.numbers
	rule := CutRule{
		KeepTokens: n.KeepTokens, KeepMessages: n.KeepMessages, KeepMost: max(n.KeepTokens, n.Threshold/2),
		MetadataSplits: n.Preset == presetPi,
	}
	if in.keep != nil {
		rule.KeepTokens = *in.keep
		if in.trigger == session.TriggerOverflow {
			rule.KeepMessages = 0
		}
	}
	if in.excess > 1 {
		rule.KeepTokens, rule.KeepMost = int64(float64(rule.KeepTokens)/in.excess), int64(float64(rule.KeepMost)/in.excess)
	}
	if in.strategy == session.StrategySummarize {
		switch n.Preset {
		case presetCodex:
			return planWords(path, rule.KeepTokens, room)
		case presetOpencode:
			return planTail(path, rule.KeepTokens, room)
		}
	}
	if cut, ok := s.cutOf(in.sameCut); ok {
		return planAt(path, cut)
	}
	return MakePlan(path, rule, room)
}

// cutOf returns where a record that follows the effective overlay cuts the path.
func (s *snapshot) cutOf(c *session.Compaction) (Cut, bool) {
	if c == nil || c.FirstKeptID == nil {
		return Cut{}, false
	}
	var details session.CompactionDetails
	decode(c.Details, &details)
	at := Cut{-1, -1}
	for i := range s.Messages {
		if s.Messages[i].ID.String() == details.TurnStart {
			at.TurnStart = i
		}
		if s.Messages[i].RowID == *c.FirstKeptID {
			at.First = i
		}
	}
	return at, at.First > 0
}

// entries returns the path as planning sees it, each message with the weight that it is sent with.
func (s *snapshot) entries() []Entry {
	entries, tools := make([]Entry, len(s.Messages)), map[string]string{}
	usual := partLimits{output: s.numbers.PartMax}
	for i := range s.Messages {
		m := &s.Messages[i]
		e := Entry{
			Kind: m.Kind, Role: m.Role, InContext: m.InContext, Person: fromPerson(m),
			Reasoning: len(m.Parts) > 0, Failed: m.Finish == session.FinishError, Outputs: s.outputsOf(m, tools),
		}
		var unsent int64
		hiddenTo := 0 // parts before it belong to a pruned output
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
			case j < hiddenTo:
			case p.Kind == session.PartToolResult && s.Pruned[session.OutputName(m.ID, j)]:
				var tokens int64
				tokens, hiddenTo = m.Output(j)
				unsent += session.PrunedSaves(tokens)
			default:
				if limit := usual.of(m, p); limit > 0 && p.Tokens > limit {
					unsent += p.Tokens - limit
				}
			}
		}
		e.Tokens = max(1, s.Weigh.Message(m, s.Edited[m.RowID])-s.scales.scaled(unsent))
		entries[i] = e
	}
	return entries
}

// makeOverlay plans an overlay and summarises what it hides. It writes nothing.
func (m *Manager) makeOverlay(ctx context.Context, s *snapshot, in overlayInput) (madeOverlay, error) {
	started := m.cfg.Now()
	in.instructions = strings.TrimSpace(s.numbers.Instructions + "\n\n" + in.instructions)
	out := madeOverlay{plan: s.plan(in), record: s.newRecord(in.strategy, in)}
	p, c := &out.plan, &out.record
	c.MessageCount = int64(p.Hidden)
	if p.NoGain != "" {
		return out, nil
	}
	if p.First > 0 {
		through := &s.Messages[p.First-1]
		c.ThroughID, c.Through, c.HiddenTokens = &through.RowID, &through.ID, through.PathTokens
	} else { // it only hides what the overlay before shows
		c.ThroughID, c.Through, c.HiddenTokens = s.Overlay.ThroughID, s.Overlay.Through, s.Overlay.HiddenTokens
	}
	if p.First < len(s.Messages) {
		kept := &s.Messages[p.First]
		c.FirstKeptID, c.FirstKept = &kept.RowID, &kept.ID
	}
	details, err := m.newDetails(ctx, s, p, in)
	if err != nil {
		return out, err
	}
	var saved int64
	if details.TurnStart != "" || details.LastPerson != "" {
		details.Shown = s.scales.unscaled(p.ShownMax)
	}
	details.Pruned, _, saved = outputsIn(s.Messages[p.First:], s.Pruned)
	c.HiddenTokens += saved
	details.Replaced, saved = s.keptReplacements(p.First)
	c.HiddenTokens += saved
	if out.calls, err = m.summarise(ctx, s, p, in, c, &details); err != nil {
		return out, err
	}
	if p.Words != nil {
		words := s.copyWords(p, &details)
		details.Words, details.MidTurn = true, p.Split() && in.trigger != session.TriggerManual
		for i := range words {
			msg := words[i].message()
			m.measure(msg) // also the shared parts
			c.SummaryTokens += msg.Tokens
		}
		c.Replacement = session.JSONOf(nonNil(words))
	}
	c.Details = session.JSONOf(details)
	c.DurationMS = m.cfg.Now().Sub(started).Milliseconds()
	d := s.withOverlay(c).assemble()
	c.TokensAfter = d.Total
	if !in.forced && in.strategy != session.StrategyClear && c.TokensAfter >= s.uncutTotal() {
		p.NoGain = "no gain: the summary would be as large as the messages that it replaces"
	}
	return out, nil
}

// uncutTotal returns the size of the context with nothing cut to fit.
func (s *snapshot) uncutTotal() int64 {
	uncut := *s
	uncut.Limits.Cuts = nil
	d := uncut.assemble()
	return d.Total
}

// newDetails collects what is known without a model: files, cumulative over the chain of
// overlays, and the hidden messages to show again.
func (m *Manager) newDetails(ctx context.Context, s *snapshot, p *Plan,
	in overlayInput,
) (session.CompactionDetails, error) {
	d := session.CompactionDetails{Instructions: in.instructions}
	var before int64
	if s.truncated && s.Overlay != nil {
		last, err := m.lastHidden(ctx, s.Overlay)
		if err != nil {
			return d, err
		}
		before = last
	} else if !s.truncated && p.First > 0 && s.Messages[0].ParentID != nil {
		before = *s.Messages[0].ParentID
	}
	var files []session.TouchedFile
	if p.First > 0 {
		var err error
		if files, err = m.store.TouchedFiles(ctx, before, s.Messages[p.First-1].RowID); err != nil {
			return d, fmt.Errorf("files of the span: %w", err)
		}
	}
	d.ReadFiles, d.ModifiedFiles = addFiles(files, s.details.ReadFiles, s.details.ModifiedFiles)
	switch {
	case p.Split():
		d.TurnStart = s.Messages[p.TurnStart].ID.String()
	case s.TurnStart != nil && p.First < len(s.Messages) && s.Messages[p.First].Role == session.Assistant:
		d.TurnStart = s.TurnStart.ID.String() // the same turn goes on
	}
	if in.strategy == session.StrategyClear {
		return d, nil
	}
	d.System = s.hiddenSystemBefore(p.First)
	switch {
	case p.Person >= 0:
		d.LastPerson = s.Messages[p.Person].ID.String()
	case s.newest(fromPerson) == nil: // the one that the overlay before shows is still the newest
		for _, m := range s.shownAgain() {
			if fromPerson(m) && m.ID.String() != d.TurnStart {
				d.LastPerson = m.ID.String()
				break
			}
		}
	}
	return d, nil
}

// addFiles adds touched files to those read and modified before. A file that was both counts as
// modified.
func addFiles(files []session.TouchedFile, readBefore, modifiedBefore []string) (read, modified []string) {
	all := slices.Clone(readBefore)
	modified = append([]string{}, modifiedBefore...)
	for _, f := range files {
		if f.Op == session.OpRead {
			all = append(all, f.Path)
		} else {
			modified = append(modified, f.Path)
		}
	}
	modified, read = sortedUnique(modified), []string{}
	for _, path := range sortedUnique(all) {
		if _, too := slices.BinarySearch(modified, path); !too {
			read = append(read, path)
		}
	}
	return read, modified
}

func sortedUnique(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}
