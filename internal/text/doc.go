// Package text reads text of any script: its tokens and their stems, the words that tell nothing, characters
// without case and accents.
package text
