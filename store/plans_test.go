package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// An exception is a statement that scans or sorts, identified by part of its text.
type exception struct{ part, why string }

// mayScan lists the statements that may read a whole table or index, or sort.
var mayScan = []exception{
	{"FROM (SELECT id FROM orgs LIMIT 1) first", "reads one row"},
	{"SELECT repo_id FROM reevaluations", "holds a row for each repo whose policy has just changed"},
	{
		"FROM tips WHERE policy_version = 0 AND flight = 1",
		"the partial index holds only the tips that the radar has yet to look at",
	},
	{"FROM webhooks WHERE deleted_at > 0", "the partial index holds only the webhooks that were just deleted"},
	{
		"FROM webhooks w\nWHERE active = 1 AND EXISTS",
		"reads the active webhooks of all repos, and one entry of the outbox for each",
	},
	{"FROM webhooks w\nWHERE deleted_at = 0 AND EXISTS", "reads all webhooks, once a minute"},
	{"SELECT id FROM repos", "reads all repos, once a minute"},
	{"DELETE FROM sessions WHERE hash IN", "no index of sessions by token: reads all sessions, at each sign-in"},

	{
		"FROM repos r JOIN orgs o ON o.id = r.org_id WHERE r.org_id = ? AND r.id > ?",
		"no index in the order of the list: sorts the org's repos for each page",
	},
	{
		"FROM predicates WHERE org_id = ? AND id > ?",
		"no index in the order of the list: sorts the org's predicates for each page",
	},
	{"WHERE a.commit_id = ?", "sorts the attestations of one commit"},
	{"WITH RECURSIVE chain", "scans what it has found itself, a page at most"},
	{"AND delivery_id < ?2 AND due_at > 0", "sorts the deliveries of one webhook that are pending"},
	{"AND l.repo_id = ? AND l.level >= ? AND o.level = ?", "sorts the repo's open overlaps of one level for each page"},

	{"INSERT INTO events (", ifMissing},
	{"INSERT INTO keys (", ifMissing},
	{"INSERT INTO predicate_types (", ifMissing},
	{"INSERT INTO predicates (", ifMissing},
	{"INSERT INTO repos (", ifMissing},
	{"INSERT INTO signers (", ifMissing},
	{"INSERT INTO tokens (", ifMissing},
}

// ifMissing is why an INSERT may scan the tables that refer to its table: it does so
// only in a transaction in which a row refers to a missing row.
const ifMissing = "checks foreign keys, where one is violated"

// TestEveryStatementThatRunsUsesAnIndex runs all statements of the store, and
// checks how the engine finds their rows. A plan does not show how many rows of
// an index a filter drops. Commits by author read all of the repo's commits, and
// events by type or repo read the org's log. Attestations by status, or by both
// predicate and signer, use an index that does not cover every filter.
func TestEveryStatementThatRunsUsesAnIndex(t *testing.T) {
	plans, opening := exercise(t)
	checkAllRan(t, plans)
	used := make(map[exception]bool)
	for _, statement := range store.Statements(plans) {
		if _, ok := opening[statement]; ok || !slices.ContainsFunc(plans[statement], isScan) {
			continue
		}
		i := slices.IndexFunc(mayScan, func(e exception) bool { return strings.Contains(statement, e.part) })
		if i < 0 {
			t.Errorf("%s\nscans or sorts:\n\t%s", statement, strings.Join(plans[statement], "\n\t"))
			continue
		}
		used[mayScan[i]] = true
	}
	for _, e := range mayScan {
		if !used[e] {
			t.Errorf("no statement with %q scans or sorts: remove the exception", e.part)
		}
	}
}

// isScan reports whether a step of a plan reads a whole table or index, or sorts.
// A VALUES list is not a table.
func isScan(step string) bool {
	scan, isScan := strings.CutPrefix(step, "SCAN ")
	return strings.Contains(step, "TEMP B-TREE") ||
		isScan && scan != "CONSTANT ROW" && !strings.HasSuffix(scan, " VALUES CLAUSE")
}

// checkAllRan checks that every SQL text in the source is part of a statement
// that ran.
func checkAllRan(t *testing.T, plans map[string][]string) {
	t.Helper()
	ran := strings.Join(store.Statements(plans), "\x00")
	for _, text := range sqlTexts(t, "migration.go") {
		if !strings.Contains(ran, text) {
			t.Errorf("no call runs %q", text)
		}
	}
}

var startsLikeSQL = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|AND|ORDER BY|ON CONFLICT|EXISTS) `)

// sqlTexts returns the SQL in the string literals of the package, except for the
// files in without.
func sqlTexts(t *testing.T, without ...string) (texts []string) {
	t.Helper()
	files, err := os.ReadDir(".")
	check(t, err)
	for _, f := range files {
		name := f.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || slices.Contains(without, name) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		check(t, err)
		for n := range ast.Preorder(file) {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text, err := strconv.Unquote(literal.Value)
				check(t, err)
				if startsLikeSQL.MatchString(text) {
					texts = append(texts, text)
				}
			}
		}
	}
	return texts
}

// Syntax that only SQLite accepts.
var onlySQLite = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b(iif|ifnull|json_\w+|last_insert_rowid|changes|unixepoch|strftime)\(`),
	regexp.MustCompile(`(?i)\b(group_concat|printf|instr|total)\(`),
	regexp.MustCompile(`(?i)\b(INSERT OR|REPLACE INTO|INDEXED BY|NOT INDEXED|CROSS JOIN|LIMIT -1|LIMIT \?\d?, ?\?)\b`),
	regexp.MustCompile(`(?i)\b(PRAGMA|VACUUM|GLOB|MATCH|REGEXP|COLLATE|rowid|WITHOUT|STRICT|AUTOINCREMENT)\b`),
	regexp.MustCompile(`(?i)ON CONFLICT DO|sqlite_|==|->|"|` + "`" + `|\[`),
	regexp.MustCompile(`\?\d|[:@$]\w`),
	regexp.MustCompile(`coalesce\(e\.body, o\.ping\)`),
}

// All engines accept the SQL of the store, except for what sqldb.OnlySQLite lists.
// Migrations run only on SQLite.
func TestStatementsAreThoseOfAllEngines(t *testing.T) {
	plans, opening := exercise(t)
	statements := sqlTexts(t, "migration.go")
	for _, statement := range store.Statements(plans) {
		if _, ok := opening[statement]; !ok {
			statements = append(statements, statement)
		}
	}
	special := sqldb.OnlySQLite()
	used := make([]bool, len(special))
	for _, statement := range statements {
		rest := statement
		for i, s := range special {
			before := rest
			rest = s.SQL.ReplaceAllString(rest, "")
			used[i] = used[i] || rest != before
		}
		for _, only := range onlySQLite {
			if found := only.FindString(rest); found != "" {
				t.Errorf("%s\nonly SQLite takes %q", statement, found)
			}
		}
		if isScalarMax(rest) {
			t.Errorf("%s\nonly SQLite takes max or min of several values", statement)
		}
	}
	for i, s := range special {
		if !used[i] {
			t.Errorf("no statement has %v: remove it from the list", s.SQL)
		}
	}
}

var beginOfMax = regexp.MustCompile(`(?i)\b(max|min)\(`)

// isScalarMax reports whether a statement has max or min of more than one value.
func isScalarMax(statement string) bool {
	for _, begin := range beginOfMax.FindAllStringIndex(statement, -1) {
		depth := 1
		for _, char := range statement[begin[1]:] {
			switch char {
			case '(':
				depth++
			case ')':
				depth--
			case ',':
				if depth == 1 {
					return true
				}
			}
			if depth == 0 {
				break
			}
		}
	}
	return false
}

func TestIsScalarMax(t *testing.T) {
	for statement, want := range map[string]bool{
		"SELECT max(a), b":              false,
		"SELECT max(a, b)":              true,
		"SELECT coalesce(max(a), 0), b": false,
		"SELECT MIN(f(a, b), c)":        true,
		"SELECT max(f(a, b))":           false,
	} {
		if got := isScalarMax(statement); got != want {
			t.Errorf("%s: %v, want %v", statement, got, want)
		}
	}
}
