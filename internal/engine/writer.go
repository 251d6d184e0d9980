package engine

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/session"
)

const (
	queueLength = 1024
	maxBatch    = 256
	// Giving way a few times before committing lets writers that were just answered queue
	// their next append, so that one fsync serves them all.
	gatherYields = 4
)

// writer owns the one writing connection. Closures queue; each runs in a savepoint of one
// BEGIN IMMEDIATE; one COMMIT makes all of them durable; then all are answered.
type writer struct {
	db    *sqlx.DB
	conn  *sqlx.Conn
	stmts map[string]*sqlx.Stmt
	queue chan *job

	// On PostgreSQL: the bytes of the statements that wait for the next round trip, the last of Options.IDs, and
	// the one before the transaction.
	queuedSize      int
	lastID, firstID int64

	opt      Options
	path     string
	postgres bool
	pid      atomic.Uint32 // of the server's process, on PostgreSQL

	opened  atomic.Bool // Open is done
	health  atomic.Pointer[Health]
	damage  atomic.Pointer[error]        // what writes are answered since a page could not be read
	files   atomic.Pointer[[]openedFile] // nil: the log is not in use yet
	stamp   *stamp                       // set before files
	rescued bool                         // since the files were moved
	holds   bool                         // the write lock, while they are

	overwritten atomic.Pointer[error] // what writes are answered since the file was overwritten
	counts      uint32                // the number that this transaction gives the stamp; 0: none
	staysOpen   bool                  // the files were changed by hand: closing would do harm
	left        error                 // what was saved then

	patience context.Context // of waiting for another process's lock; ends soon after stop

	quit chan struct{}
	once sync.Once
	done chan struct{}
}

type job struct {
	ctx    context.Context
	fn     func(*Tx) error
	err    error
	carry  any
	answer chan error
	alone  bool // outside any transaction, with the writing connection to itself
	moved  bool // also while the database's files are moved

	// decided is set once: by the writer when it begins the job, or by the caller that gives
	// up before. An answer that says "failed" is never given for what was stored.
	decided atomic.Bool
}

// begin claims the job for the writer. It is false when nobody waits for it any more.
func (j *job) begin() bool {
	if err := j.ctx.Err(); err != nil {
		j.giveUp(err)
		return false
	}
	return j.decided.CompareAndSwap(false, true)
}

func (j *job) giveUp(err error) bool {
	if !j.decided.CompareAndSwap(false, true) {
		return false
	}
	j.answer <- err
	return true
}

// Tx is what a closure sees: the writer's connection inside its transaction. Its statements have the values of
// the request's context but not its end: a statement that is cancelled can roll back the whole transaction, and
// with it other people's appends.
type Tx struct {
	Statements
	Ctx   context.Context
	Now   session.Time
	Carry any // for Options.BeforeCommit, if the closure succeeds
	w     *writer
}

func (w *writer) newTx(ctx context.Context) *Tx {
	stmt := func(ctx context.Context, query string) (*sqlx.Stmt, func(), error) {
		st, err := w.stmt(ctx, query)
		return st, func() {}, err
	}
	return &Tx{Statements: Statements{stmt: stmt}, w: w, Ctx: ctx, Now: session.At(w.opt.Now())}
}

func startWriter(db *sql.DB, path string, opt Options) (*writer, error) {
	w := &writer{
		db: sqlx.NewDb(db, "sqlite"), stmts: map[string]*sqlx.Stmt{}, opt: opt, path: path,
		queue: make(chan *job, queueLength), quit: make(chan struct{}), done: make(chan struct{}),
		patience: context.Background(),
	}
	w.health.Store(&Health{State: StateOK})
	conn, err := w.db.Connx(context.Background())
	if err != nil {
		return nil, err
	}
	w.conn = conn
	if w.postgres = IsPostgres(path); w.postgres {
		if err := w.rememberPID(); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		go w.loop()
		return w, nil
	}
	if err := w.waitInside(0); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	go w.loop()
	return w, nil
}

// waitInside sets how long SQLite itself waits for a lock on the writing connection: not at all
// while the writer runs, since retryBusy asks at even intervals.
func (w *writer) waitInside(ms int) error {
	_, err := w.conn.ExecContext(context.Background(), `PRAGMA busy_timeout = `+strconv.Itoa(ms))
	return err
}

// do queues fn and waits for its outcome. Once fn has begun its outcome is awaited whatever
// happens to ctx.
func (w *writer) do(ctx context.Context, fn func(*Tx) error) error {
	return w.submit(ctx, &job{ctx: ctx, fn: fn, answer: make(chan error, 1)})
}

func (w *writer) submit(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-w.quit:
		return errStopped()
	default:
	}
	select {
	case w.queue <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.quit:
		return errStopped()
	}
	select {
	case err := <-j.answer:
		return storageError(err)
	case <-ctx.Done():
		j.giveUp(ctx.Err())
	case <-w.done:
		j.giveUp(errStopped())
	}
	return storageError(<-j.answer)
}

func errStopped() error {
	return session.Errorf(session.Busy, "sessiond is stopping; nothing of this request was stored")
}

func (w *writer) stop() {
	w.once.Do(func() { close(w.quit) })
	<-w.done
}

func (w *writer) loop() {
	defer close(w.done)
	defer w.close()
	for {
		select {
		case j := <-w.queue:
			w.run(w.gather(j))
		case <-w.quit:
			w.drain()
			return
		}
	}
}

// drain runs the queued jobs. All batches together wait at most lockPatience for another process's
// lock.
func (w *writer) drain() {
	var cancel context.CancelFunc
	w.patience, cancel = context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	for {
		select {
		case j := <-w.queue:
			w.run(w.gather(j))
		default:
			return
		}
	}
}

func (w *writer) gather(first *job) []*job {
	batch := []*job{first}
	for range gatherYields {
		runtime.Gosched()
		for len(batch) < maxBatch {
			select {
			case j := <-w.queue:
				batch = append(batch, j)
				continue
			default:
			}
			break
		}
	}
	return batch
}

// run runs a batch. When a whole transaction fails, it runs the jobs after the failed one again.
func (w *writer) run(batch []*job) {
	together := batch[:0:0]
	for _, j := range batch {
		if j.alone {
			if err := w.ready(); err != nil && !j.moved {
				j.giveUp(err)
			} else if j.begin() {
				t := w.newTx(context.Background())
				err := t.guarded(j.fn)
				if err == nil && w.postgres {
					err = w.flush(t.Ctx)
				}
				w.noteDamage(err)
				j.answer <- err
			}
			continue
		}
		together = append(together, j)
	}
	for len(together) > 0 {
		together = w.transact(together)
	}
}

// transact runs a batch in one transaction and answers it. If SQLite gave up the whole
// transaction (a full disk does that), the closures up to the one that failed are answered
// with the failure, and the rest are returned to be run anew.
func (w *writer) transact(batch []*job) (again []*job) {
	ctx := context.Background()
	savepoint := len(batch) > 1
	if err := w.begin(ctx, savepoint); err != nil {
		w.noteDamage(err)
		w.settle(err)
		for _, j := range batch {
			j.giveUp(err)
		}
		return nil
	}
	begun, carried := batch[:0], []any(nil)
	fail := func(err error) {
		for _, j := range begun {
			if j.err == nil {
				j.err = err
			}
			j.answer <- j.err
		}
	}
	for i, j := range batch {
		if !j.begin() {
			continue
		}
		begun = append(begun, j)
		if dead := w.attempt(ctx, j, savepoint); dead != nil {
			_ = w.rollback(ctx) // usually gone already; never leave one open
			w.settle(dead)
			fail(dead)
			return batch[i+1:]
		}
		if j.err == nil && j.carry != nil {
			carried = append(carried, j.carry)
		}
	}
	var err error
	if len(carried) > 0 {
		err = w.opt.BeforeCommit(w.newTx(ctx), carried)
	}
	if err == nil {
		err = w.commit(ctx)
	}
	if err != nil {
		_ = w.rollback(ctx)
		w.noteDamage(err)
		w.settle(err)
		err = fmt.Errorf("commit: %w", err)
		if isUnreachable(err) { // its answer may be what was lost
			err = session.Errorf(session.Unavailable,
				"the connection to PostgreSQL was lost at the commit; whether this request is stored is open: repeat it, "+
					"with the same Idempotency-Key: %w", err)
		}
		fail(err)
		return nil
	}
	if w.counts > 0 {
		w.stamp.counted(w.counts)
		w.counts = 0
	}
	// A file that was moved between begin and COMMIT may have no name: nothing is acknowledged.
	err = w.checkFilesStrictly()
	w.settle(err)
	if err != nil {
		fail(session.Errorf(session.Unavailable,
			"%w; whether this request is stored is open: repeat it, with the same Idempotency-Key, when sessiond is ready again",
			err))
		return nil
	}
	for _, j := range begun {
		j.answer <- j.err
	}
	if w.opt.Committed != nil {
		w.opt.Committed()
	}
	return nil
}

// begin checks the files and waits for the write lock. The first one switches the file to WAL mode.
func (w *writer) begin(ctx context.Context, savepoint bool) error {
	if w.postgres {
		return w.beginPostgres(ctx, savepoint)
	}
	first := w.files.Load() == nil
	if first {
		if err := retryBusy(w.patience, func() error { return w.useWAL(ctx) }); err != nil {
			return err
		}
	}
	if err := w.ready(); err != nil {
		return err
	}
	if err := retryBusy(w.patience, func() error { return w.exec1(ctx, `BEGIN IMMEDIATE`) }); err != nil {
		return err
	}
	if first { // only now the log has its index
		if err := w.rememberFiles(); err != nil {
			_ = w.exec1(ctx, `ROLLBACK`) // as in transact
			return err
		}
	}
	var err error
	if w.counts, err = w.checkStamp(ctx); err != nil {
		_ = w.exec1(ctx, `ROLLBACK`) // as in transact
	}
	return err
}

// attempt runs one closure in a savepoint. Its own failure stands in j.err and leaves the
// transaction whole; dead tells that the transaction itself is gone. A closure that is alone
// in its transaction needs no savepoint. On PostgreSQL begin makes the first one, and what ends a job
// makes the next.
func (w *writer) attempt(ctx context.Context, j *job, savepoint bool) (dead error) {
	if savepoint && !w.postgres {
		if err := w.exec1(ctx, `SAVEPOINT job`); err != nil {
			return err
		}
	}
	t := w.newTx(context.WithoutCancel(j.ctx))
	if j.err = t.limit(); j.err == nil {
		j.err = t.guarded(j.fn)
	}
	if j.err == nil {
		j.err = t.unlimit()
	}
	j.carry = t.Carry
	if IsDamage(j.err) { // nothing that shares its transaction is stored either
		w.noteDamage(j.err)
		if refusal := w.ready(); refusal != nil {
			j.err = refusal
		}
		return j.err
	}
	if !savepoint || w.postgres && stateOf(j.err) != StateOK && stateOf(j.err) != "" {
		return j.err
	}
	if j.err == nil && w.postgres {
		j.err = w.send(ctx, `RELEASE job`, `SAVEPOINT job`)
	}
	if j.err != nil {
		if err := w.exec1(ctx, `ROLLBACK TO job`); err != nil {
			return fmt.Errorf("%w (and the transaction was rolled back)", j.err)
		}
	}
	if w.postgres {
		return nil
	}
	return w.exec1(ctx, `RELEASE job`)
}

// guarded keeps a panic in one closure from taking down the writer, and with it the daemon.
func (t *Tx) guarded(fn func(*Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a write: %v", p)
		}
		if err != nil {
			t.w.forget()
		}
	}()
	return fn(t)
}

// rollback ends a transaction, and forgets what waits to be sent in it.
func (w *writer) rollback(ctx context.Context) error {
	w.forget()
	return w.exec1(ctx, `ROLLBACK`)
}

func (w *writer) commit(ctx context.Context) error {
	if w.postgres {
		return w.commitPostgres(ctx)
	}
	return w.exec1(ctx, `COMMIT`)
}

func (w *writer) exec1(ctx context.Context, query string) error {
	if w.postgres {
		return w.send(ctx, query)
	}
	st, err := w.stmt(ctx, query)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(ctx)
	return err
}

// stmt returns a statement whose result is needed: those that wait are sent with it.
func (w *writer) stmt(ctx context.Context, query string) (*sqlx.Stmt, error) {
	if st, ok := w.stmts[query]; ok {
		return st, nil
	}
	st, err := w.conn.PreparexContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	w.stmts[query] = st
	return st, nil
}

func (w *writer) close() {
	w.left = w.leaveFiles()
	w.release()
	if !w.postgres { // there each would wait for the server, and they end with the connection
		for _, st := range w.stmts {
			st.Close() //nolint:errcheck // everything is committed
		}
		_ = w.waitInside(busyTimeoutMS) // giving up the log waits a little for readers
	}
	w.conn.Close() //nolint:errcheck // returns it to its pool of one
}

// Exec runs a statement whose result is not needed. On PostgreSQL its error may come with a later one's:
// what tells errors apart calls Changed.
func (t *Tx) Exec(query string, args ...any) error {
	if t.w.postgres {
		return t.w.enqueue(t.Ctx, query, args...)
	}
	_, err := t.result(query, args...)
	return err
}

// ExecEach runs statements that take the same arguments.
func (t *Tx) ExecEach(queries []string, args ...any) error {
	for _, query := range queries {
		if err := t.Exec(query, args...); err != nil {
			return err
		}
	}
	return nil
}

// Changed runs a statement and returns how many rows it changed.
func (t *Tx) Changed(query string, args ...any) (int64, error) {
	res, err := t.result(query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Insert runs an INSERT into a table whose rows are numbered, and returns the number of its row; sql.ErrNoRows when it
// inserted none. SQLite tells the number without RETURNING, which would make a query of each statement.
func (t *Tx) Insert(query string, args ...any) (id int64, err error) {
	if t.w.postgres {
		err = t.Row(query+` RETURNING id`, args, &id)
		return id, err
	}
	res, err := t.result(query, args...)
	if err != nil {
		return 0, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return 0, cmp.Or(err, sql.ErrNoRows)
	}
	return res.LastInsertId()
}

func (t *Tx) result(query string, args ...any) (sql.Result, error) {
	st, err := t.w.stmt(t.Ctx, query)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(t.Ctx, args...)
}

// Exists reports whether a query has a row.
func (t *Tx) Exists(query string, args ...any) (bool, error) {
	found, err := First[int64](t.Ctx, t, query, args...)
	return found != nil, err
}

// Row reads one row of plain columns; sql.ErrNoRows when there is none.
func (t *Tx) Row(query string, args []any, dest ...any) error {
	st, err := t.w.stmt(t.Ctx, query)
	if err != nil {
		return err
	}
	return st.QueryRowContext(t.Ctx, args...).Scan(dest...)
}

// NextID returns the next number of the sequence Options.IDs for a row that the closure inserts, so that no insert
// waits for the answer to another; 0 on SQLite, which numbers rows itself.
func (t *Tx) NextID() int64 {
	if !t.w.postgres {
		return 0
	}
	t.w.lastID++
	return t.w.lastID
}
