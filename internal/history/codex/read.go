package codex

import (
	"context"
	"path/filepath"
	"strings"

	"sessiond/internal/dialect/responses"
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Read implements history.Source.
func (s *Source) Read(ctx context.Context, found history.Found, cursor *history.Cursor, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	if generation(found.Path) > 0 {
		return s.mirror(ctx, found, known, emit)
	}
	file, err := open(found.Path)
	if err != nil {
		return nil, err
	}
	defer file.close()
	if file.size == 0 {
		return nil, session.Errorf(session.Invalid, "the file is empty")
	}
	found.Size, found.ModifiedAt = file.stored, file.modified
	in, err := history.NewIntake(ctx, session.SourceCodex, found, file, cursor, known, s.now(), emit)
	if err != nil {
		return nil, err
	}
	in.Unpacked(file.size)
	switch filepath.Base(found.Path) {
	case indexName:
		err = readNames(in)
	case promptsName:
		err = readPrompts(in)
	default:
		err = readRollout(in)
	}
	if err != nil {
		return nil, err
	}
	return in.Finish()
}

// reader adds the records of one rollout.
type reader struct {
	*survey
	in    *history.Intake
	talk  *history.Conversation
	path  string
	state state
	from  lineage

	agent    bool // a sub-agent's
	forked   bool // it begins with copies
	reply    reply
	spoken   string // the key of the newest reply, which a usage after it is of
	headed   bool   // the header was counted
	inherits bool   // the record is a copy whose original is not here
	decoder  responses.Decoder
	kept     window // the person's texts, for compactions that do not say what they keep
}

func readRollout(in *history.Intake) error {
	found, err := look(in)
	if err != nil {
		return err
	}
	r := &reader{survey: found, in: in, path: in.Found.Path}
	if r.talk, err = in.Conversation(history.NewSession{Source: session.SourceCodex, SourceID: r.id}); err != nil {
		return err
	}
	r.talk.CopyReason = skipInherited
	if err := r.start(); err != nil {
		return err
	}
	err = in.EachLine(func(l history.FileLine) error {
		if l.At >= r.limit {
			return nil
		}
		return r.line(l)
	})
	if err != nil {
		return err
	}
	if err := r.closeReply(""); err != nil {
		return err
	}
	if r.waiting > 0 {
		in.Wait(r.limit, r.waiting)
	}
	r.finish()
	return nil
}

// start finds where the thread comes from, and says what its session is.
func (r *reader) start() (err error) {
	if r.from, err = r.origins(); err != nil {
		return err
	}
	r.agent = isAgent(r.header)
	r.forked = r.header.String("forked_from_id") != "" || r.foreign || r.header.Get("subagent_history_start_ordinal") != nil
	r.state = state{
		Chain: "codex:" + r.from.root, Provider: plainText(r.header.String("model_provider")), LastAt: r.created(),
		Usage: r.from.root, Copying: r.forked && r.from.kind != session.ParentChild,
	}
	r.describe()
	if r.from.parent != nil {
		if _, err := r.talk.LinkTo(r.from.parent, r.from.kind, nil); err != nil {
			return err
		}
	}
	if err := r.talk.ForkedFrom(r.from.sessions...); err != nil {
		return err
	}
	return r.findBase()
}

// finish says what the session is now.
func (r *reader) finish() {
	r.talk.Head = r.state.Tip.Key
	title, here := r.name, r.talk.Here
	if title == "" && !r.in.Continues() {
		title = r.title()
	}
	if title == "" && here != nil && here.Title == "" {
		title = r.firstTitle()
	}
	r.talk.Title = title
	if r.talk.Fields == nil {
		r.talk.Fields = &history.Changes{}
	}
	f := r.talk.Fields
	f.Provider, f.Model = r.state.Provider, r.state.Model
	if strings.Contains(filepath.ToSlash(r.path), "/"+archive+"/") {
		at := session.At(r.in.Found.ModifiedAt)
		f.ArchivedAt = &at
	}
}
