//go:build !linux

package analytics

import (
	"fmt"
	"os"
	"time"
)

// confine ends the process when its resident memory passes the limit: other systems than Linux have no limit
// that a Go program survives. It does not limit files.
func confine(memory, _ uint64) error {
	go func() {
		for range time.Tick(20 * time.Millisecond) {
			if resident() > memory {
				fmt.Fprintln(os.Stderr, "out of memory")
				os.Exit(1)
			}
		}
	}()
	return nil
}
