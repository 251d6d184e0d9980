package claudecode

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// quietAfter is how long a file must not have changed for a reply at its end to count as all
// that will come of it.
const quietAfter = 10 * time.Minute

// Read implements history.Source.
func (s *Source) Read(ctx context.Context, found history.Found, cursor *history.Cursor, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	file, info, err := history.Open(found.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() == 0 {
		return nil, session.Errorf(session.Invalid, "the file is empty")
	}
	r := &reader{
		ctx: ctx, file: file, cuts: history.NewCuts(file, found, cutRule()), path: found.Path, info: info, known: known, emit: emit,
		quiet: isQuiet(s.now().Sub(info.ModTime())), agent: agentOf(found.Path),
	}
	err = r.run(cursor)
	if errors.Is(err, errAnew) { // a row names one that only a reading from the beginning knows
		r.problems = nil
		err = r.run(nil)
	}
	return r.problems, err
}

// isQuiet tells whether nothing more is to be waited for. A file from the future says that
// clocks disagree: then waiting would have no end.
func isQuiet(age time.Duration) bool { return age >= quietAfter || age < -time.Minute }

// errAnew asks for a reading from the beginning.
var errAnew = errors.New("the rows before are needed")

// reader carries one transcript through the second pass.
type reader struct {
	*survey
	ctx       context.Context
	file      *os.File
	cuts      *history.Cuts
	path      string
	info      os.FileInfo
	known     history.Known
	emit      func(history.Batch) error
	quiet     bool
	agent     string // the sub-agent whose file this is
	trunk     string // the session of the program
	existing  *session.Session
	cursor    history.Cursor
	state     state
	continues bool
	told      bool // a batch was given away before the last

	waiting  int             // messages of all streams that were not given away
	bytes    int             // in them
	records  history.Records // since the last batch, of rows that are no message
	seen     map[uint64]uint64
	seed     maphash.Seed
	digest   hash.Hash // of the bytes before the row at hand
	offset   int64     // of the row at hand
	hold     hold      // where the reply begins that is not finished
	queue    []*row    // rows behind its beginning that do not end it
	agents   map[string]bool
	decoder  anthropic.Decoder
	used     []history.Message // the memory of a batch that was given away
	problems []history.Problem
}

// hold is a place in the file to which a reading can go back.
type hold struct {
	offset int64
	line   int32
	hash   string
}

func (r *reader) run(cursor *history.Cursor) error {
	before, usable := &state{}, false
	if cursor != nil {
		before, usable = readState(cursor.State)
	}
	if !usable {
		cursor = nil
	}
	var err error
	if r.survey, err = look(r.ctx, r.file, r.info.Size(), cursor, r.cuts); err != nil {
		return err
	}
	if cursor != nil && r.stale {
		return r.run(nil)
	}
	r.name(cursor, before)
	if r.existing, err = r.known.Session(r.ctx, session.SourceClaudeCode, r.source("")); err != nil {
		return err
	}
	if cursor != nil && r.existing == nil {
		return r.run(nil)
	}
	r.continues = cursor != nil
	r.state = state{LastAt: r.first}
	modified := session.At(r.info.ModTime())
	if r.state.LastAt.IsZero() {
		r.state.LastAt = modified
	}
	r.cursor = history.Cursor{Source: session.SourceClaudeCode, Path: r.path, Size: r.info.Size(), ModifiedAt: &modified}
	r.seen, r.seed, r.digest, r.agents = map[uint64]uint64{}, maphash.MakeSeed(), sha256.New(), map[string]bool{}
	r.records, r.queue, r.hold, r.told = history.Records{}, nil, hold{offset: -1}, false
	r.waiting, r.bytes = 0, 0
	from := int64(0)
	if r.continues {
		r.state, from = *before, cursor.Offset
		for _, id := range r.state.ids() {
			r.state.Streams[id].resume(r.state.LastAt)
		}
		r.cursor.Counts = cursor.Counts
		if _, err := io.Copy(r.digest, io.NewSectionReader(r.file, 0, from)); err != nil {
			return err
		}
	} else if r.unclear() {
		return r.wait()
	}
	if !r.continues || r.state.Copying {
		if err := r.origin(); err != nil {
			return err
		}
	}
	r.state.stream("").started = r.existing != nil
	return r.rows(from)
}

// name finds the session of the program that the file is of.
func (r *reader) name(cursor *history.Cursor, before *state) {
	switch id := stem(r.path); {
	case r.agent != "" || filepath.Base(r.path) == journal+ending:
		if r.trunk = trunkOf(r.path); r.trunk == "" {
			r.trunk = r.id
		}
		if r.trunk == "" {
			r.trunk = filepath.Base(filepath.Dir(r.path))
		}
	case isUUID(id):
		r.trunk = strings.ToLower(id)
	case r.id != "":
		r.trunk = r.id
	default:
		r.trunk = id
	}
	if cursor != nil && before.Streams[""] != nil && before.States["trunk"] != "" {
		r.trunk = before.States["trunk"] // the first reading decides
	}
}

// source gives the id of a stream's session in the program.
func (r *reader) source(stream string) string {
	id := plain(r.trunk)
	switch {
	case r.agent != "":
		id += "#agent-" + plain(r.agent)
	case filepath.Base(r.path) == journal+ending:
		id += "#workflow-" + plain(filepath.Base(filepath.Dir(r.path)))
	}
	if stream != "" {
		id += "#" + stream
	}
	return id
}

func (r *reader) rows(from int64) error {
	lines := history.NewLines(r.file, from, r.info.Size()).Cut(r.cuts)
	end := from
	for n := 0; ; n++ {
		line, at, ended, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if !ended {
			r.records.Wait(1)
			break
		}
		if n%256 == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		r.offset = at
		if err := r.take(line, lines.Size()); err != nil {
			return err
		}
		r.state.Line++
		if err := lines.Write(r.digest, line); err != nil {
			return err
		}
		r.digest.Write([]byte{'\n'})
		end = lines.Offset()
		if err := r.giveLarge(); err != nil {
			return err
		}
	}
	return r.finish(end)
}

func (r *reader) here() hold {
	return hold{r.offset, r.state.Line, hex.EncodeToString(r.digest.Sum(nil))}
}

// finish decides what waits, closes the rest and gives the last batches.
func (r *reader) finish(end int64) error {
	main := r.state.stream("")
	last := hold{end, r.state.Line, hex.EncodeToString(r.digest.Sum(nil))}
	if open := &main.reply; len(open.rows) > 0 && !r.quiet && !open.ended() {
		r.records.Wait(len(open.rows) + len(r.queue))
		last, open.rows, r.queue = r.hold, nil, nil
		r.cursor.Size = -1 // what waits is looked at again, though the file does not change
	}
	if err := r.flush(); err != nil {
		return err
	}
	for _, id := range r.state.ids() {
		st := r.state.Streams[id]
		if n := len(st.reply.rows); n > 0 && !r.quiet && !st.reply.ended() && st.hold() {
			r.records.Wait(n)
			r.cursor.Size = -1
			continue
		}
		if err := r.close(id, st); err != nil {
			return err
		}
		if st.Bill != nil && (r.quiet || st.Bill.Ended) {
			r.settle(id, st)
		} else if st.Bill != nil {
			r.cursor.Size = -1
		}
	}
	r.cursor.Offset, r.cursor.Hash = last.offset, last.hash
	r.state.Line = last.line
	return r.giveLast()
}

// copied is up to which size a line is copied before it is looked at.
const copied = 64 << 10

// take looks at one line, of a size in the file.
func (r *reader) take(line []byte, size int) error {
	if own, w, ok := r.held.Take(r.offset); ok && bytes.Equal(own, line) && !history.DeeperThan(own, history.MaxDepth) {
		return r.placed(w, own)
	}
	if len(line) <= copied { // most rows are kept for a while, the line is not
		line = bytes.Clone(line)
	}
	t, exact, ok := history.ParseTalk(line)
	switch {
	case size > history.MaxLine:
		r.records.Skip(history.SkipLarge, 1)
		r.problem("the line is over 64 MiB; left out")
		return nil
	case !ok && len(bytes.TrimSpace(line)) == 0:
		r.records.Skip(history.SkipBlank, 1)
		return nil
	case !ok:
		return r.verbatim(line, "not a JSON object")
	case history.DeeperThan(line, history.MaxDepth):
		return r.verbatim(line, "nested too deep")
	}
	w := rowOf(t, size)
	if w.kind == typeAssistant || w.uuid == "" || w.kind == typeProgress { // it may be kept, too
		if exact && len(line) > copied {
			line = bytes.Clone(line)
			t, _, _ = history.ParseTalk(line)
			w = rowOf(t, size)
		}
	}
	if !exact {
		w.bytes = bytes.Clone(line)
	}
	return r.placed(w, line)
}

// placed takes a row, of a line, to its place in the file.
func (r *reader) placed(w *row, line []byte) error {
	w.number = r.state.Line + 1
	if w.timed {
		r.state.LastAt = w.at
	} else {
		w.at = r.state.LastAt
	}
	if w.uuid != "" && w.linked() {
		id, what := maphash.String(r.seed, w.uuid), maphash.Bytes(r.seed, line)
		if before, again := r.seen[id]; again {
			if before == what {
				r.records.Skip(history.SkipDuplicate, 1)
				return nil
			}
			return r.revision(w)
		}
		r.seen[id] = what
	}
	return r.row(w)
}

func (r *reader) problem(why string) {
	if len(r.problems) < history.MaxProblems {
		r.problems = append(r.problems, history.Problem{Path: r.path, Line: int(r.state.Line) + 1, Error: why})
	}
}
