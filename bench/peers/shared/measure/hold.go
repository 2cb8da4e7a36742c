package measure

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// startHeld starts the workers, lets them begin when all are up, and answers when that was: see ../hold.
func startHeld(ctx context.Context, peer Peer, onStart func(Payload)) (time.Time, error) {
	if peer.Table() == "" {
		err := peer.Work(ctx, onStart)
		return time.Now(), err
	}
	hold := exec.CommandContext(ctx, os.Getenv("BENCH_HOLD"), peer.Table())
	hold.Stderr = os.Stderr
	release, err := hold.StdinPipe()
	if err != nil {
		return time.Time{}, err
	}
	output, err := hold.StdoutPipe()
	if err != nil {
		return time.Time{}, err
	}
	if err := hold.Start(); err != nil {
		return time.Time{}, err
	}
	said := bufio.NewReader(output)
	if err := says(said, "held"); err != nil {
		return time.Time{}, err
	}
	if err := peer.Work(ctx, onStart); err != nil {
		return time.Time{}, err
	}
	if err := says(said, "asked"); err != nil {
		return time.Time{}, err
	}
	begun := time.Now()
	_, err = io.WriteString(release, "\n")
	return begun, err
}

func says(lock *bufio.Reader, word string) error {
	said, err := lock.ReadString('\n')
	if err != nil || strings.TrimSpace(said) != word {
		return fmt.Errorf("the lock said %q and not %q", strings.TrimSpace(said), word)
	}
	return nil
}
