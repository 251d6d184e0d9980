//go:build race

package goose_test

// large is the size of a large row in bytes: the race detector makes each of them slow.
const large = 2 << 20
