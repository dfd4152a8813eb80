package attestation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// A statement links the digests of its subjects that identify artifacts, each once.
func TestArtifacts(t *testing.T) {
	hex64, hex96, hex128 := strings.Repeat("a", 64), strings.Repeat("b", 96), strings.Repeat("c", 128)
	subjects := func(digests ...string) string {
		list := []string{`{"digest":{"gitCommit":"` + ledgertest.Commit + `"}}`}
		for _, d := range digests {
			list = append(list, `{"name":"x","digest":{`+d+`}}`)
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	summary := func(uri string) string { return `{"verificationResult":"PASSED","resourceUri":` + uri + `}` }

	for _, test := range []struct {
		name, subject, predicateType, predicate string
		want                                    []string
	}{
		{"none", aboutCommit, anyType, `{}`, nil},
		{"one", subjects(`"sha256":"` + hex64 + `"`), anyType, `{}`, []string{"sha256:" + hex64}},
		{"upper case", subjects(`"sha256":"` + strings.ToUpper(hex64) + `"`), anyType, `{}`, []string{"sha256:" + hex64}},
		{"twice", subjects(`"sha256":"`+hex64+`"`, `"sha256":"`+hex64+`"`), anyType, `{}`, []string{"sha256:" + hex64}},
		{"two digests of one", subjects(`"sha512":"` + hex128 + `","sha256":"` + hex64 + `"`), slsaV02, `{}`,
			[]string{"sha256:" + hex64, "sha512:" + hex128}},
		{"sha384", subjects(`"sha384":"` + hex96 + `"`), vsaV1, summary(`"x"`), []string{"sha384:" + hex96}},
		{"next to the commit", `[{"digest":{"gitCommit":"` + ledgertest.Commit + `","sha256":"` + hex64 + `"}}]`,
			anyType, `{}`, []string{"sha256:" + hex64}},
		{"the commit itself", `[{"digest":{"gitCommit":"` + hex64 + `","sha256":"` + hex64 + `"}}]`, anyType, `{}`, nil},
		{"git objects and weak digests", subjects(`"gitTree":"`+hex64+`"`, `"sha1":"`+hex64[:40]+`"`, `"md5":"`+hex64[:32]+
			`"`), anyType, `{}`, nil},
		{"malformed", subjects(`"sha256":"`+hex64[1:]+`"`, `"sha256":"`+strings.Repeat("x", 64)+`"`), anyType, `{}`, nil},
		{"what was verified", subjects(), vsaV1, summary(`"oci://ghcr.io/acme/api@sha256:` + hex64 + `"`),
			[]string{"sha256:" + hex64}},
		{"a package URL", subjects(), vsaV1, summary(`"pkg:oci/api@sha256%3A` + hex64 + `?repository_url=ghcr.io/acme"`),
			[]string{"sha256:" + hex64}},
		{"a repo was verified", subjects(), vsaV1, summary(`"git+https://git.example/acme/api@main"`), nil},
		{"another URI", subjects(), vsaV1, summary(`7`), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			payload := []byte(statementOf(test.subject, test.predicateType, test.predicate))
			got, err := parseStatement(payload, Place{})
			if err != nil || !slices.Equal(got.artifacts.Digests, test.want) || got.artifacts.Left != 0 {
				t.Errorf("got %v, %v; want %v", got.artifacts, err, test.want)
			}
			recorded := Recorded{Envelope: ledgertest.DSSE(payload, []byte("x")), Commit: got.commit}
			if again := Remap(recorded).Artifacts; !slices.Equal(again.Digests, test.want) {
				t.Errorf("mapped again to %v, want %v", again, test.want)
			}
		})
	}
}

// A statement links a limited number of artifacts, and says how many it leaves out.
func TestArtifactsAreLimited(t *testing.T) {
	var subjects []string
	for i := range ledger.MaxArtifacts + 2 {
		subjects = append(subjects, fmt.Sprintf(`{"digest":{"sha256":"%064x"}}`, i))
	}
	subjects = append(subjects, subjects[0]) // linked already
	got, err := parseStatement([]byte(statementOf(aboutCommit[:len(aboutCommit)-1]+","+strings.Join(subjects, ",")+"]",
		anyType, `{}`)), Place{})
	if err != nil || len(got.artifacts.Digests) != ledger.MaxArtifacts || got.artifacts.Left != 2 {
		t.Errorf("%d digests and %d left, %v; want %d and 2", len(got.artifacts.Digests), got.artifacts.Left, err,
			ledger.MaxArtifacts)
	}
}
