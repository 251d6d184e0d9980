package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is one file of an archive.
type file struct {
	name string // in the archive
	from string // on disk; "": text, or a folder if the name ends with a slash
	text string
	mode fs.FileMode
	uid  int // also its group
}

// content returns what a file has. Programs are read whole: they are some 50 MB.
func (f file) content() ([]byte, error) {
	if f.from == "" {
		return []byte(f.text), nil
	}
	return os.ReadFile(f.from)
}

// writeTarGz packs files in the order of their names, each with the same time and without an owner.
func writeTarGz(to string, files []file, at time.Time) error {
	return create(to, func(out io.Writer) error {
		packed := gzip.NewWriter(out) // its header has neither a name nor a time
		return errors.Join(writeTar(packed, files, at), packed.Close())
	})
}

func writeTar(out io.Writer, files []file, at time.Time) error {
	archive := tar.NewWriter(out)
	for _, f := range sorted(files) {
		content, err := f.content()
		if err != nil {
			return err
		}
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(content)), ModTime: at,
			Uid: f.uid, Gid: f.uid, Format: tar.FormatPAX,
		}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		if _, err := archive.Write(content); err != nil {
			return err
		}
	}
	return archive.Close()
}

func writeZip(to string, files []file, at time.Time) error {
	return create(to, func(out io.Writer) error {
		archive := zip.NewWriter(out)
		for _, f := range sorted(files) {
			content, err := f.content()
			if err != nil {
				return err
			}
			h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
			h.SetMode(f.mode)
			to, err := archive.CreateHeader(h)
			if err != nil {
				return err
			}
			if _, err := to.Write(content); err != nil {
				return err
			}
		}
		return archive.Close()
	})
}

func writeGz(to, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return create(to, func(out io.Writer) error {
		packed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
		if err != nil {
			return err
		}
		_, err = packed.Write(content)
		return errors.Join(err, packed.Close())
	})
}

func create(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func sorted(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int { return strings.Compare(a.name, b.name) })
}

func mapKeys(m map[string]string) iter.Seq[string] { return maps.Keys(m) }

func sha256Of(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// writeJSON writes a value, with the keys of maps in order.
func writeJSON(path string, v any) error {
	text, err := jsonText(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

func jsonText(v any) (string, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return string(text) + "\n", err
}

// writeTree writes files below a folder, and a package of npm of them beside it.
func writeTree(folder, archive string, files []file, at time.Time) error {
	packed := slices.Clone(files)
	for i, f := range files {
		content, err := f.content()
		if err != nil {
			return err
		}
		to := filepath.Join(folder, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, content, f.mode); err != nil {
			return err
		}
		packed[i].name = path.Join("package", f.name)
	}
	return writeTarGz(archive, packed, at)
}
