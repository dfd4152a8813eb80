package witness_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/transparency"
	"github.com/ledgerd/ledgerd/transparency/witness"
	"github.com/ledgerd/ledgerd/transparency/witness/witnesstest"
)

const origin = "log.example/1"

// A tree is a log with a key, and with leaves that begin with a word.
type tree struct {
	t      *testing.T
	key    note.Signer
	word   string
	hashes []tlog.Hash
	size   int64
}

// newKey returns a new key of the log.
func newKey(t *testing.T) (key note.Signer, vkey string) {
	t.Helper()
	skey, vkey, err := note.GenerateKey(rand.Reader, origin)
	must.OK(t, err)
	key = must.Get(note.NewSigner(skey))(t)
	return key, vkey
}

func (tr *tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		hashes[i] = tr.hashes[index]
	}
	return hashes, nil
}

// at returns the signed checkpoint of a size.
func (tr *tree) at(size int64) transparency.Signed {
	tr.t.Helper()
	for ; tr.size < size; tr.size++ {
		stored, err := tlog.StoredHashes(tr.size, fmt.Appendf(nil, "%s %d", tr.word, tr.size), tr)
		must.OK(tr.t, err)
		tr.hashes = append(tr.hashes, stored...)
	}
	root, err := tlog.TreeHash(size, tr)
	must.OK(tr.t, err)
	c := proof.Checkpoint{Origin: origin, Size: size, Root: root}
	signed, err := c.Sign(tr.key)
	must.OK(tr.t, err)

	prove := func(_ context.Context, old int64) (tlog.TreeProof, error) {
		if old == 0 {
			return nil, nil
		}
		return tlog.ProveTree(size, old, tr)
	}
	return transparency.Signed{Checkpoint: c, Note: signed, Prove: prove}
}

// newPool returns a pool that asks a witness.
func newPool(t *testing.T, w *witnesstest.Witness) *witness.Pool {
	t.Helper()
	policy := must.Get(trustpolicy.Parse(w.Policy()))(t)
	pool, err := witness.NewPool(witness.PoolConfig{Policy: policy, Logger: slog.New(slog.DiscardHandler)})
	must.OK(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// wantCosigned checks that the pool gets a valid cosignature of a checkpoint.
func wantCosigned(t *testing.T, pool *witness.Pool, w *witnesstest.Witness, s transparency.Signed) {
	t.Helper()
	lines, err := pool.Cosign(t.Context(), s)
	must.OK(t, err)
	key, err := trustpolicy.ParseKey(w.Key, trustpolicy.WitnessTypes()...)
	must.OK(t, err)
	opened, err := trustpolicy.Open(proof.Cosigned(s.Note, lines), key)
	if err != nil || len(opened.Sigs) != 1 {
		t.Errorf("got the lines %q, %v", lines, err)
	}
}

// TestPoolSendsProofs asks a witness with a growing log, and again with what an earlier process has
// had cosigned.
func TestPoolSendsProofs(t *testing.T) {
	w := witnesstest.New(t)
	key, vkey := newKey(t)
	w.Trust(t, vkey)
	log := &tree{t: t, key: key, word: "ours"}
	pool := newPool(t, w)
	for _, size := range []int64{1, 5, 8, 300} {
		wantCosigned(t, pool, w, log.at(size))
	}
	wantCosigned(t, newPool(t, w), w, log.at(301))
	if status := pool.Status(origin); len(status) != 1 || status[0].Size != 300 || status[0].Key != w.Key {
		t.Errorf("got status %+v", status)
	}
}

// TestPoolStopsForkedLogs asks a witness with another history than it has cosigned.
func TestPoolStopsForkedLogs(t *testing.T) {
	for name, size := range map[string]int64{"larger": 9, "smaller": 4} {
		w := witnesstest.New(t)
		key, vkey := newKey(t)
		w.Trust(t, vkey)
		wantCosigned(t, newPool(t, w), w, (&tree{t: t, key: key, word: "ours"}).at(8))

		pool := newPool(t, w)
		lines, err := pool.Cosign(t.Context(), (&tree{t: t, key: key, word: "theirs"}).at(size))
		if err == nil || lines != "" || pool.Stopped(origin) == nil || !pool.Stats()[origin].Stopped {
			t.Errorf("%s: got the lines %q, %v", name, lines, err)
		}
	}
}

// TestPoolReportsOtherAnswers has answers that say nothing about the history of the log.
func TestPoolReportsOtherAnswers(t *testing.T) {
	w := witnesstest.New(t)
	key, vkey := newKey(t)
	log := &tree{t: t, key: key, word: "ours"}
	other := witnesstest.New(t)
	other.Trust(t, vkey)
	wantCosigned(t, newPool(t, other), other, log.at(5))
	_, foreign, _ := strings.Cut(string(other.Latest(origin)), "\n\n")

	size := func(rw http.ResponseWriter) { rw.Header().Set("Content-Type", "text/x.tlog.size") }
	for name, test := range map[string]struct {
		status int
		header func(http.ResponseWriter)
		body   string
		want   string
	}{
		"out of order":       {status: 503, body: "out of order\n", want: `status 503: "out of order\n"`},
		"no longer there":    {status: 410, body: "{}", want: `status 410: "{}"`},
		"redirect":           {status: 302, want: "status 302"},
		"nothing":            {status: 200, want: "not valid"},
		"no lines":           {status: 200, body: "<html>\n", want: "not valid"},
		"empty line":         {status: 200, body: "\n" + foreign, want: "an empty line"},
		"another key":        {status: 200, body: foreign, want: "no cosignature by the key"},
		"too long":           {status: 200, body: strings.Repeat("x", 65<<10), want: "more than 65536 bytes"},
		"conflict, no size":  {status: 409, body: "0\n", want: "status 409"},
		"conflict, bad size": {status: 409, header: size, body: "05\n", want: "not the decimal size"},
		"conflict, same":     {status: 409, header: size, body: "0\n", want: "status 409 twice"},
		"always another":     {status: 409, header: size, body: "3\n", want: "status 409 twice"},
	} {
		w.Answer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			if test.header != nil {
				test.header(rw)
			}
			rw.WriteHeader(test.status)
			fmt.Fprint(rw, test.body)
		}))
		pool := newPool(t, w)
		lines, err := pool.Cosign(t.Context(), log.at(5))
		status := pool.Status(origin)
		if err != nil || lines != "" || len(status) != 1 || !strings.Contains(status[0].Error, test.want) {
			t.Errorf("%s: got the lines %q, %v, status %+v", name, lines, err, status)
		}
	}
}
