package history

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"sessiond/internal/session"
)

// Beside begins the reading of a piece of the thing that has a cursor of its own.
func (in *Intake) Beside(path string) *Intake {
	emit := func(b Batch) error {
		in.Emit(b)
		return in.err
	}
	piece := newIntake(in.ctx, in.source, in.Found, nil, in.Known, emit)
	piece.Now, piece.cursor.Path, piece.isPiece = in.Now, path, true
	return piece
}

// partState is what the cursor of a part remembers.
type partState struct {
	Mark    string `json:"mark"`
	Records int    `json:"records"`
	Head    string `json:"head,omitempty"` // as its program had it
}

// Part begins one session of a thing that holds many, with a cursor of its own. It is nil, and
// the session's records are counted as known, if mark, which must change with the session, is
// that of the last reading; and if the reading has failed.
func (in *Intake) Part(id, mark string) *Intake {
	in.sessions++
	in.parts = append(in.parts, id)
	path := in.Found.Path + "#" + id
	before := in.Cursor(path)
	var state partState
	if before != nil && json.Unmarshal(before.State, &state) == nil && state.Mark != "" && state.Mark == mark {
		in.records.Skip(SkipKnown, state.Records)
		return nil
	}
	if in.err != nil {
		return nil
	}
	part := in.Beside(path)
	part.part = partState{Mark: mark, Head: state.Head}
	emit := part.emit
	part.emit = func(b Batch) error {
		part.part.Records += b.Records.Read
		if b.Cursor != nil {
			b.Cursor.State = session.JSONOf(part.part)
		}
		return emit(b)
	}
	return part
}

// RecordPart begins the session that one record of the thing is. Without an id it is named after its content. It is
// nil if the record, and the version of its reader, are those of the last reading; and if the reading has failed.
func (in *Intake) RecordPart(id string, record []byte, reader int) (part *Intake, name string) {
	sum := sha256.Sum256(record)
	if id == "" {
		id = hex.EncodeToString(sum[:8])
	}
	return in.Part(id, fmt.Sprint(reader, hex.EncodeToString(sum[:12]))), id
}

// ReadPart imports a part whose rows were read from a database. If they are damaged, that is a problem, and
// the next part can be read.
func (in *Intake) ReadPart(part *Intake, id string, db *SQLite, read func()) {
	err := db.TakeErr()
	if session.CodeOf(err) == session.Invalid {
		in.Problem(0, "session "+id+": "+Reason(err))
		return
	}
	if in.Fail(err); err == nil {
		read()
		in.FinishPart(part)
	}
}

// ReadBeside reads a piece that Beside began. If it is invalid, that is a problem, and the next one can
// be read.
func (in *Intake) ReadBeside(piece *Intake, name string, read func(*Intake)) {
	piece.read(read)
	switch err := piece.Err(); {
	case err == nil:
		for _, p := range piece.problems {
			in.Problem(p.Line, p.Error)
		}
	case session.CodeOf(err) == session.Invalid:
		in.Problem(0, "session "+name+": "+Reason(err))
	default:
		in.Fail(err)
	}
}

// FinishPart stores what is left of a part. If something in it waits, it is read again.
func (in *Intake) FinishPart(part *Intake) {
	in.problems = append(in.problems, part.problems...)
	if part.again {
		part.part.Mark, in.again = "", true
	}
	switch {
	case len(part.all) == 0:
		in.records.Add(part.records)
	case part.all[0].unused:
		part.all[0].Silent = skipUnused
		part.finishSilent(part.all[0])
	default:
		part.all[0].finish(&part.cursor)
	}
	in.Fail(part.err)
}

// EachGone visits the sessions of parts that the thing had at the reading before, and has no more.
func (in *Intake) EachGone(visit func(*session.Session)) {
	for _, id := range in.earlier {
		if slices.Contains(in.parts, id) {
			continue
		}
		cursor := in.Cursor(in.Found.Path + "#" + id)
		if cursor == nil || cursor.SessionID == "" {
			continue
		}
		if s := in.SessionByID(cursor.SessionID); s != nil {
			visit(s)
		}
	}
}
