package openclaw

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"sort"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
)

// events puts a session's lines into a spool, in their order: those of the database, and those
// that it moved to cold storage. early counts what is no line of the transcript.
func (x *databaseReader) events(s *spool, id string, early *history.Records) (*history.Table[row], error) {
	var hot history.Table[placed]
	defer hot.Close()
	query := `SELECT seq, CAST(event_json AS BLOB), COALESCE(created_at, 0), NULL, NULL FROM ` + tableEvents
	if x.has(tableEvents, "event_zstd", "event_utf8_bytes") {
		query = `SELECT seq, CAST(event_json AS BLOB), COALESCE(created_at, 0), event_zstd, event_utf8_bytes FROM ` + tableEvents
	}
	rows, err := x.QueryContext(x.ctx, query+` WHERE session_id = ? ORDER BY seq`, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var seq, made int64
		var text, packed sql.RawBytes
		var length sql.NullInt64
		if err := rows.Scan(&seq, &text, &made, &packed, &length); err != nil {
			return nil, err
		}
		raw := []byte(text)
		if text == nil && packed != nil {
			if raw, err = unpackBytes(packed, maxEvent); err != nil || length.Valid && int64(len(raw)) != length.Int64 {
				x.problem(0, fmt.Sprintf("session %s, event %d: its compressed body is damaged; kept raw", id, seq))
				if raw == nil {
					raw = fmt.Appendf(nil, "zstd %x", []byte(packed))
				}
				raw = append([]byte("damaged: "), raw...)
			}
		}
		at, err := s.put(raw)
		if err != nil {
			return nil, err
		}
		hot.Append(placed{row{at: at, size: int64(len(raw)), made: made}, seq})
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	var cold []placed
	if x.has(tableCold, "session_id", "archive_name", "archive_sha256") {
		there := map[int64]bool{}
		err := x.cold(id, func(seq, made int64, raw []byte) error {
			if there[seq] || isThere(&hot, seq) {
				early.Skip(skipHot, 1)
				return nil
			}
			there[seq] = true
			at, err := s.put(raw)
			cold = append(cold, placed{row{at: at, size: int64(len(raw)), made: made}, seq})
			return err
		}, early)
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(cold, func(a, b placed) int { return cmp.Compare(a.seq, b.seq) })
	all := &history.Table[row]{}
	for i := range int32(hot.Len()) {
		next := *hot.At(i)
		for ; len(cold) > 0 && cold[0].seq < next.seq; cold = cold[1:] {
			all.Append(cold[0].row)
		}
		all.Append(next.row)
	}
	for i := range cold {
		all.Append(cold[i].row)
	}
	return all, nil
}

// placed is an event in the spool, with its number.
type placed struct {
	row
	seq int64
}

// isThere tells whether events, which are in the order of their numbers, hold one.
func isThere(events *history.Table[placed], seq int64) bool {
	i := sort.Search(events.Len(), func(i int) bool { return events.At(int32(i)).seq >= seq })
	return i < events.Len() && events.At(int32(i)).seq == seq
}

// cold yields the events of a session that are in cold storage.
func (x *databaseReader) cold(id string, yield func(seq, made int64, raw []byte) error, early *history.Records) error {
	blob := "NULL"
	if x.has(tableCold, "archive_blob") {
		blob = "archive_blob"
	}
	count := "-1"
	if x.has(tableCold, "event_count") {
		count = "event_count"
	}
	rows, err := x.QueryContext(x.ctx, `SELECT archive_name, archive_sha256, `+count+`, `+blob+` FROM `+tableCold+` WHERE session_id = ? ORDER BY archive_name`, id)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, sum sql.NullString
		var events sql.NullInt64
		var packed []byte
		if err := rows.Scan(&name, &sum, &events, &packed); err != nil {
			return err
		}
		early.Import(1) // the archive's row
		text, err := x.archive(name.String, sum.String, packed)
		if err != nil {
			x.problem(0, fmt.Sprintf("session %s: cold storage %s: %s; its events are missing", id, name.String, history.Reason(err)))
			continue
		}
		n, err := coldEvents(text, yield, early)
		if err != nil {
			return err
		}
		if events.Valid && events.Int64 >= 0 && int64(n) != events.Int64 {
			x.problem(0, fmt.Sprintf("session %s: cold storage %s holds %d events where %d were stored", id, name.String, n, events.Int64))
		}
	}
	return rows.Err()
}

// archive unpacks what the database or a file beside it holds under a hash.
func (x *databaseReader) archive(name, sum string, packed []byte) ([]byte, error) {
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
	text, err := unpackBytes(packed, maxArchive)
	if err != nil {
		return nil, session.Errorf(session.Invalid, "compressed, and damaged: %w", err)
	}
	return text, nil
}

// coldEvents yields the events among the lines of an archive and counts them.
func coldEvents(text []byte, yield func(seq, made int64, raw []byte) error, early *history.Records) (n int, err error) {
	for line := range bytes.Lines(text) {
		o, ok := pi.Parse(line)
		kind := o.String("kind")
		event, is := history.Fields(o.Get("row"))
		seq, numbered := whole(event.Get("seq"))
		switch {
		case ok && kind == "event" && is && numbered:
			raw, _ := history.Text(event.Get("event_json"))
			made, _ := whole(event.Get("created_at"))
			n++
			if err := yield(seq, made, []byte(raw)); err != nil {
				return n, err
			}
		case len(bytes.TrimSpace(line)) > 0:
			early.Skip(skipDerived, 1)
		}
	}
	return n, nil
}

// archives imports the transcripts that were put away whole: earlier generations of a key.
func (x *databaseReader) archives() error {
	encoding := "''"
	if x.has(tableArchives, "encoding") {
		encoding = "encoding"
	}
	rows, err := x.QueryContext(x.ctx, `SELECT session_id, `+encoding+`, COALESCE(reason, ''), COALESCE(session_key, ''), archive_blob,
		COALESCE(archive_sha256, ''), COALESCE(created_at, 0) FROM `+tableArchives+` ORDER BY created_at, session_id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var a archived
		var id sql.NullString
		if err := rows.Scan(&id, &a.encoding, &a.reason, &a.key, &a.packed, &a.sum, &a.made); err != nil {
			return err
		}
		a.id = id.String
		if err := x.archived(a); err != nil {
			return err
		}
	}
	return rows.Err()
}

// archived is a row of the table of archives.
type archived struct {
	id, encoding, reason, key, sum string
	packed                         []byte
	made                           int64 // milliseconds since 1970
}

func (x *databaseReader) archived(a archived) error {
	if a.reason == "deleted" && kindOf(canonicalKey(a.key, x.agent.id, "")) != "cron" {
		x.records.Skip(skipDeleted, 1)
		return nil
	}
	path := x.found.Path + "#" + a.id + "@" + a.sum
	cursor, err := x.known.Cursor(x.ctx, session.SourceOpenClaw, path)
	if err != nil || cursor != nil {
		x.records.Skip(skipUnchanged, 1)
		return err
	}
	text := a.packed
	if hash := sha256.Sum256(a.packed); hex.EncodeToString(hash[:]) != a.sum {
		err = session.Errorf(session.Invalid, "its hash is not the stored one")
	} else if a.encoding == "zstd" {
		text, err = unpackBytes(a.packed, maxArchive)
	}
	if err != nil {
		x.problem(0, fmt.Sprintf("the archived transcript of session %s cannot be read: %s", a.id, history.Reason(err)))
		x.records.Skip("damaged archive", 1)
		return nil
	}
	about := x.agent.sessions[a.id]
	if about == nil {
		about = newAbout(a.id, canonicalKey(a.key, x.agent.id, ""), nil)
	}
	s, err := newSpool()
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // it has no name any more
	r := x.reader(s, path, about)
	for line := range bytes.Lines(text) {
		at, err := s.put(line)
		if err != nil {
			return err
		}
		r.text.rows.Append(row{at: at, size: int64(len(line)), made: a.made})
	}
	x.sessions++
	return x.run(r)
}
