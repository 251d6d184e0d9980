package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"sessiond/internal/history"
)

// importBar shows the progress of an import on a terminal. A nil one shows nothing.
type importBar struct {
	*progressbar.ProgressBar
	app *app
}

// bar begins a progress bar on standard error, if that is a terminal. It counts bytes or messages.
func (a *app) bar(what string, most int64, bytes bool) *importBar {
	if !a.errTTY || a.flags.json || most <= 0 {
		return nil
	}
	width := a.width
	if width == 0 { // standard output goes elsewhere
		width = 80
	}
	const (
		around = 27 + len("importing claude-code")
		rate   = len("(100.0 MB/s) ")
	)
	bar := progressbar.NewOptions64(most, progressbar.OptionSetWriter(raw(a.err)), progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(bytes && width >= around+rate+10), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(max(3, min(30, width-around-rate))), progressbar.OptionThrottle(100*time.Millisecond))
	return &importBar{ProgressBar: bar, app: a}
}

// of names the current source.
func (b *importBar) of(src history.Source) {
	if b != nil {
		b.Describe("importing " + string(src.Name()))
	}
}

// add moves the bar. It ignores failures to draw.
func (b *importBar) add(n int64) {
	if b != nil {
		_ = b.Add64(n)
	}
}

// end removes the bar. After a failure the bar stays and shows how far the import got.
func (b *importBar) end(whole bool) {
	switch {
	case b == nil:
	case whole:
		_ = b.Finish()
	default:
		fmt.Fprintln(b.app.err)
	}
}

// indexedUnseen is a number of messages that is indexed without a visible delay.
const indexedUnseen = 5000

// index updates the search index. It shows a bar for more than unseen messages.
func (a *app) index(ctx context.Context, s *services, unseen int64) error {
	mark, err := s.index.Mark(ctx)
	if err != nil {
		return err
	}
	last, err := s.store.LastMessageID(ctx)
	if err != nil {
		return err
	}
	var bar *importBar
	if last-mark > unseen {
		bar = a.bar("indexing", last-mark, false)
	}
	_, err = s.index.CatchUpWithProgress(ctx, func(messages int) { bar.add(int64(messages)) })
	bar.end(err == nil)
	return err
}

// indexMeanwhile indexes what an import stores while it goes on: the index is a file of its own.
// What is left when stop is called, and every error, is for index to see to.
func indexMeanwhile(ctx context.Context, s *services) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			if _, err := s.index.CatchUpWithProgress(ctx, func(int) {}); err != nil {
				return
			}
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}
