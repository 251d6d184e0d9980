package history

// mostWaiting is how many batches wait for the store at most: about as much as one transaction takes.
const mostWaiting = 6

// queue gives the steps of the reading goroutine, and puts batches together that wait.
type queue struct {
	steps <-chan step
	held  *step // the first that could not be joined to those before it
}

func (q *queue) next() (step, bool) {
	if q.held != nil {
		s := *q.held
		q.held = nil
		return s, true
	}
	s, ok := <-q.steps
	return s, ok
}

// join adds to the step's batch what waits behind it and can come in with it, up to so many
// messages and bytes. It gives the batches as they were given.
func (q *queue) join(s *step, messages, bytes int) (given []*Batch) {
	given = []*Batch{s.batch}
	for {
		select {
		case next, ok := <-q.steps:
			if !ok {
				return given
			}
			if next.batch == nil || next.answer != nil || next.unfit != nil || next.reading != s.reading || !joinable(s.batch, next.batch) ||
				len(s.batch.Messages)+len(next.batch.Messages) > messages || s.batch.bytes+next.batch.bytes > bytes {
				q.held = &next
				return given
			}
			if len(given) == 1 {
				whole := *s.batch
				s.batch = &whole
			}
			s.batch.add(next.batch)
			given = append(given, next.batch)
		default:
			return given
		}
	}
}

// joinable tells whether two batches, one behind the other, can come in with one transaction. Those
// of a session that is here cannot: how many records it had already is told of each batch alone.
func joinable(b, next *Batch) bool {
	of, then := &b.Session, &next.Session
	same := of.Source == then.Source && of.SourceID == then.SourceID && of.SourceID != "" && b.ID == "" && next.ID == "" && b.Aside == next.Aside
	ended := b.Cursor != nil || b.Title != nil || b.Fields != nil || b.Restore != nil || next.Restore != nil
	return same && !ended && len(b.Messages)+len(next.Messages) <= MaxBatch && b.bytes+next.bytes <= MaxBatchBytes
}

// add puts another batch behind the messages of this one.
func (b *Batch) add(next *Batch) {
	own := b.ImportBatch
	b.ImportBatch = next.ImportBatch
	if next.Cursor != nil { // storing notes something in it
		cursor := *next.Cursor
		b.Cursor = &cursor
	}
	b.Session = own.Session
	b.Messages = append(own.Messages, next.Messages...)
	b.Calls = append(own.Calls, next.Calls...)
	b.Compactions = append(own.Compactions, next.Compactions...)
	b.Marks = append(own.Marks, next.Marks...)
	if b.Head == nil {
		b.Head, b.HeadSession = own.Head, own.HeadSession
	}
	var records Records
	records.Add(b.Records)
	records.Add(next.Records)
	b.Records = records
	b.Sessions = next.Sessions
	b.bytes += next.bytes
}
