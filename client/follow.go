package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/r3labs/sse/v2"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/eventstream"
)

// Earliest is the position before the first event of an org. It is used in place of
// an event's id.
const Earliest = "earliest"

// FollowOptions selects the events that Follow yields. The zero value selects the new
// events of the default types.
type FollowOptions struct {
	// Types are the types of events to yield. The default is ledger.DefaultEventTypes.
	Types []ledger.EventType
	// Repo, if not empty, selects the events of one repo.
	Repo string
	// After is the id of an event, or Earliest. Follow starts after that event.
	After string
	// OnRetry, if not nil, is called when the connection has failed, before the wait
	// for the next attempt. It must return quickly.
	OnRetry func(err error, wait time.Duration)
}

// An Event is one event of the live stream, or the message that history was cut back: it has
// the type [eventstream.LedgerRestored], and the ID of the last event that is left.
type Event struct {
	ID   string
	Type ledger.EventType
	// Data is the event's JSON object as received. One of the following fields has it
	// decoded, depending on Type. If this version does not know the type, all are nil.
	Data        json.RawMessage
	Attestation *eventstream.Attestation
	State       *eventstream.State
	Standing    *eventstream.Standing
	Policy      *eventstream.Policy
	Radar       *eventstream.Radar
	Violation   *eventstream.Violation
	Commit      *eventstream.Commit
	Key         *eventstream.Key
	Identity    *eventstream.Identity
	Audit       *eventstream.Audit
	Restored    *eventstream.Restored
}

// NewEvent returns an event with its data decoded.
func NewEvent(id string, t ledger.EventType, data []byte) (Event, error) {
	e := Event{ID: id, Type: t, Data: data}
	var typed any
	switch t {
	case ledger.EventAttestation:
		e.Attestation = new(eventstream.Attestation)
		typed = e.Attestation
	case ledger.EventState:
		e.State = new(eventstream.State)
		typed = e.State
	case ledger.EventStanding:
		e.Standing = new(eventstream.Standing)
		typed = e.Standing
	case ledger.EventPolicy:
		e.Policy = new(eventstream.Policy)
		typed = e.Policy
	case ledger.EventRadar:
		e.Radar = new(eventstream.Radar)
		typed = e.Radar
	case ledger.EventViolation:
		e.Violation = new(eventstream.Violation)
		typed = e.Violation
	case ledger.EventCommit:
		e.Commit = new(eventstream.Commit)
		typed = e.Commit
	case ledger.EventKey:
		e.Key = new(eventstream.Key)
		typed = e.Key
	case ledger.EventIdentity:
		e.Identity = new(eventstream.Identity)
		typed = e.Identity
	case ledger.EventAudit:
		e.Audit = new(eventstream.Audit)
		typed = e.Audit
	case eventstream.LedgerRestored:
		e.Restored = new(eventstream.Restored)
		typed = e.Restored
	default:
		typed = new(json.RawMessage)
	}

	if err := ledger.DecodeOpen(data, typed); err != nil {
		return e, fmt.Errorf("decode event %s: %w", id, err)
	}
	return e, nil
}

// Follow yields the events of an org as they happen, each once and in order. If the
// connection is lost, it reconnects for as long as necessary, and resumes after the
// last event. If the server's database was restored from a backup that does not have this event,
// it yields an event of the type [eventstream.LedgerRestored], and then those since the backup.
// It ends without an error when ctx is done. It ends with an error if
// the server rejects the request, or its token is no longer valid.
func (c *Client) Follow(ctx context.Context, org string, o FollowOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := follower{client: c, path: pathOf("orgs", org, "events"), options: o, position: o.After}
		for delay := minRetryWait; ; {
			start := time.Now()
			received, err := f.connect(ctx, yield)
			if errors.Is(err, errStopped) || ctx.Err() != nil {
				return
			}

			if !isTemporary(err) {
				yield(Event{}, err)
				return
			}
			if received || time.Since(start) > maxRetryWait {
				delay = minRetryWait
			}
			if !f.wait(ctx, err, delay) {
				return
			}
			delay = min(2*delay, maxRetryWait)
		}
	}
}

const (
	// The wait between two attempts to connect grows from minRetryWait to
	// maxRetryWait.
	minRetryWait = 200 * time.Millisecond
	maxRetryWait = 5 * time.Second
	// streamTimeout is how long a connection may be silent before it counts as dead: by
	// then, two of the server's comments are missing.
	streamTimeout = 40 * time.Second
	// maxEventSize is the maximum size of an event in bytes.
	maxEventSize = 1 << 20
)

var (
	errStopped = errors.New("the caller stopped")
	errEnded   = errors.New("the server ended the stream")
	errTimeout = fmt.Errorf("no data from the server for %v", streamTimeout)
)

// isTemporary reports whether the next attempt may succeed: the server is
// unreachable or temporarily unavailable.
func isTemporary(err error) bool {
	if _, ok := errors.AsType[*foreignError](err); ok {
		return false
	}
	e, ok := errors.AsType[*Error](err)
	return !ok || e.Status >= 500 || e.Status == http.StatusTooManyRequests
}

// A foreignError is an error of a server that is not a ledgerd server, or of a
// request that cannot be sent.
type foreignError struct{ error }

func (e *foreignError) Unwrap() error { return e.error }

// A waitError is an error with the server's Retry-After.
type waitError struct {
	error
	after time.Duration
}

func (e *waitError) Unwrap() error { return e.error }

// A follower follows one stream over many connections.
type follower struct {
	client   *Client
	path     string
	options  FollowOptions
	position string // an event's id, Earliest, or empty if the stream has not started yet
}

// wait waits before the next attempt, for about the given delay or for the server's
// Retry-After, whichever is longer. It returns false if ctx is done.
func (f *follower) wait(ctx context.Context, err error, delay time.Duration) bool {
	delay = delay/2 + rand.N(delay) // jitter, so that clients do not all reconnect at once
	if e, ok := errors.AsType[*waitError](err); ok {
		delay, err = max(delay, e.after), e.error
	}
	if f.options.OnRetry != nil {
		f.options.OnRetry(err, delay)
	}

	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// connect yields the events after the position until the connection ends. It always
// returns an error, and reports whether it received an event.
func (f *follower) connect(ctx context.Context, yield func(Event, error) bool) (got bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(streamTimeout, func() { cancel(errTimeout) })
	defer watchdog.Stop()

	resp, err := f.request(ctx)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	got, err = f.read(&body{resp.Body, watchdog, 0}, yield)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return got, err
}

// request opens a stream.
func (f *follower) request(ctx context.Context) (*http.Response, error) {
	o := f.options
	req, err := f.client.newRequest(ctx, request{
		method: http.MethodGet,
		path:   f.path,
		query:  parameters("types", joinTypes(o.Types), "repo", o.Repo),
		accept: "text/event-stream",
	})
	if err != nil {
		return nil, &foreignError{err}
	}
	if f.position != "" {
		req.Header.Set("Last-Event-ID", f.position)
	}

	stream := *f.client.http
	stream.Timeout = 0 // it applies to the whole response; the watchdog replaces it
	stream.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := stream.Do(req)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, cause
	}
	if err != nil {
		return nil, err
	}

	if err := responseError(resp); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// responseError returns an error if the response is not a stream.
func responseError(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		if mediaType != "text/event-stream" {
			return &foreignError{fmt.Errorf(
				"the response has type %q instead of text/event-stream (check the server URL)", mediaType)}
		}
		return nil
	}

	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("read the response %s: %w", resp.Status, err)
	}
	err = newError(resp, text)
	if seconds, parseErr := strconv.Atoi(resp.Header.Get("Retry-After")); parseErr == nil && seconds > 0 {
		return &waitError{err, time.Duration(min(seconds, 300)) * time.Second}
	}
	return err
}

// read yields the events of one connection. It always returns an error, and reports
// whether it received an event.
func (f *follower) read(b *body, yield func(Event, error) bool) (got bool, err error) {
	for frames, size := sse.NewEventStreamReader(b, maxEventSize), int64(0); ; {
		text, err := frames.ReadEvent()
		if err == io.EOF {
			return got, errEnded
		}
		if err != nil {
			return got, fmt.Errorf("read the stream: %w", err)
		}
		// The reader also returns the incomplete last frame of a broken connection. Such
		// a frame lacks the two bytes that end a frame, so the frames would be longer than
		// the bytes read.
		if size += int64(len(text)) + 2; size > b.read {
			continue
		}

		frame := parseFrame(text)
		if len(frame.Data) == 0 {
			f.setStart(frame)
			continue
		}
		e, err := NewEvent(string(frame.ID), ledger.EventType(frame.Event), frame.Data)
		if err != nil {
			return got, &foreignError{err}
		}
		f.position, got = e.ID, true
		if !yield(e, nil) {
			return got, errStopped
		}
	}
}

// setStart sets the position from the first frame of a stream that was opened
// without a position.
func (f *follower) setStart(frame sse.Event) {
	if f.position == "" && len(frame.ID) > 0 {
		f.position = string(frame.ID)
	}
}

// parseFrame parses a frame. The result does not share memory with text, which the
// reader reuses.
func parseFrame(text []byte) sse.Event {
	var frame sse.Event
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			frame.ID = []byte(value)
		case "event":
			frame.Event = []byte(value)
		case "data":
			if frame.Data != nil {
				frame.Data = append(frame.Data, '\n')
			}
			frame.Data = append(frame.Data, value...)
		}
	}
	return frame
}

// A body is the body of a stream. The watchdog only runs during a Read, so that a
// slow caller does not count as a dead connection.
type body struct {
	from     io.Reader
	watchdog *time.Timer
	read     int64 // bytes read so far
}

func (b *body) Read(p []byte) (int, error) {
	b.watchdog.Reset(streamTimeout)
	defer b.watchdog.Stop()
	n, err := b.from.Read(p)
	b.read += int64(n)
	return n, err
}
