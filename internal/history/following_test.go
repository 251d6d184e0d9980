package history_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/testkit/historytest"
)

// TestFollowing claims what historytest.Followed does of each program, whatever its program does
// to its files while they are followed: lines come whole or in halves, a file is cut off and goes
// on otherwise, a line is changed where it stands, files are moved, removed and put back, forks
// and sub-agents are seen before what they come from, or after. It also claims that reading again
// what did not change writes nothing, at any step.
func TestFollowing(t *testing.T) {
	for program, writer := range writers() {
		for seed := range min(30, effort.Runs(60)) {
			t.Run(writer.name+"/"+strconv.Itoa(seed), func(t *testing.T) {
				t.Parallel()
				follow(t, writers()[program], uint64(seed), uint64(program))
			})
		}
	}
}

// A fork of pi gets the compaction of its origin after it came in itself.
func TestFollowingAForkOfPi(t *testing.T) { follow(t, writesPi(), 3, 11) }

// follow compares a history that was followed while a program wrote it with one that was read at its end. What the
// program does is chosen by a seed of a stream.
func follow(t *testing.T, by *writer, seed, stream uint64) {
	t.Helper()
	random, choices := rand.New(rand.NewPCG(seed, stream)), []byte(nil)
	for range min(24+12*seed, 400) {
		choices = append(choices, byte(random.Uint32()))
	}
	w := newWriting(t, by, choices)
	if wrong := w.run(); len(wrong) > 0 {
		t.Errorf("%s\n\n%s", strings.Join(w.log, "\n"), strings.Join(wrong, "\n"))
	}
}

// writer is what a program writes.
type writer struct {
	name    string
	base    string // of a database, "" for files
	schema  string
	either  bool // no record says which of the files with equal lines is a fork of which
	inOrder bool // a message is not written again once another one follows it
	union   bool // what a file loses stays in the conversation
	source  func(now func() time.Time) history.Source
	begin   func(w *writing, f *file)         // makes the first lines of a new file
	turn    func(w *writing, f *file)         // adds lines that go on with a file's conversation
	fork    func(w *writing, f, from *file)   // makes a file that begins with lines of another one
	agent   func(w *writing, f, from *file)   // makes the file of a sub-agent
	moved   func(w *writing, f *file) string  // another place for a file; nil: none
	change  func(w *writing, f *file, at int) // changes a line where it stands; nil: the program never does
	joins   string                            // what stands between the entries of a document; "": a file has lines
	ends    func(f *file) string              // what follows the entries of a document, or a session's rows
}

// writing is a program at work; a check follows each step.
type writing struct {
	*testing.T
	*writer
	choices  []byte
	dir      string
	now      time.Time
	files    []*file
	made     int
	changed  bool
	cut      bool
	followed *historytest.House
	log      []string
	wrong    []string
}

// file is one file of the program, as it is and as it will be.
type file struct {
	path    string
	id      string
	lines   []line
	half    string // the beginning of the next line, which is being written
	rest    []line // what comes with its end
	updated time.Time
	away    bool // it is not there: not yet, or not any more
	shorter bool // it was cut off, and nothing was written since
	forked  bool // another file began as a copy: what that says more than this one is not told twice
	agent   bool // a sub-agent's: nothing is forked off it
}

// line is a line of a file with the name that other lines know it by.
type line struct {
	id, text string
	ends     bool // a turn, or what comes before the first one
}

func newWriting(t *testing.T, of *writer, choices []byte) *writing {
	w := &writing{T: t, writer: of, choices: choices, dir: t.TempDir(), now: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	w.followed = historytest.New(t, of.source(func() time.Time { return w.now }))
	return w
}

// pick chooses one of n.
func (w *writing) pick(n int) int {
	if len(w.choices) == 0 || n < 2 {
		return 0
	}
	c := int(w.choices[0])
	w.choices = w.choices[1:]
	return c % n
}

// fresh returns a name that nothing has.
func (w *writing) fresh() int { w.made++; return w.made }

// at is the time now, as programs write it.
func (w *writing) at() string { return w.now.Format("2006-01-02T15:04:05.000Z") }

func (w *writing) logf(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// run follows what happens until the choices end, and tells what is wrong then.
func (w *writing) run() []string {
	w.newFile(nil)
	w.look()
	for len(w.choices) > 0 {
		w.now = w.now.Add(time.Second)
		w.step()
		w.look()
	}
	for _, f := range w.files { // what was begun is finished, what was away comes back
		w.finish(f)
		if f.away {
			w.logf("%s comes", filepath.Base(f.path))
			f.away = false
			w.write(f)
		}
		if f.shorter { // that alone moves no head
			w.say(f)
			w.write(f)
		}
	}
	w.now = w.now.Add(24 * time.Hour)
	w.look()
	fresh := historytest.New(w.T, w.source(func() time.Time { return w.now }))
	if fresh.Import(w.dir); len(fresh.Sessions()) == 0 {
		w.wrong = append(w.wrong, "nothing came in")
	}
	w.followed.Examine()
	return append(w.wrong, historytest.Followed(fresh, w.followed,
		historytest.Told{Either: w.either, Changed: w.changed, Cut: w.cut})...)
}

// look imports what is there, twice, and once more: a moved file can make the second one link a session.
func (w *writing) look() {
	h := w.followed
	done := h.Import(w.dir)
	for _, p := range done.Errors {
		w.logf("  problem: %v", p)
	}
	h.Import(w.dir)
	rows := h.Rows()
	if again := h.Import(w.dir); h.Rows() != rows {
		w.logf("  a third import wrote")
		w.wrong = append(w.wrong, fmt.Sprintf("a third import wrote: %+v", again))
	}
}

// step is one thing that happens.
func (w *writing) step() {
	f := w.files[w.pick(len(w.files))]
	if f.away {
		w.logf("%s comes", filepath.Base(f.path))
		f.away = false
		w.write(f)
		return
	}
	what := w.pick(14)
	if (f.forked || w.union) && what >= 5 && what <= 8 || w.base != "" && what >= 3 && what <= 4 {
		what = 0
	}
	switch what {
	case 0, 1, 2:
		w.goOn(f)
	case 3, 4:
		w.goOnInHalves(f)
	case 5, 6: // rewound: cut off, then written on
		w.cutOff(f)
		w.goOn(f)
	case 7:
		w.cutOff(f)
		w.write(f)
	case 8:
		if f.half == "" && w.change != nil && len(f.lines) > 1 {
			at := 1 + w.pick(len(f.lines)-1)
			w.logf("%s: line %d is changed", filepath.Base(f.path), at)
			w.change(w, f, at)
			w.changed = true
			w.write(f)
		}
	case 9:
		if w.moved != nil {
			w.remove(f)
			f.path = w.moved(w, f)
			w.logf("moved to %s", f.path)
			w.write(f)
		}
	case 10:
		w.logf("%s is removed", filepath.Base(f.path))
		w.remove(f)
		f.away = true
	case 11:
		d := []time.Duration{11 * time.Minute, 31 * time.Second}[w.pick(2)]
		w.now = w.now.Add(d)
		w.logf("%s go by", d)
	case 12:
		if w.fork != nil && f.half == "" && !f.agent {
			f.forked, w.now = true, w.now.Add(time.Minute)
			w.newFile(func(n *file) { w.fork(w, n, f) })
			w.awayForNow(f)
		}
	case 13:
		if w.agent != nil && !f.agent {
			w.newFile(func(n *file) { n.agent = true; w.agent(w, n, f) })
			w.awayForNow(f)
		} else {
			w.newFile(nil)
		}
	}
}

// awayForNow takes a file away, so that what comes from it is seen first, for now.
func (w *writing) awayForNow(f *file) {
	if w.base == "" && w.pick(2) == 0 {
		w.logf("%s is away", filepath.Base(f.path))
		w.remove(f)
		f.away = true
	}
}

// newFile makes a file: of a new session, or as make says.
func (w *writing) newFile(begin func(f *file)) {
	f := &file{id: fmt.Sprintf("%08d-4444-4444-8444-121212121212", w.fresh())}
	if begin == nil {
		w.begin(w, f)
		if n := len(f.lines); n > 0 {
			f.lines[n-1].ends = true
		}
		w.say(f)
	} else {
		begin(f)
		if w.base == "" && w.pick(3) == 0 { // it is seen while it is being written
			w.tear(f, 1)
		}
	}
	w.files = append(w.files, f)
	w.logf("%s is new, %d lines", filepath.Base(f.path), len(f.lines))
	w.write(f)
}

// say adds the lines of a turn.
func (w *writing) say(f *file) {
	w.turn(w, f)
	f.lines[len(f.lines)-1].ends = true
}

func (w *writing) goOn(f *file) {
	if f.half != "" || w.inOrder && f.rest != nil {
		w.finish(f)
		return
	}
	before := len(f.lines)
	w.say(f)
	w.logf("%s: %d lines more", filepath.Base(f.path), len(f.lines)-before)
	f.shorter = false
	w.write(f)
}

// goOnInHalves writes a piece of a turn that ends within a line, or after one.
func (w *writing) goOnInHalves(f *file) {
	if f.half != "" || w.inOrder && f.rest != nil {
		w.finish(f)
		return
	}
	before := len(f.lines)
	w.say(f)
	w.tear(f, before)
	w.logf("%s: %d lines more and %d bytes", filepath.Base(f.path), len(f.lines)-before, len(f.half))
	w.write(f)
}

// tear leaves the end of a file, behind some of its lines, for later.
func (w *writing) tear(f *file, before int) {
	if before >= len(f.lines) {
		return
	}
	at := before + w.pick(len(f.lines)-before)
	f.rest = append([]line(nil), f.lines[at:]...)
	f.lines = append([]line(nil), f.lines[:at]...)
	f.half = f.rest[0].text[:w.pick(len(f.rest[0].text))]
}

// finish writes the end of what was begun.
func (w *writing) finish(f *file) {
	if f.rest == nil {
		return
	}
	w.logf("%s: the rest, %d lines", filepath.Base(f.path), len(f.rest))
	f.lines, f.half, f.rest = append(f.lines, f.rest...), "", nil
	f.shorter = false
	if !f.away {
		w.write(f)
	}
}

// whole returns how many lines of a file are those of some whole turns.
func (w *writing) whole(f *file) int {
	ends := []int{}
	for i := range f.lines {
		if f.lines[i].ends {
			ends = append(ends, i+1)
		}
	}
	if len(ends) == 0 {
		return len(f.lines)
	}
	return ends[w.pick(len(ends))]
}

// cutOff leaves a file its beginning.
func (w *writing) cutOff(f *file) {
	f.half, f.rest = "", nil
	keep := w.whole(f)
	w.logf("%s: cut off after %d of %d lines", filepath.Base(f.path), keep, len(f.lines))
	f.lines = append([]line(nil), f.lines[:keep]...)
	f.shorter, w.cut = true, true
}

func (w *writing) write(f *file) {
	w.Helper()
	if f.updated = w.now; w.base != "" {
		w.load()
		return
	}
	testkit.Check(w, errors.Join(os.MkdirAll(filepath.Dir(f.path), 0o700),
		os.WriteFile(f.path, []byte(w.text(f)), 0o600), os.Chtimes(f.path, w.now, w.now)))
}

// text returns what a file holds.
func (w *writing) text(f *file) string {
	var text strings.Builder
	for i, l := range f.lines {
		if text.WriteString(l.text); w.joins == "" {
			text.WriteString("\n")
		} else if i > 0 && i < len(f.lines)-1 {
			text.WriteString(w.joins)
		}
	}
	switch {
	case w.joins == "":
		text.WriteString(f.half)
	case f.half == "":
		text.WriteString(w.ends(f))
	default:
		text.WriteString(w.joins + f.half)
	}
	return text.String()
}

func (w *writing) remove(f *file) {
	if w.base != "" {
		f.away = true
		w.load()
		return
	}
	testkit.Check(w, os.Remove(f.path))
}

func (f *file) add(id, format string, args ...any) {
	f.lines = append(f.lines, line{id: id, text: fmt.Sprintf(format, args...)})
}

// last is the name of the newest line that has one.
func (f *file) last() string {
	for i := len(f.lines) - 1; i >= 0; i-- {
		if f.lines[i].id != "" {
			return f.lines[i].id
		}
	}
	return ""
}
