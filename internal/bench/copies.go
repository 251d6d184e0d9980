package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// copyTranscripts writes each transcript of pi in a folder as often as asked. Each copy has a
// session id and times of its own: else an import would know its calls again, and count them once.
func copyTranscripts(from, to string, copies int) error {
	file := 0
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" {
			return err
		}
		inside, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		for n := range copies {
			file++
			if err := copyTranscript(path, filepath.Join(to, strconv.Itoa(n), inside), file, n); err != nil {
				return fmt.Errorf("copy %s: %w", path, err)
			}
		}
		return nil
	})
}

func copyTranscript(from, to string, file, n int) (err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // a reader
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	header := regexp.MustCompile(`^(.{0,60}"id":")[^"]*"`)
	stamps := regexp.MustCompile(`"timestamp":("[^"]+"|[0-9]{13}\b)`)
	lines, written := bufio.NewReader(in), bufio.NewWriter(out)
	for first := true; ; first = false {
		line, readErr := lines.ReadBytes('\n')
		if first {
			line = header.ReplaceAll(line, fmt.Appendf(nil, `${1}%08x-0000-4000-8000-000000000000"`, file))
		}
		line = stamps.ReplaceAllFunc(line, func(stamp []byte) []byte { return later(stamp, n) })
		if _, err := written.Write(line); err != nil {
			return err
		}
		if errors.Is(readErr, io.EOF) {
			return written.Flush()
		} else if readErr != nil {
			return readErr
		}
	}
}

// later moves a "timestamp": of a text or of milliseconds by so many of these. What is no time stays.
func later(stamp []byte, ms int) []byte {
	name, value, _ := bytes.Cut(stamp, []byte(":"))
	if at, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return fmt.Appendf(nil, "%s:%d", name, at+int64(ms))
	}
	at, err := time.Parse(`"`+time.RFC3339+`"`, string(value))
	if err != nil {
		return stamp
	}
	return fmt.Appendf(nil, `%s:"%s"`, name, at.Add(time.Duration(ms)*time.Millisecond).Format("2006-01-02T15:04:05.000Z07:00"))
}
