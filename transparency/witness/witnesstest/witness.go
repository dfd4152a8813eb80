// Package witnesstest has a witness of transparency logs for tests. It shares no code with the
// client that asks it.
package witnesstest

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	formats "github.com/transparency-dev/formats/log"
	cosignature "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/internal/must"
)

// A Witness cosigns the checkpoints of the logs that it trusts, over HTTP (C2SP tlog-witness).
type Witness struct {
	URL string // for submissions and for monitors
	Key string // its verifier key

	signer note.Signer

	mu       sync.Mutex
	logs     map[string]*witnessed // by origin
	cosigned int
	instead  http.Handler
}

// witnessed is a log with the latest checkpoint of it that was cosigned.
type witnessed struct {
	key    note.Verifier
	tree   tlog.Tree
	signed []byte
}

// New starts a witness, which runs until the test ends.
func New(t testing.TB) *Witness {
	t.Helper()
	skey, vkey, err := note.GenerateKey(rand.Reader, "witness.example/w")
	must.OK(t, err)
	w := &Witness{logs: make(map[string]*witnessed)}
	w.Key, err = cosignature.VKeyToCosignatureV1(vkey)
	must.OK(t, err)
	w.signer, err = cosignature.NewSignerForCosignatureV1(skey)
	must.OK(t, err)

	mux := http.NewServeMux()
	mux.HandleFunc("POST /add-checkpoint", w.addCheckpoint)
	mux.HandleFunc("GET /{log}/checkpoint", w.getCheckpoint)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if instead := w.replacement(); instead != nil {
			instead.ServeHTTP(rw, r)
			return
		}
		mux.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.URL = server.URL
	return w
}

// Policy returns a trust policy that requires the cosignature of the witness, whose name is w.
func (w *Witness) Policy() []byte {
	return fmt.Appendf(nil, "witness w %s %s\nquorum w\n", w.Key, w.URL)
}

// Trust makes the witness cosign the checkpoints of the log with a verifier key.
func (w *Witness) Trust(t testing.TB, vkey string) {
	t.Helper()
	key, err := note.NewVerifier(vkey)
	must.OK(t, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs[key.Name()] = &witnessed{key: key}
}

// Answer lets a handler answer all requests instead of the witness. If it is nil, the witness
// answers them again.
func (w *Witness) Answer(instead http.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instead = instead
}

func (w *Witness) replacement() http.Handler {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.instead
}

// Cosigned returns how many checkpoints the witness has cosigned.
func (w *Witness) Cosigned() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cosigned
}

// Latest returns the latest checkpoint that the witness has cosigned of the log with an origin,
// or nil.
func (w *Witness) Latest(origin string) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.logs[origin]; l != nil {
		return l.signed
	}
	return nil
}

// A submission is the body of an add-checkpoint request.
type submission struct {
	old    int64
	proof  tlog.TreeProof
	signed []byte
}

func parse(body []byte) (s submission, err error) {
	head, signed, ok := bytes.Cut(body, []byte("\n\n"))
	size, lines, _ := strings.Cut(string(head), "\n")
	decimal, isOld := strings.CutPrefix(size, "old ")
	if s.old, err = strconv.ParseInt(decimal, 10, 64); err != nil || !ok || !isOld {
		return s, errors.New("want the old size, and a checkpoint after an empty line")
	}
	for line := range strings.Lines(lines) {
		hash, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(line, "\n"))
		if err != nil || len(hash) != tlog.HashSize {
			return s, fmt.Errorf("%q is not a hash", line)
		}
		s.proof = append(s.proof, tlog.Hash(hash))
	}
	s.signed = signed
	return s, nil
}

func (w *Witness) addCheckpoint(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	s, err := parse(body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	origin, _, _ := strings.Cut(string(s.signed), "\n")
	l := w.logs[origin]
	if l == nil {
		http.Error(rw, "unknown log", http.StatusNotFound)
		return
	}
	opened, err := note.Open(s.signed, note.VerifierList(l.key))
	if err != nil {
		http.Error(rw, err.Error(), http.StatusForbidden)
		return
	}
	line, status := w.cosign(l, s, opened)
	switch status {
	case http.StatusOK:
		_, _ = rw.Write(line)
	case http.StatusConflict:
		rw.Header().Set("Content-Type", "text/x.tlog.size")
		rw.WriteHeader(status)
		fmt.Fprintln(rw, l.tree.N)
	default:
		http.Error(rw, "not cosigned", status)
	}
}

// cosign cosigns a checkpoint if it extends the latest one of its log, and returns the line of the
// cosignature. Otherwise it returns the status that tlog-witness demands. The caller holds the lock.
func (w *Witness) cosign(l *witnessed, s submission, opened *note.Note) (line []byte, status int) {
	var c formats.Checkpoint
	if _, err := c.Unmarshal([]byte(opened.Text)); err != nil || len(c.Hash) != tlog.HashSize || s.old > int64(c.Size) {
		return nil, http.StatusBadRequest
	}
	next := tlog.Tree{N: int64(c.Size), Hash: tlog.Hash(c.Hash)}
	switch {
	case s.old != l.tree.N, s.old > 0 && s.old == next.N && l.tree.Hash != next.Hash:
		return nil, http.StatusConflict
	case s.old == 0 && len(s.proof) > 0:
		return nil, http.StatusUnprocessableEntity
	case s.old > 0 && tlog.CheckTree(s.proof, next.N, next.Hash, s.old, l.tree.Hash) != nil:
		return nil, http.StatusUnprocessableEntity
	}

	signed, err := note.Sign(&note.Note{Text: opened.Text}, w.signer)
	if err != nil {
		return nil, http.StatusInternalServerError
	}
	line = signed[len(opened.Text)+1:]
	l.tree, l.signed = next, append(bytes.Clone(s.signed), line...)
	w.cosigned++
	return line, http.StatusOK
}

// getCheckpoint serves the latest checkpoint of a log to monitors, under the hash of its origin.
func (w *Witness) getCheckpoint(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for origin, l := range w.logs {
		if fmt.Sprintf("%x", sha256.Sum256([]byte(origin))) == r.PathValue("log") && l.signed != nil {
			_, _ = rw.Write(l.signed)
			return
		}
	}
	http.NotFound(rw, r)
}
