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
