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
	"time"

	"sessiond/internal/session"
)

const (
	// settleTime is how long changes are gathered before they are read.
	settleTime = 300 * time.Millisecond
	// scanPause is the least time between two searches of a source's folders, and a search
	// takes at most a twentieth of the time.
	scanPause = 2 * time.Second
	scanShare = 20
	// QuietTime is how long a source must not have changed for what is unfinished in it to be
	// taken as it is. It is read once more then.
	QuietTime = 10 * time.Minute
	// Everything is looked through now and then: seldom while changes are told, at every look
	// where the system cannot tell them.
	scanEvery = 5 * time.Minute
	lookEvery = 10 * time.Second
	retryTime = 5 * time.Second // after the store failed
)

// Follower keeps sources up to date: what their programs write is imported within a second
// or so, as long as Run runs. It waits for changes where the system tells them, and looks
// every few seconds where it does not.
type Follower struct {
	Importer *Importer
	Sources  []Source

	// Paths returns the files and folders of a source to follow; nil: every source is followed
	// in its places.
	Paths func(ctx context.Context, source session.Source) ([]string, error)

	// Done is told what was imported, or could not be; nil: nobody.
	Done func(source session.Source, a Accounting)
	// Failed is told that the store failed: it is tried again. nil: nobody.
	Failed func(err error)

	// Now and After are the clock; nil: time's.
	Now   func() time.Time
	After func(d time.Duration) <-chan time.Time

	watch   func() (watch, error) // nil: the system's
	changes watch                 // nil: nothing tells of changes
	state   []*followed
	timer   <-chan time.Time // of what has changed
	due     time.Time        // of timer
	ready   func()           // tests: what had happened before it is called was taken note of
}

// followed is a source and what is known of it.
type followed struct {
	Source
	roots  []string         // empty: not followed yet
	known  map[string]Found // by real path
	dirty  map[string]bool  // of known, that changed; true: known is how it is now
	later  map[string]time.Time
	orphan map[string]string // of known, whose origin is not here: the id of that in its program
	scan   bool              // something changed that is not known
	next   time.Time         // no search before then
	errors map[string]string // by path: told once

	searched time.Time
}

// Run follows until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	f.begin()
	defer f.deafen()
	f.look()
	f.work(ctx)
	for look := f.After(lookEvery); ctx.Err() == nil; {
		if f.ready != nil {
			f.ready()
		}
		select {
		case <-ctx.Done():
		case <-look:
			f.look()
			f.work(ctx)
			look = f.After(lookEvery)
		case path, ok := <-f.events():
			if !ok {
				f.deafen()
			} else if f.note(path) {
				f.wake(settleTime)
			}
		case <-f.timer:
			f.timer = nil
			f.work(ctx)
		}
	}
	return nil
}

// look asks for a search where nothing tells of changes, where the last one was long ago, and
// for sources that may have been imported for the first time.
func (f *Follower) look() {
	for _, s := range f.state {
		if f.changes == nil || len(s.roots) == 0 || f.Now().Sub(s.searched) >= scanEvery {
			s.scan, s.next = true, time.Time{}
		}
	}
}

// deafen gives up being told of changes.
func (f *Follower) deafen() {
	if f.changes != nil {
		f.changes.close()
		f.changes = nil
	}
}

func (f *Follower) begin() {
	if f.Now == nil {
		f.Now = time.Now
	}
	if f.After == nil {
		f.After = time.After
	}
	if f.watch == nil {
		f.watch = watchSystem
	}
	if w, err := f.watch(); err == nil {
		f.changes = w
	}
	for _, s := range f.Sources {
		f.state = append(f.state, &followed{
			Source: s, known: map[string]Found{}, dirty: map[string]bool{}, later: map[string]time.Time{}, orphan: map[string]string{}, errors: map[string]string{},
		})
	}
}

// events is nil, and never tells anything, where the system cannot.
func (f *Follower) events() <-chan string {
	if f.changes == nil {
		return nil
	}
	return f.changes.events()
}

// note remembers that a path changed. It is false when that concerns no source.
func (f *Follower) note(path string) bool {
	if path == "" { // it lost count
		for _, s := range f.state {
			s.scan = true
		}
		return true
	}
	path = databaseOf(path)
	for _, s := range f.state {
		if _, ok := s.known[path]; ok {
			s.dirty[path] = false
			return true
		}
	}
	concerns := false
	for _, s := range f.state {
		if slices.ContainsFunc(s.roots, func(root string) bool { return Within(path, root) }) {
			s.scan, concerns = true, true
		}
	}
	if concerns && f.changes != nil && IsFolder(path) {
		f.watchBelow(path, maxNewFolders)
	}
	return concerns
}

// databaseOf gives the database that a log belongs to; other paths are themselves.
func databaseOf(path string) string {
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		if rest, ok := strings.CutSuffix(path, suffix); ok {
			return rest
		}
	}
	return path
}

// Within reports whether a path is root or below it.
func Within(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}

// work imports what changed.
func (f *Follower) work(ctx context.Context) {
	wait := time.Duration(0)
	for _, s := range f.state {
		if ctx.Err() != nil {
			return
		}
		err := f.update(ctx, s)
		if err != nil && ctx.Err() == nil {
			if f.Failed != nil {
				f.Failed(err)
			}
			wait = retryTime
		}
		if s.scan && len(s.roots) > 0 {
			wait = max(wait, s.next.Sub(f.Now()), settleTime)
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

// wake sees to it that work is done in d, or before.
func (f *Follower) wake(d time.Duration) {
	if due := f.Now().Add(d); f.timer == nil || due.Before(f.due) {
		f.timer, f.due = f.After(d), due
	}
}

// update imports what changed of one source. What failed stays changed.
func (f *Follower) update(ctx context.Context, s *followed) error {
	now := f.Now()
	for path, at := range s.later {
		if !at.After(now) {
			s.dirty[path] = false
			delete(s.later, path)
		}
	}
	if s.scan && !s.next.After(now) {
		if err := f.search(ctx, s); err != nil {
			return err
		}
		// What changed between the first search and the watching is seen by a second one.
		s.scan, s.searched = s.searched.IsZero() && f.changes != nil, f.Now()
		s.next = s.searched.Add(max(scanPause, scanShare*s.searched.Sub(now)))
	}
	for len(s.dirty) > 0 {
		if err := f.take(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// lookAgain has everything read again of which the origin was not here, and is. There may be
// thousands that wait for sessions which their program removed: each of these is looked for once.
func (f *Follower) lookAgain(ctx context.Context, s *followed) error {
	here := map[string]bool{}
	for path, origin := range s.orphan {
		if _, looked := here[origin]; !looked {
			_, err := f.Importer.Store.SessionBySource(ctx, s.Name(), origin)
			if err != nil && session.CodeOf(err) != session.NotFound {
				return err
			}
			here[origin] = err == nil
		}
		if _, changed := s.dirty[path]; here[origin] && !changed {
			s.dirty[path] = true
		}
	}
	return nil
}

// take imports what changed. What waits for a session that came with it has changed then.
func (f *Follower) take(ctx context.Context, s *followed) error {
	for _, path := range slices.Sorted(maps.Keys(s.dirty)) {
		found, there := s.known[path], true
		if !s.dirty[path] {
			var err error
			if found, there, err = f.again(ctx, s, path); err != nil {
				return err
			}
		}
		if !there { // what was imported of it stays
			delete(s.known, path)
			delete(s.dirty, path)
			delete(s.orphan, path)
			continue
		}
		var done Accounting
		if found.Size > 0 { // else it was just made
			origin, err := "", error(nil)
			if done, origin, err = f.Importer.one(ctx, s.Source, found); err != nil {
				return err
			}
			if delete(s.orphan, path); done.Sessions.New > 0 {
				if err := f.lookAgain(ctx, s); err != nil {
					return err
				}
			}
			if origin != "" {
				s.orphan[path] = origin
			}
		}
		delete(s.dirty, path)
		s.known[path] = found
		if quiet := found.ModifiedAt.Add(QuietTime); quiet.After(f.Now()) {
			s.later[path] = quiet.Add(settleTime)
		}
		f.tell(s, done)
	}
	return nil
}

// again looks at something that is known to be the source's. It is not there when it was
// removed, or is no history any more.
func (f *Follower) again(ctx context.Context, s *followed, path string) (found Found, there bool, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return Found{}, false, nil
	}
	all, _, err := s.Find(ctx, []string{path})
	if i := slices.IndexFunc(all, func(f Found) bool { return f.Path == path }); i >= 0 {
		return all[i], true, err
	}
	return s.known[path], err == nil, err // reading it says what is wrong
}

// search looks through a source's folders for what is new or has changed, and watches them.
func (f *Follower) search(ctx context.Context, s *followed) error {
	roots, err := f.rootsOf(ctx, s)
	if err != nil {
		return err
	}
	if s.roots = roots; len(roots) == 0 {
		return nil
	}
	var there []string
	for _, root := range roots {
		if _, err := os.Stat(root); err == nil {
			there = append(there, root)
		}
	}
	if len(there) == 0 {
		return nil
	}
	found, problems, err := s.Find(ctx, there)
	if err != nil {
		return err
	}
	for _, one := range found {
		before, ok := s.known[one.Path]
		if !ok || before.Size != one.Size || !before.ModifiedAt.Equal(one.ModifiedAt) {
			s.known[one.Path], s.dirty[one.Path] = one, true
		}
		if !ok {
			f.watchUpTo(one.Path, roots)
		}
	}
	for _, root := range there {
		f.watchOnly(root)
	}
	f.tell(s, Accounting{Errors: problems})
	return f.lookAgain(ctx, s) // others may have imported an origin
}

// rootsOf returns the files and folders that a source is followed in, none inside another.
func (f *Follower) rootsOf(ctx context.Context, s *followed) (roots []string, err error) {
	paths := s.Places()
	if f.Paths != nil {
		if paths, err = f.Paths(ctx, s.Name()); err != nil {
			return nil, err
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
	}
	return roots, nil
}

// tell passes on what happened, and each problem once.
func (f *Follower) tell(s *followed, done Accounting) {
	problems := done.Errors
	done.Errors = nil
	for _, p := range problems {
		if s.errors[p.Path] != p.Error {
			s.errors[p.Path] = p.Error
			done.Errors = append(done.Errors, p)
		}
	}
	if f.Done != nil && (done.Records.Imported+done.Records.Raw > 0 || done.Sessions.New+done.Sessions.Updated > 0 || len(done.Errors) > 0) {
		f.Done(s.Name(), done)
	}
}
