package store

import (
	"fmt"
	"testing"

	"sessiond/internal/session"
)

func TestAPurgeDuringAReadingIsReported(t *testing.T) {
	ways := map[string]func(s *Store, sess session.Session, yield func(*session.Message) error) error{
		"a path": func(s *Store, sess session.Session, yield func(*session.Message) error) error {
			return s.EachOnPath(t.Context(), *sess.HeadID, yield)
		},
		"a session's own": func(s *Store, sess session.Session, yield func(*session.Message) error) error {
			return s.EachInRange(t.Context(), sess.ID, 1, sess.LastSeq, yield)
		},
		"a copy": func(s *Store, sess session.Session, yield func(*session.Message) error) error {
			return s.Save(t.Context(), sess.ID, func(line any) error {
				if _, ok := line.(*SavedMessage); ok {
					return yield(nil)
				}
				return nil
			})
		},
	}
	for name, read := range ways {
		for _, at := range []int64{0, 1, batchRows, batchRows + 1} { // 0: never
			t.Run(fmt.Sprintf("%s, at %d", name, at), func(t *testing.T) {
				s := openTest(t)
				sess := mustCreate(t, s, NewSession{})
				for i := range batchRows + 8 {
					mustAppend(t, s, sess.ID, says(session.User, fmt.Sprint(i)))
				}
				sess = must(s.Session(t.Context(), sess.ID))(t)
				n := int64(0)
				err := read(s, sess, func(*session.Message) error {
					if n++; n == at {
						purge(t, s, sess.ID)
					}
					return nil
				})
				if at > 0 {
					wants(t, err, session.Busy, "purged meanwhile")
				} else if err != nil || n != sess.LastSeq {
					t.Errorf("%d read, %v", n, err)
				}
			})
		}
	}
}
