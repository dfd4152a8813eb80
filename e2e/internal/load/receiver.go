package load

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/webhook"
)

// A receiver receives the webhooks of a load. It keeps the ids of the events that have
// arrived, by path.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	secrets map[string]string
	hooks   map[string]outbound.Webhook // the confirmed ones
	arrived map[string]map[string]bool
	refused int // deliveries with a wrong signature
}

func newReceiver() *receiver {
	r := &receiver{secrets: make(map[string]string), hooks: make(map[string]outbound.Webhook),
		arrived: make(map[string]map[string]bool)}
	r.Server = httptest.NewServer(r)
	return r
}

// expect is called with a webhook that was created at this receiver.
func (r *receiver) expect(w outbound.Webhook) {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := pathOf(w.URL)
	r.secrets[path], r.hooks[path] = w.Secret, w
}

func pathOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	return u.Path
}

// ServeHTTP accepts deliveries. The secret of a webhook whose creation was not answered is
// unknown, and so is that of one whose answer is still under way.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the server was killed
	}
	var event struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	path := request.URL.Path
	if secret, ok := r.secrets[path]; ok {
		if err := webhook.Verify(secret, request.Header, body, signedAt(request.Header)); err != nil {
			r.refused++
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
	}
	if r.arrived[path] == nil {
		r.arrived[path] = make(map[string]bool)
	}
	r.arrived[path][event.ID] = true
}

// signedAt returns the time in a signature. The clock of the ledger may be wrong.
func signedAt(h http.Header) time.Time {
	var seconds int64
	if _, err := fmt.Sscanf(h.Get("X-ledger-Signature"), "t=%d,", &seconds); err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// has reports whether an event has arrived at a webhook.
func (r *receiver) has(w outbound.Webhook, event string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.arrived[pathOf(w.URL)][event]
}

// webhooks returns the webhooks that are known to exist.
func (r *receiver) webhooks() (list []outbound.Webhook) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.hooks {
		list = append(list, w)
	}
	return list
}
