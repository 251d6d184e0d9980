package history_test

import (
	"bytes"
	"fmt"
	"testing"

	"sessiond/internal/history"
)

func TestHeldGivesEachLineOnceAndAsItWas(t *testing.T) {
	var held history.Held[int]
	line := []byte("line 0")
	for i := range 3000 {
		line = fmt.Appendf(line[:0], "line %d", i)
		own, ok := held.Own(line)
		if !ok {
			t.Fatalf("no room for line %d", i)
		}
		held.Keep(int64(i*100), own, i)
	}
	clear(line)
	if _, _, ok := held.Take(50); ok {
		t.Error("a line that was not kept was given")
	}
	for _, i := range []int{2999, 0, 1, 1500} {
		own, what, ok := held.Take(int64(i * 100))
		if want := fmt.Sprintf("line %d", i); !ok || what != i || string(own) != want {
			t.Errorf("line %d: %q, %d, %v", i, own, what, ok)
		}
		if _, _, ok := held.Take(int64(i * 100)); ok {
			t.Errorf("line %d was given twice", i)
		}
	}
}

func TestHeldLinesDoNotRunIntoOneAnother(t *testing.T) {
	var held history.Held[int]
	first, _ := held.Own([]byte("first"))
	second, _ := held.Own([]byte("second"))
	_ = append(first, " and more"...)
	if string(second) != "second" {
		t.Errorf("the second line is %q", second)
	}
}

func TestHeldIsBounded(t *testing.T) {
	var held history.Held[int]
	if _, ok := held.Own(bytes.Repeat([]byte("x"), 1<<20)); ok {
		t.Error("a line of a mebibyte was taken")
	}
	taken := 0
	for line := bytes.Repeat([]byte("x"), 60<<10); ; taken += len(line) {
		if _, ok := held.Own(line); !ok {
			break
		}
		if taken > 4<<20 {
			t.Fatal("there is no bound")
		}
	}
	if taken < 1<<20 {
		t.Errorf("only %d bytes were taken", taken)
	}
}

// A line of two bytes becomes hundreds, so that many of them are not kept either.
func TestHeldIsBoundedForShortLines(t *testing.T) {
	var held history.Held[int]
	n := 0
	for ; n < 1<<20; n++ {
		own, ok := held.Own([]byte("{}"))
		if !ok {
			break
		}
		held.Keep(int64(n), own, n)
	}
	if n < 1000 || n > 10_000 {
		t.Errorf("%d lines were kept", n)
	}
}
