// River: the settings of its own benchmark (2,000 workers, a fetch every two milliseconds), and a poll for delayed
// jobs every ten milliseconds (the default is every second). Jobs are inserted with COPY and completed in batches;
// completed ones are kept.
package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"bench/measure"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// args is a payload as River wants it: with the name of its kind.
type args struct{ measure.Payload }

func (args) Kind() string { return "noop" }

type worker struct {
	river.WorkerDefaults[args]
	onStart func(measure.Payload)
}

func (w *worker) Work(_ context.Context, job *river.Job[args]) error {
	w.onStart(job.Args.Payload)
	return nil
}

type peer struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	worker worker
}

func (*peer) Table() string { return "river_job" }

func (p *peer) Open(ctx context.Context) (err error) {
	if p.pool, err = pgxpool.New(ctx, measure.Server); err != nil {
		return err
	}
	driver := riverpgxv5.New(p.pool)
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: logger})
	if err != nil {
		return err
	}
	if _, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &p.worker)
	p.client, err = river.NewClient(driver, &river.Config{
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 10 * time.Millisecond,
		Logger:            logger,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2_000}},
		Workers:           workers,
	})
	return err
}

func (p *peer) Submit(ctx context.Context, jobs []measure.Job) error {
	params := make([]river.InsertManyParams, len(jobs))
	for place, job := range jobs {
		params[place] = river.InsertManyParams{Args: args{job.Payload}, InsertOpts: &river.InsertOpts{ScheduledAt: job.DueAt}}
	}
	_, err := p.client.InsertManyFast(ctx, params)
	return err
}

func (p *peer) Work(ctx context.Context, onStart func(measure.Payload)) error {
	p.worker.onStart = onStart
	return p.client.Start(ctx)
}

func (p *peer) Unfinished(ctx context.Context) (count int, err error) {
	row := p.pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state <> 'completed'")
	return count, row.Scan(&count)
}

func main() { measure.Main(&peer{}) }
