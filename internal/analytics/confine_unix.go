//go:build unix && !linux

package analytics

import (
	"runtime"
	"syscall"
)

// resident returns the most memory that the process had.
func resident() uint64 {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return uint64(used.Maxrss) // bytes
	}
	return uint64(used.Maxrss) << 10
}
