package postgres

import (
	"testing"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// Writes wait for locks unless that delays some that have not waited for them yet.
func TestIsPatient(t *testing.T) {
	fresh, late, other := new(sqldb.Write), new(sqldb.Write), new(sqldb.Write)
	for name, tt := range map[string]struct {
		writes []*sqldb.Write
		want   bool
	}{
		"no writes":           {nil, true},
		"new writes":          {[]*sqldb.Write{fresh, fresh}, true},
		"writes that waited":  {[]*sqldb.Write{late, other}, true},
		"writes of both":      {[]*sqldb.Write{late, fresh}, false},
		"the other way round": {[]*sqldb.Write{fresh, other}, false},
	} {
		if got := isPatient(tt.writes, []*sqldb.Write{late, other}); got != tt.want {
			t.Errorf("%s: got %t, want %t", name, got, tt.want)
		}
	}
}
