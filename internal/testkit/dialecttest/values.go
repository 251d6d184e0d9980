package dialecttest

import (
	"strings"

	"pgregory.net/rapid"
)

// The generators write JSON by hand, so that it contains what no encoder would write: halves of
// surrogate pairs, numbers in odd spellings, undocumented fields.

// AnyText generates JSON strings in all spellings.
func AnyText() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"a", "word ", "é", "你好", "😀", `\n`, `\"`, `\\`, `\/`, `\u0041`, `\ud83d\ude00`,
		`\ud83d`, `\ude00`, `\u0000`, `\uFFFD`, "�", "<&>", "\u2028", `\b\f`,
	})
	return rapid.Map(rapid.SliceOfN(piece, 0, 4), func(p []string) string { return `"` + strings.Join(p, "") + `"` })
}

// AnyBase64 generates base64 that is canonical, base64 that is not, and other text.
func AnyBase64() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"", "QQ==", "QR==", "QQ", "QUJD", "@", `QQ=\n=`, `Q\u0051==`, "_-8=", PNG})
}

// AnyNumber generates numbers that a float64 would change.
func AnyNumber() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"0", "-0", "1.0", "1e400", "12345678901234567890", "0.1E-7"})
}

// AnyArray generates arrays of an element.
func AnyArray(element *rapid.Generator[string]) *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(element, 0, 4), func(e []string) string { return "[" + strings.Join(e, ",") + "]" })
}

// AnyValue generates JSON values, nested at most so deep.
func AnyValue(depth int) *rapid.Generator[string] {
	leaf := rapid.OneOf(AnyText(), AnyNumber(), rapid.SampledFrom([]string{"true", "false", "null", "{}", "[]"}))
	if depth == 0 {
		return leaf
	}
	object := rapid.Custom(func(r *rapid.T) string {
		v := AnyValue(depth-1).Draw(r, "value")
		known := pick(r, "fields", "", `,"type":"text","text":`+v, `,"type":"exec","url":`+v)
		return `{"k":` + v + `,"\ud800":` + v + known + `}`
	})
	return rapid.OneOf(leaf, AnyArray(AnyValue(depth-1)), object)
}
