// Package arch holds no code: its test keeps the directions in which packages may import one
// another, as ARCHITECTURE.md draws them.
package arch
