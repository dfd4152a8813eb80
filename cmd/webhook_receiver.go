package cmd

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/webhook"
)

// maxReceived bounds the body that a receiver reads: four times what a server
// may send.
const maxReceived = 1 << 20

// A receiver is where a webhook posts to: it checks the signature of whatever
// arrives and tells of it.
type receiver struct {
	// secret is what deliveries have to be signed with. Where it is empty all are
	// taken, as not verified.
	secret string
	// path is the only one that is answered; every one is where it is empty.
	path string
	// status answers what is taken; 204 where it is 0.
	status int
	// took is told of each delivery, one at a time, before it is answered.
	took func(receipt)

	one  sync.Mutex
	seen map[string]bool // events, by their id
}

// A receipt is one delivery as it arrived.
type receipt struct {
	ReceivedAt ledger.Time `json:"received_at"`
	Delivery   string      `json:"delivery,omitzero"`
	// Verified says that the signature is right, Problem why it is not, or was
	// not checked.
	Verified bool   `json:"verified"`
	Problem  string `json:"problem,omitzero"`
	// Again says that the event has arrived before.
	Again bool `json:"again,omitzero"`
	// Status is what it was answered with.
	Status int `json:"status"`
	// Body is what was posted, Text instead where that is no JSON.
	Body jsontext.Value `json:"body,omitzero"`
	Text string         `json:"text,omitzero"`
}

// maxSeen bounds how many events a receiver remembers.
const maxSeen = 10_000

// ServeHTTP implements http.Handler.
func (v *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if v.path != "" && r.URL.Path != v.path {
		http.Error(w, "nothing is received here", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "webhooks are received here: post them", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReceived))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		http.Error(w, "that is more than an event can be", http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil { // whoever posted is gone
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	t := v.receive(r.Header, body)
	v.one.Lock()
	defer v.one.Unlock()
	if id := eventID(body); t.Verified && id != "" {
		t.Again = v.saw(id)
	}
	v.took(t)
	if t.Status == http.StatusUnauthorized {
		http.Error(w, t.Problem, t.Status)
		return
	}
	w.WriteHeader(t.Status)
}

// receive checks a delivery.
func (v *receiver) receive(header http.Header, body []byte) receipt {
	now := time.Now()
	t := receipt{
		ReceivedAt: ledger.TimeOf(now),
		Delivery:   header.Get("X-ledger-Delivery"),
		Status:     http.StatusNoContent,
	}
	if v.status != 0 {
		t.Status = v.status
	}
	if jsontext.Value(body).IsValid() {
		t.Body = body
	} else {
		t.Text = string(body)
	}
	if v.secret == "" {
		t.Problem = "no --secret"
	} else if err := webhook.Verify(v.secret, header, body, now); err != nil {
		t.Problem, t.Status = err.Error(), http.StatusUnauthorized
	} else {
		t.Verified = true
	}
	return t
}

// saw notes that an event has arrived, and tells whether it had before.
func (v *receiver) saw(id string) bool {
	if v.seen[id] {
		return true
	}
	if v.seen == nil || len(v.seen) >= maxSeen {
		v.seen = make(map[string]bool)
	}
	v.seen[id] = true
	return false
}

func eventID(body []byte) string {
	head, _ := readHead(body)
	return head.ID
}

// An eventHead is what the bodies of all events begin with.
type eventHead struct {
	ID   string           `json:"id"`
	Type ledger.EventType `json:"type"`
	Repo string           `json:"repo"`
}

func readHead(body []byte) (head eventHead, err error) {
	err = ledger.DecodeOpen(body, &head)
	return head, err
}

// event returns the event that was delivered, as the stream tells of it.
func (t receipt) event() (client.Event, error) {
	head, err := readHead(t.Body)
	if err != nil {
		return client.Event{}, err
	}
	if head.Type == ledger.EventPing {
		return client.Event{ID: head.ID, Type: head.Type}, nil
	}
	return streamEvent(t.Body)
}

// A reception is a receiver with the server that it listens in.
type reception struct {
	url    string
	web    *http.Server
	failed chan error // why the serving ended
}

// receiveOn begins to receive on what is listened to.
func receiveOn(listener net.Listener, v *receiver, log *slog.Logger) *reception {
	r := &reception{
		url:    "http://" + listener.Addr().String(),
		failed: make(chan error, 1),
		web: &http.Server{
			Handler:           v,
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      10 * time.Second,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    64 << 10,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
	}
	go func() { r.failed <- r.web.Serve(listener) }()
	return r
}

// stop ends the receiving at once and waits for it.
func (r *reception) stop() error {
	err := r.web.Close()
	<-r.failed //nolint:errcheck // http.ErrServerClosed
	return err
}
