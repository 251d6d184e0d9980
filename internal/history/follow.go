package history

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"sessiond/internal/session"
)

const (
	// restShare is how many times as long as it took to read a file it is left alone then: each
	// reading replays it, and a large one that changes all the time must not keep a core busy.
	restShare = 4
	// settleTime is how long the follower collects changes before it imports them.
	settleTime = 300 * time.Millisecond
	// scanPause is the least time between two scans of a source's folders. A scan takes a
	// twentieth of the time at most.
	scanPause = 2 * time.Second
	scanShare = 20
	// A source whose program has ended is read to its end, after overQuiet: another container may write
	// it, whose processes are not seen. A reply with text and without an open call waits ReplyQuiet. What else
	// is unfinished waits QuietTime. The follower reads a source once more after each of these times.
	overQuiet  = 5 * time.Second
	ReplyQuiet = 30 * time.Second
	QuietTime  = 10 * time.Minute
	// The follower scans each source every quarter of an hour: a scan of 20,000 files reads 10 MB of the list of what is
	// imported. Where the system reports no changes of a folder, the follower looks at that folder; where it reports none
	// at all, it scans. It does so ten seconds after a change, then after twice as long each time, up to five minutes.
	lookEvery = 10 * time.Second
	lookMost  = 5 * time.Minute
	scanEvery = 15 * time.Minute
	retryTime = 5 * time.Second // after the store failed
	lastTime  = 3 * time.Second // at the end, to import what waits
	maxHeld   = 64              // files of a source in which something waits
	atOnce    = 1000            // changed files that the store is asked about at once: all are, when the follower begins
)

// Follower imports what programs write within a second or so, as long as Run runs. It waits for
// changes where the system reports them, and looks by itself where it does not: the less often, the longer nothing
// has changed.
type Follower struct {
	Importer *Importer
	Sources  []Source

	// Paths returns the files and folders of a source to follow; nil: every source is followed
	// in its places.
	Paths func(ctx context.Context, source session.Source) ([]string, error)

	// Done is called with what was imported, or could not be. It may be nil.
	Done func(source session.Source, a Accounting)
	// Failed is called when the store failed. The follower tries again. It may be nil.
	Failed func(err error)

	// Now and After are the clock; nil: time's.
	Now   func() time.Time
	After func(d time.Duration) <-chan time.Time

	newWatcher func() (*fsnotify.Watcher, error) // nil: fsnotify's
	watcher    *fsnotify.Watcher                 // nil: the system does not report changes
	addWatch   func(folder string) error         // nil: the watcher's
	followed   []*followed
	timer      <-chan time.Time // of the next work
	due        time.Time        // of timer
	ready      func()           // for tests: called when the follower waits

	noted    chan struct{} // signals that notes has paths
	notes    map[string]bool
	notesMu  sync.Mutex
	beginOne sync.Once
}

// followed is a source and the state of its files.
type followed struct {
	Source
	roots    []string             // empty: not followed yet
	known    map[string]Found     // by real path
	changed  map[string]bool      // of known; true: known is as it is now
	later    map[string]time.Time // of known: when it has been quiet for QuietTime
	rests    map[string]time.Time // of known: not read again before then
	awaits   map[string]string    // of known: the source id of its origin, which is not in the store
	held     map[string]*os.File  // of known: opened, since something waits in it
	errors   map[string]string    // by path, as reported
	scan     bool                 // something changed that is not known
	scanned  time.Time
	nextScan time.Time // no scan before then

	unwatched map[string]bool   // folders of which the system reports no changes
	entries   map[string]string // of these folders: size and time by path, at the last look
	looked    time.Time
	pause     time.Duration // from a look to the next one, or a scan, if there are such folders
}

// Run follows until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	f.begin()
	defer f.stopWatching()
	f.scheduleScans()
	f.work(ctx)
	for look := f.After(lookEvery); ctx.Err() == nil; {
		if f.ready != nil {
			f.ready()
		}
		events, overflows := f.events()
		select {
		case <-ctx.Done():
		case <-look:
			f.scheduleScans()
			f.work(ctx)
			look = f.After(lookEvery)
		case event, ok := <-events:
			if !ok {
				f.stopWatching()
			} else if event.Op != fsnotify.Chmod && f.noteChange(event.Name) {
				f.wake(settleTime)
			}
		case _, ok := <-overflows: // events were lost
			if !ok {
				f.stopWatching()
				continue
			}
			for _, s := range f.followed {
				s.scan = true
			}
			f.wake(settleTime)
		case <-f.noted:
			f.takeNotes()
		case <-f.timer:
			f.timer = nil
			f.work(ctx)
		}
	}
	f.importWaiting(ctx)
	return nil
}

func (f *Follower) begin() {
	if f.Now == nil {
		f.Now = time.Now
	}
	if f.After == nil {
		f.After = time.After
	}
	if f.newWatcher == nil {
		f.newWatcher = fsnotify.NewWatcher
	}
	if w, err := f.newWatcher(); err == nil {
		f.watcher = w
	}
	f.noting()
	for _, s := range f.Sources {
		f.followed = append(f.followed, &followed{
			Source: s, known: map[string]Found{}, changed: map[string]bool{}, later: map[string]time.Time{},
			rests:  map[string]time.Time{},
			awaits: map[string]string{}, held: map[string]*os.File{}, errors: map[string]string{},
			unwatched: map[string]bool{}, pause: lookEvery,
		})
	}
}

// scheduleScans asks for a scan of the sources whose last scan was long ago, or that may have been imported for the
// first time.
func (f *Follower) scheduleScans() {
	for _, s := range f.followed {
		every := scanEvery
		switch {
		case f.watcher == nil:
			every = s.pause
		case len(s.unwatched) > 0 && f.Now().Sub(s.looked) >= s.pause:
			f.lookAtUnwatched(s)
		}
		if len(s.roots) == 0 || f.Now().Sub(s.scanned) >= every {
			s.scan, s.nextScan = true, time.Time{}
		}
	}
}

// noteChange remembers that a path changed. It returns false if that concerns no source.
func (f *Follower) noteChange(path string) bool {
	for _, suffix := range []string{"-wal", "-shm", "-journal"} { // a change of a log is one of its database
		path = strings.TrimSuffix(path, suffix)
	}
	concerns := false
	for _, s := range f.followed {
		if _, ok := s.known[path]; ok {
			s.changed[path] = false
			return true
		}
		if slices.ContainsFunc(s.roots, func(root string) bool { return Within(path, root) }) {
			s.scan, concerns = true, true
			if IsFolder(path) {
				f.watchBelow(s, path, maxNewFolders)
			}
		}
	}
	return concerns
}

// Note tells the follower that lines of a stored transcript came. It does not block, and may be called at any time.
func (f *Follower) Note(path string) {
	f.noting()
	f.notesMu.Lock()
	f.notes[path] = true
	f.notesMu.Unlock()
	select {
	case f.noted <- struct{}{}:
	default: // a signal is pending
	}
}

func (f *Follower) noting() {
	f.beginOne.Do(func() { f.noted, f.notes = make(chan struct{}, 1), map[string]bool{} })
}

// takeNotes marks the transcripts as changed of which lines came.
func (f *Follower) takeNotes() {
	f.notesMu.Lock()
	notes := f.notes
	f.notes = map[string]bool{}
	f.notesMu.Unlock()
	for path := range notes {
		for _, s := range f.followed {
			if stored, ok := s.Source.(*Stored); ok && stored.isOf(path) {
				s.changed[path] = false
				s.known[path] = Found{Path: path}
			}
		}
	}
	f.wake(settleTime)
}

// Within reports whether a path is root or below it.
func Within(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}

// work imports what changed and sets the timer for what remains.
func (f *Follower) work(ctx context.Context) {
	wait := time.Duration(0)
	for _, s := range f.followed {
		if ctx.Err() != nil {
			return
		}
		if err := f.update(ctx, s); err != nil && ctx.Err() == nil {
			if f.Failed != nil {
				f.Failed(err)
			}
			wait = retryTime
		}
		if s.scan && len(s.roots) > 0 {
			wait = max(wait, s.nextScan.Sub(f.Now()), settleTime)
		}
		for _, at := range s.later {
			if rest := max(at.Sub(f.Now()), settleTime); wait == 0 || rest < wait {
				wait = rest
			}
		}
	}
	if wait > 0 {
		f.wake(wait)
	}
}

// wake sets the timer to d, unless it is due before.
func (f *Follower) wake(d time.Duration) {
	if due := f.Now().Add(d); f.timer == nil || due.Before(f.due) {
		f.timer, f.due = f.After(d), due
	}
}

// update imports what changed of one source. After an error the rest stays changed.
func (f *Follower) update(ctx context.Context, s *followed) error {
	now := f.Now()
	for path, at := range s.later {
		if !at.After(now) {
			s.changed[path] = false
			delete(s.later, path)
		}
	}
	if s.scan && !s.nextScan.After(now) {
		if err := f.scanSource(ctx, s); err != nil {
			return err
		}
		// A second scan sees what changed between the first one and the watching.
		s.scan, s.scanned = s.scanned.IsZero() && f.watcher != nil, f.Now()
		s.nextScan = s.scanned.Add(max(scanPause, scanShare*s.scanned.Sub(now)))
	}
	for len(s.changed) > 0 { // an import may add to them
		for paths := range slices.Chunk(slices.Sorted(maps.Keys(s.changed)), atOnce) {
			if err := f.importAllChanged(ctx, s, paths); err != nil {
				return err
			}
		}
	}
	return nil
}

// importAllChanged imports files that changed.
func (f *Follower) importAllChanged(ctx context.Context, s *followed, paths []string) error {
	changed := make([]Found, len(paths))
	for i, path := range paths {
		changed[i].Path = path
	}
	cursors, err := f.Importer.cursors(ctx, s.Source, changed)
	for i := 0; i < len(paths) && err == nil; i++ {
		err = f.importChanged(ctx, s, paths[i], cursors[paths[i]])
	}
	return err
}

// importChanged imports a file that changed, and marks those as changed that wait for a session
// that came with it.
func (f *Follower) importChanged(ctx context.Context, s *followed, path string, before *Cursor) error {
	begun := f.Now()
	if at := s.rests[path]; at.After(begun) {
		s.later[path] = at
		delete(s.changed, path)
		return nil
	}
	found := s.known[path]
	if !s.changed[path] {
		var err error
		there := true
		if found, there, err = f.findAgain(ctx, s, path); err != nil {
			return err
		}
		if !there { // what was imported of it stays
			return f.importHeld(ctx, s, path)
		}
	}
	s.release(path)
	var done Accounting
	if found.Size > 0 { // else the program has just made it
		var origin string
		var err error
		if done, origin, err = f.Importer.one(ctx, s.Source, found, before); err != nil {
			return err
		}
		delete(s.awaits, path)
		if done.Sessions.New > 0 {
			if err := f.wakeForks(ctx, s); err != nil {
				return err
			}
		}
		if origin != "" {
			s.awaits[path] = origin
		}
	}
	delete(s.changed, path)
	s.known[path] = found
	ended := f.Now()
	s.rests[path] = ended.Add(restShare * ended.Sub(begun))
	for _, d := range [...]time.Duration{overQuiet, ReplyQuiet, QuietTime} {
		if quiet := found.ModifiedAt.Add(d + settleTime); quiet.After(ended) {
			s.later[path] = quiet
			break
		}
	}
	if done.Records.Waiting > 0 {
		s.hold(path)
	}
	f.report(s, done)
	return nil
}

// importHeld imports what waited in a file that is gone, and forgets the file.
func (f *Follower) importHeld(ctx context.Context, s *followed, path string) error {
	if file := s.held[path]; file != nil {
		found := s.known[path]
		found.Held, found.Last = file, true
		delete(s.held, path) // the reading closes it
		done, _, err := f.Importer.one(ctx, s.Source, found, nil)
		if err != nil {
			return err
		}
		f.report(s, done)
	}
	delete(s.known, path)
	delete(s.changed, path)
	delete(s.awaits, path)
	delete(s.rests, path)
	return nil
}

// importWaiting imports what still waits in files: the follower ends, and nobody sees what becomes of them.
func (f *Follower) importWaiting(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
	defer cancel()
	for _, s := range f.followed {
		for path := range s.held {
			s.release(path)
			found, there, err := f.findAgain(ctx, s, path)
			if err != nil || !there {
				continue
			}
			found.Last = true
			if done, _, err := f.Importer.one(ctx, s.Source, found, nil); err == nil {
				f.report(s, done)
			}
		}
	}
}

// hold keeps a file open in which something waits: its program may remove it.
func (s *followed) hold(path string) {
	if len(s.held) >= maxHeld || IsFolder(path) || IsDatabase(path) || filepath.Ext(path) == ".zst" {
		return
	}
	if file, _, err := Open(path); err == nil {
		s.held[path] = file
	}
}

func (s *followed) release(path string) {
	if file := s.held[path]; file != nil {
		file.Close()
		delete(s.held, path)
	}
}

// wakeForks marks the files as changed whose origin was missing and is in the store now. It
// looks each origin up once: thousands may wait for sessions that their program removed.
func (f *Follower) wakeForks(ctx context.Context, s *followed) error {
	here := map[string]bool{}
	for path, origin := range s.awaits {
		if _, looked := here[origin]; !looked {
			found, err := orNone(f.Importer.Store.SessionBySource(ctx, s.Name(), origin))
			if err != nil {
				return err
			}
			here[origin] = found != nil
		}
		if _, changed := s.changed[path]; here[origin] && !changed {
			s.changed[path] = true
		}
	}
	return nil
}

// findAgain looks at a known file. It is not there when it was removed or is no history any more.
func (f *Follower) findAgain(ctx context.Context, s *followed, path string) (found Found, there bool, err error) {
	all, _, err := s.Find(ctx, []string{path})
	if i := slices.IndexFunc(all, func(f Found) bool { return f.Path == path }); i >= 0 {
		return all[i], true, err
	}
	if _, gone := os.Stat(path); err != nil || errors.Is(gone, fs.ErrNotExist) {
		return Found{}, false, err
	}
	return s.known[path], true, nil // reading it reports what is wrong
}

// scanSource looks for new and changed files of a source, and watches their folders.
func (f *Follower) scanSource(ctx context.Context, s *followed) error {
	roots, there, err := f.rootsOf(ctx, s)
	if err != nil {
		return err
	}
	if s.roots = roots; len(there) == 0 {
		return nil
	}
	found, problems, err := s.Find(ctx, there)
	if err != nil {
		return err
	}
	for _, one := range found {
		before, ok := s.known[one.Path]
		if !ok || before.Size != one.Size || !before.ModifiedAt.Equal(one.ModifiedAt) {
			s.known[one.Path], s.changed[one.Path] = one, true
		}
		if !ok {
			f.watchUpTo(s, one.Path, roots)
		}
	}
	for _, root := range there {
		f.watch(s, root)
	}
	f.watchAgain(s)
	if f.watcher == nil {
		s.lengthenPause(len(s.changed) > 0)
	}
	f.report(s, Accounting{Errors: problems})
	return f.wakeForks(ctx, s) // another process may have imported an origin
}

// rootsOf returns the files and folders that a source is followed in, none inside another, and those that are there.
// Those of transcripts in the store always are, and no file has their paths: none is watched or held open.
func (f *Follower) rootsOf(ctx context.Context, s *followed) (roots, there []string, err error) {
	paths := s.Places()
	if _, stored := s.Source.(*Stored); stored {
		return paths, paths, nil
	}
	if f.Paths != nil {
		if paths, err = f.Paths(ctx, s.Name()); err != nil {
			return nil, nil, err
		}
	}
	for _, path := range slices.Sorted(slices.Values(paths)) { // a folder comes before its files
		path, _, _ = strings.Cut(path, "#") // a session of a database
		if !slices.ContainsFunc(roots, func(root string) bool { return Within(path, root) }) {
			roots = append(roots, path)
		}
	}
	for i, root := range roots {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			roots[i] = real
		}
		if _, err := os.Stat(roots[i]); err == nil {
			there = append(there, roots[i])
		}
	}
	return roots, there, nil
}

// report passes on what happened, and each problem once.
func (f *Follower) report(s *followed, done Accounting) {
	problems := done.Errors
	done.Errors = nil
	for _, p := range problems {
		if s.errors[p.Path] != p.Error {
			s.errors[p.Path] = p.Error
			done.Errors = append(done.Errors, p)
		}
	}
	if f.Done != nil && (done.Records.Imported+done.Records.Raw > 0 || done.Sessions.New+done.Sessions.Updated > 0 ||
		len(done.Errors) > 0) {
		f.Done(s.Name(), done)
	}
}
