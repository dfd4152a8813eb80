package check_test

import (
	"database/sql"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/store/check"
	"github.com/ledgerd/ledgerd/store/transfer"
)

// A target is something that is changed: a column, or as -row and +row, the rows of a table.
type target struct{ table, what string }

func (v target) String() string { return v.table + "/" + v.what }

// whole returns the target in the whole table, if it is in some of its rows.
func (v target) whole() target {
	table, _, _ := strings.Cut(v.table, " ")
	return target{table, v.what}
}

// targets returns what is changed of tables, with the nth way to change each.
func targets(tables map[string]*table) map[target]func(n int) change {
	list := make(map[target]func(n int) change)
	for name, b := range tables {
		if len(b.rows) == 0 {
			continue
		}
		for i, c := range b.columns {
			list[target{name, c.name}] = func(n int) change { return b.set(tables, i, n) }
		}
		list[target{name, "-row"}] = b.delete
		list[target{name, "+row"}] = func(n int) change { return b.double(tables, n) }
	}
	return list
}

// targetsIn returns what a list has.
func targetsIn(list []check.Unread) map[target]bool {
	listed := make(map[target]bool)
	for _, u := range list {
		for table := range strings.SplitSeq(u.Tables, ", ") {
			for column := range strings.FieldsSeq(u.Columns) {
				listed[target{table, column}] = true
			}
		}
	}
	return listed
}

// Each change of one column, each deleted and each added row is found, or listed. Below the level full, some are
// made, the same each time: a row that only some seeds find must not stop a push. To make all of a table, set the
// level, and run Sweep/SQLite/commits.
func TestSweep(t *testing.T) {
	original, random := newHistory(t), testenv.Rand(t)
	if testenv.CurrentLevel() < testenv.Full {
		random = rand.New(rand.NewPCG(0, 0))
	}
	report, err := check.Run(t.Context(), original.path, check.Options{ParseRoot: sigstore.ParseRoot})
	must.OK(t, err)
	if report.Found+report.Pending > 0 || len(report.Unchecked) != 2 { // what was pruned, and a log without a checkpoint
		t.Fatalf("an unchanged ledger has these problems: %+v", report)
	}
	tables := readTables(t, original.path, random)
	for name, b := range tables {
		if len(b.rows) == 0 {
			t.Errorf("%s has %d rows", name, len(b.rows))
		}
	}
	ways := targets(tables)
	unread, onPostgres := check.ListUnread()
	listed, listedOnPostgres := targetsIn(unread), targetsIn(slices.Concat(unread, onPostgres))
	for v := range listed {
		if ways[v] == nil {
			t.Errorf("%s is listed, and does not exist", v)
		}
	}

	list := slices.SortedFunc(maps.Keys(ways), func(a, b target) int { return strings.Compare(a.String(), b.String()) })
	if testenv.CurrentLevel() < testenv.Full {
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		list = slices.DeleteFunc(list, func(v target) bool { return listedOnPostgres[v] || listedOnPostgres[v.whole()] })
		list = list[:min(testenv.Pick(150, 240, 0), len(list))]
	}
	start := random.IntN(100)
	sweep := func(name string, list []target, listed map[target]bool, newEngine func(testing.TB, string) engine) {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, original.path)
			for _, v := range list {
				t.Run(v.String(), func(t *testing.T) {
					t.Parallel()
					e.test(t, ways[v], start, listed[v] || listed[v.whole()], listed[v])
				})
			}
		})
	}
	sweep("SQLite", list, listed, files)
	if testenv.CurrentLevel() > testenv.Quick {
		some := list[:testenv.Pick(0, min(20, len(list)), len(list))]
		sweep("PostgreSQL", some, listedOnPostgres, databases)
	}
}

// A check goes on if there is no commit from which evidence carries.
func TestEvidenceCarriesFromNoCommit(t *testing.T) {
	d := newHistory(t).copy(t, run("UPDATE tree_latest SET commit_id = 1000000"))
	d.wantProblem(t, check.Options{ParseRoot: sigstore.ParseRoot},
		"derivation acme repo carried: the states cannot be derived: ",
		"commit 1000000, from which evidence carries, is missing")
}

// An engine has copies of a ledger.
type engine struct {
	// newCopy returns the path or the URL of a copy that is removed when the test ends.
	newCopy func(testing.TB) string
	// open opens a copy. run runs a statement, and returns how many rows it has changed.
	open func(t testing.TB, database string) (run func(string, ...any) (int64, error), closed func())
}

func files(t testing.TB, original string) engine {
	t.Helper()
	content := must.Read(t, original)
	return engine{func(t testing.TB) string {
		path := filepath.Join(t.TempDir(), "ledger.db")
		must.OK(t, os.WriteFile(path, content, 0o600))
		return path
	}, func(t testing.TB, path string) (func(string, ...any) (int64, error), func()) {
		db := must.Get(sql.Open("sqlite", "file:"+path+"?_pragma=foreign_keys(1)"))(t)
		return func(statement string, args ...any) (int64, error) {
			result, err := db.Exec(statement, args...)
			if err != nil {
				return 0, err
			}
			return result.RowsAffected()
		}, func() { must.OK(t, db.Close()) }
	}}
}

func databases(t testing.TB, original string) engine {
	t.Helper()
	return engine{pgtest.Start(t, pgtest.Fast()...).Copies(t, func(url string) {
		must.Get(transfer.Copy{From: original, To: url}.Run(t.Context()))(t)
	}), func(t testing.TB, url string) (func(string, ...any) (int64, error), func()) {
		conn := must.Get(pgx.Connect(t.Context(), url))(t)
		return func(statement string, args ...any) (int64, error) {
			for i := range args {
				statement = strings.Replace(statement, "?", fmt.Sprint("$", i+1), 1)
			}
			tag, err := conn.Exec(t.Context(), statement, args...)
			return tag.RowsAffected(), err
		}, func() { must.OK(t, conn.Close(t.Context())) }
	}}
}

// test makes changes, each in a copy, beginning with the nth way, until one is not found.
func (e engine) test(t *testing.T, way func(int) change, n int, mayMiss, mustMiss bool) {
	tries, end := testenv.Pick(1, 2, 6), n+60
	if mustMiss { // in few rows perhaps
		tries, end = 100, n+600
	}
	found := 0
	for ; found < tries; found++ {
		database := e.newCopy(t)
		c, ok := e.make(t, database, way, &n, end)
		if !ok {
			break
		}
		report, err := check.Run(t.Context(), database, check.Options{ParseRoot: sigstore.ParseRoot})
		switch {
		case err != nil:
			t.Errorf("%s: %v", c, err)
			return
		case report.Found > 0 || !report.Complete:
		case mayMiss:
			t.Logf("not found: %s", c)
			return
		default:
			t.Errorf("not found: %s", c)
			return
		}
	}

	if mustMiss && found > 0 {
		t.Errorf("all %d changes are found: remove it from the list", found)
	}
	if found == 0 {
		t.Log("constraints refuse all changes of this alone")
	}
}

// make applies change n to a database or, if a constraint refuses it, the next one before end.
func (e engine) make(t testing.TB, database string, way func(int) change, n *int, end int) (c change, ok bool) {
	t.Helper()
	run, closed := e.open(t, database)
	defer closed()
	for ; !ok && *n < end; *n++ {
		c = way(*n)
		rows, err := run(c.statement, c.args...)
		if err != nil && strings.Contains(err.Error(), "constraint") {
			continue
		}
		must.OK(t, err)
		if ok = rows == 1; !ok {
			t.Fatalf("%s changed %d rows", c, rows)
		}
	}
	return c, ok
}

var updateList = flag.Bool("update", false, "write the list of what is not found to docs/check.md")

// The list in docs/check.md is between these lines.
const (
	listBegin = "<!-- The list of what is not found. go test ./store/check -run Listed -update writes it. -->\n"
	listEnd   = "<!-- The end of the list. -->\n"
)

// What is not found is documented.
func TestUnreadIsListed(t *testing.T) {
	const file = "../../docs/check.md"
	before, rest, begins := strings.Cut(string(must.Read(t, file)), listBegin)
	got, after, ends := strings.Cut(rest, listEnd)
	if !begins || !ends {
		t.Fatalf("%s has no list between %q and %q", file, listBegin, listEnd)
	}

	want := "\n| table | what is not found | why it does not matter |\n|---|---|---|\n"
	list, onPostgres := check.ListUnread()
	for _, u := range onPostgres {
		u.Tables += " on PostgreSQL"
		list = append(list, u)
	}
	for _, u := range list {
		columns := "`" + strings.Join(strings.Fields(u.Columns), "`, `") + "`"
		columns = strings.NewReplacer("`-row`", "a deleted row", "`+row`", "an added row").Replace(columns)
		want += fmt.Sprintf("| %s | %s | %s |\n", u.Tables, columns, u.Why)
	}
	want += "\n"
	switch {
	case got == want:
	case *updateList:
		must.OK(t, os.WriteFile(file, []byte(before+listBegin+want+listEnd+after), 0o644))
	default:
		t.Errorf("%s has another list than the code (run go test ./store/check -run Listed -update):\n%s", file, got)
	}
}
