package measure

import (
	"sync"
	"time"
)

// starts is when each job started.
type starts struct {
	lock sync.Mutex
	at   []time.Time
	left int
	all  chan struct{}
}

func newStarts(jobs int) *starts {
	return &starts{at: make([]time.Time, jobs), left: jobs, all: make(chan struct{})}
}

// note remembers the first start of a job; a peer may run one again.
func (s *starts) note(job Payload) {
	at := time.Now()
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.at[job.N-firstNumber].IsZero() {
		return
	}
	s.at[job.N-firstNumber] = at
	if s.left--; s.left == 0 {
		close(s.all)
	}
}

func (s *starts) of(number int) time.Time {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.at[number]
}

func (s *starts) waitForAll() { <-s.all }
