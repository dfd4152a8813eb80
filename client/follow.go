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

// Earliest takes the place of an event's id: it is before the first event of an
// org.
const Earliest = "earliest"

// FollowOptions say what of an org's events Follow yields; the zero value means
// all that happen from now on.
type FollowOptions struct {
	// Types are the types of events wanted; where empty, all but radar.
	Types []ledger.EventType
	// Repo narrows the events to those of one repo.
	Repo string
	// After is the id of an event, or Earliest: it begins behind that one.
	After string
	// OnRetry, where it is not nil, is called when the connection is lost or
	// refused, before the wait for the next attempt. It must not wait long.
	OnRetry func(err error, wait time.Duration)
}

// An Event is one event of the live stream.
type Event struct {
	ID   string
	Type ledger.EventType
	// Data is the event's JSON object as it came. One of the following says the
	// same, by the Type; none where the Type is not known to this version.
	Data        json.RawMessage
	Attestation *eventstream.Attestation
	State       *eventstream.State
	Policy      *eventstream.Policy
	Radar       *eventstream.Radar
}

// NewEvent returns the event of that id, its data decoded.
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
	case ledger.EventPolicy:
		e.Policy = new(eventstream.Policy)
		typed = e.Policy
	case ledger.EventRadar:
		e.Radar = new(eventstream.Radar)
		typed = e.Radar
	default:
		typed = new(json.RawMessage)
	}
	if err := ledger.DecodeOpen(data, typed); err != nil {
		return e, fmt.Errorf("the data of event %s: %w", id, err)
	}
	return e, nil
}

// Follow yields the events of an org as they happen, each once and in order.
// When the connection is lost it connects again, for as long as it takes, and
// resumes where it was. It ends when the context does, without an error; with
// an error when the server refuses, or no longer allows, what is asked for.
func (c *Client) Follow(ctx context.Context, org string, o FollowOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := follower{client: c, path: pathOf("orgs", org, "events"), options: o, position: o.After}
		for pause := followFirst; ; {
			begin := time.Now()
			got, err := f.connect(ctx, yield)
			if errors.Is(err, errStopped) || ctx.Err() != nil {
				return
			}
			if !passing(err) {
				yield(Event{}, err)
				return
			}
			if got || time.Since(begin) > followLast {
				pause = followFirst
			}
			if !f.wait(ctx, err, pause) {
				return
			}
			pause = min(2*pause, followLast)
		}
	}
}

const (
	// The time between two attempts to connect grows from the first to the last
	// of these.
	followFirst = 200 * time.Millisecond
	followLast  = 5 * time.Second
	// followSilence is how long a connection may be silent before it is taken
	// for dead: two of the server's comments are missing.
	followSilence = 40 * time.Second
	// followBuffer is the size of the largest event that can be read.
	followBuffer = 1 << 20
)

var (
	errStopped = errors.New("the caller stopped")
	errEnded   = errors.New("the server ended the stream")
	errSilent  = fmt.Errorf("the server was silent for %v", followSilence)
)

// passing tells whether an error may be over by the next attempt: the server
// cannot be reached, or cannot answer now.
func passing(err error) bool {
	if _, ok := errors.AsType[*foreignError](err); ok {
		return false
	}
	e, ok := errors.AsType[*Error](err)
	return !ok || e.Status >= 500 || e.Status == http.StatusTooManyRequests
}

// A foreignError tells that what answers is not a ledgerd server.
type foreignError struct{ error }

func (e *foreignError) Unwrap() error { return e.error }

// A waitError is an error after which the server asked to wait.
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
	position string // where to resume: an event's id, Earliest, or empty before the stream has begun
}

// wait lets the time before the next attempt pass, or as much as the server
// asked for. It reports whether the context lives.
func (f *follower) wait(ctx context.Context, err error, pause time.Duration) bool {
	pause = pause/2 + rand.N(pause) // or all clients would come back at once
	if e, ok := errors.AsType[*waitError](err); ok {
		pause, err = max(pause, e.after), e.error
	}
	if f.options.OnRetry != nil {
		f.options.OnRetry(err, pause)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// connect yields events from the position on until the connection ends, which
// it always does with an error. It reports whether there was an event.
func (f *follower) connect(ctx context.Context, yield func(Event, error) bool) (got bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(followSilence, func() { cancel(errSilent) })
	defer watchdog.Stop()
	answer, err := f.request(ctx)
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	got, err = f.read(&body{answer.Body, watchdog, 0}, yield)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return got, err
}

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
	stream.Timeout = 0 // it is for whole answers; the watchdog is for this one
	stream.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := stream.Do(req)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, cause
	}
	if err != nil {
		return nil, err
	}
	if err := refusal(answer); err != nil {
		answer.Body.Close()
		return nil, err
	}
	return answer, nil
}

// refusal returns the error of an answer that is no stream.
func refusal(answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		mediaType, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
		if mediaType != "text/event-stream" {
			return &foreignError{fmt.Errorf("the answer is %q and no stream of events (is the URL right?)", mediaType)}
		}
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("reading the answer %s: %w", answer.Status, err)
	}
	err = newError(answer, text)
	if seconds, bad := strconv.Atoi(answer.Header.Get("Retry-After")); bad == nil && seconds > 0 {
		return &waitError{err, time.Duration(min(seconds, 300)) * time.Second}
	}
	return err
}

// read yields the events of one connection. It ends with an error, io.EOF or
// another one.
func (f *follower) read(b *body, yield func(Event, error) bool) (got bool, err error) {
	for frames, used := sse.NewEventStreamReader(b, followBuffer), int64(0); ; {
		text, err := frames.ReadEvent()
		if err == io.EOF {
			return got, errEnded
		}
		if err != nil {
			return got, fmt.Errorf("reading the stream: %w", err)
		}
		// The reader also hands out what a broken connection left of its last frame.
		// That is without the two bytes that end one, so that it seems longer than
		// what has come.
		if used += int64(len(text)) + 2; used > b.read {
			continue
		}
		frame := parseFrame(text)
		if len(frame.Data) == 0 {
			f.begin(frame)
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

// begin notes the position that a stream without one begins with.
func (f *follower) begin(frame sse.Event) {
	if f.position == "" && len(frame.ID) > 0 {
		f.position = string(frame.ID)
	}
}

// parseFrame reads the fields of a frame. What it returns does not share the
// memory of text, which the reader uses again.
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

// A body is the body of a stream. The watchdog only runs while it is read: a
// slow caller is no dead connection.
type body struct {
	from     io.Reader
	watchdog *time.Timer
	read     int64
}

func (b *body) Read(p []byte) (int, error) {
	b.watchdog.Reset(followSilence)
	defer b.watchdog.Stop()
	n, err := b.from.Read(p)
	b.read += int64(n)
	return n, err
}
