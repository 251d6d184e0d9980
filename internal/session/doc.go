// Package session is sessiond's kernel: its terms as types. Every other package uses them, so one name
// means one thing in SQL, Go, JSON and on the command line. The db tags are columns, the json tags the
// wire; there is no second wire struct.
//
// An unknown text is the empty string; an unknown number or time is nil.
package session
