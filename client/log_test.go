package client_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/transparency"
)

// sign signs the log of acme.
func (b *backend) sign(t *testing.T) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "keys")
	keys := must.Get(transparency.OpenKeys(folder, folder))(t)
	signer := transparency.NewSigner(transparency.Config{Store: b.store, Keys: keys, Logger: slog.New(slog.DiscardHandler),
		BaseURL: &url.URL{Scheme: "https", Host: "ledger.example"}})
	must.OK(t, signer.SignAll(t.Context(), true))
}

func TestLog(t *testing.T) {
	b := newBackend(t)
	ctx := t.Context()
	if _, err := b.admin.LogFile(ctx, "acme", 1, "checkpoint"); client.CodeOf(err) != ledger.CodeNotFound {
		t.Errorf("before the first checkpoint: %v", err)
	}
	key, _ := b.addKey(t, "cn=ci,ou=build,o=acme")
	a, _, err := b.admin.Record(ctx, "acme", "api", envelope(t, key, sha, "test:go", ledger.Pass))
	must.OK(t, err)
	b.sign(t)

	l := must.Get(b.admin.Log(ctx, "acme"))(t)
	signed := must.Get(b.admin.LogFile(ctx, "acme", 1, "checkpoint"))(t)
	c := must.Get(proof.ReadCheckpoint(signed))(t)
	if c.Size != l.Size || c.Origin != l.Origin || l.Size == 0 {
		t.Errorf("the checkpoint %+v of the log %+v", c, l)
	}
	tile := proof.Tile{Width: int(c.Size)}
	if hashes := must.Get(b.admin.LogFile(ctx, "acme", 1, "tile/"+tile.Path()))(t); len(hashes) != 32*int(c.Size) {
		t.Errorf("the tile has %d bytes", len(hashes))
	}
	if _, err := b.admin.LogFile(ctx, "acme", 2, "checkpoint"); client.CodeOf(err) != ledger.CodeNotFound {
		t.Errorf("epoch 2: %v", err)
	}
	for _, file := range []string{"../events", "checkpoint?x", "a%2Fb", "checkpoint#x"} {
		if _, err := b.admin.LogFile(ctx, "acme", 1, file); err == nil || client.CodeOf(err) != "" {
			t.Errorf("%s: %v", file, err)
		}
	}

	body := must.Get(b.admin.Event(ctx, "acme", a.Event))(t)
	if !strings.Contains(string(body), a.ID) {
		t.Errorf("the event: %s", body)
	}
	byEvent := must.Get(b.admin.EventProof(ctx, "acme", a.Event))(t)
	byAttestation := must.Get(b.admin.AttestationProof(ctx, "acme", "api", a.ID))(t)
	if !bytes.Equal(byEvent, byAttestation) || must.Get(proof.ParseInclusion(byEvent))(t).Index >= c.Size {
		t.Errorf("the proofs %s and %s", byEvent, byAttestation)
	}
}

// A server cannot make a client keep more than what is asked for can have.
func TestFilesOfTheLogAreBounded(t *testing.T) {
	size := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("x"), size))
	}))
	t.Cleanup(s.Close)
	c := newClient(t, s.URL, "")

	size = 2 << 20
	must.Get(c.LogFile(t.Context(), "acme", 1, "checkpoint"))(t)
	size++
	if _, err := c.LogFile(t.Context(), "acme", 1, "checkpoint"); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("a large checkpoint: %v", err)
	}
	if _, err := c.Event(t.Context(), "acme", "evt_1"); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("a large event: %v", err)
	}
}
