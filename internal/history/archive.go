package history

import (
	"archive/zip"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// ExportOf is a service whose exports are read. It has no usual place: only what the user names is read.
func ExportOf(service session.Source, match func(name string) bool, read func(*Intake), now func() time.Time) *Program {
	return &Program{
		Source: service, Folders: InFolders(), Now: now, Order: SortedBy(ByName), Replay: read,
		Search: func(f *Finder, folder string) { f.Archives(folder, match) },
	}
}

// Archive is what a service exports: a zip, or one file of it that was unpacked, with the others beside it.
type Archive struct {
	in      *Intake
	zip     *zip.Reader // nil: a file
	entries map[string]*zip.File
}

// OpenArchive opens the found file. Codes: Invalid (a damaged zip).
func (in *Intake) OpenArchive() *Archive {
	a := &Archive{in: in, entries: map[string]*zip.File{}}
	head := make([]byte, 4)
	if n, _ := in.file.ReadAt(head, 0); n < 4 || string(head) != "PK\x03\x04" {
		return a
	}
	opened, err := zip.NewReader(in.file, in.length)
	if err != nil {
		in.Fail(session.Errorf(session.Invalid, "the zip is damaged or not complete: %v", err))
		return nil
	}
	a.zip = opened
	for _, entry := range opened.File {
		a.entries[entry.Name] = entry
	}
	return a
}

// unpackedLimit and unpackedRatio say which entries of a zip are no bombs.
const (
	unpackedLimit = 64 << 20
	unpackedRatio = 200
)

// EachFile visits the JSON files whose names match, each to be read once, in the order of the archive.
func (a *Archive) EachFile(match func(name string) bool, visit func(name string, text io.Reader)) {
	if a.zip == nil {
		visit(filepath.Base(a.in.Found.Path), io.NewSectionReader(a.in.file, 0, a.in.length))
		return
	}
	for _, entry := range a.zip.File {
		name := entry.Name
		junk := strings.HasPrefix(name, "__MACOSX/") || strings.HasPrefix(path.Base(name), "._")
		if a.in.Err() != nil || junk || !match(path.Base(name)) {
			continue
		}
		if why := refusal(entry); why != "" {
			a.in.Problem(0, "entry "+Plain(name)+": "+why+"; left out")
			continue
		}
		text, err := entry.Open()
		if err != nil {
			a.in.Problem(0, "entry "+Plain(name)+": "+err.Error())
			continue
		}
		visit(name, io.LimitReader(text, int64(entry.UncompressedSize64)))
		_ = text.Close() // its checksum was compared while it was read
	}
}

// EachConversation visits the records in the files whose names match, with no fields for one that is no object, and
// returns how many of them visit reports to be conversations. A file that breaks off behind one is a problem.
func (a *Archive) EachConversation(match func(name string) bool,
	visit func(o jsonx.Object, raw jsontext.Value) (isConversation bool),
) (found int) {
	a.EachFile(match, func(name string, text io.Reader) {
		err := EachObject(text, func(raw jsontext.Value) {
			o, ok := jsonx.ReadObject(raw)
			if !ok {
				o = nil
			}
			if visit(o, raw) {
				found++
			}
		})
		if err != nil && found > 0 {
			a.in.Problem(0, Plain(name)+": "+Reason(err))
		}
	})
	return found
}

func refusal(entry *zip.File) string {
	switch size := entry.UncompressedSize64; {
	case strings.HasPrefix(entry.Name, "/") || strings.Contains(entry.Name, ".."):
		return "its name leads out of the archive"
	case size > unpackedLimit && size > unpackedRatio*entry.CompressedSize64:
		return "it unpacks to more than 200 times its size"
	}
	return ""
}

// Asset returns the bytes of the first file whose name begins with an id, nil if there is none, or it is too large.
func (a *Archive) Asset(id string) []byte {
	if id == "" || strings.ContainsAny(id, `/\*?[`) {
		return nil
	}
	if a.zip == nil {
		folder := filepath.Dir(a.in.Found.Path)
		for _, pattern := range []string{id + "*", "*/" + id + "*", "*/*/" + id + "*"} {
			files, _ := filepath.Glob(filepath.Join(escapeGlob(folder), pattern)) // the pattern is a good one
			for _, file := range files {
				if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Size() <= MaxLine/2 {
					data, _ := ReadFile(file)
					return data
				}
			}
		}
		return nil
	}
	for _, entry := range a.zip.File {
		if !strings.HasPrefix(path.Base(entry.Name), id) || entry.UncompressedSize64 > MaxLine/2 || refusal(entry) != "" ||
			strings.HasPrefix(entry.Name, "__MACOSX/") {
			continue
		}
		text, err := entry.Open()
		if err != nil {
			return nil
		}
		defer text.Close()
		data, err := io.ReadAll(io.LimitReader(text, MaxLine/2))
		if err == nil {
			return data
		}
	}
	return nil
}

func escapeGlob(folder string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(folder)
}

// EachObject visits the elements of an array, or the one object of a file, one after the other. What a file that is
// cut holds before is visited. Codes: Invalid.
func EachObject(text io.Reader, visit func(raw jsontext.Value)) error {
	d := jsontext.NewDecoder(unmarkedReader(text), jsontext.AllowInvalidUTF8(true))
	isList := d.PeekKind() == '['
	if isList {
		_, _ = d.ReadToken()
	}
	for kind := d.PeekKind(); kind != ']'; kind = d.PeekKind() {
		value, err := d.ReadValue()
		var syntax *jsontext.SyntacticError
		switch {
		case errors.Is(err, io.EOF) && !isList:
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
			return session.Errorf(session.Invalid, "it ends in the middle; what stands before is imported")
		case errors.As(err, &syntax):
			return session.Errorf(session.Invalid, "%s at byte %d; what stands before is imported", syntax.Err,
				syntax.ByteOffset)
		case err != nil:
			return err
		}
		visit(value.Clone())
	}
	return nil
}

// unmarkedReader skips a byte order mark.
func unmarkedReader(text io.Reader) io.Reader {
	head := make([]byte, len("\ufeff"))
	n, _ := io.ReadFull(text, head)
	return io.MultiReader(strings.NewReader(string(Unmarked(head[:n]))), text)
}

// Archives lists the archives in a folder, and the files of unpacked ones, by the names of their entries.
func (f *Finder) Archives(folder string, match func(name string) bool) {
	const depth = 4
	before := len(f.Found)
	f.Folder(folder, depth, func(name string) bool {
		return !strings.HasPrefix(name, "._") && (match(name) || strings.HasSuffix(name, ".zip"))
	})
	kept := f.Found[:before]
	for _, found := range f.Found[before:] {
		if filepath.Ext(found.Path) != ".zip" || hasEntry(found.Path, match) {
			kept = append(kept, found)
		}
	}
	f.Found = kept
}

// hasEntry reports whether a zip has an entry whose name matches. One that cannot be read has none: it may be anything.
func hasEntry(file string, match func(name string) bool) bool {
	opened, err := zip.OpenReader(file)
	if err != nil {
		return false
	}
	defer opened.Close()
	for _, entry := range opened.File {
		if match(path.Base(entry.Name)) {
			return true
		}
	}
	return false
}
