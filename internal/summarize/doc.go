// Package summarize makes the text that stands for the hidden part of a conversation: the
// digest, which needs no model and no network, and summaries by a remote model, which fall
// back to the digest. It never writes to a store; what it was asked and what it cost comes
// back with the text.
package summarize
