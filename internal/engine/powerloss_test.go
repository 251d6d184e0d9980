package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/testkit/storetest"
)

// files are the bytes of a database and its log at one moment.
type files struct{ db, log []byte }

// TestLostPowerLosesNothingAcknowledged builds what a disk can hold when the power fails between two
// acknowledgements, and opens it. What was synced is whole; of what was written since, any sectors are
// there and any are not. It takes as given that SQLite syncs the log before it answers, and the database
// before it begins the log anew.
func TestLostPowerLosesNothingAcknowledged(t *testing.T) {
	storetest.OnFile(t)
	s := openTest(t)
	path, id := s.File(), mustCreate(t, s, store.NewSession{}).ID
	now := func() files {
		return files{testkit.Must(os.ReadFile(path))(t), testkit.Must(os.ReadFile(path + "-wal"))(t)}
	}
	const appends = 60
	moments := []files{now()}
	for i := range appends {
		if i%11 == 10 {
			testkit.Must(s.TruncateWAL(t.Context()))(t)
		}
		text := fmt.Sprintf("message %d %s", i, bytes.Repeat([]byte("word "), i*i))
		testkit.Must(s.Append(t.Context(), store.Append{
			Session:  id,
			Messages: []session.Message{says(session.User, text)},
		}))(t)
		moments = append(moments, now())
	}
	random := rand.New(rand.NewPCG(1, 2))
	images, folder := effort.Runs(1000), t.TempDir()
	for n := range images {
		at := random.IntN(appends)
		opened := testkit.Must(store.Open(t.Context(), lostPower(t, random, moments[at], moments[at+1],
			filepath.Join(folder, fmt.Sprint(n))), store.Options{}))(t)
		got := testkit.Must(opened.Session(t.Context(), id))(t)
		if got.MessageCount != int64(at) && got.MessageCount != int64(at+1) {
			t.Errorf("image %d: %d messages were acknowledged, %d are there", n, at, got.MessageCount)
		}
		if n%10 == 0 {
			mustBeHealthy(t, opened)
		}
		testkit.Check(t, errors.Join(opened.Close(), os.RemoveAll(filepath.Join(folder, fmt.Sprint(n)))))
	}
	t.Logf("%d images of lost power, none lost a message", images)
}

// lostPower writes an image of the time between two moments and returns its path.
func lostPower(t *testing.T, random *rand.Rand, before, after files, folder string) string {
	t.Helper()
	db, log := before.db, torn(random, before.log, after.log)
	if !bytes.Equal(before.db, after.db) { // a checkpoint was between them
		if random.IntN(2) == 0 {
			db, log = torn(random, before.db, after.db), before.log
		} else {
			db = after.db
		}
	}
	path := filepath.Join(folder, "sessions.db")
	testkit.Check(t, errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(path, db, 0o600),
		os.WriteFile(path+"-wal", log, 0o600)))
	return path
}

// torn mixes sectors of two states of a file: each is there as it was or as it became.
func torn(random *rand.Rand, before, after []byte) []byte {
	const sector = 512
	mixed := make([]byte, max(len(before), len(after)))
	copy(mixed, before)
	share := random.IntN(101)
	for at := 0; at < len(after); at += sector {
		if random.IntN(100) < share {
			copy(mixed[at:], after[at:min(at+sector, len(after))])
		}
	}
	if random.IntN(2) == 0 { // it did not grow or shrink yet
		mixed = mixed[:len(before)]
	}
	return mixed
}
