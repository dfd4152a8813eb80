package events

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/webhook"
)

// maxReceived is the maximum size of a body in bytes: four times the largest one that
// a server sends.
const maxReceived = 1 << 20

// A Receiver is the handler of a webhook's deliveries. It verifies the signature of each
// delivery and passes it to Received.
type Receiver struct {
	// Secret is the signing secret of the webhook. If it is empty, all deliveries are
	// accepted as not verified.
	Secret string
	// Path is the only path that accepts deliveries; if empty, all paths do.
	Path string
	// Status is the status of the response to accepted deliveries; 0 means 204.
	Status int
	// Received is called with each delivery before the response. Calls do not overlap.
	Received func(Receipt)
	// Now returns the current time, by which signatures expire; nil for time.Now.
	Now func() time.Time

	mu   sync.Mutex      // held during Received; guards seen
	seen map[string]bool // by event id
}

// A Receipt describes a delivery that has arrived.
type Receipt struct {
	ReceivedAt ledger.Time `json:"received_at"`
	Delivery   string      `json:"delivery,omitzero"`
	// Verified reports whether the signature is valid. If not, Problem says why, or
	// that it was not checked.
	Verified bool   `json:"verified"`
	Problem  string `json:"problem,omitzero"`
	// Again reports whether the event has arrived before.
	Again bool `json:"again,omitzero"`
	// Status is the HTTP status of the response.
	Status int `json:"status"`
	// Body is the body of the request if it is JSON, otherwise Text is.
	Body jsontext.Value `json:"body,omitzero"`
	Text string         `json:"text,omitzero"`
}

// maxSeen is how many event ids a Receiver remembers before it forgets all of them.
const maxSeen = 10_000

// ServeHTTP implements http.Handler.
func (v *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if v.Path != "" && r.URL.Path != v.Path {
		http.Error(w, "not found: webhooks are received at another path", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "method not allowed: use POST", http.StatusMethodNotAllowed)
		return
	}

	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReceived))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		http.Error(w, "body too large", http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil { // the connection broke
		http.Error(w, "cannot read the body", http.StatusBadRequest)
		return
	}

	t := v.receive(r.Header, body)
	v.mu.Lock()
	defer v.mu.Unlock()
	if id := eventID(body); t.Verified && id != "" {
		t.Again = v.markSeen(id)
	}
	v.Received(t)

	if t.Status == http.StatusUnauthorized {
		http.Error(w, t.Problem, t.Status)
		return
	}
	w.WriteHeader(t.Status)
}

// receive verifies a delivery.
func (v *Receiver) receive(header http.Header, body []byte) Receipt {
	now := v.now()
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

func (v *Receiver) now() time.Time {
	if v.Now == nil {
		return time.Now()
	}
	return v.Now()
}

// markSeen records that an event has arrived, and reports whether it had arrived
// before.
func (v *Receiver) markSeen(id string) bool {
	if v.seen[id] {
		return true
	}
	if v.seen == nil || len(v.seen) >= maxSeen {
		v.seen = make(map[string]bool)
	}
	v.seen[id] = true
	return false
}

// eventID returns the id of an event, or "" if the body is not an event.
func eventID(body []byte) string {
	head, _ := ParseHead(body)
	return head.ID
}

// Event returns the delivered event, in the form of the live stream.
func (t Receipt) Event() (client.Event, error) {
	head, err := ParseHead(t.Body)
	if err != nil {
		return client.Event{}, err
	}
	if head.Type == ledger.EventPing {
		return client.Event{ID: head.ID, Type: head.Type}, nil
	}
	return Parse(t.Body)
}

// LocalAddress returns the host and port at which this machine reaches a listener,
// and the network that webhooks must be allowed to post to.
func LocalAddress(address net.Addr) (hostPort, network string) {
	a, err := netip.ParseAddrPort(address.String())
	if err != nil || a.Addr().IsUnspecified() {
		a = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), a.Port())
	}
	if ip := a.Addr(); ip.Is4() && ip.IsLoopback() {
		return a.String(), "127.0.0.0/8"
	}
	return a.String(), netip.PrefixFrom(a.Addr().WithZone(""), a.Addr().BitLen()).String()
}

// A Server is a running HTTP server with a Receiver.
type Server struct {
	web    *http.Server
	Failed chan error // receives the error that ended the server
}

// Serve starts a server on the listener. The caller must stop it.
func Serve(listener net.Listener, v *Receiver, log *slog.Logger) *Server {
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

// Stop closes the server and its connections, and waits until it has ended.
func (r *Server) Stop() error {
	err := r.web.Close()
	<-r.Failed //nolint:errcheck // http.ErrServerClosed
	return err
}
