package verify

import (
	"errors"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

func TestEpochsOfOrigins(t *testing.T) {
	const log = "ledger.example/base/v1/orgs/acme/log"
	for origin, want := range map[string]int{
		log: 1, log + "/2": 2, log + "/10": 10,
		log + "/1": 0, log + "/0": 0, log + "/-2": 0, log + "/02": 0, log + "/+2": 0, log + "/x": 0, log + "/": 0,
		"ledger.example/2": 0, "": 0, "log": 0, log + "/2/3": 0,
	} {
		first, epoch, ok := SplitOrigin(origin)
		if ok != (want > 0) || ok && (epoch != want || first != log) {
			t.Errorf("%q: %q, %d, %v", origin, first, epoch, ok)
		}
	}
	for _, c := range []struct {
		before, after string
		want          bool
	}{
		{log, log + "/2", true}, {log + "/2", log + "/10", true},
		{log, log, false}, {log + "/2", log + "/2", false}, {log + "/3", log + "/2", false}, {log + "/2", log, false},
		{log, "other" + log + "/2", false}, {"", log, false}, {log, "", false},
	} {
		if got := IsLaterEpoch(c.before, c.after); got != c.want {
			t.Errorf("%q, %q: %v", c.before, c.after, got)
		}
	}
}

// What was seen of a log that was replaced is compared with what is known of it.
func TestWhatAReplacedLogKeeps(t *testing.T) {
	const origin = "ledger.example/v1/orgs/acme/log"
	signer, key := newKey(t, origin)
	other, _ := newKey(t, origin)
	sign := func(c proof.Checkpoint) string {
		signed, err := c.Sign(signer)
		must.OK(t, err)
		return string(signed)
	}
	at := func(size int64, root byte) (c proof.Checkpoint) {
		c.Origin, c.Size, c.Root[0] = origin, size, root
		return c
	}
	foreign, err := at(9, 1).Sign(other)
	must.OK(t, err)

	for name, c := range map[string]struct {
		seen  proof.Checkpoint
		known string
		lost  int64
		fails bool
	}{
		"all is kept":                  {at(7, 1), "", 0, false},
		"some are lost":                {at(9, 2), "", 2, false},
		"some are lost, as is known":   {at(9, 2), sign(at(9, 2)), 2, false},
		"more is known":                {at(9, 2), sign(at(10, 3)), 2, false},
		"less is known":                {at(9, 2), sign(at(8, 3)), 2, false},
		"another history":              {at(7, 2), "", 0, true},
		"another history, as is known": {at(9, 2), sign(at(9, 3)), 0, true},
		"known by another key":         {at(9, 1), string(foreign), 0, true},
		"nothing that is signed":       {at(9, 1), "nonsense", 0, true},
	} {
		r := Replacement{Old: at(7, 1), Known: c.known}
		lost, err := r.Keeps(c.seen, key, NewTiles(func(string) ([]byte, error) { return nil, errors.New("no tiles") }))
		if lost != c.lost || (err != nil) != c.fails {
			t.Errorf("%s: %d, %v", name, lost, err)
		}
	}
}
