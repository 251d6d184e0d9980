package tokens

// features counts the pieces of a text by class, in the order of the constants below.
type features [featureCount]int32

// weights has the cost in tokens of one piece of each class.
type weights [featureCount]float32

// of returns the estimate: the counts times the weights.
func (w *weights) of(f *features) float64 {
	var sum float64
	for i, n := range f {
		if n != 0 {
			sum += float64(n) * float64(w[i])
		}
	}
	return sum
}

// A word is a run of letters with one case shape: HTTPServer and server are one, camelCase
// is two. Its cost depends on its shape, its length and what precedes it.
const (
	shapeLower = iota // word
	shapeTitle        // Word, HTTPServer
	shapeUpper        // WORD
	shapes
)

// What precedes a word. Tokenizers put one character that is neither a letter, a digit
// nor a line break into the word's own piece.
const (
	afterNothing = iota // the start, a line break, more than one mark
	afterSpace
	afterTab
	afterMark  // one mark: .word, (word, _word
	afterLower // a border inside camelCase
	afterDigit
	befores
)

const longestWord = 16 // letters; a longer word costs more by the letter

// The classes. Counts are of pieces, where a name does not say characters.
const (
	wordLength   = 0                                      // + shape*longestWord + letters-1
	wordBefore   = wordLength + shapes*longestWord        // + shape*befores + before
	wordLetters  = wordBefore + shapes*befores + iota - 2 // letters beyond longestWord
	wordAccents                                           // letters of Latin script outside ASCII
	wordAccented                                          // words with such letters
	contractions                                          // 's, 't, 'll …
	digitGroups                                           // of up to three
	digits                                                // characters
	digitSpaces                                           // a space before a number, which is its own piece
	marks1                                                // runs of ASCII punctuation, by length
	marks2
	marks3
	marks4       // four and longer
	marksSpaced  // of these, runs with a space before them
	marksChanges // beyond four characters: those that differ from the one before
	marksSame    // and those that do not
	marksBreak   // of these, runs that a line break follows at once
	breaks       // white space that ends in a line break
	breaksMany   // of these, those of more than one line
	breakLines   // lines beyond the second
	indents      // spaces before a piece that takes only the last one
	indentsLong  // each 16 spaces beyond the first
	tabs         // runs of tabs before a piece
	denseRuns    // base64, keys, hashes: long runs of mixed letters and digits
	denseLetters
	denseHex // characters of those that are hexadecimal
	hanRuns
	hanRare // characters outside the block of the common ones
	hanChars
	hiragana
	katakana
	hangulRuns
	hangul
	widePunct // 。、，「」
	cyrillicWords
	cyrillic
	cyrillicLong // letters beyond six
	greekWords
	greek
	semiticWords // Arabic, Hebrew
	semitic
	brahmicRuns // Devanagari, Thai and their kin
	brahmic
	otherLetters // of any other script
	quotes       // typographic punctuation: “ ” ’ – — … •
	symbolRuns   // arrows, boxes, mathematics
	symbols
	symbolsSame // beyond the first of the same
	emoji
	joiners // zero-width joiners, variation selectors
	controls
	broken // bytes that are no UTF-8
	featureCount
)
