package transparency

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/store"
)

// page is the number of logs that are read at a time, and concurrent the number that are signed
// at the same time.
const page, concurrent = 100, 8

// A Cosigner gathers the cosignatures of witnesses.
type Cosigner interface {
	// Cosign returns signature lines for a checkpoint: those that it could get in time. An
	// error means that a witness knows another history of the log, so that the log must not
	// be signed any more.
	Cosign(ctx context.Context, c Signed) (lines string, err error)
	// Stopped returns the error that Cosign has returned for the log, or nil.
	Stopped(origin string) error
	// Lagging reports whether cosignatures of the latest checkpoints can be had that Cosign has
	// not returned yet.
	Lagging() bool
}

// Signed is a signed checkpoint for which cosignatures are asked.
type Signed struct {
	proof.Checkpoint
	Note []byte
	// Prove returns the proof that a smaller tree is a prefix of the checkpoint's.
	Prove func(ctx context.Context, old int64) (tlog.TreeProof, error)
}

// A Config configures a Signer. Cosigner may be nil.
type Config struct {
	Store    *store.Store
	Keys     *Keys
	BaseURL  *url.URL // where the API is reached; the names of the logs begin with it; nil: nothing is signed
	Logger   *slog.Logger
	Cosigner Cosigner
	// Shared reports that other servers sign the logs in the database, too.
	Shared bool
}

// A Signer signs the checkpoints of all logs.
type Signer struct {
	Config

	signing sync.Mutex  // held while logs are signed
	passed  ledger.Time // the start of the last pass that takeOver has made; belongs to who holds signing

	mu       sync.Mutex
	problems map[LogName]string // why logs are not signed
}

// NewSigner returns a Signer. Call Run.
func NewSigner(c Config) *Signer { return &Signer{Config: c, problems: make(map[LogName]string)} }

// each calls fn for all logs that list lists page by page, after an org.
func each(list func(after string) ([]store.Log, error), fn func(store.Log)) error {
	for after := ""; ; {
		logs, err := list(after)
		if err != nil {
			return err
		}
		parallel.Each(concurrent, logs, fn)
		if len(logs) < page {
			return nil
		}
		after = logs[len(logs)-1].Org
	}
}

// Problems returns why logs are not signed, by org.
func (s *Signer) Problems() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	problems := make(map[string]string, len(s.problems))
	for name, problem := range s.problems {
		problems[name.Org] = problem
	}
	return problems
}

// observe logs when a log is no longer signed, and when it is again.
func (s *Signer) observe(ctx context.Context, l store.Log, err error) {
	if ctx.Err() != nil {
		return
	}
	name := nameOf(l)
	s.mu.Lock()
	before := s.problems[name]
	for other := range s.problems { // of a log that has been replaced
		if other.Org == name.Org && other.Epoch != name.Epoch {
			before = s.problems[other]
			delete(s.problems, other)
		}
	}
	if delete(s.problems, name); err != nil {
		s.problems[name] = err.Error()
	}
	s.mu.Unlock()

	switch {
	case err == nil && before != "":
		s.Logger.InfoContext(ctx, "the transparency log is signed again", "org", l.Org)
	case err != nil && before != err.Error():
		s.Logger.ErrorContext(ctx, "THE TRANSPARENCY LOG IS NOT SIGNED", "org", l.Org, "error", err,
			"help", "see docs/proof.md, 'A log that is not signed'")
	}
}

func nameOf(l store.Log) LogName { return LogName{Org: l.Org, Epoch: l.Epoch} }

// sign signs the present size of a log.
func (s *Signer) sign(ctx context.Context, l store.Log) error {
	key, err := s.key(ctx, &l)
	if err != nil {
		return err
	}
	if err := s.extendsSigned(ctx, l, key); err != nil {
		return err
	}

	if s.Cosigner != nil {
		if err := s.Cosigner.Stopped(l.Origin); err != nil {
			return err
		}
	}

	c := proof.Checkpoint{Origin: l.Origin, Size: l.Leaves}
	if c.Root, err = s.Store.Root(ctx, l, c.Size); err != nil {
		return err
	}
	signed := l.Checkpoint
	if l.Size < l.Leaves {
		if signed, err = c.Sign(key); err != nil {
			return err
		}
		if err := s.Keys.SaveSigned(nameOf(l), signed); err != nil {
			return err
		}
	}
	cosigned, err := s.cosigned(ctx, l, c, signed)
	if err != nil || l.Size == l.Leaves && bytes.Equal(cosigned, signed) {
		return err
	}
	return s.Store.SaveCheckpoint(ctx, l, c.Size, cosigned)
}

// cosigned returns a signed checkpoint with the cosignatures of witnesses.
func (s *Signer) cosigned(ctx context.Context, l store.Log, c proof.Checkpoint, signed []byte) ([]byte, error) {
	if s.Cosigner == nil {
		return signed, nil
	}
	prove := func(ctx context.Context, old int64) (tlog.TreeProof, error) {
		return s.Store.Consistency(ctx, l, old, c.Size)
	}
	lines, err := s.Cosigner.Cosign(ctx, Signed{Checkpoint: c, Note: signed, Prove: prove})
	return proof.Cosigned(signed, lines), err
}

// key returns the key of a log. A log that has never been signed gets a key and its origin.
func (s *Signer) key(ctx context.Context, l *store.Log) (Key, error) {
	key, err := s.load(*l)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return key, err
	case l.Origin != "" && missing:
		return key, fmt.Errorf("its key is missing in log.key_dir: bring it back, or run "+
			"'ledgerd log new-epoch %s --reason TEXT'", l.Org)
	case l.Origin != "":
		return key, key.isOf(*l)
	}

	if missing {
		key, err = s.Keys.Create(nameOf(*l), Origin(s.BaseURL, nameOf(*l)))
		if err != nil {
			return key, err
		}
	}
	// A key without a checkpoint is from a start that was interrupted. With one, the log has
	// begun in another database: sign refuses unless ours extends it.
	l.Origin, l.VKey = key.Name(), key.VKey
	return key, s.Store.BeginOrigin(ctx, *l, l.Origin, l.VKey)
}

// load loads the key of a log. A log that has no origin gets that of base_url, unless this
// server has signed it with another database.
func (s *Signer) load(l store.Log) (Key, error) {
	name := nameOf(l)
	return s.Keys.Load(name, cmp.Or(l.Origin, s.Keys.origin(name), Origin(s.BaseURL, name)))
}

// extendsSigned checks that the checkpoints that were signed last, on disk and in the
// database, are prefixes of a log. If the one on disk is not the newest, it is replaced.
func (s *Signer) extendsSigned(ctx context.Context, l store.Log, key Key) error {
	last, err := s.Keys.LastSigned(nameOf(l), key)
	if err != nil {
		return err
	}
	if last != nil {
		if err := s.extends(ctx, l, *last); err != nil {
			return err
		}
	}
	if l.Size == 0 {
		return nil
	}

	stored, err := proof.OpenCheckpoint(l.Checkpoint, key.Verifier)
	if err != nil || stored.Size != l.Size {
		return fmt.Errorf("the checkpoint in the database is not the one that was signed "+
			"(bring the original database back, or run 'ledgerd log new-epoch %s --reason TEXT')", l.Org)
	}
	if last != nil && stored == *last {
		return nil
	}
	if err := s.extends(ctx, l, stored); err != nil {
		return err
	}
	if last != nil && stored.Size < last.Size {
		return nil
	}
	return s.Keys.SaveSigned(nameOf(l), l.Checkpoint)
}

// extends checks that a checkpoint is a prefix of a log. It is not if the database was
// restored from a backup, or changed. The error stays the same while the log grows.
func (s *Signer) extends(ctx context.Context, l store.Log, last proof.Checkpoint) error {
	if last.Size > l.Leaves { // another process with this folder may have signed since l was read
		var err error
		if l, err = s.Store.Log(ctx, l.Org, l.Epoch); err != nil {
			return err
		}
	}
	if last.Size > l.Leaves {
		return fmt.Errorf("the database has fewer events than the %d that were signed: it is older than the log "+
			"(bring the newest database back, or run 'ledgerd log new-epoch %s --reason TEXT')", last.Size, l.Org)
	}
	root, err := s.Store.Root(ctx, l, last.Size)
	if err != nil {
		return err
	}
	if root != last.Root {
		return fmt.Errorf("the first %d events in the database are not those that were signed "+
			"(bring the original database back, or run 'ledgerd log new-epoch %s --reason TEXT')", last.Size, l.Org)
	}
	return nil
}

// Origin returns the origin of a log: the URL of the API without its scheme, and the path of
// the log. Later epochs end with their number.
func Origin(base *url.URL, l LogName) string {
	origin := base.Host + strings.TrimSuffix(base.EscapedPath(), "/") + "/v1/orgs/" + l.Org + "/log"
	if l.Epoch > 1 {
		origin += "/" + strconv.Itoa(l.Epoch)
	}
	return origin
}
