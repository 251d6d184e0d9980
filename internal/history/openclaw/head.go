package openclaw

import (
	"io"
	"path/filepath"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
)

// head is what the beginning of a transcript says without reading the rest.
type head struct {
	sid   string // the session's id, with its topic
	begun session.Time
	whole bool // there was a header
}

// headBytes is how much of a file is looked at for its header.
const headBytes = 16 << 10

// readHead reads a transcript's header. Where there is none, the name says which session it
// is of, and the time of the file when it was.
func readHead(path string) head {
	name := parseName(filepath.Base(path))
	h := head{sid: sidOf(name.id, name.topic)}
	file, info, err := history.Open(path)
	if err != nil {
		return h
	}
	defer file.Close()
	h.begun = session.At(info.ModTime())
	var in io.Reader = file
	if name.zstd {
		decoder, err := history.Unzstd(file)
		if err != nil {
			return h
		}
		defer decoder.Close()
		in = decoder
	}
	beginning := make([]byte, headBytes)
	n, _ := io.ReadFull(in, beginning) // what could be read
	header, _ := history.FirstRecord(beginning[:n])
	if header.String("type") != lineSession {
		return h
	}
	if id := header.String("id"); id != "" && name.kind != fileBackup {
		h.sid = sidOf(id, name.topic)
	}
	if begun, ok := pi.Time(header.Get("timestamp")); ok {
		h.begun = begun
	}
	h.whole = true
	return h
}

// head is readHead for a source that looks at the same files again and again. The source is
// locked.
func (s *source) head(path string) head {
	h, known := s.heads[path]
	if !known {
		if h = readHead(path); h.whole {
			s.heads[path] = h
		}
	}
	return h
}

// sidOf names a session within its agent.
func sidOf(id, topic string) string {
	if topic == "" {
		return id
	}
	return id + "-topic-" + topic
}
