package analytics

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"sessiond/internal/session"
)

// Limits of the process that runs a caller's SELECT.
const (
	processMemory = 384 << 20 // bytes of data
	processFile   = 256 << 20 // bytes of one temporary file
	// The process ends itself at the time limit; it is killed so much later if one of SQLite's functions runs on.
	killAfter = 500 * time.Millisecond
)

// Process runs a caller's SELECT in a process of its own: SQLite can neither bound a statement's memory nor
// interrupt its functions. It is safe for concurrent use.
type Process struct {
	db      string // path of the database
	command string // of this program; its input is a request, its output what AnswerSQL writes
	slots   chan struct{}
}

// NewProcess returns a Process that reads a database file. command is the argument by which this program
// answers a request with AnswerSQL.
func NewProcess(db, command string) *Process {
	return &Process{db: db, command: command, slots: make(chan struct{}, maxAtOnce)}
}

// Running returns the number of statements that run now.
func (p *Process) Running() int { return len(p.slots) }

// request is the input of the process.
type request struct {
	DB   string
	SQL  string
	Rows int
	Time int64 // milliseconds
}

// outcome is the first line of the process's output. If it has no code, Size bytes follow.
type outcome struct {
	Size    int
	Code    session.Code
	Message string
}

// SQL runs one reading statement and returns its Result as JSON. Codes: as Reports.SQL; Invalid also for a
// statement that needs more memory or larger temporary files than it may have.
func (p *Process) SQL(ctx context.Context, text string, limits Limits) ([]byte, error) {
	limits = limits.orDefaults()
	if err := checkText(text); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-waiting.Done():
		return nil, explainWait(waiting.Err())
	}
	in, err := json.Marshal(request{p.db, text, limits.Rows, limits.Time.Milliseconds()})
	if err != nil {
		return nil, err
	}
	running, kill := context.WithTimeout(ctx, limits.Time+killAfter)
	defer kill()
	return p.run(running, limits, in)
}

func (p *Process) run(ctx context.Context, limits Limits, in []byte) ([]byte, error) {
	path, err := ownProgram()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path)
	cmd.Args = []string{"sessiond", p.command}
	cmd.Stdin = bytes.NewReader(in)
	var stderr firstBytes
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the process for SQL: %w", err)
	}
	answer, err := readOutcome(out)
	ended := cmd.Wait()
	switch {
	case err == nil || session.CodeOf(err) != session.Internal:
		return answer, err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, stoppedAfter(limits)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case strings.Contains(stderr.String(), "out of memory"), strings.Contains(stderr.String(), "cannot allocate memory"):
		return nil, outOfMemory()
	}
	return nil, fmt.Errorf("the process for SQL failed: %w: %s", errors.Join(ended, err), stderr.String())
}

// ownProgram returns the path of the running program, also after its file was replaced.
func ownProgram() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// readOutcome reads the output of the process.
func readOutcome(from io.Reader) ([]byte, error) {
	in := bufio.NewReader(from)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	var o outcome
	if err := json.Unmarshal(line, &o); err != nil {
		return nil, err
	}
	if o.Code != "" {
		return nil, session.Errorf(o.Code, "%s", o.Message)
	}
	answer := make([]byte, o.Size)
	_, err = io.ReadFull(in, answer)
	return answer, err
}

// firstBytes keeps the beginning of what is written.
type firstBytes struct{ bytes.Buffer }

func (f *firstBytes) Write(p []byte) (int, error) {
	const most = 2 << 10
	f.Buffer.Write(p[:min(len(p), max(0, most-f.Len()))])
	return len(p), nil
}

func outOfMemory() error {
	return session.Errorf(session.Invalid, "the query is out of memory: it needs more than the %d MiB that it may have; "+
		"narrow it, or aggregate fewer and shorter values", processMemory>>20)
}

// AnswerSQL is what the process of Process does: it reads a request from in, limits its own memory and files,
// opens the database, runs the statement and writes the outcome to out. It ends the process at the time limit.
// open returns the reading connections of a database file.
func AnswerSQL(ctx context.Context, in io.Reader, out io.Writer, open func(context.Context, string) (DB, error)) error {
	var asked request
	if err := json.UnmarshalRead(in, &asked); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	if err := confine(processMemory, processFile); err != nil {
		return fmt.Errorf("limit the memory of the process: %w", err)
	}
	limits := Limits{Rows: asked.Rows, Time: time.Duration(asked.Time) * time.Millisecond}.orDefaults()
	time.AfterFunc(limits.Time+2*killAfter, func() { os.Exit(1) }) // also after the daemon was killed
	answer, err := answerSQL(ctx, asked, limits, open)
	o := outcome{Size: len(answer)}
	if err != nil {
		var known *session.Error
		if !errors.As(err, &known) || known.Code == session.Internal {
			return err
		}
		o = outcome{Code: known.Code, Message: known.Message}
	}
	head, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = out.Write(append(head, '\n'))
	if err == nil {
		_, err = out.Write(answer)
	}
	return err
}

func answerSQL(ctx context.Context, asked request, limits Limits,
	open func(context.Context, string) (DB, error),
) ([]byte, error) {
	db, err := open(ctx, asked.DB)
	if err != nil {
		return nil, err
	}
	s, err := parseStatement(asked.SQL)
	if err != nil {
		return nil, err
	}
	limits.alone = true
	res, err := New(db, nil).runSQLite(ctx, &s, nil, limits)
	if err != nil {
		return nil, err
	}
	return res.encode()
}

// encode returns the result as JSON of at most maxBytes, with fewer rows if they are more.
func (res *Result) encode() ([]byte, error) {
	var b bytes.Buffer
	columns, err := session.MarshalPlain(res.Columns)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, `{"columns":%s,"rows":[`, columns)
	for i, row := range res.Rows {
		line, err := session.MarshalPlain(row)
		if err != nil {
			return nil, err
		}
		if res.Rows[i] = nil; b.Len()+len(line) > maxBytes {
			if i == 0 {
				return nil, session.Errorf(session.Invalid,
					"a row of the query is over %d MiB: take a substr of its texts, or their length", maxBytes>>20)
			}
			res.Truncated = true
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(line)
	}
	fmt.Fprintf(&b, "],\"truncated\":%t}\n", res.Truncated)
	return b.Bytes(), nil
}
