package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"sessiond/internal/contextmgr"
	"sessiond/internal/jobs"
	"sessiond/internal/recall"
	"sessiond/internal/redact"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize"
	"sessiond/internal/tokens"
	"sessiond/internal/usage"
)

// services are the packages put together over one open database.
type services struct {
	store     *store.Store
	index     *search.Index
	catalogue *usage.Catalogue
	contexts  *contextmgr.Manager
	titles    *jobs.Titles   // nil: no model makes them
	closers   []func() error // in the order of opening
}

// wiring says how services are put together.
type wiring struct {
	readOnly bool
	log      zerolog.Logger
	remote   bool             // summaries by the configured model, where there is one
	wrote    func()           // something was committed; nil: nobody wants to know
	onSoft   func(session.ID) // a session passed its soft threshold; nil: nobody stages
}

// wire opens everything that the configuration names. The caller closes it.
func (a *app) wire(ctx context.Context, w wiring) (s *services, err error) {
	s = &services{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	cfg, err := a.load(nil)
	if err != nil {
		return s, err
	}
	if s.catalogue, err = a.catalogue(); err != nil {
		return s, err
	}
	if s.store, err = a.openFor(ctx, w); err != nil {
		return s, err
	}
	s.closers = append(s.closers, s.store.Close)
	openIndex := search.Open
	if w.readOnly {
		openIndex = search.OpenReadOnly
	}
	if s.index, err = openIndex(ctx, indexPath(cfg.DB), s.store); err != nil {
		return s, err
	}
	s.closers = append(s.closers, s.index.Close)

	reference := tokens.Reference()
	manager := contextmgr.Config{
		File: cfg.Compaction, Digest: summarize.NewExtractive(reference.Text), Models: s.catalogue.Model,
		Counter:   func(family string) contextmgr.Counter { return tokens.ForFamily(tokens.Family(family)) },
		Reference: string(reference.Family()), Scale: s.scale, Learned: s.learned, Recall: recall.Lookup{Index: s.index, Store: s.store},
		Mask:   func(text string) string { masked, _ := redact.Mask(text); return masked },
		OnSoft: w.onSoft, SetWindow: s.setWindow, Flush: cfg.FlushSettings(), Now: a.now,
	}
	if w.remote && cfg.Summarizer.Provider != summarize.ExtractiveProvider {
		asks := a.summarizer()
		if info, known := s.catalogue.Model(asks.ModelName()); known {
			asks.Window = info.Window
		}
		remote, err := summarize.New(asks, summarize.Deps{
			Count: reference.Text, Usage: usage.FromProvider, Now: a.now, Getenv: a.getenv,
		})
		if err != nil {
			return s, err
		}
		if c, ok := remote.(io.Closer); ok {
			s.closers = append(s.closers, c.Close)
		}
		manager.Remote = pricedSummarizer{remote, s.catalogue}
		manager.Cost = s.summaryCost(remote, a.now)
		if err := s.wireTitles(a); err != nil {
			return s, err
		}
	}
	s.contexts = contextmgr.New(s.store, manager)
	return s, nil
}

// wireTitles lets the configured model make titles, too.
func (s *services) wireTitles(a *app) error {
	titler, err := summarize.NewTitler(a.summarizer(), summarize.Deps{
		Count: tokens.Reference().Text, Usage: usage.FromProvider, Now: a.now, Getenv: a.getenv,
	})
	if err != nil {
		return err
	}
	if c, ok := titler.(io.Closer); ok {
		s.closers = append(s.closers, c.Close)
	}
	s.titles = &jobs.Titles{Store: s.store, Model: pricedSummarizer{titler, s.catalogue}}
	return nil
}

// close closes in the reverse order of opening.
func (s *services) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// with runs a command on wired services.
func (a *app) with(ctx context.Context, w wiring, do func(*services) error) error {
	s, err := a.wire(ctx, w)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.close())
}

// indexPath is where the search index of a database lies.
func indexPath(db string) string {
	return filepath.Join(filepath.Dir(db), indexName(filepath.Base(db)))
}

// indexName is search.db beside sessions.db, and NAME.search.db beside any other NAME.db, so
// that two databases in one folder do not share an index.
func indexName(base string) string {
	if base == "sessions.db" {
		return "search.db"
	}
	return base[:len(base)-len(filepath.Ext(base))] + ".search.db"
}

func (a *app) summarizer() summarize.Config {
	c := a.cfg.Summarizer
	return summarize.Config{Provider: c.Provider, Model: c.Model, BaseURL: c.BaseURL, APIKeyFile: c.APIKeyFile, Timeout: c.Timeout}
}

// scale is what reports have taught about a model's tokens, and what is left to doubt.
func (s *services) scale(ctx context.Context, model string) (factor, doubt float64, err error) {
	scale, err := s.calibration(ctx, model)
	return scale.Factor(), scale.Doubt(), err
}

func (s *services) calibration(ctx context.Context, model string) (tokens.Scale, error) {
	c, err := s.store.Calibration(ctx, model)
	if err != nil || c == nil {
		return tokens.Scale{}, err
	}
	return tokens.Scale{Ratio: c.Scale, Weight: c.Weight}, nil
}

// learned adds a difference between two reports to what is known of a model.
func (s *services) learned(ctx context.Context, model string, estimated, reported int64) error {
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

// setWindow keeps the window that an overflow report showed to be the true one.
func (s *services) setWindow(ctx context.Context, id session.ID, window int64) error {
	w := &window
	_, err := s.store.PatchSession(ctx, id, store.SessionPatch{Window: &w})
	return err
}

// summaryCost says what a remote summary of so many tokens would cost, in nano-dollars; nil
// where the model has no known price.
func (s *services) summaryCost(remote summarize.Summarizer, now func() time.Time) func(in, out int64) *int64 {
	provider, model := remote.Name()
	return func(in, out int64) *int64 {
		call := session.Call{Provider: provider, Model: model, InputTokens: in, OutputTokens: out, CreatedAt: session.At(now())}
		s.catalogue.Price(&call)
		return call.CostNanoUSD
	}
}

// pricedSummarizer puts the price on the calls of a remote summariser.
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
