package session

import (
	"encoding/json"
	"strings"
	"testing"

	"sessiond/internal/testkit"
)

func TestMessageJSONHasContent(t *testing.T) {
	long := strings.Repeat("x", BlobThreshold+1)
	m := Message{ID: MessageRef{Session: "20260211_001", Seq: 2}, Seq: 2, Role: User, Parts: []Part{
		TextPart("a <b>"),
		{Kind: PartReasoning, Text: "hidden"},
		{Kind: PartText, Blob: &Blob{MediaType: "text/plain", Data: []byte(long)}},
		{Kind: PartImage, Blob: &Blob{MediaType: TextBlob, Data: []byte("bytes")}},
	}}
	for _, v := range []any{m, &m, []Message{m}} {
		raw := testkit.Must(MarshalPlain(v))(t)
		if want := `"content":"a <b>\n` + long + `"`; !strings.Contains(string(raw), want) ||
			!strings.Contains(string(raw), `"id":"20260211_001.2"`) {
			t.Errorf("%T: %.300s", v, raw)
		}
	}
	raw, err := json.Marshal(Message{})
	if err != nil || !strings.Contains(string(raw), `"parts":[]`) || !strings.Contains(string(raw), `"content":""`) {
		t.Errorf("an empty message: %s, %v", raw, err)
	}
}
