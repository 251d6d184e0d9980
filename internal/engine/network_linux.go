package engine

import (
	"path/filepath"
	"syscall"
)

// networkFileSystems are those without the locks and the shared memory of SQLite's log, by their numbers in statfs(2).
var networkFileSystems = map[uint32]string{
	0x6969: "NFS", 0xff534d42: "CIFS", 0xfe534d42: "SMB", 0x517b: "SMB", 0x01021997: "9p", 0x5346414f: "AFS",
	0x00c36400: "Ceph", 0x0bd00bd0: "Lustre", 0x7461636f: "OCFS2", 0x73757245: "Coda",
}

// networkFileSystem names the network file system of a file's folder; "" for a local one.
func networkFileSystem(path string) string {
	var st syscall.Statfs_t
	if syscall.Statfs(filepath.Dir(path), &st) != nil {
		return ""
	}
	return networkFileSystems[uint32(st.Type)] //nolint:gosec // its numbers have 32 bits
}
