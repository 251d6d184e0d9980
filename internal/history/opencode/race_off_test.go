//go:build !race

package opencode_test

// large is the size of a large row in bytes.
const large = 50 << 20
