package api

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"

	"sessiond/internal/contextmgr"
	"sessiond/internal/find"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// sessionOutput is a session with its revision as ETag.
type sessionOutput struct {
	ETag     string `header:"ETag" doc:"The revision, for If-Match"`
	Location string `header:"Location" doc:"Path of the new object"`
	Body     session.Session
}

// replySession returns a session as the answer, unless there is an error.
func replySession(s session.Session, err error) (*sessionOutput, error) {
	if err != nil {
		return nil, err
	}
	if s.Metadata == nil {
		s.Metadata = session.JSON(`{}`)
	}
	return &sessionOutput{ETag: etag(s.Revision), Body: s}, nil
}

// replyCreated is replySession with the Location of the session.
func replyCreated(s session.Session, err error) (*sessionOutput, error) {
	out, err := replySession(s, err)
	if err == nil {
		out.Location = "/v1/sessions/" + string(s.ID)
	}
	return out, err
}

func etag(revision int64) string { return strconv.Quote(strconv.FormatInt(revision, 10)) }

type newSessionBody struct {
	Title      name       `json:"title,omitempty"`
	Key        name       `json:"key,omitempty" doc:"A routing key: this session becomes its next generation"`
	Kind       string     `json:"kind,omitempty" enum:"chat,subagent,cron,hook,other" doc:"Kind of session; default chat, of a child subagent"`
	Directory  name       `json:"directory,omitempty"`
	GitBranch  name       `json:"git_branch,omitempty"`
	Provider   name       `json:"provider,omitempty"`
	Model      name       `json:"model,omitempty"`
	Window     *int64     `json:"window,omitempty" minimum:"1" doc:"The model's window, in tokens; default: the catalogue's"`
	ParentID   session.ID `json:"parent_id,omitempty" doc:"The session that starts this one"`
	ParentKind string     `json:"parent_kind,omitempty" enum:"child" doc:"child (the default with parent_id); POST /v1/sessions/{id}/fork makes a fork"`
	Started    messageArg `json:"parent_message,omitzero" doc:"The parent's message whose call starts this session: a seq of the parent, or an id"`
	Call       name       `json:"parent_call,omitempty" doc:"The id of the tool call that starts this session"`
	Draft      bool       `json:"draft,omitempty" doc:"Hidden from lists until its first reply"`
	Settings   settings   `json:"settings,omitempty" doc:"Settings of the context manager that override the configuration"`
	Metadata   object     `json:"metadata,omitempty"`
}

type createSessionInput struct {
	Keyed
	body[newSessionBody]
}

func (s *Server) createSession(ctx context.Context, in *createSessionInput) (*sessionOutput, error) {
	b := &in.value
	if b.ParentKind == session.ParentFork {
		return nil, session.Errorf(session.Invalid,
			"parent_kind can only be child here: POST /v1/sessions/{id}/fork makes a fork").At("parent_kind", "must be child")
	}
	if err := cmp.Or(
		oneOf("kind", b.Kind, "", "chat", "subagent", "cron", "hook", "other"),
		oneOf("parent_kind", b.ParentKind, "", session.ParentChild),
	); err != nil {
		return nil, err
	}
	if b.ParentID == "" && (b.ParentKind != "" || b.Started.given || b.Call != "") {
		return nil, session.Errorf(session.Invalid,
			"parent_id is missing: parent_kind, parent_message and parent_call describe that session").
			At("parent_id", "is missing")
	}
	if err := positive("window", b.Window); err != nil {
		return nil, err
	}
	if _, err := s.parseSettings(b.Settings); err != nil {
		return nil, err
	}
	key, err := s.canonical(string(b.Key))
	if err != nil {
		return nil, err
	}
	made, err := s.Store.CreateSession(ctx, store.NewSession{
		Title: string(b.Title), Key: key, Kind: b.Kind, Directory: string(b.Directory), GitBranch: string(b.GitBranch),
		Provider: string(b.Provider), Model: string(b.Model), Window: b.Window, ParentID: b.ParentID,
		ParentKind: b.ParentKind,
		Started:    b.Started.in(b.ParentID), StartedCall: string(b.Call), Draft: b.Draft, Settings: session.JSON(b.Settings),
		Metadata: session.JSON(b.Metadata), Idem: in.idem,
	})
	if session.CodeOf(err) == session.NotFound {
		err = session.Errorf(session.Invalid, "parent_id names no session").At("parent_id", "no such session")
	}
	return replyCreated(made, err)
}

// canonical returns a routing key in its stored form; "" stays "". Codes: Invalid.
func (s *Server) canonical(key string) (string, error) {
	if key == "" {
		return "", nil
	}
	return s.Routing.Canonical(key)
}

// parseSettings parses the settings of a request. Codes: Invalid, by field.
func (s *Server) parseSettings(raw settings) (contextmgr.Settings, error) {
	set, err := s.Contexts.ParseSettings(session.JSON(raw))
	return set, settingsError(err)
}

// settingsError explains an error of settings as one of the body's field settings.
func settingsError(err error) error {
	var mismatch *json.SemanticError
	if errors.As(err, &mismatch) {
		err = explainMismatch(mismatch)
	}
	return session.Under("settings", err)
}

// SessionFilters are the filters of sessions, of lists and of searches. The finder reads them from the address.
type SessionFilters struct {
	Source    string `query:"source" doc:"Only sessions of this program: its name (claude-code), or a part of it"`
	Project   string `query:"project" doc:"Only sessions of this project: its folder, its name in lists (cli, workspace/cli), or a part of it"`
	Model     string `query:"model" doc:"Only sessions of this model, or with this part of its name (opus)"`
	Directory string `query:"directory" doc:"Only sessions of this working directory or below it: its path, its last name, or a part of it"`
	Key       string `query:"key" doc:"Only sessions of this routing key"`
	Owner     string `query:"owner" doc:"Only sessions of this owner"`
	Host      string `query:"host" doc:"Only sessions that began on this host"`
	Parent    string `query:"parent" doc:"Only forks and children of this session"`
	Children  string `query:"children" doc:"Only sub-agents that this session started"`
	Forks     string `query:"forks" doc:"Only forks of this session"`
	Tag       string `query:"tag" doc:"Only sessions with this tag, on them or on one of their messages: the tag, or a part of it"`
	On        string `query:"on" doc:"Only sessions with a prompt of a person on this day or in this week or month; of a time (2026-02-11T10:00) in the hour from then"`
	Branch    string `query:"branch" doc:"Only sessions on this git branch, or with this part of its name"`
	Errors    bool   `query:"errors" doc:"Only sessions with a reply or a model call that failed"`
	Starred   bool   `query:"starred" doc:"Only starred sessions"`
	Archived  bool   `query:"archived" doc:"Only archived sessions, which lists leave out"`
}

type listSessionsInput struct {
	Paged
	SessionFilters
	Query    string `query:"q" doc:"Part of the title, the id or the id in the source program"`
	ParentID string `query:"parent_id" doc:"The same as parent"`
	Kind     string `query:"parent_kind" enum:"fork,child" doc:"With parent_id: only forks, or only children"`
	Since    string `query:"since" doc:"Only sessions active at or after this time: RFC 3339, a day, or words like last week, in the time zone of the configuration"`
	Until    string `query:"until" doc:"Only sessions active before this time or day"`
	Trash    bool   `query:"trash" doc:"List the trash instead"`

	query url.Values
}

// Resolve implements huma.Resolver.
func (in *listSessionsInput) Resolve(ctx huma.Context) (errs []error) {
	in.query, errs = queryOf(ctx, find.Lists, "limit", "cursor", "order", "q", "parent_id", "parent_kind")
	return errs
}

// queryOf returns the parameters of a list or a search. Unknown are those that are neither filters, nor of the
// metadata, nor further ones.
func queryOf(ctx huma.Context, uses find.Uses, further ...string) (query url.Values, errs []error) {
	u := ctx.URL()
	query, known := u.Query(), append(find.Names(uses), further...)
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if _, ok := find.MetadataName(name); !ok && !slices.Contains(known, name) {
			errs = append(errs, &huma.ErrorDetail{Location: "query." + name, Message: "unknown query parameter"})
		}
	}
	return query, errs
}

// finder runs requests of clients, who write absolute paths.
func (s *Server) finder() *find.Finder {
	return &find.Finder{Store: s.Store, Index: s.Search, Now: s.Now, Key: s.canonical}
}

// filterError returns an error of a filter that names nothing as one of the parameter: the resource exists.
func filterError(err error) error {
	var known *session.Error
	if !errors.As(err, &known) || known.Code != session.NotFound || len(known.Fields) == 0 {
		return err
	}
	invalid := session.Errorf(session.Invalid, "%s", known.Message)
	invalid.Fields = known.Fields
	return invalid
}

func (s *Server) listSessions(ctx context.Context, in *listSessionsInput) (*listOutput[listedSession], error) {
	r, err := find.FromQuery(in.query)
	if err != nil {
		return nil, err
	}
	switch in.Kind {
	case session.ParentChild:
		r.Children = in.ParentID
	case session.ParentFork:
		r.Forks = in.ParentID
	default:
		r.Parent = cmp.Or(r.Parent, in.ParentID)
	}
	sessions, next, err := s.finder().List(ctx, r, in.page(false))
	return s.measured(ctx, sessions, next, filterError(err))
}

func (s *Server) getSession(ctx context.Context, id session.ID) (*sessionOutput, error) {
	return replySession(s.Store.Session(ctx, id))
}

type readSessionInput struct {
	InSession
	Rollup bool `query:"rollup" doc:"Sum up the session and its descendants, without forks, also where it has none"`
}

// sessionDetail is a session with what hangs together with it.
type sessionDetail struct {
	session.Session
	session.Measure
	Link *session.Link `json:"link,omitempty" doc:"How it hangs on its parent; missing: no parent"`
}

// listedSession is a session in a list.
type listedSession struct {
	session.Session
	session.Measure
}

// measured adds to sessions how large and how dear they are.
func (s *Server) measured(ctx context.Context, sessions []session.Session, next string,
	err error,
) (*listOutput[listedSession], error) {
	if err != nil {
		return nil, err
	}
	measures, err := s.Store.Measures(ctx, sessions, s.Catalogue.Model)
	out := make([]listedSession, len(sessions))
	for i := range sessions {
		out[i] = listedSession{sessions[i], measures[sessions[i].ID]}
	}
	return replyList(out, next, err)
}

func (s *Server) readSession(ctx context.Context, in *readSessionInput) (*tagged[sessionDetail], error) {
	found, err := s.getSession(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	out := &tagged[sessionDetail]{ETag: found.ETag, Body: sessionDetail{Session: found.Body}}
	if out.Body.Link, err = s.Store.Link(ctx, found.Body); err != nil {
		return nil, err
	}
	measures, err := s.Store.Measures(ctx, []session.Session{found.Body}, s.Catalogue.Model)
	if err != nil {
		return nil, err
	}
	if out.Body.Measure = measures[found.Body.ID]; in.Rollup && out.Body.Rollup == nil {
		sums, err := s.Store.Rollups(ctx, []session.ID{found.Body.ID})
		if err != nil {
			return nil, err
		}
		sum := sums[found.Body.ID]
		out.Body.Rollup = &sum
	}
	return out, nil
}

type sessionPatchBody struct {
	Title    change[name]     `json:"title,omitempty" doc:"Title, for people; null removes it"`
	Metadata change[object]   `json:"metadata,omitempty" doc:"Merged into the stored object; null empties it"`
	Settings change[settings] `json:"settings,omitempty" doc:"Merged into the stored object; null empties it"`
	Provider change[name]     `json:"provider,omitempty" doc:"The model's provider; null removes it"`
	Model    change[name]     `json:"model,omitempty" doc:"The model's id; null removes it"`
	Window   change[int64]    `json:"window,omitempty" doc:"The model's window, in tokens; null: the catalogue's"`
	Archived change[bool]     `json:"archived,omitempty" doc:"true: hide it from lists; false: list it again"`
	Starred  change[bool]     `json:"starred,omitempty" doc:"true: star it, so that people find it again; false: remove the star"`
}

type patchSessionInput struct {
	InSession
	Keyed
	Conditional
	body[sessionPatchBody]
}

// patchAttempts bounds how often a merge is made anew because another write came between.
const patchAttempts = 8

func (s *Server) patchSession(ctx context.Context, in *patchSessionInput) (*sessionOutput, error) {
	for attempt := 1; ; attempt++ {
		now, err := s.Store.Session(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		patch, err := s.sessionPatch(&in.value, now)
		if err != nil {
			return nil, err
		}
		patch.Idem, patch.IfRevision = in.idem, in.ifRevision
		merged := in.ifRevision == nil && (patch.Metadata != nil || patch.Settings != nil)
		if merged { // the merge is lost if another write comes between
			patch.IfRevision = &now.Revision
		}
		after, err := s.Store.PatchSession(ctx, in.ID, patch)
		if merged && session.CodeOf(err) == session.PreconditionFailed && attempt < patchAttempts {
			continue
		}
		return replySession(after, err)
	}
}

// sessionPatch makes the store's patch of a merge patch, on a session as it is. Codes: Invalid.
func (s *Server) sessionPatch(b *sessionPatchBody, now session.Session) (store.SessionPatch, error) {
	p := store.SessionPatch{
		Title: (*string)(b.Title.set()), Provider: (*string)(b.Provider.set()), Model: (*string)(b.Model.set()),
		Archived: b.Archived.set(), Starred: b.Starred.set(),
	}
	if b.Window.given {
		var window *int64
		if !b.Window.null {
			window = &b.Window.value
		}
		if err := positive("window", window); err != nil {
			return p, err
		}
		p.Window = &window
	}
	if b.Metadata.given {
		merged := session.JSON(`{}`)
		if !b.Metadata.null {
			merged = jsonx.Patch(now.Metadata, session.JSON(b.Metadata.value))
		}
		p.Metadata = &merged
	}
	if b.Settings.given {
		var merged session.JSON
		if !b.Settings.null {
			if _, err := s.parseSettings(b.Settings.value); err != nil {
				return p, err
			}
			merged = jsonx.Patch(now.Settings, session.JSON(b.Settings.value))
		}
		if _, err := contextmgr.StoredSettings(merged); err != nil {
			return p, settingsError(err)
		}
		p.Settings = &merged
	}
	return p, nil
}

type deleteSessionInput struct {
	InSession
	Keyed
	Conditional
	Purge bool `query:"purge" doc:"Delete for good: its messages, and titles, recalls and summaries made from them. Usage numbers stay, and forks keep the messages that they share"`
	Scrub bool `query:"scrub" doc:"With purge: also rewrite the files, so that no byte of it is left. Writes of others wait meanwhile"`
}

// deleteSession answers with the session in the trash, or what a purge did.
func (s *Server) deleteSession(ctx context.Context, in *deleteSessionInput) (*tagged[any], error) {
	if _, limited := session.ScopeOf(ctx); limited && in.Scrub {
		if _, err := s.Store.Session(ctx, in.ID); err != nil {
			return nil, err
		}
		return nil, session.Errorf(session.Forbidden, "scrub rewrites the whole database: it needs the daemon's own token")
	}
	if in.Purge {
		done, err := s.Purges.Purge(session.WithoutScope(ctx),
			store.PurgeRequest{Session: in.ID, IfRevision: in.ifRevision, Scrub: in.Scrub, Idem: in.idem})
		return &tagged[any]{Body: done}, err
	}
	if in.Scrub {
		return nil, session.Errorf(session.Invalid, "scrub needs purge=true: the trash keeps everything").
			At("scrub", "only with purge")
	}
	out, err := replySession(s.Store.SetTrash(ctx, in.ID, true, in.ifRevision, in.idem))
	if err != nil {
		return nil, err
	}
	return &tagged[any]{ETag: out.ETag, Body: out.Body}, nil
}

type untrashSessionInput struct {
	InSession
	Keyed
	Conditional
}

func (s *Server) untrashSession(ctx context.Context, in *untrashSessionInput) (*sessionOutput, error) {
	return replySession(s.Store.SetTrash(ctx, in.ID, false, in.ifRevision, in.idem))
}
