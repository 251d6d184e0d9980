package engine

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"

	"sessiond/internal/folders"
)

// LooseMode is a file or folder that other users of the host may read or change.
type LooseMode struct {
	Path       string
	Mode, Want fs.FileMode
}

func (l LooseMode) String() string { return fmt.Sprintf("%s has mode %04o", l.Path, l.Mode) }

// LooseModes returns those of a database's files that are not only the owner's, and its folder if others
// may write there. A folder with the sticky bit, as /tmp, protects its files.
func LooseModes(database string) []LooseMode {
	var found []LooseMode
	add := func(path string, surplus fs.FileMode) {
		info, err := os.Stat(path)
		if err != nil || folders.OpenToOthers(info.Mode(), surplus) == 0 || info.Mode()&fs.ModeSticky != 0 {
			return
		}
		found = append(found, LooseMode{path, info.Mode().Perm(), info.Mode().Perm() &^ surplus})
	}
	for _, end := range []string{"", "-wal", "-shm", "-journal"} {
		add(realPath(database)+end, 0o077)
	}
	add(filepath.Dir(database), 0o022)
	return found
}

// TightenModes makes a database's files the owner's alone. It never opens them: closing one would drop
// SQLite's locks in this process.
func TightenModes(database string, log zerolog.Logger) {
	for _, l := range LooseModes(database) {
		if err := os.Chmod(l.Path, l.Want); err != nil {
			log.Warn().Err(err).Msgf("%s: other users can read or change it; make it %04o", l, l.Want)
			continue
		}
		log.Warn().Msgf("%s: other users could read or change it; it is %04o now", l, l.Want)
	}
}
