package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/authority"
	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/store"
	dbcheck "github.com/ledgerd/ledgerd/store/check"
	"github.com/ledgerd/ledgerd/transparency"
	"github.com/ledgerd/ledgerd/transparency/witness"
)

// newPool returns the pool that asks witnesses to cosign the logs, or nil if log.policy is not
// set.
func newPool(s config.Settings, log *slog.Logger) (*witness.Pool, error) {
	policy, err := s.Log.LoadPolicy()
	if policy == nil || err != nil {
		return nil, err
	}
	return witness.NewPool(witness.PoolConfig{Policy: policy, Logger: log, UserAgent: buildinfo.UserAgent()})
}

// AskWitnesses returns a function that asks the witnesses of log.policy for the newest checkpoint of
// a log that they have cosigned, and says what could not be asked.
func AskWitnesses(s config.Settings) (func(ctx context.Context, origin string) ([]dbcheck.Seen, []string), error) {
	pool, err := newPool(s, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if pool == nil {
		return nil, errors.New("log.policy is not set: it names the witnesses")
	}

	return func(ctx context.Context, origin string) (list []dbcheck.Seen, unchecked []string) {
		for _, shown := range pool.Shown(ctx, origin) {
			switch {
			case shown.Err != nil:
				unchecked = append(unchecked, fmt.Sprintf("what the witness %s has of %s: %v", shown.Witness, origin, shown.Err))
			case shown.Checkpoint == nil:
				unchecked = append(unchecked, fmt.Sprintf("what the witness %s has of %s: it shows no checkpoint", shown.Witness,
					origin))
			default:
				list = append(list, dbcheck.Seen{What: "the witness " + shown.Witness, Signed: shown.Checkpoint})
			}
		}
		return list, unchecked
	}, nil
}

// logs are the parts of the service that sign our transparency logs.
type logs struct {
	signer *transparency.Signer
	pool   *witness.Pool // may be nil

	receipts  *transparency.Receipts // may be nil
	authority *authority.Authority
}

func newLogs(s config.Settings, db *store.Store, log *slog.Logger) (l logs, err error) {
	if l.pool, err = newPool(s, log); err != nil {
		return l, err
	}
	if l.signer, err = newSigner(s, db, l.pool, log); err != nil {
		return l, err
	}
	l.receipts, l.authority = newReceipts(s, db, log), newAuthority(s, db)
	return l, nil
}

// shown returns what the API shows of the logs.
func (l logs) shown() server.Logs {
	s := server.Logs{Signing: l.signer.Problems, Receipts: l.receipts}
	if l.pool != nil {
		s.Witnesses = l.pool.Status
	}
	return s
}

// run signs the logs until ctx is done.
func (l logs) run(ctx context.Context) {
	l.signer.Run(ctx)
	if l.pool != nil {
		l.pool.Close()
	}
}

// newSigner returns the signer of the transparency logs. It signs none if the base URL is not
// set.
func newSigner(s config.Settings, db *store.Store, pool *witness.Pool, log *slog.Logger) (*transparency.Signer, error) {
	c := transparency.Config{Store: db, BaseURL: s.BaseURL.URL(), Logger: log, Shared: s.Database.IsServer()}
	if c.BaseURL == nil {
		log.Info("the transparency logs are not signed: base_url is not set")
		return transparency.NewSigner(c), nil
	}
	if pool != nil {
		c.Cosigner = pool
	}
	var err error
	if c.Keys, err = openKeys(s); err != nil {
		return nil, err
	}
	return transparency.NewSigner(c), nil
}

// openKeys opens the keys of the logs, and the folder of what this server signs last.
func openKeys(s config.Settings) (*transparency.Keys, error) {
	return transparency.OpenKeys(s.KeyDir(), s.StateDir())
}

// receiptValidity is how long receipts are valid: long enough for a deployment, and short enough that a
// verdict is not used after it has changed.
const receiptValidity = 24 * time.Hour

// newReceipts returns what signs receipts, or nil if the base URL is not set. It opens the
// folder of the keys for the first receipt.
func newReceipts(s config.Settings, db *store.Store, log *slog.Logger) *transparency.Receipts {
	base := s.BaseURL.URL()
	if base == nil {
		return nil
	}
	return transparency.NewReceipts(transparency.ReceiptConfig{
		Store: db, Scheme: base.Scheme, Validity: receiptValidity, Logger: log,
		Keys: sync.OnceValues(func() (*transparency.Keys, error) { return openKeys(s) }),
	})
}

// newAuthority returns the issuer of certificates for CI jobs and people. It opens the folder of
// the keys for the first one.
func newAuthority(s config.Settings, db *store.Store) *authority.Authority {
	return authority.New(authority.Config{Store: db,
		Keys: sync.OnceValues(func() (*transparency.Keys, error) { return openKeys(s) })})
}
