package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
)

type compactBody struct {
	Strategy         session.Strategy `json:"strategy,omitempty" enum:"summarize,truncate,clear" doc:"summarize, truncate (a prefix is hidden) or clear (everything is hidden); default: by the settings"`
	Trigger          session.Trigger  `json:"trigger,omitempty" enum:"manual,overflow" doc:"manual (the default), or overflow: the provider rejected the context as too large"`
	ContextID        string           `json:"context_id,omitempty" doc:"Of an overflow: the rejected context"`
	ReportedTokens   *int64           `json:"reported_tokens,omitempty" doc:"Of an overflow: the context's size as the provider counted it, in tokens"`
	ReportedWindow   *int64           `json:"reported_window,omitempty" doc:"Of an overflow: the model's window as the provider stated it, in tokens"`
	Instructions     text             `json:"instructions,omitempty" doc:"What the summary must mention"`
	Summary          text             `json:"summary,omitempty" doc:"A summary that the caller made"`
	KeepRecentTokens *int64           `json:"keep_recent_tokens,omitempty" doc:"Keep at least so many tokens verbatim; default: by the settings"`
	DryRun           bool             `json:"dry_run,omitempty" doc:"Answer with the plan and write nothing"`
	Model            name             `json:"model,omitempty"`
	Window           *int64           `json:"window,omitempty"`
	MaxOutput        int64            `json:"max_output,omitempty"`
	Settings         settings         `json:"settings,omitempty" doc:"Settings of the context manager for this compaction"`
}

// compactedView is a compaction with its plan. A dry run has no record.
type compactedView struct {
	*session.Compaction
	DryRun bool               `json:"dry_run,omitempty" doc:"This is a plan; nothing was written"`
	Plan   contextmgr.Preview `json:"plan" doc:"What the compaction hides and keeps"`
}

type compactInput struct {
	InSession
	Keyed
	body[compactBody]
	Prefer string `header:"Prefer" doc:"respond-async: answer 202 at once, and compact in the background"`
}

type compactOutput struct {
	Status            int
	Location          string `header:"Location" doc:"Path of the new object"`
	PreferenceApplied string `header:"Preference-Applied" doc:"respond-async, if the work runs in the background"`
	Body              compactedView
}

const respondAsync = "respond-async"

func (s *Server) compactSession(ctx context.Context, in *compactInput) (*compactOutput, error) {
	wanted, err := s.compactionInput(&in.value)
	if err != nil {
		return nil, err
	}
	if err := s.linkContext(ctx, in.ID, in.value.ContextID, &session.Call{}); err != nil {
		return nil, err
	}
	wanted.Idem = in.idem
	list := "/v1/sessions/" + string(in.ID) + "/compactions"
	if wanted.Idem != nil && !wanted.DryRun {
		if earlier, err := s.Store.ReplayedCompaction(ctx, wanted.Idem); err != nil || earlier != nil {
			return replayedCompaction(list, earlier), err
		}
	}
	if s.Run != nil && !wanted.DryRun && strings.Contains(in.Prefer, respondAsync) {
		return s.compactLater(ctx, in.ID, wanted, list)
	}
	made, plan, err := s.Contexts.Compact(ctx, in.ID, wanted)
	if err != nil {
		return nil, err
	}
	out := &compactOutput{Status: http.StatusCreated, Body: compactedView{DryRun: wanted.DryRun, Plan: plan}}
	if wanted.DryRun {
		out.Status = http.StatusOK
	} else {
		out.Location, out.Body.Compaction = list+"/"+made.ID, &made
	}
	return out, nil
}

// replayedCompaction answers a repeated request with the record of the first one.
func replayedCompaction(list string, c *session.Compaction) *compactOutput {
	if c == nil {
		return nil
	}
	out := &compactOutput{
		Status: http.StatusCreated, Location: list + "/" + c.ID,
		Body: compactedView{Compaction: c, Plan: contextmgr.Preview{
			Strategy: c.Strategy, Through: c.Through, FirstKept: c.FirstKept, Hidden: int(c.MessageCount),
			TokensBefore: c.TokensBefore, TokensAfter: c.TokensAfter,
		}},
	}
	switch c.Status {
	case session.StatusSkipped:
		out.Body.Plan.NoGain = c.Reason
	case session.StatusRunning:
		out.Status, out.PreferenceApplied = http.StatusAccepted, respondAsync
	}
	return out
}

// compactLater answers with the record and the plan, and compacts after the answer, with the configured
// model.
func (s *Server) compactLater(ctx context.Context, id session.ID, wanted contextmgr.CompactInput,
	list string,
) (*compactOutput, error) {
	idem := wanted.Idem // stored once the work is accepted: the caller retries a rejected request
	wanted.Model, wanted.Idem = true, nil
	begun, err := s.Contexts.Begin(ctx, id, wanted)
	if err != nil {
		return nil, err
	}
	request := requestOf(ctx).id
	taken := s.Run(func(ctx context.Context) {
		if _, err := begun.Finish(ctx); err != nil && ctx.Err() == nil && session.CodeOf(err) != session.Conflict &&
			!session.IsRepeated(err) {
			s.log.Error().Err(err).Str("request_id", request).Str("session",
				string(id)).Msg("a compaction in the background failed")
		}
	})
	if !taken {
		busy := session.Errorf(session.Busy, "the background queue is full: retry soon, or without Prefer: respond-async")
		return nil, errors.Join(busy, begun.GiveUp(ctx, "not started: the background queue was full"))
	}
	if idem != nil {
		if err := s.Store.AnswerCompaction(ctx, idem, begun.Record); err != nil {
			return nil, err
		}
	}
	return &compactOutput{
		Status: http.StatusAccepted, Location: list + "/" + begun.Record.ID, PreferenceApplied: respondAsync,
		Body: compactedView{Compaction: &begun.Record, Plan: begun.Preview},
	}, nil
}

// compactionInput builds the manager's input. Codes: Invalid.
func (s *Server) compactionInput(b *compactBody) (contextmgr.CompactInput, error) {
	in := contextmgr.CompactInput{
		Strategy: b.Strategy, Trigger: b.Trigger, Instructions: string(b.Instructions), Summary: string(b.Summary),
		KeepTokens: b.KeepRecentTokens, DryRun: b.DryRun,
		Budget: contextmgr.Budget{Model: string(b.Model), MaxOutput: b.MaxOutput},
	}
	if err := cmp.Or(
		positive("reported_tokens", b.ReportedTokens),
		positive("reported_window", b.ReportedWindow),
		positive("window", b.Window),
		notNegative("keep_recent_tokens", b.KeepRecentTokens),
		notNegative("max_output", &b.MaxOutput),
	); err != nil {
		return in, err
	}
	in.ReportedTokens, in.ReportedWindow, in.Window = orZero(b.ReportedTokens), orZero(b.ReportedWindow), orZero(b.Window)
	var err error
	in.Settings, err = s.parseSettings(b.Settings)
	return in, err
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

type listCompactionsInput struct {
	InSession
	Paged
}

func (s *Server) listCompactions(ctx context.Context,
	in *listCompactionsInput,
) (*listOutput[session.Compaction], error) {
	all, err := s.Store.Compactions(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if in.Order == "desc" {
		slices.Reverse(all)
	}
	return replyList(cut(all, &in.Paged, func(c session.Compaction) string { return c.ID }))
}

// InCompaction is the part of an input that names a compaction in the path.
type InCompaction struct {
	InSession
	CID string `path:"cid" doc:"The compaction's id" example:"cmp_12"`

	rowID int64
}

// parsePath parses the session and the compaction. Codes: NotFound.
func (in *InCompaction) parsePath() error {
	err := in.InSession.parsePath()
	if err != nil {
		return err
	}
	if in.rowID, err = session.ParseName("cmp", in.CID); err != nil {
		return session.Errorf(session.NotFound, "no compaction has this id: an id looks like cmp_12")
	}
	return nil
}

func (s *Server) readCompaction(ctx context.Context, in *InCompaction) (*output[session.Compaction], error) {
	return reply(s.Store.Compaction(ctx, in.ID, in.rowID))
}

type changeCompactionInput struct {
	InCompaction
	Keyed
}

// shiftedSession is a session after an undo or a redo.
type shiftedSession struct {
	session.Session
	Warnings []string `json:"warnings,omitempty" doc:"The context is larger than the window: the next turn compacts again"`
}

// replyShifted returns the session as it is now, with a warning if its context is too large.
func (s *Server) replyShifted(ctx context.Context, id session.ID) (*tagged[shiftedSession], error) {
	now, err := s.getSession(ctx, id)
	if err != nil {
		return nil, err
	}
	out := &tagged[shiftedSession]{ETag: now.ETag, Body: shiftedSession{Session: now.Body}}
	warning, err := s.Contexts.SizeWarning(ctx, id)
	if warning != "" {
		out.Body.Warnings = []string{warning}
	}
	return out, err
}

func (s *Server) undoCompaction(ctx context.Context, in *changeCompactionInput) (*tagged[shiftedSession], error) {
	found, err := s.Store.Compaction(ctx, in.ID, in.rowID)
	if err != nil {
		return nil, err
	}
	cancelled := found.Status == session.StatusFailed && found.Reason == session.ReasonCancelled
	switch {
	case in.idem != nil && (found.Undone || cancelled): // by the first attempt of this request
	case found.Status == session.StatusRunning:
		_, err = s.Contexts.Cancel(ctx, in.ID, in.rowID)
	default:
		_, err = s.Contexts.Undo(ctx, in.ID, in.rowID)
	}
	if err != nil {
		return nil, err
	}
	return s.replyShifted(ctx, in.ID)
}

func (s *Server) redoCompaction(ctx context.Context, in *changeCompactionInput) (*tagged[shiftedSession], error) {
	if in.idem != nil {
		now, err := s.Store.Session(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		if now.CompactionID != nil && *now.CompactionID == in.rowID { // by the first attempt of this request
			return s.replyShifted(ctx, in.ID)
		}
	}
	if _, err := s.Contexts.Redo(ctx, in.ID, in.rowID); err != nil {
		return nil, err
	}
	return s.replyShifted(ctx, in.ID)
}

type sourcesInput struct {
	InCompaction
	Paged
	Dialect string `query:"dialect" enum:"native,openai.chat,openai.responses,anthropic,gemini,ui" doc:"Answer in this form: a provider's, or ui, the AI SDK's UIMessage; default: native, sessiond's own"`
}

func (s *Server) listCompactionSources(ctx context.Context, in *sourcesInput) (*listOutput[messageItem], error) {
	refs, err := s.Contexts.Sources(ctx, in.ID, in.rowID)
	if err != nil {
		return nil, err
	}
	if in.Order == "desc" {
		slices.Reverse(refs)
	}
	page, next, err := cut(refs, &in.Paged, session.MessageRef.String)
	if err != nil {
		return nil, err
	}
	msgs, err := s.Store.PageOf(ctx, page, s.reserveLarge)
	if err != nil {
		return nil, err
	}
	if len(msgs) < len(page) {
		next = page[len(msgs)-1].String()
	}
	data, err := listItems(in.Dialect, msgs)
	return replyList(data, next, err)
}
