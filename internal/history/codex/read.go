package codex

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"time"

	"sessiond/internal/dialect/responses"
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// quietAfter is how long a file must not have changed for a reply at its end to count as all
// that will come of it.
const quietAfter = 10 * time.Minute

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
	r := &reader{ctx: ctx, file: file, cuts: history.NewCuts(file, found, cutRule()), path: found.Path, known: known, emit: emit, quiet: isQuiet(s.now().Sub(file.modified))}
	switch filepath.Base(found.Path) {
	case indexName:
		return r.names(cursor)
	case promptsName:
		return r.prompts(cursor)
	}
	err = r.open(cursor)
	if err == nil {
		err = r.run()
	}
	return r.problems, err
}

// isQuiet tells whether nothing more is to be waited for. A file from the future says that
// clocks disagree: then waiting would have no end.
func isQuiet(age time.Duration) bool { return age >= quietAfter || age < -time.Minute }

// reader carries one rollout through the second pass.
type reader struct {
	*survey
	ctx      context.Context
	file     *rollout
	cuts     *history.Cuts
	path     string
	known    history.Known
	emit     func(history.Batch) error
	quiet    bool
	cursor   history.Cursor
	state    state
	from     lineage
	awaits   string // the source id of where it comes from, which is not here
	existing *session.Session
	session  history.NewSession
	agent    bool // a sub-agent's
	forked   bool // it begins with copies

	batch     history.Batch
	size      int // bytes in batch
	reply     reply
	spoken    string // the key of the newest reply, which a usage after it is of
	headed    bool   // the header was counted
	inherits  bool   // the record is a copy whose original is not here
	decoder   responses.Decoder
	kept      window // the person's texts, for compactions that do not say what they keep
	problems  []history.Problem
	continues bool
	told      bool  // messages or calls were given away
	begun     int64 // offset where this reading begins
	stood     place // the tip where it begins
}

// open surveys the file and decides where to begin.
func (r *reader) open(cursor *history.Cursor) error {
	before, usable := &state{}, false
	if cursor != nil {
		before, usable = readState(cursor.State)
	}
	if !usable {
		cursor = nil
	}
	var err error
	if r.survey, err = look(r.ctx, r.file, r.file.size, cursor, before, r.quiet, r.cuts); err != nil {
		return err
	}
	if !r.stale {
		if r.existing, err = r.known.Session(r.ctx, session.SourceCodex, r.id); err != nil {
			return err
		}
	}
	// Events that were the conversation, or a compaction that needs all that was said, make the
	// reading begin anew: what is here already is found by its keys.
	if cursor != nil && (r.stale || r.existing == nil || r.plain || r.items != before.Items && before.Line > 1) {
		return r.open(nil)
	}
	r.continues = cursor != nil
	if r.continues {
		r.state = *before
		r.cursor.Counts, r.begun, r.stood = cursor.Counts, cursor.Offset, before.Tip
	}
	return nil
}

func (r *reader) run() error {
	modified := session.At(r.file.modified)
	r.cursor.Source, r.cursor.Path, r.cursor.ModifiedAt = session.SourceCodex, r.path, &modified
	r.cursor.Size, r.cursor.Offset, r.cursor.Hash = r.file.stored, r.limit, r.hash
	if r.limit < r.end {
		r.cursor.Size = -1 // what waits is looked at again, though the file does not change
	}
	var err error
	if r.from, err = r.origins(); err != nil {
		return err
	}
	r.agent = isAgent(r.header)
	r.forked = r.header.String("forked_from_id") != "" || r.foreign || r.header.Get("subagent_history_start_ordinal") != nil
	if !r.continues {
		if err := r.start(); err != nil {
			return err
		}
	}
	if err := r.describe(); err != nil {
		return err
	}
	r.begin()
	lines := history.NewLines(r.file, r.begun, r.limit).Cut(r.cuts)
	for n := 0; ; n++ {
		line, at, ended, err := lines.Next()
		if lines.Offset() < r.limit && !ended && (err == nil || errors.Is(err, io.EOF)) {
			// The cursor says that everything up to the limit was read.
			return session.Errorf(session.Busy, "the file became shorter while it was read: import again")
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if n%256 == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		r.state.Line++
		if err := r.take(line, at, lines.Size()); err != nil {
			return err
		}
		if history.Full(len(r.batch.Messages)+len(r.batch.Calls), r.size) {
			if err := r.give(); err != nil {
				return err
			}
		}
	}
	return r.finish()
}

// start makes the state of a file that is read from its beginning.
func (r *reader) start() error {
	r.state = state{
		Chain: "codex:" + r.from.root, Provider: plainText(r.header.String("model_provider")), LastAt: r.created(),
		Usage: r.from.root, Copying: r.forked && r.from.kind != session.ParentChild,
	}
	return r.findBase()
}

func (r *reader) begin() {
	used := r.batch
	clear(used.Messages) // one may have been large
	r.batch = history.Batch{Cuts: r.cuts}
	r.batch.Messages, r.batch.Calls = used.Messages[:0], used.Calls[:0]
	r.batch.Session = r.session
	if r.existing != nil {
		r.batch.ID = r.existing.ID
	}
	r.size = 0
}

// give emits what was gathered.
func (r *reader) give() error {
	r.told = r.told || len(r.batch.Messages)+len(r.batch.Calls) > 0
	if err := r.emit(r.batch); err != nil {
		return err
	}
	r.begin()
	return r.ctx.Err()
}

// finish gives the last batch: with the head, the title and the cursor.
func (r *reader) finish() error {
	if err := r.closeReply(""); err != nil {
		return err
	}
	r.state.Witnesses, r.state.Items = r.witnesses, r.items
	r.batch.Records.Wait(r.waiting)
	moved := r.continues && r.state.Tip != r.stood // over copies
	if tip := r.state.Tip; tip.Key != "" && (r.told || moved || len(r.batch.Messages) > 0 || r.existing == nil) {
		r.batch.Head, r.batch.HeadSession = &tip.Key, tip.Session
	}
	title := r.name
	if title == "" && !r.continues {
		title = r.title()
	}
	if title == "" && r.existing != nil && r.existing.Title == "" {
		title = r.firstTitle()
	}
	if title != "" {
		r.batch.Title = &title
	}
	var err error
	if r.batch.Fields, err = r.fields(); err != nil {
		return err
	}
	r.state.Awaits = r.awaits
	r.cursor.State = session.JSONOf(r.state)
	r.batch.Cursor = &r.cursor
	return r.emit(r.batch)
}

// fields says what may have changed of a session that is here.
func (r *reader) fields() (*history.Changes, error) {
	f := &history.Changes{Provider: r.state.Provider, Model: r.state.Model}
	if strings.Contains(filepath.ToSlash(r.path), "/"+archive+"/") {
		at := session.At(r.file.modified)
		f.ArchivedAt = &at
	}
	if r.from.parent == nil || r.existing == nil || r.existing.ParentID != "" {
		return f, nil
	}
	circle, err := history.ComesFrom(r.ctx, r.known, r.from.parent, r.existing)
	if !circle { // headers that name one another
		f.ParentID, f.ParentKind = r.from.parent.ID, r.from.kind
	}
	return f, err
}

func (r *reader) problem(number int32, why string) {
	if len(r.problems) < history.MaxProblems {
		r.problems = append(r.problems, history.Problem{Path: r.path, Line: int(number), Error: why})
	}
}
