package analytics

import (
	"syscall"
	"unsafe"
)

// resident returns the most memory that the process had.
func resident() uint64 {
	var counters struct {
		size, faults         uint32
		peak, now            uintptr
		pools                [4]uintptr
		pageFile, peakOfFile uintptr
	}
	counters.size = uint32(unsafe.Sizeof(counters))
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0
	}
	get := syscall.NewLazyDLL("kernel32.dll").NewProc("K32GetProcessMemoryInfo")
	if ok, _, _ := get.Call(uintptr(self), uintptr(unsafe.Pointer(&counters)), uintptr(counters.size)); ok == 0 {
		return 0
	}
	return uint64(counters.peak)
}
