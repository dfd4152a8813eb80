package policy

import (
	"errors"
	"fmt"
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
	if want := `{"rules":4,` + string(old.Canonical()[1:]); sent.Rules != Rules || string(sent.Canonical()) != want {
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

// Claims about several commits, and baselines, need a pattern that begins with their prefix. By the rules of earlier
// releases, every pattern that includes merges does.
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

// By the rules of version 1, matching globs may take longer.
func TestMatchingIsLimitedByRules(t *testing.T) {
	c := mustParse(t, `{"state":"ATTESTED","predicate":"x","paths":["*`+strings.Repeat("a", 120)+`[b]*"]}`)
	f := attested()
	f.HasChanges = true
	for i := range 10 {
		f.Changes = append(f.Changes, fmt.Sprintf("%s/%d", strings.Repeat("a", 1000), i))
	}
	signChanges(&f, f.Changes...)
	for rules, applies := range map[int]bool{0: false, Rules: true} {
		c.Rules = rules
		if got := c.Derive(f, policyNow).Requirements[0]; got.Applies != applies {
			t.Errorf("rules %d: applies %t, want %t: %s", rules, got.Applies, applies, got.Reason)
		}
	}
}
