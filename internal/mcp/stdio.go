package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"sync"
)

// requests reads the lines of a client. A line that is no message, at which the protocol's library would end, is
// answered with an error.
type requests struct {
	in   *bufio.Reader
	to   *replies
	line []byte // what is left of the last line
}

func (r *requests) Read(p []byte) (int, error) {
	for len(r.line) == 0 {
		line, err := r.in.ReadBytes('\n')
		if err != nil { // half a line is no message
			return 0, err
		}
		switch {
		case isMessage(line):
			r.line = line
		case len(bytes.TrimSpace(line)) > 0:
			const refusal = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"this line is no JSON-RPC message: send one object a line, its id a string or a number"}}`
			if _, err := r.to.Write([]byte(refusal + "\n")); err != nil {
				return 0, err
			}
		}
	}
	n := copy(p, r.line)
	r.line = r.line[n:]
	return n, nil
}

// isMessage tells whether a line is an object whose id, if it has one, is a string or a number.
func isMessage(line []byte) bool {
	var message struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(line, &message) != nil {
		return false
	}
	if len(message.ID) == 0 {
		return true
	}
	return message.ID[0] == '"' || message.ID[0] == '-' || message.ID[0] >= '0' && message.ID[0] <= '9'
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
