package connect

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// keepOwner does nothing: a new file on Windows belongs to the user, and inherits from its folder who may open it.
func keepOwner(*os.File, fs.FileInfo) error { return nil }

func (h Host) lock() *flock.Flock {
	return flock.New(filepath.Join(h.Getenv("HOME"), ".sessiond-connect.lock"), flock.SetPermissions(0o600))
}
