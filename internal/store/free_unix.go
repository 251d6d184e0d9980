//go:build linux || darwin || freebsd

package store

import (
	"path/filepath"
	"syscall"
)

// freeBytes returns how much this user can still write to the file system of a file's folder.
func freeBytes(path string) (int64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &fs); err != nil {
		return 0, err
	}
	return int64(fs.Bavail) * int64(fs.Bsize), nil //nolint:unconvert // their types differ between systems
}
