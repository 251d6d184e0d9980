package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// longestMessage is the limit of a client's message, in bytes. The largest is a call of a tool.
const longestMessage = 1 << 20

// requests reads the lines of a client. A line that is no message or too long, at which the protocol's library would
// end, is answered with an error.
type requests struct {
	in   *bufio.Reader
	to   *replies
	line []byte // what is left of the last line
}

func (r *requests) Read(p []byte) (int, error) {
	for len(r.line) == 0 {
		line, tooLong, err := r.next()
		if err != nil { // half a line is no message
			return 0, err
		}
		line = bytes.TrimSpace(line)
		refusal := ""
		switch {
		case tooLong:
			refusal = fmt.Sprintf("this line is longer than %d bytes", longestMessage)
		case isMessage(line):
			r.line = append(line, '\n') // a space before it would end the library, too
		case len(line) > 0:
			refusal = "this line is no JSON-RPC message: send one object a line, with a method, its id a string or a number"
		}
		if refusal == "" {
			continue
		}
		const answer = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":%q}}` + "\n"
		if _, err := fmt.Fprintf(r.to, answer, refusal); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.line)
	r.line = r.line[n:]
	return n, nil
}

// next returns the next line. Of one that is too long it reads all and keeps nothing.
func (r *requests) next() (line []byte, tooLong bool, err error) {
	for {
		piece, err := r.in.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(piece) > longestMessage; tooLong {
			line = nil
		} else {
			line = append(line, piece...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

// isMessage reports whether a line is a message to the protocol's library, whose id, if it has one, is a string or a
// whole number.
func isMessage(line []byte) bool {
	var message struct {
		ID jsontext.Value `json:"id"`
	}
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &message) != nil {
		return false
	}
	if id := string(message.ID); id != "" && id[0] != '"' {
		if _, err := strconv.ParseInt(id, 10, 64); err != nil {
			return false
		}
	}
	_, err := jsonrpc.DecodeMessage(line)
	return err == nil
}

// replies writes whole lines. Its end is that of the process.
type replies struct {
	mu  sync.Mutex
	out io.Writer
}

func (r *replies) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(p)
}

func (r *replies) Close() error { return nil }
