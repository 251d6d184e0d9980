package openclaw

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
)

// events puts a session's lines into a spool, in their order: those of the database, and those
// that it moved to cold storage. early counts what is no line of the transcript.
func (x *databaseReader) events(s *spool, id string, early *history.Records) []row {
	hot := x.hot(s, id)
	var cold []placed
	if x.hasCold() {
		x.cold(id, func(seq, made int64, raw []byte) error {
			at, err := s.put(raw)
			cold = append(cold, placed{row{at: at, size: int64(len(raw)), made: made}, seq})
			return err
		}, early)
	}
	slices.SortStableFunc(cold, func(a, b placed) int { return cmp.Compare(a.seq, b.seq) })
	return merged(hot, cold, early)
}

// merged returns events in the order of their numbers. Of those with one number the first of hot
// counts, else the first of cold.
func merged(hot, cold []placed, early *history.Records) []row {
	all := []row{}
	last := placed{}
	for _, c := range cold {
		for len(hot) > 0 && hot[0].seq <= c.seq {
			last = hot[0]
			all = append(all, last.row)
			hot = hot[1:]
		}
		if len(all) > 0 && last.seq == c.seq {
			early.Skip(skipHot, 1)
			continue
		}
		all = append(all, c.row)
		last = c
	}
	for _, h := range hot {
		all = append(all, h.row)
	}
	return all
}

// hot puts the events into the spool that are in their table.
func (x *databaseReader) hot(s *spool, id string) (hot []placed) {
	packed := `NULL, NULL`
	if x.has(tableEvents, "event_zstd", "event_utf8_bytes") {
		packed = `event_zstd, event_utf8_bytes`
	}
	x.Each(func(rows *sqlx.Rows) error { return x.event(rows, s, id, &hot) }, `SELECT seq, CAST(`+x.columns.Column(tableEvents, "event_json", "NULL")+` AS BLOB), COALESCE(`+x.columns.Column(tableEvents, "created_at", "0")+`, 0), `+packed+` FROM `+tableEvents+` WHERE session_id = ? ORDER BY seq`, id)
	return hot
}

func (x *databaseReader) event(rows *sqlx.Rows, s *spool, id string, into *[]placed) error {
	var seq, made int64
	var text, packed sql.RawBytes
	var length sql.NullInt64
	if err := rows.Scan(&seq, &text, &made, &packed, &length); err != nil {
		return err
	}
	raw := []byte(text)
	if text == nil && packed != nil {
		var err error
		if raw, err = unpackBytes(packed, maxEvent); err != nil || length.Valid && int64(len(raw)) != length.Int64 {
			x.in.Problem(0, fmt.Sprintf("session %s, event %d: its compressed body is damaged; kept raw", id, seq))
			if raw == nil {
				raw = fmt.Appendf(nil, "zstd %x", []byte(packed))
			}
			raw = append([]byte("damaged: "), raw...)
		}
	}
	at, err := s.put(raw)
	*into = append(*into, placed{row{at: at, size: int64(len(raw)), made: made}, seq})
	return err
}

// placed is an event in the spool, with its number.
type placed struct {
	row
	seq int64
}

// cold yields the events of a session that are in cold storage.
func (x *databaseReader) cold(id string, yield func(seq, made int64, raw []byte) error, early *history.Records) {
	column := func(name, or string) string { return x.columns.Column(tableCold, name, or) }
	x.Each(func(rows *sqlx.Rows) error {
		var name, sum sql.NullString
		var events sql.NullInt64
		var packed []byte
		if err := rows.Scan(&name, &sum, &events, &packed); err != nil {
			return err
		}
		early.Import(1) // the archive's row
		text, err := x.archive(name.String, sum.String, packed)
		if err != nil {
			x.in.Problem(0, fmt.Sprintf("session %s: cold storage %s: %s; its events are missing", id, name.String, history.Reason(err)))
			return nil
		}
		n, err := coldEvents(text, yield, early)
		if events.Valid && events.Int64 >= 0 && int64(n) != events.Int64 && err == nil {
			x.in.Problem(0, fmt.Sprintf("session %s: cold storage %s holds %d events where %d were stored", id, name.String, n, events.Int64))
		}
		return errors.Join(err, text.Close())
	}, `SELECT archive_name, archive_sha256, `+column("event_count", "-1")+`, `+column("archive_blob", "NULL")+` FROM `+tableCold+` WHERE session_id = ? ORDER BY archive_name`, id)
}

// archive unpacks what the database or a file beside it holds under a hash.
func (x *databaseReader) archive(name, sum string, packed []byte) (*spool, error) {
	if packed == nil {
		file, _, err := history.Open(x.coldFile(name))
		if err != nil {
			return nil, err
		}
		defer file.Close()
		if packed, err = io.ReadAll(io.LimitReader(file, maxArchive+1)); err != nil {
			return nil, err
		}
	}
	if hash := sha256.Sum256(packed); hex.EncodeToString(hash[:]) != sum {
		return nil, session.Errorf(session.Invalid, "its hash is not the stored one")
	}
	return unpack(bytes.NewReader(packed))
}

// coldEvents yields the events among the lines of an archive and counts them.
func coldEvents(text *spool, yield func(seq, made int64, raw []byte) error, early *history.Records) (n int, err error) {
	for line, err := range history.Lines(text, text.size) {
		if err != nil {
			return n, err
		}
		o, ok := pi.Parse(line.Bytes)
		kind := o.String("kind")
		event, is := history.Fields(o.Get("row"))
		seq, numbered := pi.Whole(event.Get("seq"))
		switch {
		case ok && kind == "event" && is && numbered:
			raw, _ := history.Text(event.Get("event_json"))
			made, _ := pi.Whole(event.Get("created_at"))
			n++
			if err := yield(seq, made, []byte(raw)); err != nil {
				return n, err
			}
		case len(bytes.TrimSpace(line.Bytes)) > 0:
			early.Skip(skipDerived, 1)
		}
	}
	return n, nil
}

// archives imports the transcripts that were put away whole: earlier generations of a key.
func (x *databaseReader) archives() {
	column := func(name, or string) string { return x.columns.Column(tableArchives, name, or) }
	x.Each(func(rows *sqlx.Rows) error {
		var a archived
		var id sql.NullString
		if err := rows.Scan(&id, &a.encoding, &a.reason, &a.key, &a.packed, &a.sum, &a.made); err != nil {
			return err
		}
		a.id = id.String
		x.archived(a)
		return nil
	}, `SELECT session_id, `+column("encoding", "''")+`, COALESCE(`+column("reason", "''")+`, ''), COALESCE(`+column("session_key", "''")+`, ''), archive_blob,
		COALESCE(`+column("archive_sha256", "''")+`, ''), COALESCE(`+column("created_at", "0")+`, 0) FROM `+tableArchives+` ORDER BY `+column("created_at", "session_id")+`, session_id`)
}

// archived is a row of the table of archives.
type archived struct {
	id, encoding, reason, key, sum string
	packed                         []byte
	made                           int64 // milliseconds since 1970
}

// text unpacks the transcript. Codes: Invalid (damaged).
func (a *archived) text() (*spool, error) {
	if hash := sha256.Sum256(a.packed); hex.EncodeToString(hash[:]) != a.sum {
		return nil, session.Errorf(session.Invalid, "its hash is not the stored one")
	}
	if a.encoding == "zstd" {
		return unpack(bytes.NewReader(a.packed))
	}
	s, err := newSpool()
	if err != nil {
		return nil, err
	}
	if _, err := s.put(a.packed); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (x *databaseReader) archived(a archived) {
	if a.reason == "deleted" && kindOf(canonicalKey(a.key, x.agent.id, "")) != "cron" {
		x.in.Skip(skipDeleted, 1)
		return
	}
	path := x.in.Found.Path + "#" + a.id + "@" + a.sum
	if x.in.Cursor(path) != nil {
		x.in.Skip(skipUnchanged, 1)
		return
	}
	text, err := a.text()
	if err != nil {
		x.in.Problem(0, fmt.Sprintf("the archived transcript of session %s cannot be read: %s", a.id, history.Reason(err)))
		x.in.Skip("damaged archive", 1)
		return
	}
	about := x.agent.sessions[a.id]
	if about == nil {
		about = newAbout(a.id, canonicalKey(a.key, x.agent.id, ""), nil)
	}
	defer text.Close() //nolint:errcheck // it has no name any more
	rows := []row{}
	for line, err := range history.Lines(text, text.size) {
		x.in.Fail(err)
		size := line.End - line.At
		if line.Ended {
			size--
		}
		rows = append(rows, row{at: line.At, size: size, made: a.made})
	}
	x.in.CountSession()
	x.run(path, text, rows, about, history.Records{}, "")
}
