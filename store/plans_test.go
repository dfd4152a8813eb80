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

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store"
)

// An exception allows a statement, identified by a part of its text, to scan or sort.
type exception struct{ part, why string }

// mayScan lists the statements that may scan a table or index, or sort.
var mayScan = []exception{
	{"' ' ORDER BY f.until_seq)", "sorts the few names that an org or a repo had"},
	{"string_agg(p.name, ' ' ORDER BY p.id)", "sorts the few repos of an exchange rule"},
	{"SELECT count(DISTINCT name), count(*) FROM trusted_roots", "counts a limited number of versions"},
	{"SELECT id FROM orgs WHERE log_built <> ?", "reads all orgs, once a minute"},
	{"SELECT id FROM orgs WHERE unlogged_settings <> ''", "reads all orgs, once a minute"},
	{"SELECT issuer FROM provider_orgs", "reads the orgs that an upgrade has listed, once for each org"},
	{"UPDATE events SET salt = v.column2", "scans the values in the statement"},
	{"SELECT name, violations, open_violations FROM orgs", "reads all orgs, when metrics are collected"},
	{"SELECT count(*) FROM (SELECT 1 FROM tree_latest", "is limited"},
	{"SELECT url FROM webhooks WHERE active = 1", "is limited"},
	{"FROM cas WHERE retired_at = 0", "reads the CAs in use, at most one of each org"},
	{"WHERE w.deleted_at > 0", "the partial index contains only the webhooks that were just deleted"},
	{
		"FROM webhooks w\nWHERE active = 1 AND EXISTS",
		"reads the active webhooks of all repos, and one entry of the outbox for each",
	},
	{"WHERE w.deleted_at = 0) w\nWHERE EXISTS", "reads all webhooks, once a minute"},
	{"SELECT id FROM repos", "reads all repos, once a minute"},
	{"FROM identities /*+index identities_to_log*/", "reads the index of the identities to be logged"},
	{"JOIN outbox o ON o.webhook_id = w.id AND o.due_at > 0 LIMIT ?) pending", "is limited"},
	{
		"SELECT id FROM orgs o WHERE EXISTS (\n  SELECT 1 FROM backlog",
		"reads all orgs, and one job of each, once a second",
	},
	{"mapping_version < ?", "reads all repos, once after an upgrade"},
	{"SELECT since, tries FROM backlog WHERE repo_id = ?", "counts a limited number of jobs"},
	{"FROM (SELECT tries, since, error FROM backlog", "counts a limited number of jobs"},
	{"SELECT id, name FROM orgs o WHERE EXISTS (\n  SELECT 1 FROM backlog", "reads all orgs, when metrics are collected"},
	{"WHERE tries > 0 OR held_until", "is for tests"},
	{"UPDATE backlog SET not_before = ?, held_until = 0", "reads all jobs, when a clock is accepted"},
	{"FROM orgs o JOIN logs l ON l.id = o.log_id\nORDER BY o.id LIMIT ?", "is limited"},
	{"ORDER BY o.name, l.epoch", "reads all logs, at the end of a copy"},
	{"INSERT INTO restores", afterRestore},
	{"AND e.seq = o.next_seq - 1 ORDER BY o.name", afterRestore},
	{"FROM signers s /*+index signers_to_log*/", "reads the index of the signers to be logged"},
	{"FROM repos WHERE deleted_at = 0\nON CONFLICT", "runs once, when an operator accepts a clock"},

	{"WHERE a.commit_id = ?", "sorts the attestations of one commit"},
	{"AND closed_at = 0 LIMIT ?) counted", "counts a limited number of violations"},
	{"AND flight = 1 LIMIT ?) counted", "counts a limited number of tips"},
	{"ORDER BY place LIMIT ?) l\nLEFT JOIN overlaps", "reads a limited number of tips"},
	{"ORDER BY n.id DESC LIMIT 20)\n    later", "reads a limited number of commits of a branch"},
	{"ORDER BY commit_id DESC LIMIT ?) newest", "reads a limited number of tips"},
	{"WITH RECURSIVE chain", "scans its own result, at most a page"},

	{"WHERE p.name LIKE '%://%'", "reads the predicates of all orgs, for ledgerd doctor"},
	{"FROM tokens t JOIN members m ON m.id = t.member_id", "reads the sign-ins of all orgs, at the start of the server"},
	{"FROM provider_orgs p JOIN orgs o", "sorts the few orgs of a provider"},
	{"GROUP BY policy_digest", "reads the repos of one org"},
	{"SELECT o.name || '/' || r.name, p.digest", "reads all repos, for doctor"},
	{"SELECT o.name, t.name, t.client FROM tokens t", "reads all tokens, for doctor"},
	{"SELECT id, name FROM orgs o WHERE deleted_at = 0 AND EXISTS", "reads all orgs, for doctor"},

	{"INSERT INTO orgs (", ifMissing},
	{"INSERT INTO events (", ifMissing},
	{"INSERT INTO expressions (", ifMissing},
	{"INSERT INTO keys (", ifMissing},
	{"INSERT INTO predicate_types (", ifMissing},
	{"INSERT INTO predicates (", ifMissing},
	{"INSERT INTO repos (", ifMissing},
	{"INSERT INTO signers (", ifMissing},
}

// afterRestore is why a statement may read all orgs.
const afterRestore = "runs once, after a restore"

// ifMissing is why an INSERT may scan the tables that refer to its table. It only does so
// in a transaction with a row that refers to a missing row.
const ifMissing = "checks foreign keys if one is violated"

// TestStatements runs all statements of the store once, and checks them.
func TestStatements(t *testing.T) {
	plans, opening := exercise(t)
	t.Run("UseIndexes", func(t *testing.T) { testStatementsUseIndexes(t, plans, opening) })
	t.Run("ArePortable", func(t *testing.T) { testStatementsArePortable(t, plans, opening) })
	t.Run("AreAcceptedByPostgreSQL", func(t *testing.T) { testPostgreSQLAcceptsStatements(t, plans, opening) })
}

// testStatementsUseIndexes checks the plans of all statements of the store. A plan
// does not show how many rows of an index a filter drops: TestListsOfManyRows counts
// what lists examine.
func testStatementsUseIndexes(t *testing.T, plans, opening map[string][]string) {
	t.Helper()
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
			t.Errorf("no statement with %q scans or sorts: remove it from mayScan", e.part)
		}
	}
}

// isScan reports whether a step of a plan scans a table or index, or sorts. A VALUES list
// is not a table.
func isScan(step string) bool {
	scan, isScan := strings.CutPrefix(step, "SCAN ")
	return strings.Contains(step, "TEMP B-TREE") ||
		isScan && scan != "CONSTANT ROW" && !strings.HasSuffix(scan, " VALUES CLAUSE")
}

// checkAllRan checks that every SQL text in the source is part of a statement that has
// run.
func checkAllRan(t *testing.T, plans map[string][]string) {
	t.Helper()
	ran := strings.Join(store.Statements(plans), "\x00")
	for _, text := range sqlTexts(t, "migration.go") {
		if !strings.Contains(ran, text) {
			t.Errorf("the test does not run %q", text)
		}
	}
}

var startsLikeSQL = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|AND|ORDER BY|ON CONFLICT|EXISTS) `)

// sqlTexts returns the string literals with SQL in the package's files, except the given
// files.
func sqlTexts(t *testing.T, except ...string) (texts []string) {
	t.Helper()
	files := must.Get(os.ReadDir("."))(t)
	for _, f := range files {
		name := f.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || slices.Contains(except, name) {
			continue
		}

		file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
		for n := range ast.Preorder(file) {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text := must.Get(strconv.Unquote(literal.Value))(t)
				if startsLikeSQL.MatchString(text) {
					texts = append(texts, text)
				}
			}
		}
	}
	return texts
}

// onlySQLite matches syntax that only SQLite accepts.
var onlySQLite = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b(iif|ifnull|json_\w+|last_insert_rowid|changes|unixepoch|strftime)\(`),
	regexp.MustCompile(`(?i)\b(group_concat|printf|instr|total)\(`),
	regexp.MustCompile(`(?i)\b(INSERT OR|REPLACE INTO|INDEXED BY|NOT INDEXED|CROSS JOIN|LIMIT -1|LIMIT \?\d?, ?\?)\b`),
	regexp.MustCompile(`(?i)\b(PRAGMA|VACUUM|GLOB|MATCH|REGEXP|COLLATE|rowid|WITHOUT|STRICT|AUTOINCREMENT)\b`),
	regexp.MustCompile(`(?i)ON CONFLICT DO|sqlite_|==|->|"|` + "`" + `|\[`),
	regexp.MustCompile(`\?\d|[:@$]\w`),
	regexp.MustCompile(`coalesce\(e\.body, o\.ping\)`),
}

// translated lists the SQL in our statements that only SQLite accepts as written, and that the
// dialect of another engine translates.
var translated = []*regexp.Regexp{
	regexp.MustCompile(`\?[1-9]`),                      // parameters used several times are numbered; others write $1
	regexp.MustCompile(`ping ->> 'id'`),                // others cannot apply ->> to the JSON in a text column
	regexp.MustCompile(`coalesce\(e\.body, o\.ping\)`), // the body is a blob and the ping a text; others need one type
}

// testStatementsArePortable checks that all engines accept the SQL of the store, except
// what is translated. Migrations only run on SQLite.
func testStatementsArePortable(t *testing.T, plans, opening map[string][]string) {
	t.Helper()
	statements := sqlTexts(t, "migration.go")
	for _, statement := range store.Statements(plans) {
		if _, ok := opening[statement]; !ok {
			statements = append(statements, statement)
		}
	}

	used := make([]bool, len(translated))
	for _, statement := range statements {
		rest := statement
		for i, part := range translated {
			before := rest
			rest = part.ReplaceAllString(rest, "")
			used[i] = used[i] || rest != before
		}
		for _, only := range onlySQLite {
			if match := only.FindString(rest); match != "" {
				t.Errorf("%s\nonly SQLite accepts %q", statement, match)
			}
		}
		if isScalarMax(rest) {
			t.Errorf("%s\nonly SQLite accepts max or min of several values", statement)
		}
	}

	for i, part := range translated {
		if !used[i] {
			t.Errorf("no statement matches %v: remove it from the list", part)
		}
	}
}

var startOfMax = regexp.MustCompile(`(?i)\b(max|min)\(`)

// isScalarMax reports whether a statement calls max or min with more than one argument.
func isScalarMax(statement string) bool {
	for _, start := range startOfMax.FindAllStringIndex(statement, -1) {
		depth := 1
		for _, char := range statement[start[1]:] {
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
