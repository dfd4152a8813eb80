package verify

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	formats "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// checkpoint returns the newest checkpoint of a host.
func (h *host) checkpoint() []byte {
	h.t.Helper()
	signed, err := h.admin.LogFile(h.t.Context(), "acme", 1, "checkpoint")
	must.OK(h.t, err)
	return signed
}

// mirror serves the log of a host as static files.
func mirror(t *testing.T, h *host) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := h.admin.LogFile(r.Context(), "acme", 1, strings.TrimPrefix(r.URL.Path, "/log/"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/log/checkpoint"
}

func TestCompare(t *testing.T) {
	ours := newHost(t)
	old := ours.checkpoint()
	theirs := ours.copied()
	stranger := newHost(t)
	first := ours.attest(commitID(2), "test:go", ledger.Pass)
	theirs.attest(commitID(2), "test:go", ledger.Pass)
	theirs.attest(commitID(3), "test:go", ledger.Pass)
	s, fork := newSite(t, ours), newSite(t, theirs)
	other := must.Get(client.New(fork.URL, client.Options{}))(t)
	same := must.Get(client.New(s.URL, client.Options{}))(t)

	for name, test := range map[string]struct {
		view *View
		want verify.Status
		text string
	}{
		"an old checkpoint":       {FileView("f", old), verify.OK, "of the same log"},
		"the newest":              {FileView("f", ours.checkpoint()), verify.OK, "of the same log"},
		"the same server":         {ServerView("s", "acme", same), verify.OK, "of the same log"},
		"a mirror":                {URLView(mirror(t, ours)), verify.OK, "of the same log"},
		"a larger fork's file":    {FileView("f", theirs.checkpoint()), verify.Failed, "ROLLBACK"},
		"a larger fork's server":  {ServerView("s", "acme", other), verify.Failed, "SPLIT VIEW"},
		"a larger fork's mirror":  {URLView(mirror(t, theirs)), verify.Failed, "SPLIT VIEW"},
		"another key":             {FileView("f", stranger.checkpoint()), verify.Failed, "f: "},
		"a file that is not one":  {FileView("f", []byte("x")), verify.Failed, "f: "},
		"a file without anything": {FileView("f", nil), verify.Failed, "f: "},
	} {
		p := newPerson(t)
		p.change = func(o *Options) { o.Compare = test.view }
		r := p.verify(s, event(t, first.Event))
		c := want(t, r, verify.CheckCompare, test.want, test.text)
		if test.want == verify.Failed && strings.ToUpper(test.text) == test.text && len(c.Evidence) != 2 {
			t.Errorf("%s: evidence %q", name, c.Evidence)
		}
	}

	// A smaller fork is found too, and one who cannot be reached is an error.
	p := newPerson(t)
	p.change = func(o *Options) { o.Compare = FileView("f", ours.checkpoint()) }
	e := theirs.attest(commitID(4), "test:go", ledger.Pass)
	want(t, p.verify(fork, event(t, e.Event)), verify.CheckCompare, verify.Failed, "SPLIT VIEW")
	gone := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(gone.Close)
	p.change = func(o *Options) { o.Compare = URLView(gone.URL + "/checkpoint") }
	if _, err := p.try(s, event(t, first.Event)); err == nil || !strings.Contains(err.Error(), "--compare") {
		t.Errorf("nobody is there: %v", err)
	}
}

// A mirror that is ahead sees the same log.
func TestCompareWithMirrorAhead(t *testing.T) {
	h := newHost(t)
	first := h.attest(commitID(2), "test:go", ledger.Pass)
	behind := h.copied()
	h.attest(commitID(3), "test:go", ledger.Pass)
	s, p := newSite(t, behind), newPerson(t)
	p.change = func(o *Options) { o.Compare = URLView(mirror(t, h)) }
	want(t, p.verify(s, event(t, first.Event)), verify.CheckCompare, verify.OK, "of the same log")
}

// Cosignatures of the policy's witnesses are required, and date the checkpoint.
func TestPolicyAndAge(t *testing.T) {
	h := newHost(t)
	first := h.attest(commitID(2), "test:go", ledger.Pass)
	l, err := h.store.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	skey, vkey, err := note.GenerateKey(rand.Reader, "w.example/w")
	must.OK(t, err)
	plain, err := trustpolicy.ParseKey(vkey, trustpolicy.Ed25519)
	must.OK(t, err)
	cosigner, err := formats.NewSignerForCosignatureV1(skey)
	must.OK(t, err)
	witness := trustpolicy.NewKey(plain.Name, trustpolicy.CosignedV1, []byte(plain.Public))
	parse := func(text string) *trustpolicy.Policy {
		return must.Get(trustpolicy.Parse([]byte(text)))(t)
	}
	quorum := parse("log " + l.VKey + "\nwitness w " + witness.String() + "\nquorum w\n")
	other, err := newHost(t).store.Log(t.Context(), "acme", 0)
	must.OK(t, err)

	s := newSite(t, h)
	for name, test := range map[string]struct {
		policy *trustpolicy.Policy
		check  string
		want   verify.Status
		text   string
	}{
		"pinned": {parse("log " + l.VKey + "\nquorum none\n"), verify.CheckWitnesses, verify.NotChecked,
			"needs none"},
		"another key": {parse("log " + other.VKey + "\nquorum none\n"), consistency, verify.Failed, "ANOTHER KEY"},
		"another log": {parse("log " + vkey + "\nquorum none\n"), verify.CheckCheckpoint, verify.Failed,
			"no key of the log"},
		"no cosignature": {quorum, verify.CheckWitnesses, verify.Failed, "0 of 1"},
	} {
		p := newPerson(t)
		p.change = func(o *Options) { o.Policy, o.MaxAge = test.policy, time.Hour }
		r := p.verify(s, event(t, first.Event))
		t.Run(name, func(t *testing.T) { want(t, r, test.check, test.want, test.text) })
	}

	c := must.Get(proof.ReadCheckpoint(h.checkpoint()))(t)
	signed, err := note.Sign(&note.Note{Text: c.Text()}, cosigner)
	must.OK(t, err)
	lines := strings.TrimPrefix(string(signed), c.Text()+"\n")
	must.OK(t, h.store.SaveCheckpoint(t.Context(), l, c.Size, proof.Cosigned(h.checkpoint(), lines)))
	for later, status := range map[time.Duration]verify.Status{0: verify.OK, 3 * time.Hour: verify.Failed} {
		p := newPerson(t)
		p.change = func(o *Options) {
			o.Policy, o.MaxAge, o.Now = quorum, 2*time.Hour, o.Now.Add(later)
		}
		r := p.verify(s, event(t, first.Event))
		want(t, r, verify.CheckWitnesses, verify.OK, "1 of 1")
		want(t, r, verify.CheckAge, status, "ago")
	}
}
