package gitrepo

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger/radar"
)

func TestReadRawDiff(t *testing.T) {
	const (
		old  = "1111111111111111111111111111111111111111"
		new  = "2222222222222222222222222222222222222222"
		zero = "0000000000000000000000000000000000000000"
	)
	for name, test := range map[string]struct {
		out  string
		want []radar.Change
	}{
		"no changes": {"", []radar.Change{}},
		"added, changed, deleted": {
			":000000 100644 " + zero + " " + new + " A|new.txt|" +
				":100644 100755 " + old + " " + new + " M|with space|" +
				":100644 000000 " + old + " " + zero + " D|old.txt|",
			[]radar.Change{
				{Path: "new.txt", Status: "A", Mode: "100644", Blob: new},
				{Path: "with space", Status: "M", OldMode: "100644", Mode: "100755", OldBlob: old, Blob: new},
				{Path: "old.txt", Status: "D", OldMode: "100644", OldBlob: old},
			},
		},
		"renamed, with the similarity": {
			":100644 100644 " + old + " " + new + " R087|a\nb|c|",
			[]radar.Change{{Path: "c", OldPath: "a\nb", Status: "R", OldMode: "100644", Mode: "100644", OldBlob: old,
				Blob: new}},
		},
		"a file became a link": {
			":100644 120000 " + old + " " + new + " T|link|",
			[]radar.Change{{Path: "link", Status: "T", OldMode: "100644", Mode: "120000", OldBlob: old, Blob: new}},
		},
		"not UTF-8": {
			":000000 100644 " + zero + " " + new + " A|caf\xe9/né|",
			[]radar.Change{{Path: `caf\351/né`, Status: "A", Mode: "100644", Blob: new}},
		},
		"renamed from and to invalid UTF-8": {
			":100644 100644 " + old + " " + new + " R100|\xe9|\xe8|",
			[]radar.Change{{Path: `\350`, OldPath: `\351`, Status: "R", OldMode: "100644", Mode: "100644", OldBlob: old,
				Blob: new}},
		},
	} {
		d := newDiffReader(strings.NewReader(strings.ReplaceAll(test.out, "|", "\x00")))
		if err := d.readRaw(); err != nil || !reflect.DeepEqual(d.changes, test.want) {
			t.Errorf("%s: %+v (%v), want %+v", name, d.changes, err, test.want)
		}
	}

	for name, out := range map[string]string{
		"not a change":            "hello|world|",
		"a rename without target": ":100644 100644 " + old + " " + new + " R100|a|",
		"a change without status": ":100644 100644 " + old + " " + new + "|a|",
	} {
		d := newDiffReader(strings.NewReader(strings.ReplaceAll(out, "|", "\x00")))
		if err := d.readRaw(); err == nil {
			t.Errorf("%s is read as %+v", name, d.changes)
		}
	}
}

// A commit's date can be any number.
func TestCommitTime(t *testing.T) {
	for seconds, want := range map[string]string{
		"1700000000":           "2023-11-14T22:13:20.000Z",
		"1":                    "1970-01-01T00:00:01.000Z",
		"253402300799":         "9999-12-31T23:59:59.000Z",
		"253402300800":         "",
		"0":                    "",
		"-1":                   "",
		"9223372036854775":     "",
		"9223372036854775807":  "",
		"-9223372036854775808": "",
		"18446744073709551615": "",
		"":                     "",
	} {
		if got := commitTime(seconds).String(); got != want {
			t.Errorf("commitTime(%q) = %q, want %q", seconds, got, want)
		}
	}
}
