package lookup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
)

// Those who come while a query runs share the next one, which begins when it has ended.
func TestLookupsShareAQuery(t *testing.T) {
	l := New[int, string]()
	running, release := make(chan []int, 3), make(chan struct{})
	query := func(keys []int) (map[int]string, error) {
		running <- slices.Sorted(slices.Values(keys))
		<-release
		found := make(map[int]string)
		for _, k := range keys {
			if k < 10 {
				found[k] = fmt.Sprint("value ", k)
			}
		}
		return found, nil
	}

	var asking sync.WaitGroup
	ask := func(key int) {
		asking.Go(func() {
			v, ok, err := l.Find(t.Context(), key, query)
			if want := fmt.Sprint("value ", key); err != nil || ok != (key < 10) || ok && v != want {
				t.Errorf("Find(%d) = %q, %t, %v", key, v, ok, err)
			}
		})
	}
	ask(1)
	first := <-running
	for _, key := range []int{1, 2, 3, 11} {
		ask(key)
	}
	waitUntilJoined(l, 4)
	again, isFirst := l.join(2) // another caller, for the same key
	close(release)
	asking.Wait()
	if <-again.done; isFirst || again.found[2] != "value 2" {
		t.Errorf("the second caller for a key is the first: %t, and gets %q", isFirst, again.found[2])
	}

	second := <-running
	if !slices.Equal(first, []int{1}) || !slices.Equal(second, []int{1, 2, 3, 11}) || len(running) > 0 {
		t.Errorf("the queries are for %v and %v, and there are %d more", first, second, len(running))
	}
}

// waitUntilJoined waits until the next query is for n keys.
func waitUntilJoined(l *Group[int, string], n int) {
	for joined := 0; joined < n; {
		l.mu.Lock()
		if l.next != nil {
			joined = len(l.next.keys)
		}
		l.mu.Unlock()
	}
}

func TestAFailedLookupFailsForAll(t *testing.T) {
	failed := errors.New("no connection")
	tests := map[string]struct {
		query func([]int) (map[int]string, error)
		want  error
	}{
		"error": {func([]int) (map[int]string, error) { return nil, failed }, failed},
		"panic": {func([]int) (map[int]string, error) { panic(failed) }, errPanic},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := New[int, string]()
			first, _ := l.join(1)
			second, isFirst := l.join(2)
			func() {
				defer func() { _ = recover() }()
				l.run(first, tt.query)
			}()
			<-second.done
			if isFirst || !errors.Is(second.err, tt.want) {
				t.Errorf("the second one gets %v, want %v", second.err, tt.want)
			}
		})
	}
}

func TestALookupEndsWithItsContext(t *testing.T) {
	l := New[int, string]()
	l.join(1) // runs no query
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok, err := l.Find(ctx, 1, nil); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("Find = %t, %v, want that the context has ended", ok, err)
	}
}
