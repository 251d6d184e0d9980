// Package contextmgr decides what a model is given now: the system text, the summary of what
// an overlay hides, the messages kept verbatim and the originals that a question calls back.
//
// Everything that decides is a pure function over small values and stands in a file of its
// own: numbers, presets, threshold, cut, plan, repair, trim, assemble, prefix, recall, guard.
// The Manager around them reads, stages and commits. It never waits for a remote model, and
// what only reads never writes.
package contextmgr
