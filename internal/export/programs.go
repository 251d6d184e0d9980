package export

import (
	"cmp"
	"context"
	"io"

	"sessiond/internal/handover"
	"sessiond/internal/history"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/history/codex"
	"sessiond/internal/history/copilotcli"
	"sessiond/internal/history/geminicli"
	"sessiond/internal/history/goose"
	"sessiond/internal/history/opencode"
	"sessiond/internal/history/pi"
	"sessiond/internal/history/qwencode"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Targets are the programs whose sessions are written. env says where they keep them.
func Targets(env func(string) string) []history.Target {
	return []history.Target{
		claudecode.NewTarget(env),
		codex.NewTarget(env),
		pi.NewTarget(env),
		opencode.NewTarget(),
		geminicli.NewTarget(env),
		qwencode.NewTarget(env),
		copilotcli.NewTarget(env),
		goose.NewTarget(),
	}
}

// targetEncoders are the formats of the programs.
func targetEncoders() (all []encoder) {
	for _, t := range Targets(func(string) string { return "" }) {
		all = append(all, encoder{Format(t.Source), t.MediaType, t.Extension, false, writeFor(t)})
	}
	return all
}

// writeFor returns a function that writes a session's path as a session of a program: the whole conversation, without
// compactions.
func writeFor(t history.Target) func(context.Context, io.Writer, *store.Store, []session.ID, *Options) (Report, error) {
	return func(ctx context.Context, out io.Writer, s *store.Store, ids []session.ID, opt *Options) (Report, error) {
		id, err := onlySession(ctx, s, ids)
		if err != nil {
			return Report{}, err
		}
		r, err := read(ctx, s, id, opt)
		if err != nil {
			return Report{}, err
		}
		report := Report{Sessions: []session.ID{id}}
		d := history.Draft{
			ID: t.NewID(r.CreatedAt, "export "+string(id)), Title: cmp.Or(r.Title, string(id)), Directory: r.Directory,
			GitBranch: r.GitBranch, Provider: r.Provider, Model: r.Model, CreatedAt: r.CreatedAt,
		}
		if d.Handover, err = HandoverOf(ctx, s, &r.Session); err != nil {
			return report, err
		}
		if d.Labels, err = r.labels(ctx); err != nil {
			return report, err
		}
		d.Each = func(yield func(*session.Message) error) error {
			var carrier handover.Carrier // eachOnPath masks
			err := CarryAll(ctx, &carrier, r.eachOnPath, yield)
			report.Messages, report.LeftOut = carrier.Said, carrier.Left
			return err
		}
		err = t.Write(out, &d)
		return report, err
	}
}

// HandoverOf names a session and its newest message in the file that is written of it.
func HandoverOf(ctx context.Context, s *store.Store, sess *session.Session) (*history.Handover, error) {
	h := &history.Handover{Session: sess.ID, Source: sess.Source, SourceID: sess.SourceID, Created: sess.CreatedAt}
	if sess.HeadID == nil {
		return h, nil
	}
	head, err := s.MessageByID(ctx, *sess.HeadID)
	if err != nil {
		return nil, err
	}
	h.Message, h.Key, h.At = head.ID, head.ExternalID, head.CreatedAt
	if head.ID.Session == sess.ID {
		return h, nil
	}
	of, err := s.Session(ctx, head.ID.Session) // a fork that has no messages of its own
	h.Session, h.Source, h.SourceID, h.Created = of.ID, of.Source, of.SourceID, of.CreatedAt
	return h, err
}

// onlySession returns the only session.
func onlySession(ctx context.Context, s *store.Store, ids []session.ID) (session.ID, error) {
	ids, err := idsOrAll(ctx, s, ids)
	if err != nil {
		return "", err
	}
	if len(ids) != 1 {
		return "", session.Errorf(session.Invalid, "a file of this format holds one session, not %d", len(ids))
	}
	return ids[0], nil
}
