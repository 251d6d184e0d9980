// Package redact masks secrets in text that leaves sessiond's own tables: for a summary model, a
// digest, an index, a recall, an export or an error. It knows the shapes of well-known secrets and
// the names that people give to others. It misses some: a password in plain prose has no shape.
package redact
