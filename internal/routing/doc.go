// Package routing decides which session a message from outside belongs to. Its functions map
// values to values: they parse, build and classify keys, find resets in a text, at a day's boundary
// or after an idle window, and list the members that a key's next generation inherits. The caller
// provides the clock, the zone and the database.
//
// The rules are those of Moltbot's session layer (later OpenClaw) without its known faults; the
// conformance cases beside this package name them.
//
// An error of this package has code session.Invalid and names the field at fault: key,
// agent, peer, identity_links, timezone, label, or a reset setting.
package routing
