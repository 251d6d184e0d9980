package store

import (
	"context"
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
