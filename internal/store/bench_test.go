package store

import (
	"fmt"
	"testing"

	"sessiond/internal/session"
)

func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			s := openTest(b)
			ids := make(chan session.ID, writers)
			for range writers {
				ids <- mustCreate(b, s, NewSession{}).ID
			}
			b.SetParallelism((writers + 1) / 2)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				id := <-ids
				for pb.Next() {
					mustAppend(b, s, id, says(session.User, "a question of some forty characters, more"))
				}
				ids <- id
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
		})
	}
}
