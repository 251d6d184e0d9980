package summarize

import (
	"fmt"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func BenchmarkDigestOfAFullWindow(b *testing.B) {
	var msgs []session.Message
	for size := 0; size < 800_000; {
		i := len(msgs)
		text := strings.Repeat(fmt.Sprintf("internal/web/handler%d.go:%d: func handler%d(w http.ResponseWriter) error, which retries %d times.\n", i, i*3, i, i%7), 12)
		m := session.Message{
			RowID: int64(i + 1), Kind: session.KindMessage, Role: []session.Role{session.User, session.Assistant}[i%2], Origin: session.Person,
			Parts: []session.Part{session.TextPart(text)},
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
