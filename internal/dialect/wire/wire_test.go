package wire_test

import (
	"testing"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func TestDataURLTakesOnlyWhatItGivesBack(t *testing.T) {
	for url, want := range map[string]bool{
		"data:image/png;base64,QUJD":        true,
		"data:image/png;name=a;base64,QUI=": true,
		"data:image/png;base64,QUI":         false,
		"data:image/png;base64,QUJ=":        false, // bits that encoding would not set
		"data:image/png;base64,QUJD\n":      false,
		"data:image/png;base64,":            false,
		"data:image/png,QUJD":               false,
		"data:;base64,QUJD":                 false,
		"DATA:image/png;base64,QUJD":        false,
		"https://x/data:a;base64,QUJD":      false,
	} {
		if _, _, _, ok := wire.DataURL(url); ok != want {
			t.Errorf("%q: %v", url, ok)
		}
	}
}

func TestMediaOf(t *testing.T) {
	blob := wire.Blob("image/png", []byte("x"))
	for _, c := range []struct {
		part session.Part
		want wire.Media
	}{
		{session.Part{Kind: session.PartImage}, wire.Media{}},
		{session.Part{Kind: session.PartImage, Blob: blob}, wire.Media{MediaType: "image/png"}},
		{
			session.Part{Kind: session.PartImage, Blob: blob, Extra: session.JSON(`{"media_type":"image/jpeg","other":[1]}`)},
			wire.Media{MediaType: "image/jpeg"},
		},
		{session.Part{Kind: session.PartImage, Extra: session.JSON(`{"url":"https://x","detail":7}`)}, wire.Media{}},
		{
			session.Part{Kind: session.PartFile, Extra: session.JSON(`{"file_id":"f","name":"n"}`)},
			wire.Media{FileID: "f", Name: "n"},
		},
	} {
		if got := wire.MediaOf(&c.part); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.part.Extra, got, c.want)
		}
	}
}

func TestExtraKeepsEveryStringAsItCame(t *testing.T) {
	raw := session.JSON(`{"signature":"\u0041\ud800","item":{},"rest":{"a":"\ud800\u0000","n":1.0e400},"raw":{"b":"\/"}}`)
	var x wire.Extra
	testkit.Check(t, wire.ReadExtra(raw, &x))
	if got := x.JSON(); string(got) != string(raw) {
		t.Errorf("got %s, want %s", got, raw)
	}
	if x.Item == nil {
		t.Error("an empty item is an item")
	}
	if none := (&wire.Extra{}).JSON(); none != nil {
		t.Errorf("nothing is %s", none)
	}
}

// Exports of older versions name the remainder fields.
func TestExtraReadsTheOldNameOfTheRest(t *testing.T) {
	var x wire.Extra
	testkit.Check(t, wire.ReadExtra(session.JSON(`{"fields":{"a":1}}`), &x))
	if got := string(x.JSON()); got != `{"rest":{"a":1}}` {
		t.Errorf("got %s", got)
	}
}
