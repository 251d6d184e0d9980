//go:build unix

package connect

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/gofrs/flock"
)

// keepOwner gives a file to the owner of the one that it replaces.
func keepOwner(temp *os.File, owner fs.FileInfo) error {
	if o, ok := owner.Sys().(*syscall.Stat_t); ok && int(o.Uid) != os.Getuid() {
		return temp.Chown(int(o.Uid), int(o.Gid))
	}
	return nil
}

func (h Host) lock() *flock.Flock { return flock.New(h.Getenv("HOME"), flock.SetFlag(os.O_RDONLY)) }
