package engine

import (
	"path/filepath"
	"slices"
	"syscall"
)

// networkFileSystem names the network file system of a file's folder; "" for a local one.
func networkFileSystem(path string) string {
	var st syscall.Statfs_t
	if syscall.Statfs(filepath.Dir(path), &st) != nil {
		return ""
	}
	var name []byte
	for _, c := range st.Fstypename {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	if slices.Contains([]string{"nfs", "smbfs", "webdav", "afpfs"}, string(name)) {
		return string(name)
	}
	return ""
}
