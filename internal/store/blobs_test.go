package store

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
)

// pieces returns the sizes of the rows that hold a blob.
func pieces(t testing.TB, s *Store, sha string) (sizes []int) {
	t.Helper()
	testkit.Check(t, s.Reader().Select(&sizes, `SELECT LENGTH(data) FROM blobs WHERE sha256 = ?1 UNION ALL
		SELECT * FROM (SELECT LENGTH(data) FROM blob_pieces WHERE sha256 = ?1 ORDER BY n) AS p`, sha))
	return sizes
}

func long(unit string, n int) string { return strings.Repeat(unit, n/len(unit)+1)[:n] }

func noise(n int) string {
	r := rand.NewChaCha8([32]byte{1})
	b := make([]byte, n)
	_, _ = r.Read(b)
	return string(b)
}

func TestABlobComesBackAsItCameInPieces(t *testing.T) {
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
		{
			"characters of three bytes", strings.Repeat("字", pieceSize), session.PartText,
			[]int{pieceSize - 1, pieceSize - 1, pieceSize - 1, 3},
		},
		{
			"a character of four at the verge", long("x", pieceSize-3) + strings.Repeat("🎉", 9), session.PartReasoning,
			[]int{pieceSize - 3, 36},
		},
		{"bytes", noise(2*pieceSize + 5), session.PartFile, nil},
		{
			"bytes that begin no character", strings.Repeat("\x80", 2*pieceSize), session.PartImage,
			[]int{pieceSize, pieceSize},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openTest(t)
			sess := mustCreate(t, s, NewSession{})
			part := session.Part{Kind: c.kind, Blob: &session.Blob{MediaType: session.TextBlob, Data: []byte(c.data)}}
			mustAppend(t, s, sess.ID, session.Message{Role: session.Tool, Parts: []session.Part{part}})
			got := testkit.Must(s.Message(ctx, *ref(sess.ID, 1)))(t).Parts[0]
			if string(got.Blob.Data) != c.data || got.Blob.Size != int64(len(c.data)) || *got.BlobSHA != hash([]byte(c.data)) {
				t.Fatalf("it came back as %d bytes of %d", len(got.Blob.Data), got.Blob.Size)
			}
			if b := testkit.Must(s.Blob(ctx, *got.BlobSHA))(t); string(b.Data) != c.data {
				t.Errorf("Blob returns %d bytes", len(b.Data))
			}
			if sizes := fmt.Sprint(pieces(t, s, *got.BlobSHA)); c.rows != nil && sizes != fmt.Sprint(c.rows) {
				t.Errorf("rows of %s bytes, not %v", sizes, c.rows)
			}
			if c.kind == session.PartText {
				checkViews(t, s, c.data)
			}
			mustBeHealthy(t, s)
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
	testkit.Check(t, s.Reader().Select(&all, `SELECT data FROM blob_pieces`))
	for i, piece := range all {
		if !utf8.Valid(piece) {
			t.Errorf("piece %d is no text", i+1)
		}
	}
}

func TestALongTextGivesTheTitle(t *testing.T) {
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	mustAppend(t, s, sess.ID, says(session.User, "\n Plan the garden \n"+long("beds\n", 2*pieceSize)))
	if got := testkit.Must(s.Session(t.Context(), sess.ID))(t).Title; got != "Plan the garden" {
		t.Errorf("title %q", got)
	}
}

func TestRejectedBlobsLeaveNoRow(t *testing.T) {
	effort.NotShort(t, "megabytes pass through one goroutine")
	data := long("word ", 2*pieceSize+9)
	for name, c := range map[string]struct {
		data  string
		code  session.Code
		words string
	}{
		"NUL in a text":    {data + "\x00", session.Invalid, "parts[0].text"},
		"a torn character": {data + "\xe5\xad", session.Invalid, "parts[0].text"},
		"too much":         {long("word ", MaxTextBytes+1), session.TooLarge, "over 67108864 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t)
			sess := mustCreate(t, s, NewSession{})
			_, err := s.Append(t.Context(), Append{Session: sess.ID, Messages: []session.Message{says(session.User, c.data)}})
			wants(t, err, c.code, c.words)
			if n := count(t, s, `SELECT (SELECT COUNT(*) FROM blobs) + (SELECT COUNT(*) FROM blob_pieces) + (SELECT COUNT(*) FROM messages)`); n != 0 {
				t.Errorf("%d rows are left", n)
			}
		})
	}
}

func TestPiecesStayAsLongAsAnyPartHoldsThem(t *testing.T) {
	s := openTest(t)
	data := long("shared ", 3*pieceSize)
	one, two := mustCreate(t, s, NewSession{}), mustCreate(t, s, NewSession{})
	mustAppend(t, s, one.ID, says(session.User, data))
	mustAppend(t, s, two.ID, says(session.User, "short"), says(session.Assistant, data))
	if n := count(t, s, `SELECT COUNT(*) FROM blob_pieces`); n != 2 {
		t.Fatalf("%d pieces of one content", n)
	}
	purge(t, s, one.ID)
	if got := testkit.Must(s.Message(t.Context(), *ref(two.ID, 2)))(t); got.Text() != data {
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
	onFile(t)
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	secret := "the-secret-word-of-the-third-piece"
	mustAppend(t, s, sess.ID, says(session.User, long("x", 2*pieceSize)+secret+long("y", 9000)))
	purge(t, s, sess.ID)
	testkit.Check(t, s.Scrub(t.Context()))
	files := testkit.Must(filepath.Glob(s.File() + "*"))(t)
	for _, path := range files {
		if bytes.Contains(testkit.Must(os.ReadFile(path))(t), []byte(secret)) {
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
	b := ImportBatch{
		Session:  NewSession{Source: session.SourcePi, SourceID: "x"},
		Messages: []ImportMessage{{Message: says(session.User, data)}},
	}
	testkit.Check(t, s.prepareImport(&b))
	purge(t, s, old.ID)
	got := testkit.Must(s.Import(t.Context(), b))(t)
	if m := testkit.Must(s.Message(t.Context(), *ref(got.Session.ID, 1)))(t); m.Text() != data {
		t.Errorf("%d bytes", len(m.Text()))
	}
	mustBeHealthy(t, s)
}

func TestABlobWithoutItsLastPieceIsReadAsFarAsItGoes(t *testing.T) {
	onFile(t)
	s := openTest(t)
	data := long("lost ", 3*pieceSize)
	sess := mustCreate(t, s, NewSession{})
	mustAppend(t, s, sess.ID, says(session.User, data))
	testkit.Must(raw(t, s).Exec(`DROP TRIGGER blob_pieces_no_delete; DELETE FROM blob_pieces WHERE n = 2`))(t)
	if got := testkit.Must(s.Message(t.Context(), *ref(sess.ID, 1)))(t); got.Text() != data[:2*pieceSize] {
		t.Errorf("%d bytes", len(got.Text()))
	}
	if got := testkit.Must(s.MessagesAfter(t.Context(), 0, 10))(t); got[0].Text() != data[:2*pieceSize] {
		t.Errorf("%d bytes", len(got[0].Text()))
	}
	_, err := s.Blob(t.Context(), hash([]byte(data)))
	wants(t, err, session.Internal, "sessiond doctor")
	err = s.EachInRange(t.Context(), sess.ID, 1, 1, func(*session.Message) error { return nil })
	wants(t, err, session.Internal, "sessiond doctor")
}

func TestTheIndexIsGivenTheBeginningOfABlob(t *testing.T) {
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	data := long("字", 10*pieceSize)
	mustAppend(t, s, sess.ID, says(session.User, strings.ToValidUTF8(data, "")),
		says(session.User, long("x", 9*pieceSize)), says(session.User, "short"))
	first := testkit.Must(s.MessagesAfter(t.Context(), 0, 10))(t)
	if len(first) != 1 || first[0].Text() != data[:bytesAfter] || first[0].Parts[0].Blob.Size <= 9*pieceSize {
		t.Fatalf("%d messages, %d bytes of %d", len(first), len(first[0].Text()), first[0].Parts[0].Blob.Size)
	}
	if then := testkit.Must(s.MessagesAfter(t.Context(), first[0].RowID, 10))(t); len(then) != 1 ||
		then[0].Text() != long("x", bytesAfter) {
		t.Errorf("%d messages", len(then))
	}
}

func TestAFullDiskInTheMiddleOfABlobLeavesNothingOfIt(t *testing.T) {
	onFile(t)
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	limit := func(pages int64) {
		t.Helper()
		testkit.Check(t, s.Alone(t.Context(), func(t *engine.Tx) error {
			var n int64
			return t.Row(fmt.Sprint(`PRAGMA max_page_count = `, pages), nil, &n)
		}))
	}
	limit(count(t, s, `PRAGMA page_count`) + 2*pieceSize/4096)
	data := long("too much ", 4*pieceSize)
	_, err := s.Append(t.Context(), Append{Session: sess.ID, Messages: []session.Message{says(session.User, data)}})
	wants(t, err, session.StorageFull, "nothing of this request was stored")
	if n := count(t, s, `SELECT (SELECT COUNT(*) FROM blobs) + (SELECT COUNT(*) FROM blob_pieces)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	limit(1 << 30)
	mustAppend(t, s, sess.ID, says(session.User, data))
	mustBeHealthy(t, s)
}

func TestAPageEndsBeforeItGrowsTooLarge(t *testing.T) {
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	for range 5 {
		mustAppend(t, s, sess.ID, says(session.User, long("a page ", pageBytes/2-100)))
	}
	mustAppend(t, s, sess.ID, says(session.User, long("more than a page ", 2*pageBytes)), says(session.User, "last"))
	for _, descending := range []bool{false, true} {
		var seqs []int64
		var sizes []int
		page := MessagePage{Descending: descending}
		for more := true; more; {
			var msgs []session.Message
			var err error
			if msgs, more, err = s.Messages(t.Context(), sess.ID, page); err != nil || len(msgs) == 0 {
				t.Fatal(len(msgs), err)
			}
			sizes = append(sizes, len(msgs))
			for _, m := range msgs {
				seqs = append(seqs, m.Seq)
			}
			page.After, page.Before = seqs[len(seqs)-1], 0
			if descending {
				page.After, page.Before = 0, seqs[len(seqs)-1]
			}
		}
		want := "[1 2 3 4 5 6 7] [2 2 1 1 1]"
		if descending {
			want = "[7 6 5 4 3 2 1] [1 1 2 2 1]"
		}
		if got := fmt.Sprint(seqs, sizes); got != want {
			t.Errorf("got %s", got)
		}
	}
}
