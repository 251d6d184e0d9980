// Package jobs does what the daemon does beside requests: it keeps the search index up,
// stages compactions before they are needed, activates them in idle moments, empties the
// write-ahead log when nothing happens, and makes backups. Nobody waits for it.
package jobs

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sessiond/internal/session"
)

// Intervals of the daemon's own doings.
const (
	lookInterval = time.Second     // how soon another process's writes are noticed
	walIdle      = 5 * time.Second // without a write, then the write-ahead log is emptied
	sessionIdle  = 5 * time.Minute // provider caches are cold then: an overlay may take effect

	// indexPause is between two catch-ups of the index, so that a burst of appends shares
	// one: message by message it would cost more than the appends. Searches read the rest.
	indexPause    = 100 * time.Millisecond
	indexRestTime = 2 * time.Second // at a stop; the next start does what it left

	// digests and models are how many sessions get a digest, or a model's summary, at once: the
	// first need a processor, the others a server that others use, too. One that hangs holds up
	// only those that wait for it.
	digests = 2
	models  = 4

	// reportQueue is how many reports wait to be learned from; more than that say nothing new.
	reportQueue = 64
)

// Store is what the jobs need of the store.
type Store interface {
	DataVersion(ctx context.Context) (int64, error)
	TruncateWAL(ctx context.Context) (bool, error)
	ForgetDrafts(ctx context.Context, before time.Time) (int64, error)
	Backup(ctx context.Context, out string) (int64, error)
	Staged(ctx context.Context) ([]session.Resting, error)
}

// Index is kept up with the store.
type Index interface {
	CatchUp(ctx context.Context) (int, error)
}

// Contexts stages and activates overlays, and learns from reports.
type Contexts interface {
	StageDigest(ctx context.Context, id session.ID) (due bool, err error) // due: a model's summary is wanted, too
	StageModel(ctx context.Context, id session.ID) error
	DropCancelled(ctx context.Context) error // another process may have cancelled what a model is asked for
	Forget()                                 // what is remembered of messages: another process may have purged some
	ActivateIdle(ctx context.Context, id session.ID) (done, waits bool, err error)
	Learn(ctx context.Context, id session.ID) error
}

// Config of a Runner. Store, Index and Contexts are needed.
type Config struct {
	Store    Store
	Index    Index
	Contexts Contexts
	Backups  Backups
	Titles   *Titles // nil: sessions keep the beginning of their first message
	Daily    []Daily
	Zone     *time.Location // of the hours in Daily; nil: time.Local
	Log      zerolog.Logger
	Noticed  func()           // another process wrote to the file; it must not block. nil: nobody
	Now      func() time.Time // nil: time.Now
}

// Runner owns the goroutines of the jobs. Start begins them, Stop ends them and waits.
type Runner struct {
	cfg    Config
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	changed  chan struct{} // something was written
	report   chan session.ID
	untitled chan session.ID

	mu      sync.Mutex
	stopped bool
	digests pool                     // digests to stage
	models  pool                     // models' summaries to stage
	active  map[session.ID]time.Time // sessions that may get an overlay when they rest
	wrote   time.Time                // of the last Changed
}

// New makes a Runner that does nothing yet.
func New(cfg Config) *Runner {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Zone == nil {
		cfg.Zone = time.Local
	}
	r := &Runner{
		cfg: cfg, changed: make(chan struct{}, 1),
		report: make(chan session.ID, reportQueue), untitled: make(chan session.ID, titleQueue), active: map[session.ID]time.Time{},
	}
	r.digests = pool{limit: digests, work: r.stageDigest, busy: map[session.ID]bool{}}
	r.models = pool{limit: models, work: r.stageModel, busy: map[session.ID]bool{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Start begins all jobs.
func (r *Runner) Start() {
	r.nudge(r.changed) // what was appended while nobody ran
	for _, job := range []func(){r.index, r.learn, r.title, r.watch, r.backUp} {
		r.wg.Go(job)
	}
	for _, d := range r.cfg.Daily {
		r.wg.Go(func() { r.daily(d) })
	}
}

// Stop ends the jobs and waits for them. Work that a model was asked for is given up; its
// record says so.
func (r *Runner) Stop() {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.cancel()
	r.wg.Wait()
}

// Changed tells that a session was written to. It does not block.
func (r *Runner) Changed(id session.ID) {
	r.nudge(r.changed)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrote = r.cfg.Now()
	if _, ok := r.active[id]; ok {
		r.active[id] = r.wrote
	}
}

func (r *Runner) lastChange() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wrote
}

// Soft tells that a session passed its soft threshold: a compaction is made ready for it.
// It does not block.
func (r *Runner) Soft(id session.ID) {
	r.mu.Lock()
	r.active[id] = r.cfg.Now()
	r.mu.Unlock()
	r.add(&r.digests, id)
}

// Reported tells that a provider's numbers for one of our contexts came in. It does not block.
func (r *Runner) Reported(id session.ID) {
	select {
	case r.report <- id:
	default:
	}
}

// Run does work in the background and owns it; work tells itself what went wrong. It is
// false when the daemon is stopping.
func (r *Runner) Run(work func(ctx context.Context)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return false
	}
	r.wg.Go(func() { work(r.ctx) })
	return true
}

func (r *Runner) nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is awake already
	}
}

// index keeps the search index behind the appends, never in front of them.
func (r *Runner) index() {
	for {
		select {
		case <-r.ctx.Done():
			r.indexRest()
			return
		case <-r.changed:
		}
		r.catchUp(r.ctx)
		select {
		case <-r.ctx.Done():
			r.indexRest()
			return
		case <-time.After(indexPause):
		}
	}
}

// indexRest indexes what was appended since the last catch-up, so that a command that reads
// the file after the daemon finds it there.
func (r *Runner) indexRest() {
	select {
	case <-r.changed:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), indexRestTime)
	defer cancel()
	r.catchUp(ctx)
}

func (r *Runner) catchUp(ctx context.Context) {
	if _, err := r.cfg.Index.CatchUp(ctx); err != nil && ctx.Err() == nil {
		r.cfg.Log.Error().Err(err).Msg("the search index could not be caught up; searches scan what it lacks")
	}
}

// stageDigest makes a digest ready, and lets a model be asked where one is wanted.
func (r *Runner) stageDigest(id session.ID) {
	due, err := r.cfg.Contexts.StageDigest(r.ctx, id)
	r.unstaged(id, err)
	if due {
		r.add(&r.models, id)
	}
}

func (r *Runner) stageModel(id session.ID) {
	r.unstaged(id, r.cfg.Contexts.StageModel(r.ctx, id))
}

func (r *Runner) unstaged(id session.ID, err error) {
	if err != nil && r.ctx.Err() == nil {
		r.cfg.Log.Error().Err(err).Str("session", string(id)).Msg("no compaction could be staged")
	}
}

// learn holds reports against the counter's own numbers.
func (r *Runner) learn() {
	for {
		select {
		case <-r.ctx.Done():
			return
		case id := <-r.report:
			if err := r.cfg.Contexts.Learn(r.ctx, id); err != nil && r.ctx.Err() == nil {
				r.cfg.Log.Error().Err(err).Str("session", string(id)).Msg("nothing was learned from a report")
			}
		}
	}
}

// watch looks once a second: for what other processes wrote, for a quiet moment to empty the
// write-ahead log, and for sessions that rest.
func (r *Runner) watch() {
	r.seed()
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	w := watcher{Runner: r, wrote: r.cfg.Now()}
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
			w.look()
		}
	}
}
