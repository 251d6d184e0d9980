package digest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func BenchmarkDigestOfAFullWindow(b *testing.B) {
	var msgs []session.Message
	for size := 0; size < 800_000; {
		i := len(msgs)
		text := strings.Repeat(fmt.Sprintf("internal/web/handler%d.go:%d: func handler%d(w http.ResponseWriter) error, "+
			"which retries %d times.\n", i, i*3, i, i%7), 12)
		m := session.Message{
			RowID: int64(i + 1), Kind: session.KindMessage, Role: []session.Role{session.User, session.Assistant}[i%2],
			Origin: session.Person,
			Parts:  []session.Part{session.TextPart(text)},
		}
		size += len(text)
		msgs = append(msgs, m)
	}
	e := NewExtractive(func(s string) int64 { return int64(len(s)+3) / 4 })
	b.ReportAllocs()
	for b.Loop() {
		testkit.Must(e.Summarize(b.Context(), session.SummaryRequest{Messages: msgs, MaxTokens: 2000}))(b)
	}
}

// BenchmarkDigestOfASession makes a digest of what people, the model and tools say in a long session: requests,
// this project's pages and its source.
func BenchmarkDigestOfASession(b *testing.B) {
	read := func(pattern string) (texts []string) {
		for _, path := range testkit.Must(filepath.Glob(pattern))(b) {
			texts = append(texts, string(testkit.Must(os.ReadFile(path))(b)))
		}
		return texts
	}
	prose, code := read("../../../docs/*.md"), read("../../store/*.go")
	requests := strings.Split(string(testkit.Must(os.ReadFile("testdata/briefs.txt"))(b)), "\n%%%% ")
	var msgs []session.Message
	add := func(role session.Role, origin session.Origin, part session.Part) {
		msgs = append(msgs, session.Message{
			RowID: int64(len(msgs) + 1), Kind: session.KindMessage, Role: role,
			Origin: origin, Parts: []session.Part{part},
		})
	}
	size := 0
	for i := 0; size < 3<<20; i++ {
		said, file := strings.Split(prose[i%len(prose)], "\n## "), code[i%len(code)]
		add(session.User, session.Person, session.TextPart(requests[i%len(requests)]))
		for _, text := range said {
			add(session.Assistant, session.Model, session.TextPart(text))
			size += len(text)
		}
		add(session.Tool, session.ByTool, session.Part{Kind: session.PartToolResult, Text: file})
		size += len(file)
	}
	e := NewExtractive(func(s string) int64 { return int64(len(s)+3) / 4 })
	b.SetBytes(int64(size))
	b.ReportAllocs()
	var text string
	for b.Loop() {
		text = testkit.Must(e.Summarize(b.Context(), session.SummaryRequest{Messages: msgs, MaxTokens: 2000}))(b).Text
	}
	b.Logf("%d messages, %x", len(msgs), sha256.Sum256([]byte(text)))
}
