// Package digest makes summaries without a model: sentences of a conversation, literally, with the standing rules of
// its persons, and an index of its facts. It also makes the parts of a model's summary that no model writes.
package digest
