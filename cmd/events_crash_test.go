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
)

// A printer is a running ledgerd events --follow.
type printer struct {
	t       *testing.T
	command *exec.Cmd
	breaks  chan int // how often it said that it connects again, when it has ended

	mu    sync.Mutex
	lines []string
}

func (v *victim) follow(token string) *printer {
	command := exec.Command("ledgerd", "events", "acme", "--follow", "-o", "json", "--url", v.url)
	command.Env = append(os.Environ(), "LEDGERD_TOKEN="+token)
	stdout, err := command.StdoutPipe()
	check(v.t, err)
	stderr, err := command.StderrPipe()
	check(v.t, err)
	p := &printer{t: v.t, command: command, breaks: make(chan int, 1)}
	check(v.t, command.Start())
	v.t.Cleanup(func() { command.Process.Kill() })
	go func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, lines.Text())
			p.mu.Unlock()
		}
	}()
	go func() {
		n := 0
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "reconnecting") {
				n++
			}
		}
		p.breaks <- n
	}()
	return p
}

func (p *printer) printed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

// interrupt ends it as Ctrl-C does, and returns how often its connection broke.
func (p *printer) interrupt() int {
	p.t.Helper()
	check(p.t, p.command.Process.Signal(os.Interrupt))
	breaks := <-p.breaks
	if err := p.command.Wait(); err != nil {
		p.t.Errorf("interrupted, it ends with %v", err)
	}
	return breaks
}

func TestFollowingThroughKillsMissesNothing(t *testing.T) {
	const rounds, writers = 20, 4
	v := newVictim(t)
	key := v.addSigner("cn=ci,ou=build,o=acme")
	ci := v.ledgerd("token", "create", "--org", "acme", "--name", "ci", "--scope", "write")
	v.start()
	address := strings.TrimPrefix(v.url, "http://")
	follower := v.follow(v.ledgerd("token", "create", "--org", "acme", "--name", "dash", "--scope", "read"))
	for n := 0; len(follower.printed()) == 0; n++ { // until it has begun
		if n == 200 {
			t.Fatal("the follower prints nothing")
		}
		_, err := v.attest(ci, key, fmt.Sprint("begin", n))
		check(t, err)
		time.Sleep(50 * time.Millisecond)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for writer := range writers {
		wg.Go(func() { v.keepWriting(ctx, ci, key, writer) })
	}
	for range rounds {
		time.Sleep(time.Duration(100+rand.IntN(600)) * time.Millisecond)
		v.kill()
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
		v.listen(address)
	}
	cancel()
	wg.Wait()

	history := strings.Split(v.ledgerd("events", "acme", "-o", "json"), "\n")
	follower.waitFor(history[len(history)-1])
	got, breaks := follower.printed(), follower.interrupt()
	begin := slices.Index(history, got[0])
	if begin < 0 || !slices.Equal(got, history[begin:]) {
		t.Errorf("%d lines were printed, the history has %d from there on, and they are not the same", len(got),
			len(history)-begin)
	}
	t.Logf("%d kills, %d events; the follower received %d and reconnected %d times", rounds, len(history),
		len(got), breaks)
	if breaks < rounds/2 || len(got) < rounds*writers {
		t.Error("the test did not try the follower")
	}
}

// keepWriting attests, whether there is a server or not.
func (v *victim) keepWriting(ctx context.Context, token string, key ed25519.PrivateKey, writer int) {
	for n := 0; ctx.Err() == nil; n++ {
		if _, err := v.attest(token, key, fmt.Sprint(writer, n)); err != nil {
			time.Sleep(10 * time.Millisecond) // the server is dead
		}
	}
}

func (p *printer) waitFor(line string) {
	p.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if lines := p.printed(); len(lines) > 0 && lines[len(lines)-1] == line {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatal("the follower does not come to the end")
		}
	}
}
