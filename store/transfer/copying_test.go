package transfer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store"
)

func TestCompareRoots(t *testing.T) {
	acme, other := store.LogRoot{Org: "acme", Epoch: 1, Leaves: 7}, store.LogRoot{Org: "acme", Epoch: 1, Leaves: 7}
	other.Root[31] = 1
	shorter := acme
	shorter.Leaves = 6
	two := store.LogRoot{Org: "beta", Epoch: 2}

	for _, test := range []struct {
		name     string
		from, to []store.LogRoot
		want     string // "" for equal ones
	}{
		{"same", []store.LogRoot{acme, two}, []store.LogRoot{acme, two}, ""},
		{"other root", []store.LogRoot{acme}, []store.LogRoot{other}, "log of acme in epoch 1"},
		{"other size", []store.LogRoot{acme}, []store.LogRoot{shorter}, "log of acme in epoch 1"},
		{"missing log", []store.LogRoot{acme, two}, []store.LogRoot{acme}, "log of beta in epoch 2"},
		{"one more", []store.LogRoot{acme}, []store.LogRoot{acme, two}, "it has 2 transparency logs"},
	} {
		err := compareRoots(test.from, test.to)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error is %v, want %q", test.name, err, test.want)
		}
	}
}

// A spoiled target loses or changes rows of a table on their way.
type spoiled struct {
	target
	table string
	spoil func(t table, rows [][]any) [][]any
}

func (s spoiled) write(ctx context.Context, t table, rows [][]any) error {
	if t.name == s.table {
		rows = s.spoil(t, rows)
	}
	return s.target.write(ctx, t, rows)
}

func TestDifferenceIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s, err := store.Open(t.Context(), path, store.Options{})
	must.OK(t, err)
	_, err = s.CreateOrg(t.Context(), "acme")
	err = errors.Join(err, s.Close())
	must.OK(t, err)

	for _, test := range []struct {
		name, table, want string
		spoil             func(t table, rows [][]any) [][]any
	}{
		{"a row is lost", "audits", "the copy differs: table audits has", func(_ table, rows [][]any) [][]any {
			return rows[1:]
		}},
		{"a value is changed", "events", "the copy differs: table events has other values than",
			func(t table, rows [][]any) [][]any {
				rows[0][slices.Index(t.names(), "at")] = int64(1)
				return rows
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			copied := filepath.Join(t.TempDir(), "copy.db")
			err := readSource(t.Context(), path, func(from source) error {
				return fillFile(t.Context(), copied, func(to target) error {
					r := &copying{from: from, to: spoiled{to, test.table, test.spoil}}
					return r.run(t.Context())
				})
			})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
			if _, err := os.Stat(copied); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("there is a copy: %v", err)
			}
		})
	}
}

func TestTablesMustBeTheSame(t *testing.T) {
	orgs := table{name: "orgs", columns: []column{{"id", "integer"}, {"name", "text"}}, key: []string{"id"}}
	for want, other := range map[string][]table{
		"the target has no table orgs":                         {},
		"the target has no column name of the type text":       {{name: "orgs", columns: orgs.columns[:1], key: orgs.key}},
		"the target has another primary key in its table orgs": {{name: "orgs", columns: orgs.columns}},
		"the source has no table repos":                        {orgs, {name: "repos"}},
	} {
		if err := sameTables([]table{orgs}, other); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}
