package engine

import (
	"context"
	"errors"
	"os"
)

// Disk is what the database takes up, in bytes. A negative number is unknown.
type Disk struct {
	Database int64
	Log      int64 // the write-ahead log
	Free     int64 // of the file system, for this user
}

// Disk reads the sizes of the files and of the file system.
func (s *DB) Disk() Disk {
	if IsPostgres(s.path) {
		size, err := Get[int64](context.Background(), s, `SELECT pg_database_size(current_database())`)
		if err != nil {
			size = -1
		}
		return Disk{Database: size, Log: -1, Free: -1}
	}
	size := func(path string) int64 {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return 0
		case err != nil:
			return -1
		}
		return info.Size()
	}
	d := Disk{Database: size(s.path), Log: size(realPath(s.path) + "-wal"), Free: -1}
	if free, err := freeBytes(s.path); err == nil {
		d.Free = free
	}
	return d
}

// largeLog is the size at which a log is reported. Only a reader that does not end lets it grow so.
const largeLog = 256 << 20

// watchLog reports a log that grows past largeLog, and its end, once each.
func (s *DB) watchLog() {
	log := s.Disk().Log
	large := log >= largeLog
	if s.logIsLarge.Swap(large) == large {
		return
	}
	if !large {
		s.opt.Log.Info().Int64("bytes", log).Msg("the write-ahead log is small again")
		return
	}
	s.opt.Log.Warn().Int64("bytes",
		log).Msgf("the write-ahead log of %s is large: "+
		"another program has been reading for long and keeps it from being emptied; "+
		"end its transaction (`lsof %[1]s` names the program)", s.path)
}
