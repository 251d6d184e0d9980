//go:build unix

package testkit

import (
	"io/fs"
	"os/exec"
	"syscall"
	"time"
)

// Mkfifo makes a named pipe.
func Mkfifo(path string, mode uint32) error { return syscall.Mkfifo(path, mode) }

// ClearUmask lets this process make files with all modes that it asks for.
func ClearUmask() { syscall.Umask(0) }

// RunAs lets a command run as another user, which only root may.
func RunAs(cmd *exec.Cmd, uid, gid int) {
	account := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)} //nolint:gosec // ids of the system
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: account}
}

// Inode returns the number of a file in its file system.
func Inode(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }

// CPUTime returns how much CPU this process has used.
func CPUTime() time.Duration { return cpuTime(syscall.RUSAGE_SELF) }

// ChildrenCPUTime returns how much CPU the ended children of this process used.
func ChildrenCPUTime() time.Duration { return cpuTime(syscall.RUSAGE_CHILDREN) }

func cpuTime(who int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
