package cmd_test

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// A follower is a running 'ledgerd events --follow'.
type follower struct {
	t          *testing.T
	command    *exec.Cmd
	reconnects chan int // receives the number of reconnects when the command has ended

	mu    sync.Mutex
	lines []string
}

func (v *victim) follow(token string) *follower {
	command := exec.Command("ledgerd", "events", "acme", "--follow", "-o", "json", "--server", v.url)
	command.Env = append(os.Environ(), "LEDGERD_TOKEN="+token)
	stdout, err := command.StdoutPipe()
	must.OK(v.t, err)
	stderr, err := command.StderrPipe()
	must.OK(v.t, err)
	f := &follower{t: v.t, command: command, reconnects: make(chan int, 1)}
	must.OK(v.t, command.Start())
	v.t.Cleanup(func() { command.Process.Kill() })

	go func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			f.mu.Lock()
			f.lines = append(f.lines, lines.Text())
			f.mu.Unlock()
		}
	}()
	go func() {
		n := 0
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "reconnecting") {
				n++
			}
		}
		f.reconnects <- n
	}()
	return f
}

func (f *follower) printed() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.lines)
}

// interrupt stops the command like Ctrl-C, and returns how many times it reconnected.
func (f *follower) interrupt() int {
	f.t.Helper()
	must.OK(f.t, f.command.Process.Signal(os.Interrupt))
	reconnects := <-f.reconnects
	if err := f.command.Wait(); err != nil {
		f.t.Errorf("interrupted, the follower ends with %v", err)
	}
	return reconnects
}

// TestFollowerMissesNoEvent checks that 'events --follow' prints every event once and in
// order, although the server is killed repeatedly.
func TestFollowerMissesNoEvent(t *testing.T) {
	testenv.From(t, testenv.Push, "takes many seconds")
	t.Parallel()
	rounds, writers := testenv.Pick(3, 5, 20), 4
	v := newVictim(t)
	key := v.addSigner("cn=ci,ou=build,o=acme")
	ci := v.ledgerd("token", "create", "--org", "acme", "--name", "ci", "--scope", "write")
	v.start()
	address := strings.TrimPrefix(v.url, "http://")
	f := v.follow(v.ledgerd("token", "create", "--org", "acme", "--name", "dash", "--scope", "read"))
	for n := 0; len(f.printed()) == 0; n++ { // until it is connected
		if n == 200 {
			t.Fatal("the follower prints nothing")
		}
		_, err := v.attest(ci, key, fmt.Sprint("begin", n))
		must.OK(t, err)
		time.Sleep(50 * time.Millisecond)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for writer := range writers {
		wg.Go(func() { v.keepWriting(ctx, ci, key, writer) })
	}
	for round := range rounds {
		if round%2 == 0 { // at least half of the kills end a stream
			f.waitForMore(writers)
		}
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
		v.kill()
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
		v.listen(address)
	}
	cancel()
	wg.Wait()

	history := strings.Split(v.ledgerd("events", "acme", "-o", "json"), "\n")
	f.waitFor(history[len(history)-1])
	got, reconnects := f.printed(), f.interrupt()
	begin := slices.Index(history, got[0])
	if begin < 0 || !slices.Equal(got, history[begin:]) {
		t.Errorf("the %d printed lines differ from the last %d events of the history", len(got), len(history)-begin)
	}
	t.Logf("%d kills, %d events; the follower received %d and reconnected %d times", rounds, len(history),
		len(got), reconnects)
	if reconnects < rounds/2 || len(got) < rounds*writers {
		t.Error("too few reconnects or events: the test did not exercise the follower")
	}
}

// keepWriting attests until ctx is done. It ignores errors, since the server may be dead.
func (v *victim) keepWriting(ctx context.Context, token string, key ed25519.PrivateKey, writer int) {
	for n := 0; ctx.Err() == nil; n++ {
		if _, err := v.attest(token, key, fmt.Sprint(writer, n)); err != nil {
			time.Sleep(10 * time.Millisecond) // the server is dead
		}
	}
}

// waitForMore waits until the follower has printed n more lines.
func (f *follower) waitForMore(n int) {
	f.t.Helper()
	want := len(f.printed()) + n
	must.Wait(f.t, "the follower to print more", func() bool { return len(f.printed()) >= want })
}

// waitFor waits until the follower has printed the line as its last one.
func (f *follower) waitFor(line string) {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if lines := f.printed(); len(lines) > 0 && lines[len(lines)-1] == line {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatal("the follower does not print the last event")
		}
	}
}
