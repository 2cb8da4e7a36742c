// Temporal: its development server on SQLite, and a job is a workflow whose code is the handler, which is the least
// that Temporal can be asked for. Many tasks are polled for and executed at once; a workflow that is due now is handed
// to the worker in the same process with the answer to its start, where the server can do so. There is no call that
// starts many, so a batch is many calls at once.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"bench/measure"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"
)

const (
	queue          = "noop"
	startsInFlight = 16
)

type peer struct {
	client    client.Client
	submitted atomic.Int64
}

// Table is empty: the server's own tables are not there for others to lock.
func (*peer) Table() string { return "" }

func (p *peer) Open(ctx context.Context) (err error) {
	logger := log.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	p.client, err = client.DialContext(ctx, client.Options{HostPort: measure.Server, Logger: logger})
	return err
}

func (p *peer) Submit(ctx context.Context, jobs []measure.Job) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(startsInFlight)
	for _, job := range jobs {
		options := client.StartWorkflowOptions{
			ID:        fmt.Sprintf("job-%d", job.Payload.N),
			TaskQueue: queue,
		}
		if job.DueAt.IsZero() {
			options.EnableEagerStart = true
		} else {
			options.StartDelay = max(0, time.Until(job.DueAt))
		}
		p.submitted.Add(1)
		group.Go(func() error {
			_, err := p.client.ExecuteWorkflow(ctx, options, "noop", job.Payload)
			return err
		})
	}
	return group.Wait()
}

func (p *peer) Work(_ context.Context, onStart func(measure.Payload)) error {
	work := worker.New(p.client, queue, worker.Options{
		MaxConcurrentWorkflowTaskPollers:       16,
		MaxConcurrentWorkflowTaskExecutionSize: 500,
		LocalActivityWorkerOnly:                true,
	})
	noop := func(_ workflow.Context, job measure.Payload) error {
		onStart(job)
		return nil
	}
	work.RegisterWorkflowWithOptions(noop, workflow.RegisterOptions{Name: "noop"})
	return work.Start()
}

// Unfinished asks the list of workflows, which the server brings up to date a moment after a workflow has ended.
func (p *peer) Unfinished(ctx context.Context) (int, error) {
	completed := &workflowservice.CountWorkflowExecutionsRequest{Query: "ExecutionStatus = 'Completed'"}
	counted, err := p.client.CountWorkflow(ctx, completed)
	if err != nil {
		return 0, err
	}
	return int(p.submitted.Load() - counted.Count), nil
}

func main() { measure.Main(&peer{}) }
