// Package jobs runs the daemon's work beside requests: it updates the search index, stages compactions
// before they are needed, activates them in idle sessions, empties the write-ahead log when there are
// no writes, and makes backups. No request waits for it.
package jobs

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sessiond/internal/otlp"
	"sessiond/internal/session"
)

// Intervals of the daemon.
const (
	lookInterval = time.Second           // between two checks for other processes' writes
	wakePause    = 50 * time.Millisecond // after a check that a notification caused, so that a burst shares the next one
	walIdle      = 5 * time.Second       // without a write: then the write-ahead log is emptied
	memoryIdle   = time.Minute           // without a write: then unused memory goes back to the system
	sessionIdle  = 5 * time.Minute       // provider caches are cold then: an overlay may take effect

	// indexPause is the pause between two catch-ups of the index, so that a burst of appends shares
	// one: a catch-up per message would cost more than the appends. Searches read the rest.
	indexPause = 100 * time.Millisecond
	restTime   = 2 * time.Second // limit of the last catch-up of the index, and of the log, at a stop

	// The numbers of sessions that get a digest, or a model's summary, at once. A digest needs a
	// processor, a summary a server that others use too. A hanging one delays only those that wait
	// for it.
	digestsAtOnce = 2
	modelsAtOnce  = 4
)

// Store is the part of the store that the jobs use.
type Store interface {
	DataVersion(ctx context.Context) (int64, error)
	// calls wake after writes of other processes, where the database notifies of them
	Listen(ctx context.Context, wake func())
	Probe(ctx context.Context) error // notices that the file cannot be written, and that it can again
	TruncateWAL(ctx context.Context) (bool, error)
	ForgetDrafts(ctx context.Context, before time.Time) (int64, error)
	Backup(ctx context.Context, out string) (int64, error)
	Staged(ctx context.Context) ([]session.Resting, error)
	Session(ctx context.Context, id session.ID) (session.Session, error)
	EventRange(ctx context.Context) (epoch string, removed, last int64, err error)
	LoggedEvents(ctx context.Context, after, through int64) ([]session.Event, error)
	PurgedElsewhere(ctx context.Context, after int64) (bool, error) // after a DataVersion
}

// Index is the search index.
type Index interface {
	CatchUp(ctx context.Context) (int, error)
	ForgetPurged(ctx context.Context) error
}

// Contexts stages and activates overlays, and learns from reports.
type Contexts interface {
	StageDigest(ctx context.Context, id session.ID) (due bool, err error) // due: a model's summary is wanted too
	StageModel(ctx context.Context, id session.ID) error
	DropCancelled(ctx context.Context) error // stops requests that another process cancelled
	Forget()                                 // clears caches of messages: another process may have purged some
	ActivateIdle(ctx context.Context, id session.ID) (done, waits bool, err error)
	Learn(ctx context.Context, id session.ID) error
}

// Config configures a Runner. Store, Index and Contexts are required.
type Config struct {
	Store    Store
	Index    Index
	Contexts Contexts
	Backups  Backups
	Titles   *Titles // nil: sessions keep the beginning of their first message
	Daily    []Daily
	Budget   *Budget        // nil: nobody is told
	Spans    *otlp.Exporter // nil: no collector gets spans
	Zone     *time.Location // of the hours in Daily; nil: time.Local
	Log      zerolog.Logger
	Noticed  func()           // called after another process wrote to the file; it must not block; may be nil
	Now      func() time.Time // nil: time.Now
	Look     time.Duration    // between two checks for other processes' writes; 0: a second
}

// Runner owns the goroutines of the jobs. Start starts them, Stop stops them and waits.
type Runner struct {
	cfg    Config
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	changed chan struct{} // signals a write
	woken   chan struct{} // signals a notification of another process's write

	indexFailure string // of the last catch-up; "": none. Only runIndex uses it

	mu      sync.Mutex
	stopped bool
	digests pool                     // sessions that need a staged digest
	models  pool                     // sessions that need a model's staged summary
	reports pool                     // sessions with a provider's report to learn from
	titles  pool                     // sessions without a title of their own
	active  map[session.ID]time.Time // last writes of sessions that may get an overlay when idle
	wrote   time.Time                // time of the last Changed
}

// New returns a Runner. Start starts it.
func New(cfg Config) *Runner {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Zone == nil {
		cfg.Zone = time.Local
	}
	if cfg.Look == 0 {
		cfg.Look = lookInterval
	}
	r := &Runner{
		cfg: cfg, changed: make(chan struct{}, 1), woken: make(chan struct{}, 1),
		active: map[session.ID]time.Time{},
	}
	r.digests = pool{limit: digestsAtOnce, work: r.stageDigest, busy: map[session.ID]bool{}}
	r.models = pool{limit: modelsAtOnce, work: r.stageModel, busy: map[session.ID]bool{}}
	r.reports = pool{limit: 1, work: r.learn, busy: map[session.ID]bool{}}
	r.titles = pool{limit: 1, work: r.makeTitle, busy: map[session.ID]bool{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Start starts all jobs.
func (r *Runner) Start() {
	r.signalChange() // for messages that were appended while no daemon ran
	for _, job := range []func(){r.runIndex, r.runWatch, r.runListen, r.runBackups} {
		r.wg.Go(job)
	}
	for _, d := range r.cfg.Daily {
		r.wg.Go(func() { r.runDaily(d) })
	}
	if r.cfg.Budget != nil {
		r.wg.Go(r.runBudget)
	}
	if r.cfg.Spans != nil {
		r.wg.Go(r.runSpans)
	}
}

// runSpans sends spans to a collector until the daemon stops.
func (r *Runner) runSpans() {
	for {
		wait := r.cfg.Spans.Send(r.ctx)
		select {
		case <-r.ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// Stop stops the jobs and waits for them. It cancels requests to models, which their records say.
func (r *Runner) Stop() {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.cancel()
	r.wg.Wait()
}

// Changed records a write to a session. It does not block.
func (r *Runner) Changed(id session.ID) {
	r.signalChange()
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

// Soft stages a compaction of a session that passed its soft threshold. It does not block.
func (r *Runner) Soft(id session.ID) {
	r.mu.Lock()
	r.active[id] = r.cfg.Now()
	r.mu.Unlock()
	r.add(&r.digests, id)
}

// Reported learns from a provider's report on one of our contexts. It does not block.
func (r *Runner) Reported(id session.ID) { r.add(&r.reports, id) }

// Answered makes a title for a session with a reply and without a title of its own. It does not block.
func (r *Runner) Answered(id session.ID) {
	if r.cfg.Titles != nil {
		r.add(&r.titles, id)
	}
}

// Run runs work in the background; work reports its own errors. Run returns false when the daemon is
// stopping.
func (r *Runner) Run(work func(ctx context.Context)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return false
	}
	r.wg.Go(func() { work(r.ctx) })
	return true
}

func (r *Runner) signalChange() { signal(r.changed) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // a signal is pending
	}
}

// runIndex updates the search index after appends.
func (r *Runner) runIndex() {
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

// indexRest indexes the messages since the last catch-up, for commands that read the index after the
// daemon stopped.
func (r *Runner) indexRest() {
	select {
	case <-r.changed:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), restTime)
	defer cancel()
	r.catchUp(ctx)
}

func (r *Runner) catchUp(ctx context.Context) {
	failure := ""
	if _, err := r.cfg.Index.CatchUp(ctx); err != nil && ctx.Err() == nil {
		failure = err.Error()
	}
	if failure != "" && failure != r.indexFailure { // once, not after each append
		r.cfg.Log.Error().Str("error", failure).Msg("cannot update the search index; searches read the missing messages")
	}
	r.indexFailure = failure
}

// stageDigest stages a digest, and queues a model's summary where one is wanted.
func (r *Runner) stageDigest(id session.ID) {
	due, err := r.cfg.Contexts.StageDigest(r.ctx, id)
	r.logError(err, id, "cannot stage a compaction")
	if due {
		r.add(&r.models, id)
	}
}

func (r *Runner) stageModel(id session.ID) {
	r.logError(r.cfg.Contexts.StageModel(r.ctx, id), id, "cannot stage a compaction")
}

// learn compares a provider's reports with the counter's numbers.
func (r *Runner) learn(id session.ID) {
	r.logError(r.cfg.Contexts.Learn(r.ctx, id), id, "cannot learn from a provider's report")
}

// logError logs an error about a session, unless the daemon is stopping.
func (r *Runner) logError(err error, id session.ID, message string) {
	if err != nil && r.ctx.Err() == nil && !session.IsRepeated(err) {
		r.cfg.Log.Error().Err(err).Str("session", string(id)).Msg(message)
	}
}

// runListen wakes runWatch when the database notifies of another process's write.
func (r *Runner) runListen() {
	r.cfg.Store.Listen(r.ctx, func() { signal(r.woken) })
}

// runWatch checks once a second, and after notifications, for writes of other processes, for a pause in
// which to empty the write-ahead log, and for idle sessions.
func (r *Runner) runWatch() {
	r.seed()
	tick := time.NewTicker(r.cfg.Look)
	defer tick.Stop()
	w := watcher{Runner: r, wrote: r.cfg.Now()}
	w.logEvents(r.ctx)
	for {
		select {
		case <-r.ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), restTime)
			defer cancel()
			w.logEvents(ctx)
			return
		case <-tick.C:
			w.look()
		case <-r.woken:
			w.look()
			select {
			case <-r.ctx.Done():
			case <-time.After(wakePause):
			}
		}
	}
}
