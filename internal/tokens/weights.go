package tokens

// The families below have no public exact tokenizer. Their weights are those of o200k times a
// ratio and are NOT checked against a real one. Scale corrects the remaining error with the
// counts that the provider reports.

// claudeRatio is for words, marks and white space alike. Anthropic counts more tokens for a
// text than OpenAI does, and its migration guide states up to 1.35 times as many again from
// Opus 4.7 on, depending on the text. This ratio is a guess at the tokenizer before that; to
// compact a little too early does less harm than too late.
const claudeRatio = 1.2

func claudeWeights() weights {
	w := scaled(o200kWeights(), claudeRatio)
	for _, class := range []int{hanRuns, hanChars, hiragana, katakana, hangul, cyrillicWords, cyrillic} {
		w[class] *= 1.1 // scripts other than Latin are assumed to pay more for a smaller vocabulary
	}
	return w
}

// geminiWeights counts each digit of a number: Google's vocabulary splits numbers into single
// digits, as the reports on Gemma say. The rest of its 256k pieces is assumed to be like o200k.
func geminiWeights() weights {
	w := o200kWeights()
	w[digitGroups], w[digits], w[digitSpaces] = 0, 1, 1
	return w
}

// defaultWeights are for unknown tokenizers: a tenth more than o200k, since most vocabularies are
// smaller.
func defaultWeights() weights { return scaled(o200kWeights(), 1.1) }

func scaled(w weights, ratio float32) weights {
	for i := range w {
		w[i] *= ratio
	}
	return w
}
