//go:build !linux

package engine

import "os"

// startWriteback writes a file's dirty pages to disk.
func startWriteback(f *os.File) error { return f.Sync() }
