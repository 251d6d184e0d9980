package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// bar begins a progress bar on standard error, of bytes or messages. It shows nothing if that is no terminal, or
// without anything to count.
func (a *app) bar(what string, most int64, bytes bool) *progressbar.ProgressBar {
	width := a.width
	if width == 0 { // standard output goes elsewhere
		width = 80
	}
	const (
		around = 27 + len("importing claude-code")
		rate   = len("(100.0 MB/s) ")
	)
	return progressbar.NewOptions64(most, progressbar.OptionSetWriter(raw(a.err)), progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(bytes && width >= around+rate+10), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetVisibility(a.showsBars() && most > 0),
		progressbar.OptionSetWidth(max(3, min(30, width-around-rate))), progressbar.OptionThrottle(100*time.Millisecond))
}

func (a *app) showsBars() bool { return a.errTTY && !a.flags.json }

// endBar removes a bar. After a failure it stays and shows how far the work got.
func (a *app) endBar(bar *progressbar.ProgressBar, whole bool) {
	switch {
	case whole:
		_ = bar.Finish() // fails only to draw
	case a.showsBars() && bar.GetMax64() > 0:
		fmt.Fprintln(a.err)
	}
}

// indexedUnseen is a number of messages that is indexed without a visible delay.
const indexedUnseen = 5000

// index updates the search index. It shows a bar for more than unseen messages.
func (a *app) index(ctx context.Context, s *opened, unseen int64) error {
	mark, err := s.index.Mark(ctx)
	if err != nil {
		return err
	}
	last, err := s.store.LastMessageID(ctx)
	if err != nil {
		return err
	}
	behind := last - mark
	if behind <= unseen {
		behind = 0
	}
	bar := a.bar("indexing", behind, false)
	_, err = s.index.CatchUpWithProgress(ctx, func(messages int) { _ = bar.Add(messages) })
	a.endBar(bar, err == nil)
	return err
}

// indexMeanwhile indexes what an import stores while it goes on: the index is a file of its own.
// What is left when stop is called, and every error, is for index to see to.
func indexMeanwhile(ctx context.Context, s *opened) (stop func()) {
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
