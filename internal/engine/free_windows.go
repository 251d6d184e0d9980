package engine

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/windows"
)

func freeBytes(path string) (int64, error) {
	dir, err := windows.UTF16PtrFromString(filepath.Dir(path))
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(dir, &free, nil, nil); err != nil {
		return 0, err
	}
	return int64(min(free, 1<<62)), nil //nolint:gosec // bounded
}

// linkCount returns 1: a file that is open cannot be deleted on Windows, and second names are rare.
func linkCount(fs.FileInfo) int { return 1 }

// networkFileSystem names the network file system of a file; "" for a local one.
func networkFileSystem(path string) string {
	volume := filepath.VolumeName(path)
	if len(volume) > 2 {
		return "a share"
	}
	root, err := windows.UTF16PtrFromString(volume + `\`)
	if err == nil && windows.GetDriveType(root) == windows.DRIVE_REMOTE {
		return "a share"
	}
	return ""
}
