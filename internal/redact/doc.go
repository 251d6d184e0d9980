// Package redact masks secrets in text that is about to leave sessiond's own tables: what
// goes to a summary model, into a digest, an index or a recall, and what an error says. It
// knows the shapes of well-known secrets and the names that people give to the others. It is
// a net, not a proof: a password in plain prose has no shape.
package redact
