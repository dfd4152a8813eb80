package transparency

import (
	"context"
	"crypto/ecdsa"
	"encoding/pem"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

const (
	// receiptKeyLife is how long a key of receipts signs, and receiptKeyRenewal how long
	// before its end the next one is made.
	receiptKeyLife, receiptKeyRenewal = 90 * 24 * time.Hour, 14 * 24 * time.Hour
)

// A ReceiptConfig configures Receipts.
type ReceiptConfig struct {
	Store *store.Store
	// Keys opens the folder of the keys.
	Keys   func() (*Keys, error)
	Scheme string // of the URL of the API: http or https
	// Validity is how long receipts are valid.
	Validity time.Duration
	Logger   *slog.Logger
}

// Receipts signs receipts. Each org has keys of its own for them, which its log announces
// before they sign. Servers with one database have different keys.
type Receipts struct {
	ReceiptConfig
	creating sync.Mutex // held while a key is made
}

// NewReceipts returns Receipts.
func NewReceipts(c ReceiptConfig) *Receipts { return &Receipts{ReceiptConfig: c} }

// Issue returns a receipt that a commit has reached a state. It returns CodeStateNotReached
// if it has not, and CodeNotInCheckpoint if no checkpoint covers what the receipt rests on or
// the announcement of its key. The first receipt of an org makes its key.
func (r *Receipts) Issue(ctx context.Context, q store.DecisionQuery) (v ledger.Receipt, err error) {
	q.Validity = r.Validity
	d, err := r.Store.Decide(ctx, q)
	if err != nil {
		return v, err
	}
	key, err := r.key(ctx, q.Org, d.CreatedAt)
	if err != nil {
		return v, err
	}

	d.Scheme = r.Scheme
	if v.Envelope, err = d.Sign(key.private); err != nil {
		return v, err
	}
	v.Proof = string(d.Proof)
	v.Key = ledger.ReceiptKey{Event: string(key.announced.Event), Proof: string(key.announced.Proof),
		PublicKey: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: key.PublicKey}))}
	return v, nil
}

// A receiptKey is a key of receipts with its private half.
type receiptKey struct {
	store.ReceiptKey
	private   *ecdsa.PrivateKey
	announced store.Announcement
}

// key returns the key that signs an org's receipts of a time. It makes a new one for
// the first receipt, and if the newest ends soon.
func (r *Receipts) key(ctx context.Context, org string, at ledger.Time) (receiptKey, error) {
	keys, err := r.load(ctx, org)
	if err != nil {
		return receiptKey{}, err
	}
	if needsKey(keys, at) {
		if keys, err = r.renew(ctx, org, at, keys); err != nil {
			return receiptKey{}, err
		}
	}

	var pending error
	for _, k := range keys {
		k.announced, err = r.Store.Announcement(ctx, org, k.ReceiptKey)
		switch e, ok := errors.AsType[*ledger.Error](err); {
		case ok && e.Code == ledger.CodeNotInCheckpoint:
			pending = err
		case err != nil || k.NotBefore <= at && at < k.NotAfter:
			return k, err
		}
	}
	if pending == nil {
		pending = ledger.Errorf(ledger.CodeNotInCheckpoint,
			"the key of receipts of %s was made after the decision (try again)", org)
	}
	return receiptKey{}, pending
}

// needsKey reports whether a key is to be made: none signs long enough.
func needsKey(keys []receiptKey, at ledger.Time) bool {
	return len(keys) == 0 || keys[0].NotAfter.Sub(at) < receiptKeyRenewal
}

// load returns the keys of an org's receipts that have not expired, newest first. Those
// whose private half is missing are left out: other servers have them, or they are lost.
func (r *Receipts) load(ctx context.Context, org string) (list []receiptKey, err error) {
	l, err := r.Store.Log(ctx, org, 0)
	if err != nil {
		return nil, err
	}
	announced, err := r.Store.ReceiptKeys(ctx, org)
	if err != nil || len(announced) == 0 {
		return nil, err
	}
	folder, err := r.Keys()
	if err != nil {
		return nil, err
	}

	for _, k := range announced {
		private, err := folder.LoadReceiptKey(nameOf(l), k)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.Logger.ErrorContext(ctx, "a key of receipts cannot be used", "org", org, "error", err)
		}
		if err == nil {
			list = append(list, receiptKey{ReceiptKey: k, private: private})
		}
	}
	return list, nil
}

// renew makes a key, unless another call has. If that fails, the old keys still sign.
func (r *Receipts) renew(ctx context.Context, org string, at ledger.Time, old []receiptKey) ([]receiptKey, error) {
	r.creating.Lock()
	defer r.creating.Unlock()
	keys, err := r.load(ctx, org)
	if err != nil || !needsKey(keys, at) {
		return keys, err
	}
	if err := r.create(ctx, org, at); err != nil {
		if len(old) == 0 {
			return nil, err
		}
		r.Logger.ErrorContext(ctx, "a new key of receipts cannot be made", "org", org, "error", err)
		return old, nil
	}
	return r.load(ctx, org)
}

// create makes a key of receipts, and announces it in the org's log.
func (r *Receipts) create(ctx context.Context, org string, at ledger.Time) error {
	l, err := r.Store.Log(ctx, org, 0)
	if err != nil {
		return err
	}
	folder, err := r.Keys()
	if err != nil {
		return err
	}
	k, err := folder.CreateReceiptKey(nameOf(l), at, at.Add(receiptKeyLife))
	if err != nil {
		return err
	}
	r.Logger.InfoContext(ctx, "a key of receipts was made", "org", org, "key", k.Key, "not_after", k.NotAfter)
	return r.Store.AnnounceReceiptKey(ctx, org, l.Epoch, k)
}
