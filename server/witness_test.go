package server

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/transparency/witness"
)

const origin = "log.example/1"

// A tree is a log that the witness knows, with leaves that begin with a word.
type tree struct {
	t      *testing.T
	word   string
	hashes []tlog.Hash
	size   int64
}

func (tr *tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		hashes[i] = tr.hashes[index]
	}
	return hashes, nil
}

// at returns the checkpoint of a size.
func (tr *tree) at(size int64) proof.Checkpoint {
	tr.t.Helper()
	for ; tr.size < size; tr.size++ {
		stored, err := tlog.StoredHashes(tr.size, fmt.Appendf(nil, "%s %d", tr.word, tr.size), tr)
		check(tr.t, err)
		tr.hashes = append(tr.hashes, stored...)
	}
	root, err := tlog.TreeHash(size, tr)
	check(tr.t, err)
	return proof.Checkpoint{Origin: origin, Size: size, Root: root}
}

// add returns the body of a request to add the checkpoint of a size.
func (tr *tree) add(old, size int64, signers ...note.Signer) string {
	tr.t.Helper()
	c := tr.at(size)
	var path tlog.TreeProof
	if old > 0 && old <= size {
		var err error
		path, err = tlog.ProveTree(size, old, tr)
		check(tr.t, err)
	}
	return submission(tr.t, old, path, c.Text(), signers...)
}

func submission(t *testing.T, old int64, path tlog.TreeProof, text string, signers ...note.Signer) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "old %d\n", old)
	for _, hash := range path {
		fmt.Fprintln(&b, hash)
	}
	signed, err := note.Sign(&note.Note{Text: text}, signers...)
	check(t, err)
	return b.String() + "\n" + string(signed)
}

// logKey returns the key n of a log.
func logKey(t *testing.T, name string, n byte) (note.Signer, trustpolicy.Key) {
	t.Helper()
	private := ed25519.NewKeyFromSeed(append(make([]byte, 31), n))
	key := trustpolicy.NewKey(name, trustpolicy.Ed25519, private.Public().(ed25519.PublicKey))
	signer, err := note.NewSigner(fmt.Sprintf("PRIVATE+KEY+%s+%08x+%s", name, key.ID,
		base64.StdEncoding.EncodeToString(append([]byte{trustpolicy.Ed25519}, private.Seed()...))))
	check(t, err)
	return signer, key
}

// newWitness returns a backend that witnesses the log, and one with which nothing happens.
func newWitness(t *testing.T) (*backend, *witness.Witness, note.Signer) {
	t.Helper()
	signer, key := logKey(t, origin, 1)
	_, second := logKey(t, origin, 2)
	_, idle := logKey(t, "idle.example", 3)
	var w *witness.Witness
	b := newBackend(t, func(c *Config) {
		var err error
		w, err = witness.NewWitness(t.Context(), witness.Config{Store: c.Store, Logger: c.Logger,
			Folder: t.TempDir(), Name: "w.example/w", Logs: []trustpolicy.Log{{Key: second}, {Key: key}, {Key: idle}}})
		check(t, err)
		c.Witness = w
	})
	return b, w, signer
}

func (b *backend) addCheckpoint(body string) response {
	b.t.Helper()
	return b.send(request{method: "POST", path: "/v1/witness/add-checkpoint", body: body,
		header: map[string]string{"Content-Type": "text/plain"}})
}

// wantCosigned checks that a response has a valid cosignature of a checkpoint.
func wantCosigned(t *testing.T, r response, w *witness.Witness, text string) {
	t.Helper()
	r.want(200)
	opened, err := trustpolicy.Open([]byte(text+"\n"+string(r.body)), w.Key())
	if err != nil || opened.Text != text || len(opened.Sigs) != 1 {
		t.Errorf("got cosignature %s, %v", r.body, err)
	}
}

// TestStatusesOfAddCheckpoint has a case for each status of C2SP tlog-witness.
func TestStatusesOfAddCheckpoint(t *testing.T) {
	b, w, log := newWitness(t)
	stranger, _ := logKey(t, "stranger.example", 4)
	imposter, _ := logKey(t, origin, 5)
	ours, theirs := &tree{t: t, word: "ours"}, &tree{t: t, word: "theirs"}
	wrongRoot := proof.Checkpoint{Origin: origin, Root: tlog.Hash{1}}
	good := ours.add(5, 9, log)
	noNote, _, _ := strings.Cut(good, "\n\n")
	hash := ours.at(3).Root

	oneHash := tlog.TreeProof{hash}
	sized := func(size string) string { return origin + "\n" + size + "\n" + hash.String() + "\n" }

	wantCosigned(t, b.addCheckpoint(ours.add(0, 5, log)), w, ours.at(5).Text())
	for name, test := range map[string]struct {
		body   string
		status int
		answer string
	}{
		"unknown origin":           {submission(t, 0, nil, "x\n1\n"+hash.String()+"\n", stranger), 404, "not_found"},
		"unknown origin, our key":  {submission(t, 0, nil, "x\n1\n"+hash.String()+"\n", log), 404, "not_found"},
		"signed by nobody we know": {ours.add(5, 9, stranger), 403, "untrusted_checkpoint"},
		"same name, other ID":      {ours.add(5, 9, imposter), 403, "untrusted_checkpoint"},
		"wrong signature":          {strings.Replace(good, "\n9\n", "\n8\n", 1), 403, "untrusted_checkpoint"},
		"old larger than new":      {ours.add(9, 5, log), 400, "invalid_checkpoint"},
		"empty":                    {"", 400, "invalid_checkpoint"},
		"no note":                  {noNote + "\n", 400, "invalid_checkpoint"},
		"no old line":              {good[6:], 400, "invalid_checkpoint"},
		"old 05":                   {"old 05" + good[5:], 400, "invalid_checkpoint"},
		"old +5":                   {"old +5" + good[5:], 400, "invalid_checkpoint"},
		"old 2^63":                 {"old 9223372036854775808" + good[5:], 400, "invalid_checkpoint"},
		"not base64":               {"old 5\n!\n" + good[6:], 400, "invalid_checkpoint"},
		"short hash":               {"old 5\nAAAA\n" + good[6:], 400, "invalid_checkpoint"},
		"64 proof lines":           {"old 5\n" + strings.Repeat(hash.String()+"\n", 64) + good[6:], 400, "at most 63"},
		"carriage returns":         {strings.ReplaceAll(good, "\n", "\r\n"), 400, "invalid_checkpoint"},
		"size 09":                  {submission(t, 5, nil, sized("09"), log), 400, "line 2"},
		"size 2^56":                {submission(t, 5, nil, sized("72057594037927936"), log), 400, "line 2"},
		"no root":                  {submission(t, 5, nil, origin+"\n9\n", log), 400, "invalid_checkpoint"},
		"empty extension":          {submission(t, 5, nil, ours.at(9).Text()+"\n", log), 400, "line 4 is empty"},
		"never this size":          {ours.add(0, 9, log), 409, "5\n"},
		"older":                    {ours.add(3, 4, log), 409, "5\n"},
		"newer":                    {ours.add(6, 9, log), 409, "5\n"},
		"another history":          {theirs.add(5, 9, log), 422, "inconsistent_checkpoint"},
		"another root, same size":  {theirs.add(5, 5, log), 422, "inconsistent_checkpoint"},
		"no proof":                 {submission(t, 5, nil, ours.at(9).Text(), log), 422, "inconsistent_checkpoint"},
		"proof for the same size":  {submission(t, 5, oneHash, ours.at(5).Text(), log), 422, "inconsistent_checkpoint"},
	} {
		r := b.addCheckpoint(test.body)
		if r.status != test.status || !strings.Contains(string(r.body), strings.TrimPrefix(test.answer, "at most ")) {
			t.Errorf("%s: got %d %s, want %d %s", name, r.status, r.body, test.status, test.answer)
		}
		if isSize := r.header.Get("Content-Type") == typeTreeSize; isSize != (test.status == 409) ||
			isSize && string(r.body) != test.answer {
			t.Errorf("%s: got %s %q", name, r.header.Get("Content-Type"), r.body)
		}
	}

	idle, _ := logKey(t, "idle.example", 3)
	for name, test := range map[string]struct {
		old    int64
		path   tlog.TreeProof
		c      proof.Checkpoint
		status int
	}{
		"a proof for old size 0":     {0, tlog.TreeProof{hash}, ours.at(3), 422},
		"an empty tree, wrong root":  {0, nil, wrongRoot, 422},
		"the empty tree":             {0, nil, proof.Checkpoint{Root: sha256.Sum256(nil)}, 200},
		"the empty tree once more":   {0, nil, proof.Checkpoint{Root: sha256.Sum256(nil)}, 200},
		"old size 1 of an idle tree": {1, nil, ours.at(1), 409},
	} {
		test.c.Origin = "idle.example"
		if r := b.addCheckpoint(submission(t, test.old, test.path, test.c.Text(), idle)); r.status != test.status {
			t.Errorf("%s: got %d %s, want %d", name, r.status, r.body, test.status)
		}
	}

	// Nothing of this has changed what is cosigned. Extensions and unknown signatures are fine.
	wantCosigned(t, b.addCheckpoint(ours.add(5, 9, stranger, log)), w, ours.at(9).Text())
	path, err := tlog.ProveTree(11, 9, func() *tree { ours.at(11); return ours }())
	check(t, err)
	extended := ours.at(11).Text() + "an extension\n"
	wantCosigned(t, b.addCheckpoint(submission(t, 9, path, extended, log)), w, extended)
	sum := sha256.Sum256([]byte(origin))
	served := b.get(fmt.Sprintf("/v1/witness/%x/checkpoint", sum)).want(200)
	_, key := logKey(t, origin, 1)
	opened, err := trustpolicy.Open(served.body, key, w.Key())
	if err != nil || opened.Text != extended || len(opened.Sigs) != 2 {
		t.Errorf("got %s, %v", served.body, err)
	}
}

func TestCheckpointsThatAreNotThereAreNotFound(t *testing.T) {
	b, _, _ := newWitness(t)
	idle := sha256.Sum256([]byte("idle.example"))
	for _, hash := range []string{"x", fmt.Sprintf("%x", sha256.Sum256([]byte("unknown"))), fmt.Sprintf("%x", idle),
		strings.ToUpper(fmt.Sprintf("%x", idle))} {
		b.get("/v1/witness/" + hash + "/checkpoint").want(404)
	}

	none := newBackend(t)
	none.get(fmt.Sprintf("/v1/witness/%x/checkpoint", idle)).want(404)
	if r := none.addCheckpoint("old 0\n\n").want(404); !strings.Contains(string(r.body), "witness.logs") {
		t.Errorf("got %s", r.body)
	}
}

// TestTheSameCheckpointIsNotStoredAgain: anyone who knows a checkpoint may send it as often as
// the rate limit allows, so within a minute it costs no write.
func TestTheSameCheckpointIsNotStoredAgain(t *testing.T) {
	b, w, log := newWitness(t)
	ours := &tree{t: t, word: "ours"}
	first := b.addCheckpoint(ours.add(0, 5, log))
	wantCosigned(t, first, w, ours.at(5).Text())
	before, err := b.store.Witnessed(t.Context(), origin)
	check(t, err)

	b.clock.advance(time.Minute)
	if again := b.addCheckpoint(ours.add(5, 5, log)); string(again.body) != string(first.body) {
		t.Errorf("got another cosignature: %s", again.body)
	}
	b.clock.advance(time.Second)
	wantCosigned(t, b.addCheckpoint(ours.add(5, 5, log)), w, ours.at(5).Text())
	after, err := b.store.Witnessed(t.Context(), origin)
	check(t, err)
	if after.At == before.At || after.WitnessMark != before.WitnessMark {
		t.Errorf("got %v, before %v", after, before)
	}
}

// TestEvidenceIsKeptAndBounded submits more inconsistent checkpoints than are kept.
func TestEvidenceIsKeptAndBounded(t *testing.T) {
	b, w, log := newWitness(t)
	ours := &tree{t: t, word: "ours"}
	b.addCheckpoint(ours.add(0, 40, log)).want(200)
	for i := range 20 {
		other := &tree{t: t, word: fmt.Sprint("other ", i)}
		b.addCheckpoint(other.add(40, 40, log)).want(422)
		b.addCheckpoint(other.add(39, 40, log)).want(409) // a fork is noticed all the same
		b.addCheckpoint(other.add(40, 41, log)).want(422)
		b.addCheckpoint(other.add(40, 41, log)).want(422)
	}

	kept, err := b.store.Evidence(t.Context(), origin)
	check(t, err)
	kinds := map[string]int{}
	for _, e := range kept {
		kinds[string(e.Kind)]++
		if c, err := proof.ReadCheckpoint(e.Checkpoint); err != nil || c.Size != e.Size || c.Root != e.Root {
			t.Errorf("got evidence %+v", e)
		}
	}
	first, last := kept[0], kept[len(kept)-1]
	if kinds["fork"] != 16 || kinds["unproved"] != 16 || first.Kind != "fork" || last.Kind != "unproved" {
		t.Errorf("kept %v", kinds)
	}
	other := func(word string, size int64) tlog.Hash { return (&tree{t: t, word: word}).at(size).Root }
	if first.Root != other("other 0", 40) || last.Root != other("other 19", 41) {
		t.Error("the first fork, or the latest checkpoint without a proof, is missing")
	}
	if got := w.Inconsistent()[origin]; got != 80 {
		t.Errorf("counted %d, want 80", got)
	}
	if loud := strings.Count(b.log.String(), "A WITNESSED LOG "); loud != 16+20 {
		t.Errorf("logged %d lines, want one for each that is kept", loud)
	}
}

func TestRequestsOfAClientAreLimited(t *testing.T) {
	b, _, _ := newWitness(t)
	b.addCheckpoint(strings.Repeat("x", witness.MaxRequest+1)).want(413)
	refused := 0
	for range 600 {
		if b.addCheckpoint("old 0\n").status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no request was refused")
	}
}

// TestConcurrentCheckpointsNeverGoBack submits growing checkpoints at the same time.
func TestConcurrentCheckpointsNeverGoBack(t *testing.T) {
	b, w, log := newWitness(t)
	ours := &tree{t: t, word: "ours"}
	b.addCheckpoint(ours.add(0, 1, log)).want(200)
	const n = 20
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = ours.add(1, int64(i)+2, log)
	}

	statuses := make(chan int, n)
	for _, body := range bodies {
		go func() { statuses <- b.addCheckpoint(body).status }()
	}
	cosigned := 0
	for range n {
		if status := <-statuses; status == 200 {
			cosigned++
		} else if status != 409 {
			t.Errorf("got %d", status)
		}
	}
	if cosigned != 1 || w.Requests()["cosigned"] != 2 {
		t.Errorf("%d of %d checkpoints with the same old size were cosigned: %v", cosigned, n, w.Requests())
	}
}

func TestOpenedWitnessFolderHasPrivateFiles(t *testing.T) {
	folder := t.TempDir()
	key, err := witness.NewKey(folder, "w.example/w")
	check(t, err)
	if got, err := witness.Key(folder); err != nil || got != key {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := witness.NewKey(folder, "two words"); err == nil {
		t.Error("a name with a space is accepted")
	}
	if got, err := witness.Key(folder); err != nil || got != key {
		t.Errorf("after a key that could not be made: got %v, %v", got, err)
	}
	second, err := witness.NewKey(folder, "w.example/w")
	check(t, err)
	retired, err := filepath.Glob(filepath.Join(folder, "*.retired"))
	if err != nil || len(retired) != 1 || second.ID == key.ID {
		t.Errorf("got %v, %v", retired, err)
	}
}
