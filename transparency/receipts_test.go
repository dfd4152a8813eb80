package transparency

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// receipts returns what signs the receipts of a server.
func (f *fixture) receipts() *Receipts {
	return NewReceipts(ReceiptConfig{Store: f.store, Scheme: "https", Validity: time.Hour,
		Keys: func() (*Keys, error) { return f.signer.Keys, nil }, Logger: slog.New(slog.DiscardHandler)})
}

// keyFiles returns how many private keys of receipts a server has.
func (f *fixture) keyFiles() int {
	f.t.Helper()
	files := must.Get(filepath.Glob(filepath.Join(f.folder, "acme.1.receipt-*.key")))(f.t)
	return len(files)
}

// Servers with one database that need a key of receipts at the same time each announce their
// own, once, and sign with it.
func TestServersMakeReceiptKeysAtOnce(t *testing.T) {
	servers := newReplicas(t, storetest.NewFile(t))
	servers[0].grow(1)
	at := ledger.TimeOf(time.Now())
	issuers := [2]*Receipts{servers[0].receipts(), servers[1].receipts()}
	var wait sync.WaitGroup
	for _, r := range issuers {
		for range 4 {
			wait.Go(func() {
				if _, err := r.renew(t.Context(), "acme", at, nil); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wait.Wait()
	servers[0].sign(true)

	announced, err := servers[0].store.ReceiptKeys(t.Context(), "acme")
	must.OK(t, err)
	if len(announced) != 2 {
		t.Errorf("%d keys are announced, want 2", len(announced))
	}
	used := make(map[string]bool)
	for i, r := range issuers {
		key, err := r.key(t.Context(), "acme", at)
		must.OK(t, err)
		used[key.Key] = true
		if n := servers[i].keyFiles(); n != 1 {
			t.Errorf("a server has %d keys", n)
		}
	}
	if len(used) != 2 {
		t.Errorf("the servers sign with %v", used)
	}
}

// A server whose private keys are lost announces another key, however many others have announced
// theirs, and keeps that.
func TestServerWithoutTheAnnouncedKey(t *testing.T) {
	first := newReplicas(t, storetest.NewFile(t))[0]
	first.grow(1)
	at := ledger.TimeOf(time.Now())
	_, err := first.receipts().renew(t.Context(), "acme", at, nil)
	must.OK(t, err)
	const others = 20
	for n := range others {
		later := at.Add(time.Duration(n+1) * time.Millisecond)
		_, err := first.replica(first.keys).receipts().renew(t.Context(), "acme", later, nil)
		must.OK(t, err)
	}
	first.sign(true)

	count := func() int {
		announced, err := first.store.ReceiptKeys(t.Context(), "acme")
		must.OK(t, err)
		return len(announced)
	}
	for range 3 {
		_, err := first.receipts().key(t.Context(), "acme", at.Add(time.Second))
		must.OK(t, err)
	}
	if n := count(); n != 1+others || first.keyFiles() != 1 {
		t.Errorf("%d keys are announced, and the server has %d", n, first.keyFiles())
	}

	must.OK(t, os.RemoveAll(first.folder))
	first.reopen(func() {})
	_, err = first.receipts().renew(t.Context(), "acme", at.Add(time.Second), nil)
	must.OK(t, err)
	first.sign(true)
	for range 3 {
		_, err := first.receipts().key(t.Context(), "acme", at.Add(time.Second))
		must.OK(t, err)
	}
	if n := count(); n != 2+others || first.keyFiles() != 1 {
		t.Errorf("%d keys are announced, and the server has %d", n, first.keyFiles())
	}
}
