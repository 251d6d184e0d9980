package store

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// The second store stands for another process: it waits for the lock that the first has.
func TestAWriterThatWaitsForAnotherProcessIsSeenThere(t *testing.T) {
	ctx := context.Background()
	first := openTest(t)
	second := must(Open(ctx, first.path, Options{}))(t)
	t.Cleanup(func() { second.Close() })
	seen := func() bool { return must(first.Awaited())(t) }
	if seen() {
		t.Error("nobody waits")
	}
	done := make(chan error, 1)
	if err := first.write(ctx, func(*tx) error {
		go func() {
			_, err := second.CreateSession(ctx, NewSession{Title: "beside"})
			done <- err
		}()
		for !seen() { // else the test runs into its time limit
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if seen() {
		t.Error("the sign stays when the waiting is over")
	}
}

// Where several write all the time one of them always waits.
func TestAStartDoesNotWaitForThoseWhoWait(t *testing.T) {
	first := openTest(t)
	sign := asking{lock: signOn(first.writer.log)}
	sign.again()
	defer sign.end()
	if !must(first.Awaited())(t) {
		t.Fatal("there is no sign")
	}
	second, err := Open(t.Context(), first.path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}

func TestTheSignOfALinkedDatabaseIsSeen(t *testing.T) {
	first := openTest(t)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(first.path, link); err != nil {
		t.Fatal(err)
	}
	second := must(Open(t.Context(), link, Options{}))(t)
	defer second.Close()
	sign := asking{lock: signOn(second.writer.log)}
	sign.again()
	defer sign.end()
	if !must(first.Awaited())(t) {
		t.Error("it is not")
	}
}
