//go:build race

package raced

// On says whether the detector is on.
const On = true
