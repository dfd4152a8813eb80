package verify

import (
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/cmd/internal/evidence"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// A server cannot make verify read lists without end.
func TestListsAreBounded(t *testing.T) {
	h := newHost(t) // has one attestation of one commit
	h.attest(commitID(2), "test:go", ledger.Pass)
	h.attest(commitID(2), "lint:go", ledger.Pass)
	h.setPolicy(`{"requirements":[]}`)
	h.sign()

	for _, test := range []struct {
		listed, versions int
		want             string // in the error; empty for none
	}{
		{1, 2, "the ledger lists more than 1 commits of acme/api"},
		{2, 2, "the ledger lists more than 2 attestations of acme/api"},
		{3, 1, "the contract has 2 versions, and at most 1 are read"},
		{3, 2, ""},
	} {

		_, err := rederiving(t).try(newSite(t, h), limited(test.listed, test.versions, repo(t)))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("at most %d entries and %d versions: %v, want %q", test.listed, test.versions, err, test.want)
		}
	}
}

// Nor can commits that are registered while it reads.
func TestLaterCommitsAreBounded(t *testing.T) {
	for listed, want := range map[int]string{3: "", 2: "more than 2 commits were registered since then"} {
		h := newHost(t)
		h.register(commitID(1), ledger.Registration{Branch: "fix"})
		h.sign()

		s := newSite(t, h)
		var once sync.Once
		s.change = func(path string, body []byte) []byte {
			if strings.Contains(path, "/tile/entries/") {
				once.Do(func() {
					for n := range 3 {
						h.register(commitID(1+n), ledger.Registration{Branch: "main"})
					}
				})
			}
			return body
		}

		_, err := rederiving(t).try(s, limited(listed, 1, repo(t)))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("at most %d: %v, want %q", listed, err, want)
		}
	}
}

// Nor can a server or an export have trusted roots without end.
func TestTrustedRootsAreBounded(t *testing.T) {
	h := newHost(t)
	a := h.keyless()
	many := func(list string) string { return list + strings.Repeat(","+list, verify.MaxRoots/2) } // of its 2 versions
	s := newSite(t, h)
	s.change = func(path string, body []byte) []byte {
		if !strings.HasSuffix(path, "/trusted-roots") {
			return body
		}
		var page map[string]jsontext.Value
		must.OK(t, json.Unmarshal(body, &page))
		return []byte(`{"data":[` + many(strings.Trim(string(page["data"]), "[]")) + `]}`)
	}
	attestation := func(s *Session) (verify.Report, error) { return s.Attestation(t.Context(), "api", a.ID) }
	_, err := newPerson(t).try(s, attestation)
	const tooMany = "more than 1000 versions of trusted roots"
	if err == nil || !strings.Contains(err.Error(), tooMany) {
		t.Errorf("got %v, want %q", err, tooMany)
	}

	f := filesOf(t, h.export(evidence.Options{Commit: a.Commit}))
	list := strings.Trim(strings.TrimSpace(string(f[evidence.TrustedRootsFile])), "[]")
	f[evidence.TrustedRootsFile] = []byte("[" + many(list) + "]")
	r, err := pinned(h).evidence(f.pack(t))
	must.OK(t, err)
	want(t, r, verify.CheckIdentity, verify.Failed, tooMany)
}

// limited verifies a subject with other limits.
func limited(
	listed, versions int, subject func(*Session) (verify.Report, error),
) func(*Session) (verify.Report, error) {
	return func(s *Session) (verify.Report, error) {
		s.maxListed, s.maxVersions = listed, versions
		return subject(s)
	}
}
