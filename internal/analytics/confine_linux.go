package analytics

import (
	"errors"
	"os/signal"
	"syscall"
)

// confine limits the private memory of the process, in which an allocation then fails, and the size of a file
// that it writes. A limit of the address space would end a Go program at its start.
func confine(memory, file uint64) error {
	signal.Ignore(syscall.SIGXFSZ) // the write fails instead
	return errors.Join(
		syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: memory, Max: memory}),
		syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: file, Max: file}),
	)
}
