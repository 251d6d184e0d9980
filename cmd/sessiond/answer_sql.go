package main

import (
	"context"

	"github.com/spf13/cobra"

	"sessiond/internal/analytics"
	"sessiond/internal/store"
)

const answerSQL = "answer-sql"

// answerSQLCommand is the process in which the daemon runs SQL of `POST /v1/sql`.
func (a *app) answerSQLCommand() *cobra.Command {
	return &cobra.Command{
		Use: answerSQL, Short: "Run a SELECT for the daemon", Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s *store.Store
			defer func() {
				if s != nil {
					_ = s.Close() // nothing was written
				}
			}()
			return analytics.AnswerSQL(cmd.Context(), a.in, raw(a.out),
				func(ctx context.Context, db string) (_ analytics.DB, err error) {
					if s, err = store.Open(ctx, db, store.Options{ReadOnly: true, Now: a.now}); err != nil {
						return nil, err
					}
					return s.Reader(), nil
				})
		},
	}
}
