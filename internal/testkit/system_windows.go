package testkit

import (
	"errors"
	"io/fs"
	"os/exec"
	"time"
)

// Windows has neither named pipes with a path, nor an umask, nor numbers of users and files: tests that need them skip.

func Mkfifo(string, uint32) error { return errors.ErrUnsupported }

func ClearUmask() {}

func RunAs(*exec.Cmd, int, int) {}

func Inode(fs.FileInfo) uint64 { return 0 }

func CPUTime() time.Duration { return 0 }

func ChildrenCPUTime() time.Duration { return 0 }
