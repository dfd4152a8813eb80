package policy

import (
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

func TestRadarBlock(t *testing.T) {
	c := mustParse(t, `{"state":"ATTESTED","predicate":"test:*"}`)
	high := conflicts.Open{Level: radar.High, Commit: "8dd9", Branch: "feature/x", Path: "cmd/root.go",
		Reason: radar.SameLines}
	medium := conflicts.Open{Level: radar.Medium, Commit: "0a0a", Path: "go.mod", Reason: radar.SameFile}

	for name, test := range map[string]struct {
		block    radar.Level
		overlaps []conflicts.Open
		want     ledger.State
		reason   string
	}{
		"no level blocks": {radar.NoLevel, []conflicts.Open{high}, ledger.Promotable, ""},
		"no overlap": {radar.High, nil, ledger.Promotable,
			"no open overlap of level HIGH with an earlier commit"},
		"a lower level": {radar.High, []conflicts.Open{medium}, ledger.Promotable,
			"no open overlap of level HIGH with an earlier commit"},
		"no overlap of any level": {radar.Low, nil, ledger.Promotable,
			"no open overlap of level LOW or above with an earlier commit"},
		"the blocking level": {radar.High, []conflicts.Open{medium, high}, ledger.Attested,
			"overlaps with 1 earlier commit: HIGH with feature/x at cmd/root.go (same lines); " +
				"rebase once it has landed, then push again"},
		"the blocking level and a higher one": {radar.Medium, []conflicts.Open{medium, high}, ledger.Attested,
			"overlaps with 2 earlier commits: HIGH with feature/x at cmd/root.go (same lines) and " +
				"MEDIUM with 0a0a at go.mod (same file); rebase once they have landed, then push again"},
	} {
		t.Run(name, func(t *testing.T) {
			c.Radar.Block = test.block
			f := attested(signed(ci, "test:go", ledger.Pass))
			f.Overlaps = test.overlaps
			d := c.Derive(f, policyNow)
			if d.State != test.want {
				t.Errorf("state %s, want %s", d.State, test.want)
			}
			last := d.Requirements[len(d.Requirements)-1]
			if test.reason != "" && (last.Predicate != "radar:"+test.block.String() || last.State != ledger.Promotable ||
				last.Reason != test.reason) {
				t.Errorf("got %+v, want reason %q", last, test.reason)
			}
			f.Branch, f.Target = "main", "main"
			if d := c.Derive(f, policyNow); d.State != ledger.Promotable || test.block != radar.NoLevel &&
				d.Requirements[len(d.Requirements)-1].Applies {
				t.Errorf("on the target branch: got %s, %+v", d.State, d.Requirements)
			}
			if f.Deployed = true; c.Derive(f, policyNow).State != ledger.Deployed {
				t.Error("a DEPLOYED commit was blocked")
			}
			if c.Radar.Enabled = false; len(c.Derive(f, policyNow).Requirements) != 1 {
				t.Error("a disabled radar has a requirement")
			}
			c.Radar.Enabled = true
		})
	}
}
