// Package store keeps sessions in one SQLite file. It is the only package that reads or
// writes the tables. One goroutine writes, in group commits; a small pool of connections
// reads. What Append acknowledged is on disk.
package store
