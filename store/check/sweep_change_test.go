package check_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// A table is a table of a database, with its rows.
type table struct {
	name    string
	rows    [][]any // that are changed
	all     [][]any
	columns []column
	unique  [][]int // the columns of each unique index
}

// A column is a column of a table.
type column struct {
	name, kind, refersTo string // refersTo is the table whose ids it has
	isKey                bool
	isNullable           bool
}

// A change changes a row.
type change struct {
	statement string
	args      []any
}

// apart are rows of tables that are changed on their own: of what was pruned, of what has ended, of logs without
// a checkpoint, and the overlaps that block no commit.
var apart = map[string]string{
	"attestations (pruned)": "id IN (SELECT attestation_id FROM envelopes WHERE payload_at = -1)",
	"commits (pruned)":      "repo_id IN (SELECT repo_id FROM backlog WHERE kind = 'prune')",
	"envelopes (pruned)":    "payload_at = -1",
	"events (pruned)":       "salt IS NULL",
	"transitions (pruned)":  "event IN (SELECT id FROM events WHERE salt IS NULL)",
	"violations (pruned)":   "repo_id IN (SELECT repo_id FROM backlog WHERE kind = 'prune')",

	"overlaps (idle)": "level < 3 OR later NOT IN (SELECT commit_id FROM tips WHERE flight = 1) " +
		"OR earlier NOT IN (SELECT commit_id FROM tips WHERE flight < 4)",

	"events (unsigned)": "org_id IN (SELECT org_id FROM logs WHERE checkpoint = '')",

	"cas (ended)":                 "retired_at > 0",
	"exchange_rule_repos (ended)": "rule_id IN (SELECT id FROM exchange_rules WHERE removed_at > 0)",
	"exchange_rules (ended)":      "removed_at > 0",
	"issuers (ended)":             "removed_at > 0",
	"member_rules (ended)":        "removed_at > 0",
	"members (ended)":             "removed_at > 0",
	"passkeys (ended)":            "removed_at > 0",
	"sessions (ended)":            "token_id IN (SELECT id FROM tokens WHERE " + ended + ")",
	"token_repos (ended)":         "token_id IN (SELECT id FROM tokens WHERE " + ended + ")",
	"tokens (ended)":              ended,
	"webhooks (ended)":            "deleted_at > 0",
}

const ended = "revoked_at > 0 OR expires_at > 0 AND expires_at < 1000 * strftime('%s')"

// readTables reads the tables of a file. The order of the rows is random.
func readTables(t testing.TB, path string, random *rand.Rand) map[string]*table {
	t.Helper()
	db := must.Get(sql.Open("sqlite", path))(t)
	defer db.Close()
	tables := make(map[string]*table)
	for _, found := range rowsOf(t, db,
		"SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name") {
		b := table{name: found[0].(string)}
		for _, c := range rowsOf(t, db, `
SELECT c.name, c.type, coalesce(f."table", ''), c.pk > 0, c."notnull" = 0 AND c.pk = 0
FROM pragma_table_info(?1) c LEFT JOIN pragma_foreign_key_list(?1) f ON f."from" = c.name ORDER BY c.cid`, b.name) {
			b.columns = append(b.columns, column{name: c[0].(string), kind: c[1].(string), refersTo: c[2].(string),
				isKey: c[3] == int64(1), isNullable: c[4] == int64(1)})
		}
		b.unique = [][]int{b.keys()}
		for _, index := range rowsOf(t, db, `
SELECT (SELECT group_concat(i.cid) FROM pragma_index_info(l.name) i) FROM pragma_index_list(?) l WHERE l."unique"`,
			b.name) {
			var columns []int
			must.OK(t, json.Unmarshal([]byte("["+index[0].(string)+"]"), &columns))
			b.unique = append(b.unique, columns)
		}

		read := func(condition string) [][]any {
			rows := rowsOf(t, db, "SELECT * FROM "+b.name+" WHERE "+condition)
			random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			return rows
		}
		b.all = read("true")
		others := "true"
		for _, name := range []string{b.name + " (pruned)", b.name + " (ended)", b.name + " (unsigned)", b.name + " (idle)"} {
			if condition := apart[name]; condition != "" {
				part := b
				part.rows = read(condition)
				tables[name] = &part
				others += " AND NOT (" + condition + ")"
			}
		}
		b.rows = read(others)
		tables[b.name] = &b
	}
	return tables
}

// rowsOf returns the rows that a query returns.
func rowsOf(t testing.TB, db *sql.DB, query string, args ...any) (list [][]any) {
	t.Helper()
	rows := must.Get(db.Query(query, args...))(t)
	defer rows.Close()
	names := must.Get(rows.Columns())(t)
	for rows.Next() {
		values, places := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			places[i] = &values[i]
		}
		must.OK(t, rows.Scan(places...))
		list = append(list, values)
	}
	must.OK(t, rows.Err())
	return list
}

// keys returns the columns of the primary key.
func (b *table) keys() (keys []int) {
	for i, c := range b.columns {
		if c.isKey {
			keys = append(keys, i)
		}
	}
	return keys
}

// where returns the condition for a row.
func (b *table) where(row []any) (text string, args []any) {
	var parts []string
	for _, k := range b.keys() {
		parts, args = append(parts, b.columns[k].name+" = ?"), append(args, row[k])
	}
	return " WHERE " + strings.Join(parts, " AND "), args
}

// delete returns the nth way to delete a row.
func (b *table) delete(n int) change {
	where, args := b.where(b.rows[n%len(b.rows)])
	return change{`DELETE FROM "` + b.name + `"` + where, args}
}

// set returns the nth way to change a column. Half of the rows have not the default.
func (b *table) set(tables map[string]*table, c, n int) change {
	var lists [2][][]any
	for _, row := range b.rows {
		i := 0
		if isDefault(row[c]) {
			i = 1
		}
		lists[i] = append(lists[i], row)
	}
	list := lists[n%2]
	if len(list) == 0 {
		list = lists[1-n%2]
	}

	n /= 2
	row := list[n%len(list)]
	values := b.values(tables, c, row)
	where, args := b.where(row)
	return change{`UPDATE "` + b.name + `" SET ` + b.columns[c].name + " = ?" + where,
		append([]any{values[(n%len(list)+n/len(list))%len(values)]}, args...)}
}

// double returns the nth way to insert a row that differs from another one only in what must be unique.
func (b *table) double(tables map[string]*table, n int) change {
	row := slices.Clone(b.rows[n%len(b.rows)])
	changed := make(map[int]bool)
	for _, columns := range b.unique {
		if slices.ContainsFunc(columns, func(c int) bool { return changed[c] }) {
			continue
		}
		c := columns[len(columns)-1]
		for _, other := range columns {
			if b.columns[other].refersTo == "" {
				c = other
			}
		}

		values := b.values(tables, c, row)
		row[c], changed[c] = values[n%len(values)], true
		if last, ok := row[c].(int64); ok && b.columns[c].refersTo == "" {
			for _, other := range b.all {
				last = max(last, other[c].(int64))
			}
			row[c] = last + 1
		}
	}

	var names []string
	for _, c := range b.columns {
		names = append(names, c.name)
	}
	return change{fmt.Sprintf(`INSERT INTO "%s" (%s) VALUES (?%s)`, b.name, strings.Join(names, ", "),
		strings.Repeat(", ?", len(row)-1)), row}
}

func isDefault(v any) bool {
	return v == nil || reflect.ValueOf(v).IsZero() || reflect.DeepEqual(v, []byte{})
}

// values returns other values for a column of a row: those of other rows, of the rows to which it may
// refer, similar ones, and the default.
func (b *table) values(tables map[string]*table, c int, row []any) (list []any) {
	add := func(v any) {
		if !reflect.DeepEqual(v, row[c]) && !slices.ContainsFunc(list, func(o any) bool { return reflect.DeepEqual(o, v) }) {
			list = append(list, v)
		}
	}
	for _, other := range b.rows {
		if len(list) < 4 && other[c] != nil {
			add(other[c])
		}
	}
	if name := b.columns[c].refersTo; name != "" {
		for _, other := range tables[name].rows[:min(4, len(tables[name].rows))] {
			add(other[0])
		}
	}

	similar := row[c]
	if similar == nil {
		similar = map[string]any{"INTEGER": int64(1), "TEXT": "x", "BLOB": []byte("x")}[b.columns[c].kind]
	}
	switch v := similar.(type) {
	case int64:
		add(v + 1)
		add(int64(0))
	case string:
		add(string(similarTo([]byte(v))))
		add("")
	case []byte:
		add(similarTo(v))
	}
	if b.columns[c].isNullable {
		add(nil)
	}
	return list
}

// inValues finds the characters with which values in JSON begin.
var inValues = regexp.MustCompile(`[:\[]\s*"?([0-9A-Za-z])`)

// similarTo returns a text or bytes that differ in one place. From valid JSON follows valid JSON.
func similarTo(v []byte) []byte {
	if len(v) == 0 {
		return []byte("x")
	}
	at := []int{len(v) - 1}
	if json.Valid(v) && (v[0] == '{' || v[0] == '[') {
		at = nil
		for _, match := range inValues.FindAllSubmatchIndex(v, -1) {
			at = append(at, match[2])
		}
	}

	for _, i := range at {
		changed := bytes.Clone(v)
		switch c := v[i]; c {
		case '0', 'a', 'A', 0:
			changed[i] = c + 1
		default:
			changed[i] = c - 1
		}
		if len(at) == 1 || json.Valid(changed) {
			return changed
		}
	}
	return append(bytes.Clone(v), ' ')
}

func (c change) String() string {
	text := fmt.Sprintf("%s %v", c.statement, c.args)
	return text[:min(300, len(text))]
}
