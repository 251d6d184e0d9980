package openclaw

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/jmoiron/sqlx"
	"github.com/klauspost/compress/zstd"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// events reads a session's lines, in their order: those of the database, and those
// that it moved to cold storage. early counts what is no line of the transcript.
func (x *databaseReader) events(id string, early *history.Records) *lines {
	var l lines
	x.hot(id, &l)
	hot := l.rows
	l.rows = nil
	if x.hasCold() {
		x.cold(id, &l, early)
	}
	slices.SortStableFunc(l.rows, func(a, b row) int { return cmp.Compare(a.seq, b.seq) })
	l.rows = merged(hot, l.rows, early)
	return &l
}

// withLent returns a session's lines with those of its file that are ancestors of them and that the database lacks:
// a move to the database that failed leaves both to be written. They stand before the first line that needs them.
func (x *databaseReader) withLent(l *lines, file string) *lines {
	type link struct {
		parent string
		raw    []byte
	}
	have, parents, lacks := map[string]bool{}, make([]string, len(l.rows)), false
	for _, r := range l.rows {
		o, _, _ := history.ParseLine(l.bytes(r.at, r.size))
		have[o.String("id")] = true
	}
	for i, r := range l.rows {
		o, _, _ := history.ParseLine(l.bytes(r.at, r.size))
		parents[i] = o.String("parentId")
		lacks = lacks || parents[i] != "" && !have[parents[i]]
	}
	if !lacks {
		return l
	}
	text, err := history.OpenText(file)
	if err != nil {
		return l // its own reading reports it
	}
	defer text.Close()
	theirs := map[string]link{}
	for line := range history.EachRecord(text, text.Size) {
		if o, _, ok := history.ParseLine(line.Bytes); ok && o.String("id") != "" && !have[o.String("id")] {
			theirs[o.String("id")] = link{o.String("parentId"), line.Bytes}
		}
	}
	all := new(lines)
	for i, r := range l.rows {
		var lent [][]byte
		for at, ok := theirs[parents[i]]; ok; at, ok = theirs[at.parent] {
			lent = append(lent, at.raw)
			delete(theirs, parents[i])
			parents[i] = at.parent
		}
		for _, raw := range slices.Backward(lent) {
			all.put(r.seq, 0, raw)
			all.rows[len(all.rows)-1].lent = true
		}
		all.put(r.seq, r.made, l.bytes(r.at, r.size))
	}
	return all
}

// merged returns events in the order of their numbers. Of those with one number the first of hot
// counts, else the first of cold.
func merged(hot, cold []row, early *history.Records) []row {
	all := []row{}
	for _, c := range cold {
		for len(hot) > 0 && hot[0].seq <= c.seq {
			all, hot = append(all, hot[0]), hot[1:]
		}
		if n := len(all); n > 0 && all[n-1].seq == c.seq {
			early.Skip(skipHot, 1)
			continue
		}
		all = append(all, c)
	}
	return append(all, hot...)
}

// hot reads the events that are in their table.
func (x *databaseReader) hot(id string, into *lines) {
	packed := `NULL, NULL`
	if x.has(tableEvents, "event_zstd", "event_utf8_bytes") {
		packed = `event_zstd, event_utf8_bytes`
	}
	x.Each(func(rows *sqlx.Rows) error {
		return x.event(rows, id, into)
	}, `SELECT seq, CAST(`+x.columns.Column(tableEvents, "event_json",
		"NULL")+` AS BLOB), COALESCE(`+x.columns.Column(tableEvents, "created_at",
		"0")+`, 0), `+packed+` FROM `+tableEvents+` WHERE session_id = ? ORDER BY seq`, id)
}

func (x *databaseReader) event(rows *sqlx.Rows, id string, into *lines) error {
	var seq, made int64
	var text, packed sql.RawBytes
	var length sql.NullInt64
	if err := rows.Scan(&seq, &text, &made, &packed, &length); err != nil {
		return err
	}
	raw := []byte(text)
	if text == nil && packed != nil {
		var err error
		if raw, err = unpack(packed, maxEvent); err != nil || length.Valid && int64(len(raw)) != length.Int64 {
			x.in.Problem(0, fmt.Sprintf("session %s, event %d: its compressed body is damaged; kept raw", id, seq))
			if raw == nil {
				raw = fmt.Appendf(nil, "zstd %x", []byte(packed))
			}
			raw = append([]byte("damaged: "), raw...)
		}
	}
	into.put(seq, made, raw)
	return nil
}

// cold reads the events of a session that are in cold storage.
func (x *databaseReader) cold(id string, into *lines, early *history.Records) {
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
			x.in.Problem(0, fmt.Sprintf("session %s: cold storage %s: %s; its events are missing", id, name.String,
				history.Reason(err)))
			return nil
		}
		if n := coldEvents(text, into, early); events.Valid && events.Int64 >= 0 && int64(n) != events.Int64 {
			x.in.Problem(0, fmt.Sprintf("session %s: cold storage %s holds %d events where %d were stored", id, name.String, n,
				events.Int64))
		}
		return nil
	}, `SELECT archive_name, archive_sha256, `+column("event_count", "-1")+`, `+column("archive_blob",
		"NULL")+` FROM `+tableCold+` WHERE session_id = ? ORDER BY archive_name`, id)
}

// archive unpacks what the database or a file beside it holds under a hash.
func (x *databaseReader) archive(name, sum string, packed []byte) ([]byte, error) {
	if packed == nil {
		folder := filepath.Join(filepath.Dir(filepath.Dir(x.in.Found.Path)), "sessions", "cold")
		file, _, err := history.Open(filepath.Join(folder, filepath.Base(name)))
		if err != nil {
			return nil, err
		}
		defer file.Close()
		if packed, err = io.ReadAll(io.LimitReader(file, maxArchive+1)); err != nil {
			return nil, err
		}
	}
	return unpackArchive(packed, sum, "zstd")
}

// coldEvents reads the events among the lines of an archive and counts them.
func coldEvents(text []byte, into *lines, early *history.Records) (n int) {
	for line := range bytes.Lines(text) {
		o, _, ok := history.ParseLine(line)
		kind := o.String("kind")
		event, is := jsonx.ReadFields(o.Get("row"))
		seq, numbered := pi.Whole(event.Get("seq"))
		switch {
		case ok && kind == "event" && is && numbered:
			raw, _ := jsonx.Text(event.Get("event_json"))
			made, _ := pi.Whole(event.Get("created_at"))
			into.put(seq, made, []byte(raw))
			n++
		case len(bytes.TrimSpace(line)) > 0:
			early.Skip(skipDerived, 1)
		}
	}
	return n
}

// Bounds of what is unpacked: OpenClaw's own are 64 MiB for an archive and 4 MiB for an event.
const (
	maxEvent   = 4 << 20
	maxArchive = 64 << 20
)

// unpackArchive checks an archive by its hash and unpacks it. Codes: Invalid (damaged, too large).
func unpackArchive(packed []byte, sum, encoding string) ([]byte, error) {
	if hash := sha256.Sum256(packed); hex.EncodeToString(hash[:]) != sum {
		return nil, session.Errorf(session.Invalid, "its hash is not the stored one")
	}
	if encoding != "zstd" {
		return packed, nil
	}
	text, err := unpack(packed, maxArchive)
	if err != nil {
		return nil, session.Errorf(session.Invalid, "compressed, and damaged or larger than %d MiB: %w", maxArchive>>20, err)
	}
	return text, nil
}

// unpack returns what a zstd stream holds, at most most bytes.
func unpack(packed []byte, most uint64) ([]byte, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(most),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	return decoder.DecodeAll(packed, nil)
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
	text, err := unpackArchive(a.packed, a.sum, a.encoding)
	if err != nil {
		x.in.Problem(0, fmt.Sprintf("the archived transcript of session %s cannot be read: %s", a.id, history.Reason(err)))
		x.in.Skip("damaged archive", 1)
		return
	}
	about := x.agent.sessions[a.id]
	if about == nil {
		about = newAbout(a.id, canonicalKey(a.key, x.agent.id, ""), nil)
	}
	l := lines{rows: []row{}}
	for line := range bytes.Lines(text) {
		l.put(0, a.made, bytes.TrimSuffix(line, []byte("\n")))
	}
	x.in.CountSession()
	x.run(path, &l, about, history.Records{}, "")
}
