package analytics

import (
	"context"
	"database/sql"
	"fmt"

	"sessiond/internal/session"
)

// Year is what a year's card shows: sums alone, no text of a conversation, no name of a project.
type Year struct {
	Year int `json:"year"`
	Sums
	Hours    int64            `json:"hours" doc:"Hours of the year in which a person wrote at least one prompt"`
	Days     int64            `json:"days" doc:"Days with a prompt"`
	ByDay    map[string]int64 `json:"by_day" doc:"Prompts by day, YYYY-MM-DD; days without are left out"`
	ByHour   [24]int64        `json:"by_hour" doc:"Prompts by hour of the day, in the database's zone"`
	BySource []Bucket         `json:"by_source" doc:"Sums by program, highest cost first"`
}

const promptTimes = `SELECT created_at FROM messages WHERE origin = 'person' AND day BETWEEN :since AND :until`

// Year returns the sums of a year, from one snapshot. Codes: Invalid (a year that no day has), Busy.
func (r *Reports) Year(ctx context.Context, year int) (Year, error) {
	out := Year{Year: year, ByDay: map[string]int64{}}
	of := Filter{Since: fmt.Sprintf("%04d-01-01", year), Until: fmt.Sprintf("%04d-12-31", year)}
	err := r.snapshot(ctx, of, func(ctx context.Context, conn *sql.Conn, args []any) (err error) {
		if out.BySource, out.Sums, err = readUsage(ctx, conn, args, false, BySource); err != nil {
			return err
		}
		rows, err := conn.QueryContext(ctx, promptTimes, args[:2]...)
		if err != nil {
			return err
		}
		defer rows.Close()
		hours := map[int64]bool{}
		for rows.Next() {
			var at session.Time
			if err := rows.Scan(&at); err != nil {
				return err
			}
			local := at.In(r.zone)
			hours[local.Unix()/3600] = true
			out.ByDay[at.Day(r.zone)]++
			out.ByHour[local.Hour()]++
		}
		out.Hours, out.Days = int64(len(hours)), int64(len(out.ByDay))
		return rows.Err()
	})
	return out, err
}
