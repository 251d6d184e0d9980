// Package routing decides which session a message from outside belongs to. Everything in it
// is a function from values to values: keys are read, built, folded and classified; a reset is
// found in a text, in a day's boundary or in an idle window; and what the next generation of
// a key takes over is listed. Whoever calls brings the clock, the zone and the database.
//
// The rules are those of Moltbot's session layer (later OpenClaw) with its known faults
// mended; the conformance cases beside this package say which.
//
// An error of this package has code session.Invalid and names the field at fault: key,
// agent, peer, identity_links, timezone, label, or a reset setting.
package routing
