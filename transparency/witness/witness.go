package witness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/internal/rate"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/store"
)

// A Config configures a Witness.
type Config struct {
	Store *store.Store
	// Folder has the key and the state of the witness.
	Folder string
	// Name is the name of the key, if none exists yet.
	Name   string
	Logs   []trustpolicy.Log
	Logger *slog.Logger
}

// A Witness cosigns the checkpoints of other logs.
type Witness struct {
	store  *store.Store
	folder keyFolder
	log    *slog.Logger
	key    signingKey
	keys   map[string][]trustpolicy.Key // of each log, by origin
	hashes map[string]string            // origin by its hash in hex

	clients *rate.Limiter
	counts  *counts

	turn chan struct{}            // holds one value while nobody decides about a checkpoint
	off  atomic.Pointer[offError] // why nothing is cosigned; nil if the witness works
	mark store.WitnessMark        // as the state file has it; belongs to who has the turn
}

const (
	// freshFor is how long the cosignature of a checkpoint is given again without a new one.
	freshFor = time.Minute
	// maxTurn is how long a request waits for others, and for the disk.
	maxTurn = 10 * time.Second
)

// NewWitness returns a witness. If the database is older than what was cosigned, or key or
// state are missing, the witness stays off; Off says why.
func NewWitness(ctx context.Context, c Config) (*Witness, error) {
	w := &Witness{store: c.Store, folder: keyFolder(c.Folder), log: c.Logger,
		keys: make(map[string][]trustpolicy.Key), hashes: make(map[string]string),
		clients: rate.New(requestsPerSecond, requestsAtOnce), counts: newCounts(), turn: make(chan struct{}, 1)}
	for _, l := range c.Logs {
		w.keys[l.Key.Name] = append(w.keys[l.Key.Name], l.Key)
		sum := sha256.Sum256([]byte(l.Key.Name))
		w.hashes[hex.EncodeToString(sum[:])] = l.Key.Name
	}

	err := w.open(ctx, c.Name)
	if off, ok := errors.AsType[*offError](err); ok {
		w.turnOff(ctx, off)
	} else if err != nil {
		return nil, fmt.Errorf("open the witness: %w", err)
	}
	w.turn <- struct{}{}
	return w, nil
}

// An offError says why the witness must not cosign.
type offError struct{ why string }

func (e *offError) Error() string { return e.why }

const newKeyHelp = "(bring it back, or stop the server and run 'ledgerd witness new-key')"

// open loads the key and checks the state. Only a witness that has cosigned nothing gets a
// key by itself.
func (w *Witness) open(ctx context.Context, name string) error {
	mark, err := w.store.WitnessMark(ctx)
	if err != nil {
		return err
	}
	_, stateErr := w.folder.loadState()
	noState := errors.Is(stateErr, fs.ErrNotExist)
	w.key, err = w.folder.load()
	noKey := errors.Is(err, fs.ErrNotExist)

	switch {
	case noKey && noState && mark.Seq == 0:
		if w.key, err = w.folder.create(name); err != nil {
			return err
		}
		w.log.InfoContext(ctx, "made the key of the witness", "vkey", w.key.public.String())
	case noKey:
		return &offError{"the key " + w.folder.file("key") + " is missing " + newKeyHelp}
	case err != nil:
		return err
	case noState:
		return &offError{"the state " + w.folder.file("state") + " is missing " + newKeyHelp}
	}

	known, err := w.folder.loadState()
	if err != nil {
		return err
	}
	if known.isNew {
		known.mark = mark
		if err := w.folder.writeState(state{mark: mark}); err != nil {
			return err
		}
	}
	w.mark = known.mark
	return w.reconcile(mark)
}

// reconcile checks that the database has what was cosigned. It may be one ahead of the state,
// if the state could not be written.
func (w *Witness) reconcile(mark store.WitnessMark) error {
	switch {
	case mark.Seq == w.mark.Seq && mark.Digest == w.mark.Digest:
		return nil
	case mark.Seq == w.mark.Seq+1 && mark.Previous == w.mark.Digest:
		return w.saveMark(mark)
	case mark.Seq < w.mark.Seq:
		return &offError{fmt.Sprintf("the database has %d of the %d checkpoints that were cosigned: it is older than the "+
			"state of the witness (bring the newest database back, or stop the server and run 'ledgerd witness new-key')",
			mark.Seq, w.mark.Seq)}
	}
	return &offError{fmt.Sprintf("the database does not have the checkpoints that were cosigned, according to %s "+
		"(bring the right database back, or stop the server and run 'ledgerd witness new-key')", w.folder.file("state"))}
}

func (w *Witness) saveMark(mark store.WitnessMark) error {
	if err := w.folder.writeState(state{mark: mark}); err != nil {
		return err
	}
	w.mark = mark
	return nil
}

// Off returns why the witness cosigns nothing, or "".
func (w *Witness) Off() string {
	if off := w.off.Load(); off != nil {
		return off.why
	}
	return ""
}

// Key returns the verifier key of the witness. It is empty if the key is missing.
func (w *Witness) Key() trustpolicy.Key { return w.key.public }

// requestsPerSecond and requestsAtOnce limit the requests of a client.
const requestsPerSecond, requestsAtOnce = 100, 200

// Allow reports whether a client may send a request now.
func (w *Witness) Allow(client string) bool {
	return w.clients.Take(rate.Client(client), time.Now()).Allowed
}

// AddCheckpoint verifies that a checkpoint extends the one before, and returns the
// cosignature as a line of a note. The body is that of an add-checkpoint request. If the
// old size is not that of the latest checkpoint, the error is a *store.StaleWitnessError.
func (w *Witness) AddCheckpoint(ctx context.Context, body []byte) (line []byte, err error) {
	defer func() { w.counts.add(err) }()
	if w.off.Load() != nil {
		return nil, errOff()
	}
	r, err := parseRequest(body)
	if err != nil {
		return nil, ledger.Errorf(ledger.CodeInvalidCheckpoint, "invalid body: %v", err)
	}
	s, err := w.verify(r)
	if err != nil {
		return nil, err
	}
	if r.old > s.Size {
		return nil, ledger.Errorf(ledger.CodeInvalidCheckpoint, "the old size %d is larger than that of the checkpoint, %d",
			r.old, s.Size)
	}

	// What is decided is carried out, also if the client disconnects.
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxTurn)
	defer cancel()
	select {
	case <-w.turn:
		defer func() { w.turn <- struct{}{} }()
		return w.decide(wait, r, s)
	case <-wait.Done():
		return nil, ledger.Errorf(ledger.CodeServerBusy, "too many checkpoints at the same time")
	}
}

// A submission is a checkpoint whose signature was verified.
type submission struct {
	proof.Checkpoint
	note   *note.Note // with the signatures of its log
	signed []byte     // as it was submitted
}

// verify verifies the signature of a checkpoint.
func (w *Witness) verify(r request) (s submission, err error) {
	origin, _, _ := strings.Cut(string(r.note), "\n")
	keys := w.keys[origin]
	if len(keys) == 0 {
		return s, ledger.Errorf(ledger.CodeNotFound, "this witness does not know the log %.200q", origin)
	}

	s.signed = r.note
	s.note, err = trustpolicy.Open(r.note, keys...)
	_, unsigned := errors.AsType[*note.UnverifiedNoteError](err)
	_, wrong := errors.AsType[*note.InvalidSignatureError](err)
	switch {
	case unsigned:
		return s, ledger.Errorf(ledger.CodeUntrustedCheckpoint, "no trusted key of %s has signed the checkpoint", origin)
	case wrong:
		return s, ledger.Errorf(ledger.CodeUntrustedCheckpoint, "a signature of %s is not valid", origin)
	case err != nil:
		return s, ledger.Errorf(ledger.CodeInvalidCheckpoint, "invalid checkpoint: not a signed note")
	}
	if s.Checkpoint, err = parseCheckpoint(s.note.Text); err != nil {
		return s, ledger.Errorf(ledger.CodeInvalidCheckpoint, "invalid checkpoint: %v", err)
	}
	return s, nil
}

// decide checks a checkpoint against the latest one of its log, and cosigns it.
func (w *Witness) decide(ctx context.Context, r request, s submission) ([]byte, error) {
	mark, err := w.store.WitnessMark(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.reconcile(mark); err != nil {
		return nil, w.failed(ctx, err)
	}
	latest, err := w.store.Witnessed(ctx, s.Origin)
	if err != nil {
		return nil, err
	}

	if latest.Seq > 0 && s.Size == latest.Size && s.Root != latest.Root {
		w.keep(ctx, store.Forked, s, latest)
	}
	if r.old != latest.Size {
		return nil, &store.StaleWitnessError{Size: latest.Size}
	}
	if err := consistent(r, s.Checkpoint, latest); err != nil {
		if r.old > 0 && s.Size > r.old {
			w.keep(ctx, store.Unproved, s, latest)
		}
		return nil, ledger.Errorf(ledger.CodeInconsistentCheckpoint, "%v", err)
	}
	return w.cosign(ctx, s, latest)
}

// consistent checks that a checkpoint extends the latest one, whose size is the old size of
// the request.
func consistent(r request, c proof.Checkpoint, latest store.Witnessed) error {
	empty, err := tlog.TreeHash(0, nil)
	if err != nil {
		return fmt.Errorf("hash the empty tree: %w", err)
	}
	switch {
	case c.Size == 0 && c.Root != empty:
		return errors.New("the root hash is not that of the empty tree")
	case r.old == 0 && len(r.proof) > 0:
		return errors.New("the old size is 0, but there is a proof")
	case r.old == 0:
		return nil // every tree extends the empty one
	case c.Size == r.old && c.Root != latest.Root:
		return fmt.Errorf("the log has signed another tree of size %d before", c.Size)
	}
	if err := tlog.CheckTree(r.proof, c.Size, c.Root, r.old, latest.Root); err != nil {
		return fmt.Errorf("the proof does not show that the tree has grown from size %d to %d", r.old, c.Size)
	}
	return nil
}

// cosign cosigns and stores a checkpoint, and returns the line of the cosignature.
func (w *Witness) cosign(ctx context.Context, s submission, latest store.Witnessed) ([]byte, error) {
	if line := w.fresh(s, latest); line != nil {
		return line, nil
	}
	signed, err := note.Sign(&note.Note{Text: s.note.Text}, w.key)
	if err != nil {
		return nil, fmt.Errorf("cosign: %w", err)
	}
	line := signed[len(s.note.Text)+1:]

	cosigned := []byte(s.note.Text + "\n")
	for _, signature := range s.note.Sigs {
		cosigned = append(cosigned, trustpolicy.LineOf(signature)...)
	}
	next := store.Witnessed{Origin: s.Origin, Size: s.Size, Root: s.Root, Checkpoint: append(cosigned, line...)}
	mark, err := w.store.SaveWitnessed(ctx, next, latest)
	if err != nil {
		return nil, err
	}
	if mark != w.mark {
		if err := w.saveMark(mark); err != nil {
			return nil, w.failed(ctx, err)
		}
	}
	return line, nil
}

// failed returns the answer to a request if the state does not fit the database, which turns
// the witness off, or cannot be written.
func (w *Witness) failed(ctx context.Context, err error) error {
	if off, ok := errors.AsType[*offError](err); ok {
		w.turnOff(ctx, off)
		return errOff()
	}
	w.log.ErrorContext(ctx, "the state of the witness cannot be written", "error", err)
	return ledger.Errorf(ledger.CodeStorageUnavailable, "the state of the witness cannot be written (see the server log)")
}

func (w *Witness) turnOff(ctx context.Context, off *offError) {
	w.off.Store(off)
	w.log.ErrorContext(ctx, "THE WITNESS IS OFF", "reason", off.why)
}

func errOff() error {
	return ledger.Errorf(ledger.CodeWitnessOff, "the witness is off (see the server log)")
}

// fresh returns the stored cosignature of the same checkpoint, if it is new enough.
func (w *Witness) fresh(s submission, latest store.Witnessed) []byte {
	age := w.store.Now().Std().Sub(latest.At.Std())
	if latest.Seq == 0 || age < 0 || age > freshFor {
		return nil
	}
	opened, err := trustpolicy.Open(latest.Checkpoint, w.key.public)
	if err != nil || opened.Text != s.note.Text || len(opened.Sigs) == 0 {
		return nil
	}
	return []byte(trustpolicy.LineOf(opened.Sigs[0]))
}

// keep keeps a checkpoint that is not consistent as evidence, and logs it if it is new.
func (w *Witness) keep(ctx context.Context, kind store.EvidenceKind, s submission, latest store.Witnessed) {
	w.counts.inconsistent(s.Origin)
	added, err := w.store.KeepEvidence(ctx, store.Evidence{
		Origin: s.Origin, Kind: kind, Size: s.Size, Root: s.Root, Checkpoint: s.signed, Cosigned: latest.Checkpoint})
	if err != nil {
		w.log.ErrorContext(ctx, "evidence against a log cannot be stored", "origin", s.Origin, "error", err)
	}
	if !added && err == nil {
		return
	}
	message := "A WITNESSED LOG HAS FORKED: it signed two trees of the same size"
	if kind == store.Unproved {
		message = "A WITNESSED LOG IS NOT CONSISTENT: no proof shows that it has grown"
	}
	w.log.ErrorContext(ctx, message, "origin", s.Origin, "size", s.Size, "root", s.Root, "cosigned_size", latest.Size,
		"cosigned_root", latest.Root, "submitted", string(s.signed), "cosigned", string(latest.Checkpoint),
		"help", "see docs/witness.md, 'When a witness refuses'")
}

// Checkpoint returns the latest cosigned checkpoint of a log. The log is named by the hex
// SHA-256 of its origin.
func (w *Witness) Checkpoint(ctx context.Context, hash string) ([]byte, error) {
	origin, ok := w.hashes[hash]
	if !ok {
		return nil, ledger.Errorf(ledger.CodeNotFound, "this witness knows no log with this hash")
	}
	latest, err := w.store.Witnessed(ctx, origin)
	if err != nil {
		return nil, err
	}
	if latest.Seq == 0 {
		return nil, ledger.Errorf(ledger.CodeNotFound, "this witness has cosigned no checkpoint of %s yet", origin)
	}
	return latest.Checkpoint, nil
}

// Requests returns the number of add-checkpoint requests, by result.
func (w *Witness) Requests() map[string]uint64 {
	w.counts.mu.Lock()
	defer w.counts.mu.Unlock()
	return maps.Clone(w.counts.results)
}

// Inconsistent returns the number of checkpoints that their log has signed, but that are not
// consistent with what was cosigned, by origin.
func (w *Witness) Inconsistent() map[string]uint64 {
	w.counts.mu.Lock()
	defer w.counts.mu.Unlock()
	return maps.Clone(w.counts.against)
}
