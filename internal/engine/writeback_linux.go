package engine

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriteback makes the kernel write a file's dirty pages now, without waiting for the disk.
func startWriteback(f *os.File) error {
	return unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
}
