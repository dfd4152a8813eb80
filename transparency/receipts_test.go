package transparency

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// Two processes on one database may both make the first key of receipts. Each of their keys
// is announced, and both processes sign with one of them.
func TestTwoProcessesMakeAReceiptKeyAtOnce(t *testing.T) {
	f := newFixture(t)
	f.grow(1)
	f.sign(true)
	keys := func() (*Keys, error) { return OpenKeys(f.folder) }
	var processes [2]*Receipts
	for i := range processes {
		f.open()
		processes[i] = NewReceipts(ReceiptConfig{Store: f.store, Keys: keys, Scheme: "https", Validity: time.Hour,
			Logger: slog.New(slog.DiscardHandler)})
	}
	at := ledger.TimeOf(time.Now())
	var wait sync.WaitGroup
	for _, p := range processes {
		wait.Go(func() {
			if _, err := p.renew(t.Context(), "acme", at, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	f.sign(true)

	var signs [2]receiptKey
	for i, p := range processes {
		var err error
		signs[i], err = p.key(t.Context(), "acme", at)
		check(t, err)
		listed, err := p.Store.ReceiptKeys(t.Context(), "acme")
		check(t, err)
		loaded, err := p.load(t.Context(), "acme")
		check(t, err)
		if len(listed) < 1 || len(listed) > 2 || len(loaded) != len(listed) {
			t.Errorf("%d keys are announced, and %d can sign", len(listed), len(loaded))
		}
	}
	if signs[0].Key != signs[1].Key {
		t.Errorf("the processes sign with %s and %s", signs[0].Key, signs[1].Key)
	}
}
