package ledger

import (
	"strings"
	"testing"
)

func TestLengthsOfNames(t *testing.T) {
	requirement := func(name string) error {
		if !IsRequirementName(name) {
			return Errorf(CodeInvalidField, "no name of a requirement")
		}
		return nil
	}
	predicate := func(name string) error {
		if !IsPredicateName(name) {
			return Errorf(CodeInvalidField, "no name of a predicate")
		}
		return nil
	}
	for what, test := range map[string]struct {
		check   func(name string) error
		longest int
	}{
		"org": {CheckOrg, 39}, "repo": {CheckRepo, 100}, "requirement": {requirement, 64}, "predicate": {predicate, 128},
	} {
		for size, isValid := range map[int]bool{0: false, 1: true, test.longest: true, test.longest + 1: false} {
			if err := test.check(strings.Repeat("a", size)); (err == nil) != isValid {
				t.Errorf("the name of %s has %d characters: %v", what, size, err)
			}
		}
	}
}

// The events before a name ended have it, unless they have an earlier one.
func TestNameAt(t *testing.T) {
	former := []FormerName{{"api", 5}, {"core", 8}}
	for before, want := range map[int64]string{0: "api", 4: "api", 5: "core", 7: "core", 8: "heart", 100: "heart"} {
		if got := NameAt(former, "heart", before); got != want {
			t.Errorf("event %d has the name %s, want %s", before, got, want)
		}
	}
}

func TestDeletedNames(t *testing.T) {
	for name, want := range map[string]bool{DeletedName(7): true, "~": false, "~7x": false, "x~7": false, "7": false} {
		if IsDeletedName(name) != want || want && (CheckRepo(name) == nil || CheckOrg(name) == nil) {
			t.Errorf("%q is the name of a deleted repo: %t, want %t", name, !want, want)
		}
	}
}
