// Package export writes sessions in every form in which they leave sessiond.
package export

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"sessiond/internal/history/sessiond"
	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

// Format is a form, by its word.
type Format string

// The formats.
const (
	JSONL    Format = "jsonl" // sessiond's own: everything, and it comes back
	Markdown Format = "md"
	HTML     Format = "html"
	OpenAI   Format = "openai"
	Pi       Format = "pi"
	Goose    Format = "goose"
)

// form says how a format is written and what its files are like.
type form struct {
	Format
	mediaType string
	extension string
	many      bool // one file can hold several sessions
	write     func(context.Context, io.Writer, *store.Store, []session.ID, *Options) (Report, error)
}

func forms() []form {
	return []form{
		{JSONL, "application/x-ndjson", ".jsonl", true, writeJSONL},
		{Markdown, "text/markdown; charset=utf-8", ".md", true, transcriptOf(func(out io.Writer, h transcript.Heading, opt *Options) transcript.Writer {
			return transcript.NewMarkdown(out, h, opt.Zone)
		})},
		{HTML, "text/html; charset=utf-8", ".html", false, transcriptOf(func(out io.Writer, h transcript.Heading, opt *Options) transcript.Writer {
			return transcript.NewHTML(out, h, opt.Zone)
		})},
		{OpenAI, "application/x-ndjson", ".openai.jsonl", true, writeOpenAI},
		{Pi, "application/x-ndjson", ".pi.jsonl", false, writePi},
		{Goose, "application/json", ".goose.json", false, writeGoose},
	}
}

// Options say how sessions are written. The zero value works.
type Options struct {
	Mask *redact.Masker // nil: nothing is masked
	Zone *time.Location // of times for people; nil: the store's
}

// Report says what was written.
type Report struct {
	Sessions []session.ID   // in their order, those included that others need
	Messages int            // that were written
	LeftOut  map[string]int // what the form cannot say, by what it is
}

// Names lists the formats' words.
func Names() []string {
	var names []string
	for _, f := range forms() {
		names = append(names, string(f.Format))
	}
	return names
}

func find(f Format) (form, error) {
	all := forms()
	if i := slices.IndexFunc(all, func(have form) bool { return have.Format == f }); i >= 0 {
		return all[i], nil
	}
	return form{}, session.Errorf(session.Invalid, "there is no format %q: name one of %s", string(f[:min(len(f), 40)]), strings.Join(Names(), ", ")).At("format", "not a format")
}

// Check tells whether a format exists. Codes: Invalid.
func (f Format) Check() error {
	_, err := find(f)
	return err
}

// MediaType gives a format's media type.
func (f Format) MediaType() string { found, _ := find(f); return found.mediaType }

// Extension gives how the names of a format's files end: .jsonl.
func (f Format) Extension() string { found, _ := find(f); return found.extension }

// Many tells whether one file of a format can hold several sessions.
func (f Format) Many() bool { found, _ := find(f); return found.many }

// Write writes sessions in a format; several only if the format is one for Many. No ids mean
// every session. Memory does not grow with the number of sessions, and with their sizes only
// where a form puts a session into one value. Codes: NotFound, Invalid, Busy (one was purged
// while it was written).
func Write(ctx context.Context, out io.Writer, s *store.Store, f Format, ids []session.ID, opt Options) (Report, error) {
	form, err := find(f)
	if err != nil {
		return Report{}, err
	}
	if opt.Zone == nil {
		opt.Zone = s.Zone()
	}
	return form.write(ctx, out, s, ids, &opt)
}

func writeJSONL(ctx context.Context, out io.Writer, s *store.Store, ids []session.ID, opt *Options) (Report, error) {
	all, err := ordered(ctx, s, ids)
	if err != nil {
		return Report{}, err
	}
	shells, err := s.Shells(ctx) // are written for their forks, and are no sessions
	if err != nil {
		return Report{}, err
	}
	w := sessiond.NewWriter(out, s, opt.Mask)
	report := Report{}
	for _, id := range all {
		if err := w.Session(ctx, id); err != nil {
			return Report{}, err
		}
		if !slices.ContainsFunc(shells, func(shell store.Kin) bool { return shell.ID == id }) {
			report.Sessions = append(report.Sessions, id)
		}
	}
	report.Messages = w.Messages()
	if len(ids) == 0 { // everything
		if err := w.StoreData(ctx); err != nil {
			return Report{}, err
		}
	}
	return report, w.Close()
}

func ordered(ctx context.Context, s *store.Store, ids []session.ID) ([]session.ID, error) {
	return sessiond.Order(ctx, s, ids)
}
