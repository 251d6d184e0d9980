package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"sessiond/internal/config"
	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/engine"
	"sessiond/internal/jobs"
	"sessiond/internal/recall"
	"sessiond/internal/redact"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize"
	"sessiond/internal/summarize/digest"
	"sessiond/internal/summarize/models"
	"sessiond/internal/tokens"
	"sessiond/internal/usage"
)

// opened is an open database with the packages on top of it.
type opened struct {
	store     *store.Store
	index     *search.Index
	catalogue *usage.Catalogue
	contexts  *contextmgr.Manager
	titles    *jobs.Titles                    // nil without a configured model
	givers    func(key string) session.Givers // of rules, by the configuration
	notice    string                          // what a person should know about the database; "": nothing
	closers   []func() error                  // in the order of opening
}

// wiring says how wire opens the database and the packages.
type wiring struct {
	readOnly bool
	orCopy   bool             // of one with an older schema, which no start has brought up to date yet, a copy that is
	begin    bool             // a new database; only where none is
	log      *zerolog.Logger  // nil: warnings on standard error
	remote   bool             // summarize with the configured model, if there is one
	wrote    func()           // called after commits; may be nil
	onSoft   func(session.ID) // called when a session passes its soft threshold; may be nil
}

// reading is how most commands open the database: they read and write nothing.
var reading = wiring{readOnly: true, orCopy: true}

// wire opens the database of the configuration and the packages on top of it. The caller closes them.
func (a *app) wire(ctx context.Context, w wiring) (s *opened, err error) {
	s = &opened{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	cfg, err := a.load(nil)
	if err != nil {
		return s, err
	}
	routes := cfg.Rules()
	s.givers = routes.Givers
	if s.catalogue, err = a.catalogue(); err != nil {
		return s, err
	}
	if s.store, err = a.open(ctx, w); err != nil {
		return s, err
	}
	s.closers = append(s.closers, s.store.Close)
	openIndex := search.Open
	if w.readOnly {
		openIndex = search.OpenReadOnly
	} else {
		// With a database on PostgreSQL nothing else makes the folder.
		if err := os.MkdirAll(filepath.Dir(indexPath(cfg)), 0o700); err != nil {
			return s, fmt.Errorf("make the folder of the search index: %w", err)
		}
		engine.TightenModes(indexPath(cfg), a.log(zerolog.WarnLevel))
	}
	if s.index, err = openIndex(ctx, indexPath(cfg), s.store); err != nil {
		return s, err
	}
	s.closers = append(s.closers, s.index.Close)
	if s.notice, err = s.missingMessages(ctx); err != nil {
		return s, err
	}
	if s.notice != "" {
		log := a.logOf(w)
		log.Warn().Msg(s.notice)
	}

	reference := tokens.Reference()
	manager := contextmgr.Config{
		File: cfg.Compaction, Digest: digest.NewExtractive(reference.Text), Models: s.catalogue.Model,
		Counter:   func(family string) contextmgr.Counter { return tokens.ForFamily(tokens.Family(family)) },
		Dialects:  dialect.Providers{},
		Reference: string(reference.Family()), Scale: s.scale, Learned: s.learned, Givers: s.givers,
		Recall: recall.Lookup{Index: s.index, Store: s.store},
		Mask:   func(text string) string { masked, _ := redact.Mask(text); return masked },
		OnSoft: w.onSoft, SetWindow: s.setWindow, Flush: cfg.FlushSettings(), Now: a.now,
	}
	deps := summarize.Deps{Count: reference.Text, Usage: usage.FromProvider, Now: a.now, Getenv: a.getenv}
	if w.log != nil {
		deps.Log = *w.log
	}
	manager.Remotes = map[string]contextmgr.Remote{}
	for name, c := range cfg.AllSummarizers() {
		if manager.Remotes[name], err = s.remote(c, deps, w.remote); err != nil {
			return s, err
		}
	}
	if cfg.Summarizer.Provider != digest.ExtractiveProvider && w.remote {
		titler, err := s.model(models.NewTitler(modelOf(cfg.Summarizer), deps))
		if err != nil {
			return s, err
		}
		s.titles = &jobs.Titles{Store: s.store, Model: titler}
	}
	s.contexts = contextmgr.New(s.store, manager)
	return s, nil
}

// missingMessages says that the search index knew messages that the database does not have: an older copy was put
// in its place, or its write-ahead log was removed. Purged ones do not count.
func (s *opened) missingMessages(ctx context.Context) (string, error) {
	missing := 0
	for id, n := range s.index.Strays() {
		purged, err := s.store.IsPurged(ctx, id)
		if err != nil {
			return "", err
		}
		if !purged {
			missing += n
		}
	}
	if missing == 0 {
		return "", nil
	}
	where := "the server lost its last writes"
	if !engine.IsPostgres(s.store.File()) {
		where = "another file or an older copy is in its place, or its write-ahead log was removed. " +
			"If you did not restore a backup, look for the right file where it was moved, and in " +
			engine.BackupDir(s.store.File())
	}
	return fmt.Sprintf("the search index knew %s more than this database has: %s",
		plural(int64(missing), "message", "messages"), where), nil
}

// remote returns the model of a summarizer with its price; without ask only the price.
func (s *opened) remote(c config.Summarizer, deps summarize.Deps, ask bool) (contextmgr.Remote, error) {
	if c.Provider == digest.ExtractiveProvider {
		return contextmgr.Remote{}, nil
	}
	asks := modelOf(c)
	r := contextmgr.Remote{Cost: s.summaryCost(asks, deps.Now)}
	if !ask {
		return r, nil
	}
	if info, known := s.catalogue.Model(asks.ModelName()); known {
		asks.Window = info.Window
	}
	model, err := s.model(summarize.New(asks, deps))
	if err == nil {
		r.Summarizer = model
	}
	return r, err
}

func modelOf(c config.Summarizer) summarize.Config {
	return summarize.Config{
		Provider: c.Provider, Model: c.Model, BaseURL: c.BaseURL, APIKeyFile: c.APIKeyFile,
		Timeout: c.Timeout,
	}
}

// model adds prices to a configured model and closes it with the database.
func (s *opened) model(m summarize.Summarizer, err error) (summarize.Summarizer, error) {
	if c, ok := m.(io.Closer); ok && err == nil {
		s.closers = append(s.closers, c.Close)
	}
	return pricedSummarizer{m, s.catalogue}, err
}

// close closes in the reverse order of opening.
func (s *opened) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// with runs a command on what wire opens.
func (a *app) with(ctx context.Context, w wiring, do func(*opened) error) error {
	s, err := a.wire(ctx, w)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.close())
}

// indexPath returns the path of a database's search index: search.db beside sessions.db, and
// NAME.search.db beside NAME.db, so that databases in one folder do not share an index. A database on
// PostgreSQL has an index on each host.
func indexPath(cfg *config.Config) string {
	db := cfg.DB
	if engine.IsPostgres(db) {
		sum := sha256.Sum256([]byte(engine.PrintableName(db)))
		return filepath.Join(cfg.DataDir(), fmt.Sprintf("postgres-%x.search.db", sum[:6]))
	}
	if filepath.Base(db) == "sessions.db" {
		return filepath.Join(filepath.Dir(db), "search.db")
	}
	return strings.TrimSuffix(db, filepath.Ext(db)) + ".search.db"
}

// scale returns the learned factor of a model's token counts, and its uncertainty.
func (s *opened) scale(ctx context.Context, model string) (factor, doubt float64, err error) {
	scale, err := s.calibration(ctx, model)
	return scale.Factor(), scale.Doubt(), err
}

func (s *opened) calibration(ctx context.Context, model string) (tokens.Scale, error) {
	c, err := s.store.Calibration(ctx, model)
	if err != nil || c == nil {
		return tokens.Scale{}, err
	}
	return tokens.Scale{Ratio: c.Scale, Weight: c.Weight}, nil
}

// learned updates a model's calibration by the difference between two reports.
func (s *opened) learned(ctx context.Context, model string, estimated, reported int64) error {
	scale, err := s.calibration(ctx, model)
	if err != nil {
		return err
	}
	next := scale.Learn(estimated, reported)
	if next == scale {
		return nil
	}
	return s.store.SetCalibration(ctx, store.Calibration{Model: model, Scale: next.Ratio, Weight: next.Weight})
}

// setWindow stores the window that an overflow report revealed.
func (s *opened) setWindow(ctx context.Context, id session.ID, window int64) error {
	w := &window
	_, err := s.store.PatchSession(ctx, id, store.SessionPatch{Window: &w})
	return err
}

// summaryCost returns a function that prices a remote summary in nano-dollars; it returns nil if
// the model's price is unknown.
func (s *opened) summaryCost(asks summarize.Config, now func() time.Time) func(in, out int64) *int64 {
	return func(in, out int64) *int64 {
		call := session.Call{
			Provider: asks.Provider, Model: asks.ModelName(), InputTokens: in, OutputTokens: out,
			CreatedAt: session.At(now()),
		}
		s.catalogue.Price(&call)
		return call.CostNanoUSD
	}
}

// pricedSummarizer prices the calls of a remote summarizer.
type pricedSummarizer struct {
	summarize.Summarizer
	catalogue *usage.Catalogue
}

func (p pricedSummarizer) Summarize(ctx context.Context, req session.SummaryRequest) (session.Summary, error) {
	sum, err := p.Summarizer.Summarize(ctx, req)
	for i := range sum.Calls {
		p.catalogue.Price(&sum.Calls[i])
	}
	return sum, err
}
