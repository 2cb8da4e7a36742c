// Package measure is what every peer in Go is asked, so that all are asked alike:
//
//	peer submit JOBS | drain JOBS | lag RATE SECONDS | idle JOBS
//
// One JSON object on standard output says what was seen; percentiles are for whoever reads it.
package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	batchLen        = 500
	submitsInFlight = 4 // as many as ours gets
	headStart       = 2 * time.Second
	pause           = 20 * time.Millisecond
	poll            = 2 * time.Millisecond
	firstNumber     = 10_000_000 // as many digits for every job
)

// Server is the one this run may use, empty.
var Server = os.Getenv("BENCH_SERVER")

// Payload is a hundred bytes of JSON, and in them which job it is.
type Payload struct {
	To       string `json:"to"`
	Template string `json:"template"`
	Language string `json:"language"`
	Number   int    `json:"number"`
	N        int    `json:"n"`
}

// Job is one to be stored. Without a time it is due now.
type Job struct {
	Payload Payload
	DueAt   time.Time
}

// Peer is what takes part. Work starts its workers, which call `onStart` for every job and do nothing else; Unfinished
// counts what is not durably completed.
type Peer interface {
	Open(ctx context.Context) error
	Submit(ctx context.Context, jobs []Job) error
	Work(ctx context.Context, onStart func(Payload)) error
	Unfinished(ctx context.Context) (int, error)
	// Table is where a peer on PostgreSQL keeps its jobs: a lock on it holds the workers back until all are up. It is
	// empty for a peer whose workers are up when Work returns.
	Table() string
}

// Main measures what the command line asks for, prints it, and ends the process: workers have no end of their own.
func Main(peer Peer) {
	ctx := context.Background()
	seen, err := measured(ctx, peer, os.Args[1:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(seen)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func measured(ctx context.Context, peer Peer, words []string) (map[string]any, error) {
	numbers := make([]int, 0, 2)
	for _, word := range words[min(1, len(words)):] {
		number, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	if len(numbers) == 0 {
		return nil, fmt.Errorf("usage: submit JOBS | drain JOBS | lag RATE SECONDS | idle JOBS")
	}
	if err := peer.Open(ctx); err != nil {
		return nil, err
	}
	switch {
	case words[0] == "submit":
		return submit(ctx, peer, numbers[0])
	case words[0] == "drain":
		return drain(ctx, peer, numbers[0])
	case words[0] == "lag" && len(numbers) == 2:
		return lag(ctx, peer, numbers[0], numbers[1])
	case words[0] == "idle":
		return idle(ctx, peer, numbers[0])
	}
	return nil, fmt.Errorf("nobody knows %q", strings.Join(words, " "))
}

func payload(number int) Payload {
	return Payload{"somebody@example.org", "welcome", "en", 1234567890, firstNumber + number}
}

func now(int) time.Time { return time.Time{} }

func submitAll(ctx context.Context, peer Peer, count int, dueAt func(int) time.Time, inFlight int) error {
	batches := make(chan []Job)
	failed := make(chan error, inFlight)
	var submitting sync.WaitGroup
	for range inFlight {
		submitting.Go(func() {
			for jobs := range batches {
				if err := peer.Submit(ctx, jobs); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	var err error
	for first := 0; first < count && err == nil; first += batchLen {
		jobs := make([]Job, 0, batchLen)
		for number := first; number < min(first+batchLen, count); number++ {
			jobs = append(jobs, Job{payload(number), dueAt(number)})
		}
		select {
		case batches <- jobs:
		case err = <-failed:
		}
	}
	close(batches)
	submitting.Wait()
	select {
	case err = <-failed:
	default:
	}
	return err
}

func submit(ctx context.Context, peer Peer, jobs int) (map[string]any, error) {
	begun := time.Now()
	if err := submitAll(ctx, peer, jobs, now, submitsInFlight); err != nil {
		return nil, err
	}
	return map[string]any{"jobs": jobs, "submit_per_s": float64(jobs) / time.Since(begun).Seconds()}, nil
}

func drain(ctx context.Context, peer Peer, jobs int) (map[string]any, error) {
	if err := submitAll(ctx, peer, jobs, now, submitsInFlight); err != nil {
		return nil, err
	}
	if err := vacuum(ctx); err != nil {
		return nil, err
	}
	starts := newStarts(jobs)
	begun, err := startHeld(ctx, peer, starts.note)
	if err != nil {
		return nil, err
	}
	starts.waitForAll()
	for {
		left, err := peer.Unfinished(ctx)
		if err != nil {
			return nil, err
		}
		if left == 0 {
			break
		}
		time.Sleep(poll)
	}
	return map[string]any{"jobs": jobs, "drain_per_s": float64(jobs) / time.Since(begun).Seconds()}, nil
}

func lag(ctx context.Context, peer Peer, rate, seconds int) (map[string]any, error) {
	jobs := rate * seconds
	starts := newStarts(jobs)
	if err := peer.Work(ctx, starts.note); err != nil {
		return nil, err
	}
	first := time.Now().Add(headStart).Truncate(time.Millisecond)
	dueAt := func(number int) time.Time { return first.Add(time.Duration(number*1000/rate) * time.Millisecond) }
	if err := submitAll(ctx, peer, jobs, dueAt, submitsInFlight); err != nil {
		return nil, err
	}
	starts.waitForAll()
	samples := make([]float64, jobs)
	for number := range samples {
		samples[number] = ms(starts.of(number).Sub(dueAt(number)))
	}
	return map[string]any{"samples_ms": samples}, nil
}

func idle(ctx context.Context, peer Peer, jobs int) (map[string]any, error) {
	starts := newStarts(jobs)
	if err := peer.Work(ctx, starts.note); err != nil {
		return nil, err
	}
	samples := make([]float64, 0, jobs)
	for number := range jobs {
		time.Sleep(pause)
		submitted := time.Now()
		if err := peer.Submit(ctx, []Job{{Payload: payload(number)}}); err != nil {
			return nil, err
		}
		for starts.of(number).IsZero() {
			time.Sleep(poll)
		}
		samples = append(samples, ms(starts.of(number).Sub(submitted)))
	}
	return map[string]any{"samples_ms": samples}, nil
}

func ms(span time.Duration) float64 { return float64(span) / float64(time.Millisecond) }

// vacuum does what autovacuum has long done to a table in steady use and not yet to one that was filled a second ago.
func vacuum(ctx context.Context) error {
	if !strings.HasPrefix(Server, "postgres") {
		return nil
	}
	return exec.CommandContext(ctx, "psql", "--quiet", "--no-psqlrc", Server, "--command", "VACUUM ANALYZE").Run()
}
