package commitview_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/commitview"
)

// records returns attestations, newest first, from lines of predicate, slot, signer and status.
func records(lines ...string) []ledger.AttestationRecord {
	var list []ledger.AttestationRecord
	for i, line := range lines {
		f := strings.Fields(line)
		a := ledger.AttestationRecord{ID: fmt.Sprint("att_", i), Predicate: f[0], Identity: f[2],
			Result: ledger.Result{Status: ledger.Status(f[3])}, RecordedAt: ledger.Time(1000 - i),
			Verification: &ledger.Verification{RunURL: fmt.Sprint("https://ci.example/", i)}}
		if f[1] != "-" {
			a.Slot = f[1]
		}
		a.Distrusted = len(f) > 4
		list = append(list, a)
	}
	return list
}

// text describes checks: each with its shards.
func text(list []commitview.Check) string {
	var b strings.Builder
	for _, c := range list {
		fmt.Fprintf(&b, "%s %s at %d, %d earlier, %s:", c.Predicate, c.Status, c.At, c.Earlier, c.RunURL)
		for _, s := range c.Shards {
			fmt.Fprintf(&b, " %s", s.ID)
		}
		fmt.Fprintf(&b, " %v by %v\n", c.Counts, c.Signers)
	}
	return b.String()
}

func TestFold(t *testing.T) {
	for name, test := range map[string]struct {
		attestations []ledger.AttestationRecord
		carried      []ledger.CarriedEvidence
		want         string
	}{
		"one row per predicate, failed first": {
			records("lint - ci pass", "zip - ci error", "test - ci fail", "review - ann pass"), nil,
			"test fail at 998, 0 earlier, https://ci.example/2: att_2 [] by [ci]\n" +
				"zip error at 999, 0 earlier, https://ci.example/1: att_1 [] by [ci]\n" +
				"lint pass at 1000, 0 earlier, https://ci.example/0: att_0 [] by [ci]\n" +
				"review pass at 997, 0 earlier, https://ci.example/3: att_3 [] by [ann]\n",
		},
		"the newest of a shard counts": {
			records("test - ci pass", "test - ci fail", "test - ci fail"), nil,
			"test pass at 1000, 2 earlier, https://ci.example/0: att_0 [] by [ci]\n",
		},
		"shards are folded": {
			records("test a ci pass", "test b ci pass", "test c ci fail", "test a mac pass", "test a ci fail"), nil,
			"test fail at 1000, 1 earlier, https://ci.example/2: att_2 att_0 att_1 att_3 [{fail 1} {pass 3}] by [ci mac]\n",
		},
		"what is distrusted decides nothing": {
			records("test - ci fail distrusted", "test - ci pass"), nil,
			"test pass at 1000, 0 earlier, https://ci.example/1: att_1 att_0 [{pass 1} {fail 1}] by [ci]\n",
		},
		"nothing but distrusted": {
			records("test - ci pass distrusted"), nil,
			"test pass at 1000, 0 earlier, https://ci.example/0: att_0 [] by [ci]\n",
		},
		"evidence of other commits": {
			records("test - ci pass"),
			[]ledger.CarriedEvidence{{Attestation: "att_9", Predicate: "test", Identity: "ci", Status: ledger.Fail},
				{Attestation: "att_8", Predicate: "review", Identity: "ann", Status: ledger.Pass}},
			"test fail at 1000, 0 earlier, : att_9 att_0 [{fail 1} {pass 1}] by [ci]\n" +
				"review pass at 0, 0 earlier, : att_8 [] by [ann]\n",
		},
		"none": {nil, nil, ""},
	} {
		if got := text(commitview.Fold(test.attestations, test.carried)); got != test.want {
			t.Errorf("%s:\n%swant\n%s", name, got, test.want)
		}
	}
}

// Only slots are folded: two runs of the same check are two rows.
func TestRows(t *testing.T) {
	list := records("sbom a ci pass", "test - ci pass", "sbom b ci pass", "test - ci pass", "sbom c ci fail",
		"sbom d mac pass", "sbom e ci pass", "sbom f ci pass distrusted", "sbom - ci pass")
	list[6].Commit = "other"
	var got string
	for _, r := range commitview.Rows(list) {
		got += r.ID
		for _, o := range r.Others {
			got += "+" + o.ID
		}
		got += " "
	}
	if want := "att_0+att_2 att_1 att_3 att_4 att_5 att_6 att_7 att_8 "; got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
}
