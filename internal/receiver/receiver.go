// Package receiver receives webhooks on this machine and checks their signatures.
package receiver

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
	"github.com/ledgerd/ledgerd/internal/eventbody"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/webhook"
)

// maxReceived bounds the body that a receiver reads: four times what a server
// may send.
const maxReceived = 1 << 20

// A Handler is what a webhook posts to. It checks the signature of each delivery and
// reports it to Took.
type Handler struct {
	// Secret is what deliveries have to be signed with. Where it is empty all are
	// taken, as not verified.
	Secret string
	// Path is the only one that is answered; every one is where it is empty.
	Path string
	// Status answers what is taken; 204 where it is 0.
	Status int
	// Took is called with each delivery, one at a time, before it is answered.
	Took func(Receipt)

	one  sync.Mutex
	seen map[string]bool // events, by their id
}

// A Receipt is one delivery as it arrived.
type Receipt struct {
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
func (v *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if v.Path != "" && r.URL.Path != v.Path {
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
	v.Took(t)
	if t.Status == http.StatusUnauthorized {
		http.Error(w, t.Problem, t.Status)
		return
	}
	w.WriteHeader(t.Status)
}

// receive checks a delivery.
func (v *Handler) receive(header http.Header, body []byte) Receipt {
	now := time.Now()
	t := Receipt{
		ReceivedAt: ledger.TimeOf(now),
		Delivery:   header.Get("X-ledger-Delivery"),
		Status:     http.StatusNoContent,
	}
	if v.Status != 0 {
		t.Status = v.Status
	}
	if jsontext.Value(body).IsValid() {
		t.Body = body
	} else {
		t.Text = string(body)
	}
	if v.Secret == "" {
		t.Problem = "no --secret"
	} else if err := webhook.Verify(v.Secret, header, body, now); err != nil {
		t.Problem, t.Status = err.Error(), http.StatusUnauthorized
	} else {
		t.Verified = true
	}
	return t
}

// saw notes that an event has arrived, and tells whether it had before.
func (v *Handler) saw(id string) bool {
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
	head, _ := eventbody.ParseHead(body)
	return head.ID
}

// Event returns the event that was delivered, as the stream tells of it.
func (t Receipt) Event() (client.Event, error) {
	head, err := eventbody.ParseHead(t.Body)
	if err != nil {
		return client.Event{}, err
	}
	if head.Type == ledger.EventPing {
		return client.Event{ID: head.ID, Type: head.Type}, nil
	}
	return eventbody.Parse(t.Body)
}

// A Server is a running HTTP server with a Handler.
type Server struct {
	web    *http.Server
	Failed chan error // gets the error that ends the serving
}

// Serve starts a server on the listener.
func Serve(listener net.Listener, v *Handler, log *slog.Logger) *Server {
	r := &Server{
		Failed: make(chan error, 1),
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
	go func() { r.Failed <- r.web.Serve(listener) }()
	return r
}

// Stop ends the server at once and waits until it has ended.
func (r *Server) Stop() error {
	err := r.web.Close()
	<-r.Failed //nolint:errcheck // http.ErrServerClosed
	return err
}
