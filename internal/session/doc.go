// Package session is sessiond's kernel: the words of the system as types. Every other
// package speaks in them, so one name means one thing in SQL, Go, JSON and on the command
// line. The db tags are columns, the json tags the wire; there is no second wire struct.
//
// Text that is not known is the empty string, a number or a time that is not known is nil.
package session
