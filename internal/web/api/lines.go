package api

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// A program's SDK sends its transcripts line by line, and gets the lines back as they came. Sessions are imported from
// them as from files.

// InProgram is the part of an input that names a program in the path and a project in the query.
type InProgram struct {
	Program session.Source `path:"program" doc:"The program, like claude-code" example:"claude-code"`
	Project string         `query:"project" required:"true" doc:"The program's name of the project"`
}

// InTranscripts names the transcript of a session.
type InTranscripts struct {
	InProgram
	Session string `query:"session" required:"true" doc:"The program's id of the session"`
}

// InTranscript names a transcript: of a session, or one under it.
type InTranscript struct {
	InTranscripts
	Subpath string `query:"subpath" doc:"Where under the session the transcript belongs, like subagents/agent-a1; default: the session's own transcript"`
}

// checkProgram rejects programs of which no lines are kept. Codes: NotFound.
func (s *Server) checkProgram(program session.Source) error {
	if slices.Contains(s.LineSources, program) {
		return nil
	}
	names := make([]string, len(s.LineSources))
	for i, source := range s.LineSources {
		names[i] = string(source)
	}
	return session.Errorf(session.NotFound, "lines of %.80q are not kept: only those of %s are", program,
		strings.Join(names, ", "))
}

func (in *InTranscripts) key() store.TranscriptKey {
	return store.TranscriptKey{Source: in.Program, Project: in.Project, Session: in.Session}
}

func (in *InTranscript) key() store.TranscriptKey {
	key := in.InTranscripts.key()
	key.Subpath = in.Subpath
	return key
}

type linesBody struct {
	Lines   []session.JSON `json:"lines" required:"true" doc:"The lines, each an object, in their order. One whose uuid the transcript has is left out"`
	Summary session.JSON   `json:"summary,omitempty" doc:"Replaces the client's own summary of the session; not with a subpath"`
	Expect  *int64         `json:"expect_lines,omitempty" doc:"How many lines the transcript must have, for a summary that continues one; else the answer is 409"`
}

type appendLinesInput struct {
	InTranscript
	Keyed
	body[linesBody]
}

// TranscriptView is a transcript without its lines.
type TranscriptView struct {
	Session  string       `json:"session" doc:"The program's id of the session"`
	Lines    int64        `json:"lines" doc:"Number of lines"`
	Bytes    int64        `json:"bytes" doc:"Their size, with a line feed each"`
	StoredAt session.Time `json:"stored_at" doc:"Time of the last write"`
}

func viewTranscript(tr *store.Transcript) TranscriptView {
	return TranscriptView{tr.Session, tr.Lines, tr.Bytes, tr.StoredAt}
}

type appendedLines struct {
	TranscriptView
	Stored int `json:"stored" doc:"Number of lines of the request that were new"`
}

func (s *Server) appendLines(ctx context.Context, in *appendLinesInput) (*output[appendedLines], error) {
	if err := s.checkProgram(in.Program); err != nil {
		return nil, err
	}
	b := &in.value
	if b.Lines == nil {
		return nil, session.Errorf(session.Invalid, `lines is missing: the body is {"lines": [...]}; [] goes with a summary alone`).
			At("lines", "is missing")
	}
	tr, stored, err := s.Store.AppendLines(ctx, store.LinesAppend{
		TranscriptKey: in.key(), Lines: b.Lines, Summary: b.Summary, ExpectLines: b.Expect, Idem: in.idem,
	})
	if err == nil && stored > 0 && s.LinesStored != nil {
		s.LinesStored(tr.Path)
	}
	return reply(appendedLines{viewTranscript(&tr), stored}, err)
}

type listLinesInput struct {
	InTranscript
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" doc:"Lines per answer; default 1000. An answer of 4 MiB ends before"`
	Cursor string `query:"cursor" doc:"next_cursor of the previous answer"`
}

const (
	linesPerAnswer  = 1000
	linesAnswerSize = 4 << 20 // bytes: no line follows one with which they are reached
)

func (s *Server) listLines(ctx context.Context, in *listLinesInput) (*listOutput[session.JSON], error) {
	after := int64(0)
	if in.Cursor != "" {
		var err error
		if after, err = strconv.ParseInt(in.Cursor, 10, 64); err != nil || after < 1 {
			return nil, errCursor()
		}
	}
	if err := s.checkProgram(in.Program); err != nil {
		return nil, err
	}
	tr, err := s.Store.Transcript(ctx, in.key())
	if err != nil {
		return nil, err
	}
	most := in.Limit
	if most == 0 {
		most = linesPerAnswer
	}
	lines, last, err := s.Store.TranscriptLines(ctx, &tr, after, most, linesAnswerSize)
	next := ""
	if last < tr.Lines {
		next = strconv.FormatInt(last, 10)
	}
	return replyList(lines, next, err)
}

type deleteLinesInput struct{ InTranscript }

type deletedLines struct {
	Sessions []session.ID `json:"sessions" doc:"The sessions that were imported from them, and are purged"`
}

// deleteLines purges the sessions first: a request that was cut off can be repeated.
func (s *Server) deleteLines(ctx context.Context, in *deleteLinesInput) (*output[deletedLines], error) {
	if err := s.checkProgram(in.Program); err != nil {
		return nil, err
	}
	purged, err := s.Store.SessionsOfTranscripts(ctx, in.key())
	if err != nil {
		return nil, err
	}
	done := deletedLines{Sessions: []session.ID{}}
	for i := range purged {
		_, err := s.Purges.Purge(ctx, store.PurgeRequest{Session: purged[i].ID})
		if err != nil && session.CodeOf(err) != session.NotFound {
			return nil, err
		}
		done.Sessions = append(done.Sessions, purged[i].ID)
	}
	return reply(done, s.Store.DeleteTranscripts(ctx, in.key(), purged))
}

// InLineSessions is the input of lists of the sessions that have transcripts.
type InLineSessions struct {
	InProgram
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" doc:"Items per answer; default 50"`
	Cursor string `query:"cursor" doc:"next_cursor of the previous answer"`
}

func (s *Server) listTranscripts(ctx context.Context, in *InLineSessions) (*listOutput[TranscriptView], error) {
	all, next, err := s.transcripts(ctx, in)
	data := make([]TranscriptView, len(all))
	for i := range all {
		data[i] = viewTranscript(&all[i])
	}
	return replyList(data, next, err)
}

// transcripts lists the transcripts of sessions, by the program's ids.
func (s *Server) transcripts(ctx context.Context, in *InLineSessions) ([]store.Transcript, string, error) {
	if err := s.checkProgram(in.Program); err != nil {
		return nil, "", err
	}
	return s.Store.TranscriptSessions(ctx, in.Program, in.Project, store.Page{Limit: in.Limit, Cursor: in.Cursor})
}

// SummaryView is a client's summary of a session.
type SummaryView struct {
	TranscriptView
	Summary session.JSON `json:"summary" doc:"As it was stored; null: there is none"`
}

type summariesInput struct {
	InLineSessions
	Session string `query:"session" doc:"Only of this session"`
}

func (s *Server) listSummaries(ctx context.Context, in *summariesInput) (*listOutput[SummaryView], error) {
	if in.Session != "" {
		one, err := s.Store.Transcript(ctx, store.TranscriptKey{Source: in.Program, Project: in.Project, Session: in.Session})
		if session.CodeOf(err) == session.NotFound {
			return replyList[SummaryView](nil, "", s.checkProgram(in.Program))
		}
		return replyList([]SummaryView{{viewTranscript(&one), one.Summary}}, "", err)
	}
	all, next, err := s.transcripts(ctx, &in.InLineSessions)
	var data []SummaryView
	for i := range all {
		if all[i].Summary != nil {
			data = append(data, SummaryView{viewTranscript(&all[i]), all[i].Summary})
		}
	}
	return replyList(data, next, err)
}

func (s *Server) listSubpaths(ctx context.Context, in *InTranscripts) (*listOutput[string], error) {
	if err := s.checkProgram(in.Program); err != nil {
		return nil, err
	}
	all, err := s.Store.Subpaths(ctx, in.key())
	return replyList(all, "", err)
}
