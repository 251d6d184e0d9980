package engine

import "github.com/jmoiron/sqlx"

// What tests outside of the package look at.
const (
	ApplicationID = applicationID
	LargeLog      = largeLog
	QueueLength   = queueLength
	Unfinished    = unfinished
)

// Queued returns how many closures wait for the writer.
func Queued(d *DB) int { return len(d.writer.queue) }

// Stopping is closed when the writer accepts no more.
func Stopping(d *DB) <-chan struct{} { return d.writer.quit }

// LeftOpen reports whether Close left the files open.
func LeftOpen(d *DB) bool { return d.writer.staysOpen }

// CloseAll closes what Close left open.
func CloseAll(d *DB) { d.closeAll() }

// CloseHandles closes SQLite's connections alone.
func CloseHandles(d *DB) { d.closeHandles() }

// SetHealth sets the outcome of the last write.
func SetHealth(d *DB, h Health) { d.writer.health.Store(&h) }

// Number returns the stamp in the file.
func Number(d *DB) (uint32, error) {
	h, err := readHeader(d.writer.stamp.file)
	return h.count, err
}

// NewestNumber returns the stamp of the newest commit.
func NewestNumber(d *DB) uint32 { return d.writer.stamp.high.count }

// NumberOf returns the stamp of a database's file.
func NumberOf(path string) (uint32, error) {
	h, err := readHeaderOf(path)
	return h.count, err
}

// PagesOfLog returns how many pages a write-ahead log holds.
func PagesOfLog(path string) (int, error) {
	found, err := readLog(path)
	return found.pages, err
}

// Readers returns the pool that requests read with.
func Readers(d *DB) *sqlx.DB { return d.readers }

// LockWriters is what a writing transaction begins with on PostgreSQL.
var LockWriters = lockWriters

// Exec1 runs a statement on the writing connection.
func Exec1(t *Tx, query string) error { return t.w.exec1(t.Ctx, query) }
