package session

// Idempotency identifies a request, so that a retry returns the same answer and writes nothing.
type Idempotency struct {
	Key   string // the caller's Idempotency-Key
	Route string // method and path: the same key on another route is another request
	Body  []byte
}
