package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/pressly/goose/v3"

	"sessiond/db/migrations"
	"sessiond/internal/session"
	"sessiond/internal/testkit/effort"
)

// elsewhere is a content that gives what each opening of it is told to.
type elsewhere func(opening int) (io.Reader, error)

// lies is a part of bytes that lie elsewhere.
func lies(kind session.PartKind, open elsewhere) session.Part {
	return session.Part{Kind: kind, Blob: &session.Blob{MediaType: session.TextBlob, From: &opened{open: open}}}
}

type opened struct {
	open elsewhere
	n    int
}

func (o *opened) Open() (io.Reader, error) {
	o.n++
	return o.open(o.n)
}

// same gives the same bytes each time.
func same(data string) elsewhere {
	return func(int) (io.Reader, error) { return strings.NewReader(data), nil }
}

// far is a message whose text lies elsewhere.
func far(role session.Role, open elsewhere) session.Message {
	return session.Message{Role: role, InContext: true, Display: true, Parts: []session.Part{lies(session.PartText, open)}}
}

// pieces gives the sizes of the rows that hold a blob.
func pieces(t testing.TB, s *Store, sha string) (sizes []int) {
	t.Helper()
	err := s.Reader().Select(&sizes, `SELECT LENGTH(data) FROM blobs WHERE sha256 = ?1 UNION ALL
		SELECT * FROM (SELECT LENGTH(data) FROM blob_pieces WHERE sha256 = ?1 ORDER BY n)`, sha)
	if err != nil {
		t.Fatal(err)
	}
	return sizes
}

func long(unit string, n int) string { return strings.Repeat(unit, n/len(unit)+1)[:n] }

func noise(n int) string {
	r := rand.NewChaCha8([32]byte{1})
	b := make([]byte, n)
	_, _ = r.Read(b)
	return string(b)
}

func TestABlobIsWhatCameWhereverItLay(t *testing.T) {
	effort.NotShort(t, "megabytes pass through one goroutine")
	ctx := context.Background()
	for _, c := range []struct {
		name, data string
		kind       session.PartKind
		rows       []int // bytes of each
	}{
		{"just over the threshold", long("x\n", session.BlobThreshold+1), session.PartText, []int{session.BlobThreshold + 1}},
		{"one full piece", long("x\n", pieceSize), session.PartText, []int{pieceSize}},
		{"a byte more", long("x\n", pieceSize+1), session.PartToolResult, []int{pieceSize, 1}},
		{"four pieces", long("line\n", 3*pieceSize+7), session.PartText, []int{pieceSize, pieceSize, pieceSize, 7}},
		{"characters of three bytes", strings.Repeat("字", pieceSize), session.PartText, []int{pieceSize - 1, pieceSize - 1, pieceSize - 1, 3}},
		{"a character of four at the verge", long("x", pieceSize-3) + strings.Repeat("🎉", 9), session.PartReasoning, []int{pieceSize - 3, 36}},
		{"bytes", noise(2*pieceSize + 5), session.PartFile, nil},
		{"bytes that begin no character", strings.Repeat("\x80", 2*pieceSize), session.PartImage, []int{pieceSize, pieceSize}},
	} {
		t.Run(c.name, func(t *testing.T) {
			shas := map[string]bool{}
			var sizes []string
			for how, part := range map[string]session.Part{
				"held":          {Kind: c.kind, Blob: &session.Blob{MediaType: session.TextBlob, Data: []byte(c.data)}},
				"elsewhere":     lies(c.kind, same(c.data)),
				"in small bits": lies(c.kind, func(int) (io.Reader, error) { return iotest.HalfReader(strings.NewReader(c.data)), nil }),
			} {
				s := openTest(t)
				sess := mustCreate(t, s, NewSession{})
				mustAppend(t, s, sess.ID, session.Message{Role: session.Tool, Parts: []session.Part{part}})
				got := must(s.Message(ctx, *ref(sess.ID, 1)))(t).Parts[0]
				if string(got.Blob.Data) != c.data || got.Blob.Size != int64(len(c.data)) || *got.BlobSHA != hash([]byte(c.data)) {
					t.Fatalf("%s: it came back as %d bytes of %d", how, len(got.Blob.Data), got.Blob.Size)
				}
				shas[*got.BlobSHA] = true
				sizes = append(sizes, fmt.Sprint(pieces(t, s, *got.BlobSHA)))
				if b := must(s.Blob(ctx, *got.BlobSHA))(t); string(b.Data) != c.data {
					t.Errorf("%s: Blob gives %d bytes", how, len(b.Data))
				}
				from := must(s.BlobFrom(ctx, *got.BlobSHA))(t)
				for range 2 {
					if all, err := io.ReadAll(must(from.Open())(t)); err != nil || string(all) != c.data || from.Data != nil || from.Size != int64(len(all)) {
						t.Errorf("%s: BlobFrom gives %d bytes, %v", how, len(all), err)
					}
				}
				if c.kind == session.PartText {
					checkViews(t, s, c.data)
				}
				mustBeHealthy(t, s)
			}
			if len(shas) != 1 || sizes[0] != sizes[1] || sizes[1] != sizes[2] {
				t.Errorf("not the same rows: %v %v", shas, sizes)
			}
			if c.rows != nil && sizes[0] != fmt.Sprint(c.rows) {
				t.Errorf("rows of %s bytes, not %v", sizes[0], c.rows)
			}
		})
	}
}

// checkViews reads the one text as an analyst does.
func checkViews(t *testing.T, s *Store, want string) {
	t.Helper()
	for _, q := range []string{`SELECT text FROM blob_texts`, `SELECT content FROM messages_flat`} {
		var got string
		if err := s.Reader().Get(&got, q); err != nil || got != want {
			t.Errorf("%s: %d bytes, not %d, %v", q, len(got), len(want), err)
		}
	}
	var all [][]byte
	if err := s.Reader().Select(&all, `SELECT data FROM blob_pieces`); err != nil {
		t.Fatal(err)
	}
	for i, piece := range all {
		if !utf8.Valid(piece) {
			t.Errorf("piece %d is no text", i+1)
		}
	}
}

func TestTheBeginningOfAFarTextMakesTheTitle(t *testing.T) {
	s := openTest(t)
	for _, m := range []session.Message{
		far(session.User, same("\n Plan the garden \n"+long("beds\n", 2*pieceSize))),
		says(session.User, "\n Plan the garden \n"+long("beds\n", 2*pieceSize)),
	} {
		sess := mustCreate(t, s, NewSession{})
		mustAppend(t, s, sess.ID, m)
		if got := must(s.Session(t.Context(), sess.ID))(t).Title; got != "Plan the garden" {
			t.Errorf("title %q", got)
		}
	}
}

func TestWhatLiesElsewhereIsReadOnceToMeasureAndOnceToStore(t *testing.T) {
	data := long("word ", 2*pieceSize)
	for name, c := range map[string]struct {
		measure func(*session.Message)
		opened  int
	}{
		"not measured":      {nil, 2},
		"measured":          {func(m *session.Message) { readAll(m, len(data)+1) }, 2},
		"its head measured": {func(m *session.Message) { readAll(m, 100) }, 2},
		"measured twice":    {func(m *session.Message) { readAll(m, 100); readAll(m, len(data)) }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, func(o *Options) { o.Measure = c.measure })
			sess := mustCreate(t, s, NewSession{})
			m := far(session.Assistant, same(data))
			content := m.Parts[0].Blob.From.(*opened)
			mustAppend(t, s, sess.ID, m)
			if content.n != c.opened {
				t.Errorf("opened %d times", content.n)
			}
			if got := must(s.Message(t.Context(), *ref(sess.ID, 1)))(t); got.Text() != data {
				t.Errorf("%d bytes", len(got.Text()))
			}
			mustAppend(t, s, sess.ID, m)
			if content.n != 2*c.opened-1 {
				t.Errorf("known content was opened %d times", content.n-c.opened)
			}
		})
	}
}

func readAll(m *session.Message, n int) {
	if from, err := m.Parts[0].Blob.Open(); err == nil {
		_, _ = io.CopyN(io.Discard, from, int64(n))
	}
}

func TestWhatChangesWhileItIsStoredIsNotStored(t *testing.T) {
	effort.NotShort(t, "megabytes pass through one goroutine")
	data := long("word ", 2*pieceSize+9)
	broken := errors.New("broken")
	then := func(second io.Reader, err error) elsewhere {
		return func(n int) (io.Reader, error) {
			if n == 1 {
				return strings.NewReader(data), nil
			}
			return second, err
		}
	}
	first := func(r io.Reader, err error) elsewhere { return func(int) (io.Reader, error) { return r, err } }
	for _, c := range []struct {
		name  string
		open  elsewhere
		code  session.Code
		words string
	}{
		{"other bytes", then(strings.NewReader(strings.ToUpper(data)), nil), session.Busy, "try again"},
		{"a byte less", then(strings.NewReader(data[1:]), nil), session.Busy, "try again"},
		{"a byte more", then(strings.NewReader(data+"."), nil), session.Busy, "try again"},
		{"a piece more", then(strings.NewReader(data+data), nil), session.Busy, "try again"},
		{"nothing", then(strings.NewReader(""), nil), session.Busy, "try again"},
		{"its own word for it", then(nil, session.Errorf(session.Busy, "the file was rewritten")), session.Busy, "the file was rewritten"},
		{"a failure in its middle", then(io.MultiReader(strings.NewReader(data[:pieceSize+9]), iotest.ErrReader(broken)), nil), session.CodeOf(broken), "broken"},
		{"a failure at first", first(nil, broken), session.CodeOf(broken), "broken"},
		{"a failure at the first reading", first(io.MultiReader(strings.NewReader(data[:99]), iotest.ErrReader(broken)), nil), session.CodeOf(broken), "broken"},
		{"NUL in a text", same(data + "\x00"), session.Invalid, "parts[0].text"},
		{"a torn character", same(data + "\xe5\xad"), session.Invalid, "parts[0].text"},
		{"too much", same(long("word ", MaxTextBytes+1)), session.TooLarge, "over 67108864 bytes"},
	} {
		for _, beside := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, beside), func(t *testing.T) {
				s := openTest(t)
				sess := mustCreate(t, s, NewSession{})
				var err error
				if store := func() {
					_, err = s.Append(t.Context(), Append{Session: sess.ID, Messages: []session.Message{far(session.User, c.open)}})
				}; beside { // in a savepoint
					release := make(chan struct{})
					done := make(chan error, 2)
					go func() { done <- s.write(t.Context(), func(*tx) error { <-release; return nil }) }()
					go func() { store(); done <- nil }()
					close(release)
					<-done
					<-done
				} else {
					store()
				}
				wants(t, err, c.code, c.words)
				if n := count(t, s, `SELECT (SELECT COUNT(*) FROM blobs) + (SELECT COUNT(*) FROM blob_pieces) + (SELECT COUNT(*) FROM messages)`); n != 0 {
					t.Errorf("%d rows are left", n)
				}
				mustAppend(t, s, sess.ID, far(session.User, same(data)))
				mustBeHealthy(t, s)
			})
		}
	}
}

func TestPiecesStayAsLongAsAnyPartHoldsThem(t *testing.T) {
	s := openTest(t)
	data := long("shared ", 3*pieceSize)
	one, two := mustCreate(t, s, NewSession{}), mustCreate(t, s, NewSession{})
	mustAppend(t, s, one.ID, says(session.User, data))
	mustAppend(t, s, two.ID, says(session.User, "short"), far(session.Assistant, same(data)))
	if n := count(t, s, `SELECT COUNT(*) FROM blob_pieces`); n != 2 {
		t.Fatalf("%d pieces of one content", n)
	}
	purge(t, s, one.ID)
	if got := must(s.Message(t.Context(), *ref(two.ID, 2)))(t); got.Text() != data {
		t.Errorf("%d bytes are left", len(got.Text()))
	}
	mustBeHealthy(t, s)
	purge(t, s, two.ID)
	if n := count(t, s, `SELECT (SELECT COUNT(*) FROM blobs) + (SELECT COUNT(*) FROM blob_pieces)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	mustBeHealthy(t, s)
}

func TestAScrubLeavesNoPieceOfAPurgedText(t *testing.T) {
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	secret := "the-secret-word-of-the-third-piece"
	mustAppend(t, s, sess.ID, says(session.User, long("x", 2*pieceSize)+secret+long("y", 9000)))
	purge(t, s, sess.ID)
	if err := s.Scrub(t.Context()); err != nil {
		t.Fatal(err)
	}
	files := must(filepath.Glob(s.File() + "*"))(t)
	for _, path := range files {
		if bytes.Contains(must(os.ReadFile(path))(t), []byte(secret)) {
			t.Errorf("%s still holds it", filepath.Base(path))
		}
	}
}

// What is known when an import is prepared may be gone when it is stored.
func TestAPurgeBetweenMeasuringAndStoring(t *testing.T) {
	s := openTest(t)
	data := long("known ", 2*pieceSize)
	old := mustCreate(t, s, NewSession{})
	mustAppend(t, s, old.ID, says(session.User, data))
	b := ImportBatch{Session: NewSession{Source: session.SourcePi, SourceID: "x"}, Messages: []ImportMessage{{Message: far(session.User, same(data))}}}
	if err := s.PrepareImport(&b); err != nil {
		t.Fatal(err)
	}
	purge(t, s, old.ID)
	got := must(s.Import(t.Context(), b))(t)
	if m := must(s.Message(t.Context(), *ref(got.Session.ID, 1)))(t); m.Text() != data {
		t.Errorf("%d bytes", len(m.Text()))
	}
	mustBeHealthy(t, s)
}

func TestABlobThatIsPurgedWhileItIsReadSaysSo(t *testing.T) {
	s := openTest(t)
	data := long("read ", 3*pieceSize)
	sess := mustCreate(t, s, NewSession{})
	mustAppend(t, s, sess.ID, says(session.User, data))
	b := must(s.BlobFrom(t.Context(), hash([]byte(data))))(t)
	r := must(b.Open())(t)
	if _, err := io.CopyN(io.Discard, r, pieceSize); err != nil {
		t.Fatal(err)
	}
	purge(t, s, sess.ID)
	_, err := io.Copy(io.Discard, r)
	wants(t, err, session.Busy, "breaks off")
	_, err = io.Copy(io.Discard, must(b.Open())(t))
	wants(t, err, session.Busy, "breaks off")
	_, err = s.BlobFrom(t.Context(), b.SHA256)
	wants(t, err, session.NotFound, b.SHA256)
	_, err = s.Blob(t.Context(), b.SHA256)
	wants(t, err, session.NotFound, b.SHA256)
}

func TestABlobWithoutItsLastPieceIsReadAsFarAsItGoes(t *testing.T) {
	s := openTest(t)
	data := long("lost ", 3*pieceSize)
	sess := mustCreate(t, s, NewSession{})
	mustAppend(t, s, sess.ID, says(session.User, data))
	must(raw(t, s).Exec(`DROP TRIGGER blob_pieces_no_delete; DELETE FROM blob_pieces WHERE n = 2`))(t)
	if got := must(s.Message(t.Context(), *ref(sess.ID, 1)))(t); got.Text() != data[:2*pieceSize] {
		t.Errorf("%d bytes", len(got.Text()))
	}
	if got := must(s.MessagesAfter(t.Context(), 0, 10))(t); got[0].Text() != data[:2*pieceSize] {
		t.Errorf("%d bytes", len(got[0].Text()))
	}
}

func TestTheIndexIsGivenTheBeginningOfABlob(t *testing.T) {
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	data := long("字", 10*pieceSize)
	mustAppend(t, s, sess.ID, far(session.User, same(strings.ToValidUTF8(data, ""))), says(session.User, long("x", 9*pieceSize)), says(session.User, "short"))
	first := must(s.MessagesAfter(t.Context(), 0, 10))(t)
	if len(first) != 1 || first[0].Text() != data[:blobsAfter] || first[0].Parts[0].Blob.Size <= 9*pieceSize {
		t.Fatalf("%d messages, %d bytes of %d", len(first), len(first[0].Text()), first[0].Parts[0].Blob.Size)
	}
	if then := must(s.MessagesAfter(t.Context(), first[0].RowID, 10))(t); len(then) != 1 || then[0].Text() != long("x", blobsAfter) {
		t.Errorf("%d messages", len(then))
	}
}

func TestAFullDiskInTheMiddleOfABlobLeavesNothingOfIt(t *testing.T) {
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	limit := func(pages int64) {
		t.Helper()
		if err := s.alone(t.Context(), func(t *tx) error {
			var n int64
			return t.row(fmt.Sprint(`PRAGMA max_page_count = `, pages), nil, &n)
		}); err != nil {
			t.Fatal(err)
		}
	}
	limit(count(t, s, `PRAGMA page_count`) + 2*pieceSize/4096)
	data := long("too much ", 4*pieceSize)
	_, err := s.Append(t.Context(), Append{Session: sess.ID, Messages: []session.Message{far(session.User, same(data))}})
	wants(t, err, session.StorageFull, "nothing of this request was stored")
	if n := count(t, s, `SELECT (SELECT COUNT(*) FROM blobs) + (SELECT COUNT(*) FROM blob_pieces)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	limit(1 << 30)
	mustAppend(t, s, sess.ID, far(session.User, same(data)))
	mustBeHealthy(t, s)
}

// farInChild appends a far text to the session args[1], and says so and stands still where it
// was read to its middle for the second time.
func farInChild(args []string) error {
	s, err := Open(context.Background(), args[0], Options{})
	if err != nil {
		return err
	}
	data := long("cut off ", 6*pieceSize)
	_, err = s.Append(context.Background(), Append{Session: session.ID(args[1]), Messages: []session.Message{far(session.User, func(n int) (io.Reader, error) {
		if n == 1 {
			return strings.NewReader(data), nil
		}
		return io.MultiReader(strings.NewReader(data[:4*pieceSize]), stuck{}), nil
	})}})
	return err
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) {
	fmt.Println("in the middle")
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
	return 0, io.ErrUnexpectedEOF
}

func TestKillInTheMiddleOfABlobLeavesNothingOfIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := must(Open(t.Context(), path, Options{CacheKiB: 1 << 10}))(t) // less than the blob: its pages are in the log
	sess := mustCreate(t, s, NewSession{})
	s.Close()
	cmd := child(t, "far", path, string(sess.ID))
	stdin := must(cmd.StdinPipe())(t)
	defer stdin.Close()
	out := must(cmd.StdoutPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if said := must(io.ReadAll(io.LimitReader(out, int64(len("in the middle\n")))))(t); string(said) != "in the middle\n" {
		t.Fatalf("it said %q", said)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	s = must(Open(t.Context(), path, Options{}))(t)
	defer s.Close()
	if n := count(t, s, `SELECT (SELECT COUNT(*) FROM blobs) + (SELECT COUNT(*) FROM blob_pieces) + (SELECT COUNT(*) FROM messages)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	data := long("cut off ", 6*pieceSize)
	mustAppend(t, s, sess.ID, far(session.User, same(data)))
	if got := must(s.Message(t.Context(), *ref(sess.ID, 1)))(t); got.Text() != data {
		t.Errorf("%d bytes", len(got.Text()))
	}
	mustBeHealthy(t, s)
}

// A file of a version before pieces has blobs of one piece, of any size.
func TestBlobsOfOnePieceStayWhatTheyAre(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	data := long("old ", 9*pieceSize)
	sum := hash([]byte(data))
	beforePieces(t, path, data)
	s := must(Open(t.Context(), path, Options{Zone: time.UTC, Measure: measure}))(t)
	defer s.Close()
	old := session.ID("20260101_001")
	if got := fmt.Sprint(pieces(t, s, sum)); got != fmt.Sprint([]int{len(data)}) {
		t.Fatalf("rows of %s bytes", got)
	}
	if got := must(s.Message(t.Context(), *ref(old, 1)))(t); got.Text() != data {
		t.Errorf("%d bytes", len(got.Text()))
	}
	b := must(s.BlobFrom(t.Context(), sum))(t)
	if all := must(io.ReadAll(must(b.Open())(t)))(t); string(all) != data {
		t.Errorf("BlobFrom gives %d bytes", len(all))
	}
	if got := must(s.MessagesAfter(t.Context(), 0, 10))(t); got[0].Text() != data[:blobsAfter] {
		t.Errorf("the index is given %d bytes", len(got[0].Text()))
	}
	checkViews(t, s, data)
	beside := mustCreate(t, s, NewSession{})
	mustAppend(t, s, beside.ID, far(session.User, same(data))) // known
	for _, check := range must(s.Doctor(t.Context(), false))(t) {
		if strings.Contains(check.Name, "blob") && !check.OK {
			t.Error(check)
		}
	}
	purge(t, s, old)
	if got := must(s.Message(t.Context(), *ref(beside.ID, 1)))(t); got.Text() != data {
		t.Errorf("%d bytes", len(got.Text()))
	}
	purge(t, s, beside.ID)
	if n := count(t, s, `SELECT COUNT(*) FROM blobs`); n != 0 {
		t.Errorf("%d blobs are left", n)
	}
}

// beforePieces makes a file as it was before blobs lay in pieces, with a text of one session.
func beforePieces(t *testing.T, path, text string) {
	t.Helper()
	db := must(sql.Open("sqlite", path))(t)
	defer db.Close()
	must(db.Exec(fmt.Sprint(`PRAGMA auto_vacuum = incremental; PRAGMA application_id = `, applicationID)))(t)
	must(must(goose.NewProvider(goose.DialectSQLite3, db, migrations.FS))(t).UpTo(t.Context(), 12))(t)
	must(db.Exec(`INSERT INTO blobs (sha256, size, media_type, data) VALUES (?, ?, ?, ?)`, hash([]byte(text)), len(text), session.TextBlob, []byte(text)))(t)
	must(db.Exec(`INSERT INTO sessions (id, day, created_at, updated_at, active_at, revision, last_seq, head_id, message_count)
		VALUES ('20260101_001', '2026-01-01', '2026-01-01 00:00:00.000', '2026-01-01 00:00:00.000', '2026-01-01 00:00:00.000', 1, 1, 1, 1)`))(t)
	must(db.Exec(`INSERT INTO messages (id, session_id, seq, depth, role, origin, tokens, path_tokens, day, created_at)
		VALUES (1, '20260101_001', 1, 0, 'user', 'person', 0, 0, '2026-01-01', '2026-01-01 00:00:00.000')`))(t)
	must(db.Exec(`INSERT INTO parts (id, message_id, idx, kind, blob, tokens) VALUES (1024, 1, 0, 'text', ?, 0)`, hash([]byte(text))))(t)
}
