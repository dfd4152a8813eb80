package verify

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/seen"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
	"github.com/ledgerd/ledgerd/transparency"
)

// A host is a ledger with its database, its keys, and the org acme with the repo api.
type host struct {
	t        *testing.T
	folder   string
	store    *store.Store
	signer   *transparency.Signer
	receipts *transparency.Receipts
	api      http.Handler
	admin    *client.Client // of the host
	key      ed25519.PrivateKey
	dn       string
	sent     int
	target   string            // of receipts
	ago      time.Duration     // by how much the ledger's clock is behind
	objects  map[string][]byte // of the commits in a clone
}

const baseURL = "https://ledger.example"

// newHost returns a host with one signed attestation.
func newHost(t *testing.T) *host {
	t.Helper()
	return newHostAgo(t, 0)
}

// newHostAgo returns a host with one signed attestation, which is as old as it says. Its clock is
// behind until it is reopened.
func newHostAgo(t *testing.T, ago time.Duration) *host {
	t.Helper()
	h := &host{t: t, folder: filepath.Dir(storetest.NewFile(t)), dn: "cn=ci,ou=build,o=acme", ago: ago,
		objects: make(map[string][]byte)}
	h.open()
	_, err := h.admin.CreateOrg(t.Context(), ledger.NewOrg{Name: "acme"})
	must.OK(t, err)
	_, err = h.admin.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"})
	must.OK(t, err)
	h.key, _ = storetest.AddSigner(t, h.store, h.dn)
	h.attest(commitID(1), "test:go", ledger.Pass)
	return h
}

// commitID returns the ID of commit n.
func commitID(n int) string { return fmt.Sprintf("%040x", n) }

// open opens the database and the keys.
func (h *host) open() {
	h.t.Helper()
	ago := h.ago
	db, err := store.Open(h.t.Context(), filepath.Join(h.folder, "ledger.db"), store.Options{
		ParseRoot: sigstore.ParseRoot,
		Now:       func() time.Time { return time.Now().Add(-ago) }, Providers: storetest.Providers(),
	})
	must.OK(h.t, err)
	folder := filepath.Join(h.folder, "keys")
	keys := must.Get(transparency.OpenKeys(folder, folder))(h.t)
	base, err := url.Parse(baseURL)
	must.OK(h.t, err)
	h.store = db
	h.signer = transparency.NewSigner(transparency.Config{Store: db, Keys: keys, BaseURL: base,
		Logger: slog.New(slog.DiscardHandler)})
	h.receipts = transparency.NewReceipts(transparency.ReceiptConfig{Store: db, Scheme: "https", Validity: time.Hour,
		Logger: slog.New(slog.DiscardHandler), Keys: func() (*transparency.Keys, error) { return keys, nil }})
	s := server.New(server.Config{Store: db, Logs: server.Logs{Receipts: h.receipts}})
	h.api = s.Host()
	h.admin, err = client.New("http://host", client.Options{HTTPClient: &http.Client{Transport: client.InProcess(h.api)}})
	must.OK(h.t, err)
	h.t.Cleanup(func() { _ = db.Close() })
}

// clone reads the objects of commits, as a clone of the repo does.
func (h *host) clone(_ context.Context, commits []string) (list []lineage.Object, err error) {
	for _, sha := range commits {
		if object, ok := h.objects[sha]; ok {
			list = append(list, lineage.Object{Commit: sha, Object: object})
		}
	}
	return list, nil
}

// prune has a repo keep envelopes or events for a day only, and prunes what is older. The clock of
// the ledger is right from then on.
func (h *host) prune(keep ledger.RetentionChange) {
	h.t.Helper()
	must.OK(h.t, h.store.Close())
	h.ago = 0
	h.open()
	_, err := h.admin.ChangeRepo(h.t.Context(), "acme", "api", ledger.RepoChange{Retention: &keep})
	must.OK(h.t, err)
	must.OK(h.t, h.store.Settle(h.t.Context()))
	h.sign()
}

// copied returns a copy of the host, as a restored backup or a clone of its disk has it. The
// database is closed for it.
func (h *host) copied() *host {
	h.t.Helper()
	must.OK(h.t, h.store.Close())
	other := *h
	other.folder = h.t.TempDir()
	must.OK(h.t, os.CopyFS(other.folder, os.DirFS(h.folder)))
	must.OK(h.t, os.Chmod(filepath.Join(other.folder, "keys"), 0o700))
	h.open()
	other.open()
	return &other
}

// attest records an attestation, and signs the log.
func (h *host) attest(commit, predicate string, status ledger.Status) ledger.AttestationRecord {
	h.t.Helper()
	record := h.record(commit, predicate, status)
	h.sign()
	return record
}

// record records an attestation.
func (h *host) record(commit, predicate string, status ledger.Status) ledger.AttestationRecord {
	h.t.Helper()
	record, err := h.try(commit, predicate, status)
	must.OK(h.t, err)
	return record
}

// try sends an attestation, which may be refused.
func (h *host) try(commit, predicate string, status ledger.Status) (ledger.AttestationRecord, error) {
	h.t.Helper()
	h.sent++
	payload, err := attestation.NewStatement("acme/api", commit, attestation.ResultPredicate{
		Predicate: predicate, Result: ledger.Result{Status: status, DurationMS: int64(h.sent)},
		StartedOn: ledger.TimeOf(time.Now())})
	must.OK(h.t, err)
	return h.send(payload)
}

// send signs and records a statement.
func (h *host) send(payload []byte) (ledger.AttestationRecord, error) {
	h.t.Helper()
	envelope := must.Get(attestation.SignDSSE(h.key, payload))(h.t)
	record, _, err := h.admin.Record(h.t.Context(), "acme", "api", envelope)
	return record, err
}

func (h *host) sign() {
	h.t.Helper()
	must.OK(h.t, h.signer.SignAll(h.t.Context(), true))
}

// A site is where a host is reached. What it serves can be replaced and changed.
type site struct {
	*httptest.Server
	host atomic.Pointer[host]
	// change changes a response; nil for none.
	change func(path string, body []byte) []byte
}

func newSite(t *testing.T, h *host) *site {
	t.Helper()
	s := &site{}
	s.host.Store(h)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		s.host.Load().api.ServeHTTP(recorder, r)
		body := recorder.Body.Bytes()
		if s.change != nil {
			body = s.change(r.URL.Path, body)
		}
		for name, values := range recorder.Header() {
			if name != "Content-Length" {
				w.Header()[name] = values
			}
		}
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	return s
}

// A person verifies what a site says, and remembers it.
type person struct {
	t      *testing.T
	memory *seen.Memory
	folder string
	change func(o *Options)
}

func newPerson(t *testing.T) *person {
	folder := t.TempDir()
	return &person{t: t, memory: seen.Open(folder), folder: folder}
}

// verify verifies a subject, and returns the report.
func (p *person) verify(s *site, subject func(*Session) (verify.Report, error)) verify.Report {
	p.t.Helper()
	report, err := p.try(s, subject)
	must.OK(p.t, err)
	return report
}

func (p *person) try(s *site, subject func(*Session) (verify.Report, error)) (verify.Report, error) {
	p.t.Helper()
	c := must.Get(client.New(s.URL, client.Options{}))(p.t)
	o := Options{Server: s.URL, Org: "acme", Memory: p.memory, Now: ledger.TimeOf(time.Now())}
	if p.change != nil {
		p.change(&o)
	}
	session, failed, err := Begin(p.t.Context(), c, o)
	if err != nil {
		return verify.Report{}, err
	}
	if session == nil {
		return verify.NewReport("", "", failed), nil
	}
	return subject(session)
}

func event(t *testing.T, id string) func(*Session) (verify.Report, error) {
	return func(s *Session) (verify.Report, error) { return s.Event(t.Context(), id) }
}

// want checks that a report has a check with a result and a part of its text.
func want(t *testing.T, r verify.Report, name string, status verify.Status, text string) verify.Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name && c.Status == status && strings.Contains(c.Detail, text) {
			return c
		}
	}
	t.Errorf("no check %q with the result %s and %q in:", name, status, text)
	for _, c := range r.Checks {
		t.Logf("%s %s: %s", c.Name, c.Status, c.Detail)
	}
	return verify.Check{}
}

// wantVerified checks that no check has failed.
func wantVerified(t *testing.T, r verify.Report) {
	t.Helper()
	if r.Verified && len(r.Checks) > 0 {
		return
	}
	t.Error("not verified:")
	for _, c := range r.Checks {
		t.Logf("%s %s: %s", c.Name, c.Status, c.Detail)
	}
}

// byPath serves the files of the log by one handler, and all else by another.
func byPath(log, rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/log") {
			log.ServeHTTP(w, r)
			return
		}
		rest.ServeHTTP(w, r)
	})
}
