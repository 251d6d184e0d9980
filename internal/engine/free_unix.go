//go:build linux || darwin || freebsd

package engine

import (
	"io/fs"
	"path/filepath"
	"syscall"
)

// freeBytes returns how much this user can still write to the file system of a file's folder.
func freeBytes(path string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // their types differ between systems
}

// linkCount returns how many names a file has.
func linkCount(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Nlink) //nolint:unconvert // as above
	}
	return 1
}
