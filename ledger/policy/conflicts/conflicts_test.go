package conflicts

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

func TestSettingsSeesAll(t *testing.T) {
	now := Settings{Enabled: true, Ignore: []string{"go.sum"}, MaxAge: ledger.Duration(time.Hour)}

	for name, test := range map[string]struct {
		change func(*Settings)
		all    bool
	}{
		"the same":            {func(*Settings) {}, true},
		"other levels":        {func(r *Settings) { r.Notify, r.Block = radar.High, radar.Low }, true},
		"a shorter max_age":   {func(r *Settings) { r.MaxAge-- }, true},
		"a longer max_age":    {func(r *Settings) { r.MaxAge++ }, false},
		"other paths":         {func(r *Settings) { r.Ignore = []string{"go.mod"} }, false},
		"not enabled":         {func(r *Settings) { r.Enabled = false }, false},
		"fewer ignored paths": {func(r *Settings) { r.Ignore = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			other := now
			test.change(&other)
			if got := now.Covers(other); got != test.all {
				t.Errorf("Covers = %t, want %t", got, test.all)
			}
		})
	}
}
