package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/e2e/bench/load"
)

// A hostile crowd is a number of connections that do harm. Each is replaced by a new one
// after reconnectPause if the server closes it.
type hostile struct {
	tally load.Tally
	stop  context.CancelFunc
	done  sync.WaitGroup
}

const reconnectPause = 250 * time.Millisecond

// newHostile starts n goroutines that call attack with their number, again and again.
func newHostile(ctx context.Context, n int, attack func(context.Context, *load.Tally, int) error) *hostile {
	h := new(hostile)
	ctx, h.stop = context.WithCancel(ctx)
	for i := range n {
		h.done.Go(func() {
			for ctx.Err() == nil {
				if err := attack(ctx, &h.tally, i); err != nil && ctx.Err() == nil {
					h.tally.Note(load.Response{}, 0)
				}
				pause(ctx, reconnectPause)
			}
		})
	}
	return h
}

func (h *hostile) close() {
	h.stop()
	h.done.Wait()
}

// pause waits until d is over or ctx is done.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// connected calls use with a new connection. If ctx is done, it interrupts use.
func connected(ctx context.Context, address string, use func(*load.Conn) error) error {
	c, err := load.Dial(address)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	return use(c)
}

// hopelessQueries are the lists that hostile readers read. Their filters match nothing,
// and no index covers them.
func hopelessQueries() []string {
	const repo = "/v1/orgs/" + orgName + "/repos/" + repoName
	query := func(path string, values ...string) string {
		q := url.Values{"limit": {"100"}}
		for i := 0; i < len(values); i += 2 {
			q.Set(values[i], values[i+1])
		}
		return path + "?" + q.Encode()
	}
	return []string{
		query(repo+"/attestations", "predicate", "lint:golangci", "identity", "cn=test-go,ou=build,o=bench"),
		query("/v1/orgs/"+orgName+"/events", "types", "policy", "order", "desc"),
		query(repo+"/attestations", "status", "pass", "predicate", "test:go", "identity", "cn=lint-golangci,ou=build"),
		query(repo+"/commits", "author", "nobody"),
	}
}

// readHopeless reads the lists to their ends, one page after the other.
func readHopeless(ctx context.Context, address, token string, counted *load.Tally) error {
	return connected(ctx, address, func(c *load.Conn) error {
		for _, query := range hopelessQueries() {
			for path := query; path != ""; {
				began := time.Now()
				r, err := c.Send(getJSON(path, token))
				if err != nil {
					return err
				}
				counted.Note(r, time.Since(began))
				if r.Status != http.StatusOK {
					return nil
				}
				if path, err = nextPage(query, r.Body); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// getJSON returns a request for a list.
func getJSON(path, token string) []byte {
	return bytes.Replace(load.Request(http.MethodGet, path, token, nil), []byte("\r\n"),
		[]byte("\r\nAccept: application/json\r\n"), 1)
}

// nextPage returns the path of the page after the one in body, or "" if it is the last.
func nextPage(query string, body []byte) (string, error) {
	var page struct {
		NextCursor string `json:"next_cursor"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return "", fmt.Errorf("decode a page: %w", err)
	}
	if page.NextCursor == "" {
		return "", nil
	}
	return query + "&cursor=" + url.QueryEscape(page.NextCursor), nil
}

// announcedBody is the Content-Length that clients announce. They send 250 bytes.
const announcedBody = 4 << 20

// sendHalf announces a large attestation, sends its beginning and waits for the
// response.
func sendHalf(ctx context.Context, address, token string, counted *load.Tally) error {
	head := fmt.Sprintf("POST /v1/orgs/%s/repos/%s/attestations HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n", orgName, repoName, token, announcedBody)
	return connected(ctx, address, func(c *load.Conn) error {
		began := time.Now()
		if _, err := c.Write([]byte(head + `{"payload":"` + strings.Repeat("A", 238))); err != nil {
			return err
		}
		r, err := c.Receive()
		if err != nil {
			return err
		}
		counted.Note(r, time.Since(began))
		return nil
	})
}

// lorisInterval is the time between two header lines of a slow-loris connection.
const lorisInterval = 2 * time.Second

// sendSlowly sends a request that never ends, one header line at a time, until the
// server closes the connection.
func sendSlowly(ctx context.Context, address string, counted *load.Tally) error {
	return connected(ctx, address, func(c *load.Conn) error {
		began := time.Now()
		line := "GET / HTTP/1.1\r\nHost: bench\r\n"
		for {
			if _, err := c.Write([]byte(line)); err != nil {
				return err
			}
			line = "A: b\r\n"
			if err := c.SetReadDeadline(time.Now().Add(lorisInterval)); err != nil {
				return err
			}

			_, err := c.Responses.Peek(1)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				continue
			}
			if err != nil {
				return err
			}
			r, err := c.Receive()
			if err != nil {
				return err
			}
			counted.Note(r, time.Since(began))
			return nil
		}
	})
}
