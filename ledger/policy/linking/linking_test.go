package linking

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// Without artifacts.signers, a statement links artifacts if it is a build by an identity that was
// made for builds. By the rules of an earlier release, anybody's did who may attest any build.
func TestRefusal(t *testing.T) {
	const notBuild, notBuilder = "only statements for build:", "no build: pattern of the signer's identity"
	for _, test := range []struct {
		name, predicate, may string // patterns, separated by blanks
		want                 string // a part of the refusal; empty if the statement links
		old                  string // the same, by the earlier rules; any_linker if it links only by them
	}{
		{"a builder", "build:gh", "build:*", "", ""},
		{"a builder of one kind", "build:docker", "test:* build:docker", "", ""},
		{"a builder of some kinds", "build:gh-1", "build:gh*", "", ""},
		{"an identity without a list", "build:gh", "", notBuilder, "any_linker"},
		{"a wildcard that includes builds", "build:gh", "b*", notBuilder, "any_linker"},
		{"a builder of another kind", "build:gh", "build:docker b*", notBuilder, "any_linker"},
		{"an identity that may no longer build", "build:gh", "test:*", notBuilder, notBuilder},
		{"another name that begins like build", "build:gh", "builder:*", notBuilder, notBuilder},
		{"a test by a builder", "test:image", "build:* test:*", notBuild, "any_linker"},
		{"a test by anybody", "test:image", "", notBuild, "any_linker"},
		{"an SBOM of no known type by a builder", "https://spdx.dev/Document", "build:* https://*", notBuild, "any_linker"},
		{"a predicate that only begins like build", "builder:x", "build:* builder:*", notBuild, "any_linker"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for rules, want := range map[int]string{policy.Rules: test.want, 0: test.old} {
				may := identity.Predicates(strings.Fields(test.may))
				refusal, warning := Refusal(&policy.Contract{Rules: rules}, test.predicate, ledger.Pass, identity.DN{}, may)
				warned := want == string(ledger.AnyLinker)
				if warned {
					want = ""
				}
				if (refusal == "") != (want == "") || !strings.Contains(refusal, want) || (warning != "") != warned {
					t.Errorf("by the rules %d: %q, warning %q, want %q", rules, refusal, warning, want)
				}
			}
		})
	}
}

// A build that did not pass links nothing, but by the rules of an earlier release.
func TestFailedBuildsDoNotLink(t *testing.T) {
	for status, links := range map[ledger.Status]bool{
		ledger.Pass: true, ledger.Warn: true, ledger.Recorded: true,
		ledger.Fail: false, ledger.Errored: false, ledger.Skip: false,
	} {
		may := identity.Predicates{"build:*"}
		refusal, _ := Refusal(&policy.Contract{Rules: policy.Rules}, "build:gh", status, identity.DN{}, may)
		old, warning := Refusal(&policy.Contract{}, "build:gh", status, identity.DN{}, may)
		if (refusal == "") != links || old != "" || (warning == "") != links {
			t.Errorf("%s: %q, by the earlier rules %q, %q", status, refusal, old, warning)
		}
	}
}

// With artifacts.signers, the signer alone decides, by any rules.
func TestRefusalByName(t *testing.T) {
	builders, err := identity.ParsePattern("ou=build")
	must.OK(t, err)
	for _, rules := range []int{0, policy.Rules} {
		c := policy.Contract{Rules: rules, Artifacts: policy.ArtifactRule{Signers: []identity.Pattern{builders}}}
		if refusal, warning := Refusal(&c, "test:image", ledger.Fail, identity.DN{CN: "ci", OU: "build"},
			nil); refusal+string(warning) != "" {
			t.Errorf("a named signer: %q, %q", refusal, warning)
		}
		dn, may := identity.DN{CN: "ci", OU: "dev"}, identity.Predicates{"build:*"}
		refusal, warning := Refusal(&c, "build:gh", ledger.Pass, dn, may)
		if refusal != "the signer is not in the policy's artifacts.signers" || warning != "" {
			t.Errorf("another signer: %q, %q", refusal, warning)
		}
	}
}
