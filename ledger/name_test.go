package ledger

import "testing"

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
