package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// A contract that a release before the member rules has stored keeps its bytes and so its digest. A
// new one has the present rules, also if it was read from the ledger and is sent back.
func TestRules(t *testing.T) {
	const stored = `{"requirements":[],"targets":"all","radar":{"enabled":true,"notify":"LOW","block":"none",` +
		`"ignore":null,"max_age":"720h"}}`
	old, err := ParseStored([]byte(stored))
	must.OK(t, err)
	if again, err := ParseStored(old.Canonical()); old.Rules != 0 || strings.Contains(string(old.Canonical()), "rules") ||
		err != nil || again.Digest() != old.Digest() {
		t.Errorf("a stored contract is read with the rules %d, as %s: %v", old.Rules, old.Canonical(), err)
	}

	sent, err := Parse(old.Canonical())
	must.OK(t, err)
	if want := `{"rules":3,` + string(old.Canonical()[1:]); sent.Rules != Rules || string(sent.Canonical()) != want {
		t.Errorf("it is sent back as %s, want %s", sent.Canonical(), want)
	}
	if read, err := ParseStored(sent.Canonical()); err != nil || read.Rules != Rules || read.Digest() != sent.Digest() {
		t.Errorf("a new contract is read as %s: %v", read.Canonical(), err)
	}
}

// A contract of the release before keeps its rules and digest while it is stored. Sent back, it has the present ones.
func TestRulesOfTheReleaseBefore(t *testing.T) {
	const stored = `{"rules":2,"requirements":[],"targets":"all","radar":{"enabled":true,"notify":"LOW","block":"none",` +
		`"ignore":[],"max_age":"720h"}}`
	old, err := ParseStored([]byte(stored))
	if err != nil || old.Rules != 2 || string(old.Canonical()) != stored {
		t.Errorf("it is read as %s: %v", old.Canonical(), err)
	}
	if sent, err := Parse([]byte(stored)); err != nil || sent.Rules != Rules {
		t.Errorf("it is sent back with the rules %d: %v", sent.Rules, err)
	}
}

// Claims about several commits, and baselines, need a pattern that begins with their prefix. By the rules of earlier releases, every
// pattern that includes merges does.
func TestCheckClaims(t *testing.T) {
	for _, test := range []struct {
		predicate, may string // patterns, separated by blanks
		now, before    bool   // whether the signer may attest it, by the present and by earlier rules
	}{
		{"merge:squash", "merge:*", true, true},
		{"merge:squash", "test:* merge:squash", true, true},
		{"merge:update", "merge:squash", false, true}, // Verify has refused it
		{"merge:squash", "* merge:*", true, true},
		{"merge:squash", "", false, true},
		{"merge:squash", "*", false, true},
		{"merge:squash", "m*", false, true},
		{"merge:squash", "merge*", false, true},
		{"merge:squash", "changes:*", false, true},
		{"changes:files", "changes:*", true, true},
		{"changes:files", "", false, false},
		{"changes:files", "c*", false, false},
		{"baseline:prod", "deploy:* baseline:*", true, true},
		{"baseline:prod", "baseline:prod", true, true},
		{"baseline:prod", "", false, false},
		{"baseline:prod", "*", false, false},
		{"baseline:prod", "deploy:*", false, false},
		{"test:go", "", true, true},
		{"merger:x", "", true, true},
	} {
		signer := identity.Signer{Identity: "idn_1", May: strings.Fields(test.may)}
		for rules, want := range map[int]bool{0: test.before, 2: test.before, Rules: test.now} {
			err := Contract{Rules: rules}.CheckClaims(test.predicate, &signer)
			fault, _ := errors.AsType[*ledger.Error](err)
			if (err == nil) != want || !want && (fault.Code != ledger.CodePredicateNotAllowed ||
				!strings.Contains(fault.Detail, "ledgerd identity update idn_1 --may '")) {
				t.Errorf("%s by %q, rules %d: %v, want %v", test.predicate, test.may, rules, err, want)
			}
		}
	}
}

// Version 1 of a repo's contract is in no event, so verifiers compare it with the default.
func TestIsDefault(t *testing.T) {
	before, other := Default(), Default()
	before.Rules, other.Targets = 0, ClaimedTargets
	if !Default().IsDefault() || !before.IsDefault() || other.IsDefault() {
		t.Error("want true for the default contract, with and without rules, and false for another")
	}
}

// Without artifacts.signers, a statement links artifacts if it is a build by an identity that was
// made for builds. By the rules of an earlier release, anybody's did who may attest any build.
func TestLinkRefusal(t *testing.T) {
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
			for rules, want := range map[int]string{Rules: test.want, 0: test.old} {
				may := identity.Predicates(strings.Fields(test.may))
				refusal, warning := Contract{Rules: rules}.LinkRefusal(test.predicate, ledger.Pass, identity.DN{}, may)
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
		refusal, _ := Contract{Rules: Rules}.LinkRefusal("build:gh", status, identity.DN{}, may)
		old, warning := Contract{}.LinkRefusal("build:gh", status, identity.DN{}, may)
		if (refusal == "") != links || old != "" || (warning == "") != links {
			t.Errorf("%s: %q, by the earlier rules %q, %q", status, refusal, old, warning)
		}
	}
}

// With artifacts.signers, the signer alone decides, by any rules.
func TestLinkRefusalByName(t *testing.T) {
	builders, err := identity.ParsePattern("ou=build")
	must.OK(t, err)
	for _, rules := range []int{0, Rules} {
		c := Contract{Rules: rules, Artifacts: ArtifactRule{Signers: []identity.Pattern{builders}}}
		if refusal, warning := c.LinkRefusal("test:image", ledger.Fail, identity.DN{CN: "ci", OU: "build"},
			nil); refusal+string(warning) != "" {
			t.Errorf("a named signer: %q, %q", refusal, warning)
		}
		dn, may := identity.DN{CN: "ci", OU: "dev"}, identity.Predicates{"build:*"}
		refusal, warning := c.LinkRefusal("build:gh", ledger.Pass, dn, may)
		if refusal != "the signer is not in the policy's artifacts.signers" || warning != "" {
			t.Errorf("another signer: %q, %q", refusal, warning)
		}
	}
}
