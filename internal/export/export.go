// Package export writes sessions in every export format.
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

// Format names an export format.
type Format string

// The formats.
const (
	JSONL    Format = "jsonl" // sessiond's own: complete, and can be imported
	Markdown Format = "md"
	HTML     Format = "html"
	OpenAI   Format = "openai"
	Pi       Format = "pi"
	Goose    Format = "goose"
	Codex    Format = "codex"
	Opencode Format = "opencode"

	ClaudeCode Format = "claude-code"
)

// encoder describes a format's files and writes them.
type encoder struct {
	Format
	mediaType string
	extension string
	many      bool // one file can hold several sessions
	write     func(context.Context, io.Writer, *store.Store, []session.ID, *Options) (Report, error)
}

func encoders() []encoder {
	return append([]encoder{
		{JSONL, "application/x-ndjson", ".jsonl", true, writeJSONL},
		{
			Markdown, "text/markdown; charset=utf-8", ".md", true,
			transcriptOf(func(out io.Writer, h transcript.Heading, opt *Options) transcript.Writer {
				return transcript.NewMarkdown(out, h, opt.Zone)
			}),
		},
		{
			HTML, "text/html; charset=utf-8", ".html", false, writePage,
		},
		{OpenAI, "application/x-ndjson", ".openai.jsonl", true, writeOpenAI},
		{ATIF, "application/json", ".atif.json", false, writeATIF},
	}, targetEncoders()...)
}

// Options configure an export. The zero value works.
type Options struct {
	Mask *redact.Masker // nil: nothing is masked
	Zone *time.Location // of times for people; nil: the store's
}

// Report describes an export.
type Report struct {
	Sessions []session.ID   // in order, with those that others depend on
	Messages int            // written
	LeftOut  map[string]int // content that the format cannot express, by kind
}

// Names lists the formats.
func Names() []string {
	var names []string
	for _, f := range encoders() {
		names = append(names, string(f.Format))
	}
	return names
}

func encoderOf(f Format) (encoder, error) {
	all := encoders()
	if i := slices.IndexFunc(all, func(have encoder) bool { return have.Format == f }); i >= 0 {
		return all[i], nil
	}
	return encoder{}, session.Errorf(session.Invalid, "format %q is not one of %s", string(f[:min(len(f), 40)]),
		strings.Join(Names(), ", ")).At("format", "not a format")
}

// Check returns an error for an unknown format. Codes: Invalid.
func (f Format) Check() error {
	_, err := encoderOf(f)
	return err
}

// MediaType returns a format's media type.
func (f Format) MediaType() string { found, _ := encoderOf(f); return found.mediaType }

// Extension returns the extension of a format's files, such as .jsonl.
func (f Format) Extension() string { found, _ := encoderOf(f); return found.extension }

// Many reports whether one file of a format can hold several sessions.
func (f Format) Many() bool { found, _ := encoderOf(f); return found.many }

// Write writes sessions in a format, several only if the format has Many. No ids: every session.
// Memory does not grow with the number of sessions, and with their sizes only if a format puts a
// session into one value. Codes: NotFound, Invalid, Busy (one was purged meanwhile).
func Write(ctx context.Context, out io.Writer, s *store.Store, f Format, ids []session.ID,
	opt Options,
) (Report, error) {
	e, err := encoderOf(f)
	if err != nil {
		return Report{}, err
	}
	if opt.Zone == nil {
		opt.Zone = s.Zone()
	}
	return e.write(ctx, out, s, ids, &opt)
}

func writeJSONL(ctx context.Context, out io.Writer, s *store.Store, ids []session.ID, opt *Options) (Report, error) {
	all, err := sessiond.Order(ctx, s, ids)
	if err != nil {
		return Report{}, err
	}
	shells, err := s.Shells(ctx) // written for their forks, but no sessions
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
