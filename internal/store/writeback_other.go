//go:build !linux

package store

import "os"

// startWriteback writes a file's dirty pages to disk.
func startWriteback(f *os.File) error { return f.Sync() }
