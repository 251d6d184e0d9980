package engine

import (
	"path/filepath"
	"syscall"
	"testing"

	"sessiond/internal/testkit"
)

func TestNetworkFileSystemsAreKnown(t *testing.T) {
	for number, want := range map[int64]string{
		0x6969: "NFS", 0xff534d42: "CIFS", int64(int32(-0xacb2be)): "CIFS", 0x01021997: "9p", 0xef53: "", 0x01021994: "",
		0x9123683e: "", 0x58465342: "", 0x794c7630: "",
	} {
		if got := networkFileSystems[uint32(number)]; got != want {
			t.Errorf("%#x is %q, want %q", number, got, want)
		}
	}
	path := filepath.Join(t.TempDir(), "sessions.db")
	var st syscall.Statfs_t
	testkit.Check(t, syscall.Statfs(filepath.Dir(path), &st))
	if got := networkFileSystem(path); got != networkFileSystems[uint32(st.Type)] {
		t.Errorf("the test's own folder is on %q", got)
	}
	if got := networkFileSystem("/no such folder/sessions.db"); got != "" {
		t.Errorf("a missing folder is on %q", got)
	}
}
