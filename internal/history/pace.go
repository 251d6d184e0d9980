package history

import (
	"context"
	"time"
)

const (
	// A writer that waits for another process asks once in a millisecond: it gets in between. One
	// of sessiond says that it waits, so that pauses for those who cannot say it may be rare.
	defaultPause = 2 * time.Millisecond
	politePause  = 10 * time.Millisecond

	// How much one transaction takes at most while others write, and at first, before it is
	// known whether they do: a few milliseconds of work.
	politeMessages = 48
	politeBytes    = 128 << 10
	// politeHold is how long such a transaction may hold the database: on a busy host it takes
	// fewer messages, but not less than fewestMessages.
	politeHold     = 2 * time.Millisecond
	fewestMessages = 8
	// heldBefore is how long the database may have been held, in one or several transactions,
	// before there is a pause.
	heldBefore = 100 * time.Millisecond
	// mostGrown is how often a transaction doubles.
	mostGrown = 8
	// politeFor is how long another process's write makes the import polite.
	politeFor = 2 * time.Second
)

// pace keeps an import from holding up those who write beside it.
type pace struct {
	*Importer
	version int64     // of the database as other processes write it
	seen    time.Time // when one of them last wrote
	begun   time.Time // of the last transaction
	ended   time.Time
	held    time.Duration // by transactions since the last pause
	each    time.Duration // what the last transaction took for a message
	grown   int           // how often in a row nobody else wrote during a transaction
}

func (p *pace) polite() bool {
	return p.Polite || !p.seen.IsZero() && time.Since(p.seen) < politeFor
}

// most is how many messages and bytes the next transaction may take: twice as many after each
// in which nobody else wrote.
func (p *pace) most() (messages, bytes int) {
	if p.polite() {
		if p.each == 0 {
			return politeMessages, politeBytes
		}
		return min(politeMessages, max(fewestMessages, int(politeHold/p.each))), politeBytes
	}
	return min(MaxBatch, politeMessages<<p.grown), min(2*MaxBatchBytes, politeBytes<<p.grown)
}

// wait waits until the next transaction may begin.
func (p *pace) wait(ctx context.Context) error {
	rest := p.Pause
	switch {
	case rest != 0:
	case p.polite():
		rest = politePause
	default:
		rest = defaultPause
	}
	if rest > 0 && p.polite() {
		rest = max(rest, p.ended.Sub(p.begun))
	}
	if !p.ended.IsZero() {
		rest -= time.Since(p.ended)
	}
	defer func() { p.begun = time.Now() }()
	if rest <= 0 || p.ended.IsZero() || p.held < heldBefore && !p.polite() {
		return ctx.Err()
	}
	p.held = 0
	if p.Wait != nil {
		return p.Wait(ctx, rest)
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// committed notes the end of a transaction of so many messages, and whether others wrote meanwhile or wait.
func (p *pace) committed(ctx context.Context, messages int) error {
	p.ended = time.Now()
	p.held += p.ended.Sub(p.begun)
	if messages > 0 {
		p.each = p.ended.Sub(p.begun) / time.Duration(messages)
	}
	version, err := p.Store.DataVersion(ctx)
	if err != nil {
		return err
	}
	if p.grown = min(p.grown+1, mostGrown); p.version != 0 && p.version != version {
		p.seen, p.grown = p.ended, 0
	}
	p.version = version
	if awaited, err := p.Store.Awaited(); err == nil && awaited {
		p.seen, p.grown = p.ended, 0
	}
	return nil
}
