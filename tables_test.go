package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// A statement that writes a table names it after one of these words.
var writesTable = regexp.MustCompile(`(?:INSERT INTO|UPDATE|DELETE FROM) ([a-z_]+)\b`)

// writtenBy returns the packages of the store whose SQL writes each table.
func writtenBy(t *testing.T) map[string][]string {
	t.Helper()
	tables := roomsOf(t, "store/sqlite/schema.sql")
	writers := make(map[string]map[string]bool)
	files := append(must.Get(filepath.Glob("store/*/*.go"))(t), must.Get(filepath.Glob("store/*.go"))(t)...)
	for _, file := range files {
		pkg := filepath.Base(filepath.Dir(file))
		if strings.HasSuffix(file, "_test.go") || pkg == "storetest" {
			continue
		}
		for _, text := range stringsIn(t, file) {
			for _, m := range writesTable.FindAllStringSubmatch(text, -1) {
				if tables[m[1]] != "" {
					if writers[m[1]] == nil {
						writers[m[1]] = make(map[string]bool)
					}
					writers[m[1]][pkg] = true
				}
			}
		}
	}

	list := make(map[string][]string)
	for table, pkgs := range writers {
		list[table] = slices.Sorted(maps.Keys(pkgs))
	}
	return list
}

// roomsOf returns the package in the heading above each table of a schema.
func roomsOf(t *testing.T, file string) map[string]string {
	t.Helper()
	rooms, room := make(map[string]string), ""
	for _, m := range regexp.MustCompile(`(?m)^---- ([a-z/]+): .* ----$|^CREATE TABLE "?([a-z_]+)`).
		FindAllStringSubmatch(string(must.Read(t, file)), -1) {
		if m[1] != "" {
			room = path.Base(m[1])
		} else {
			rooms[m[2]] = room
		}
	}
	return rooms
}

// stringsIn returns the string literals of a file.
func stringsIn(t *testing.T, file string) (list []string) {
	t.Helper()
	parsed := must.Get(parser.ParseFile(token.NewFileSet(), file, nil, 0))(t)
	ast.Inspect(parsed, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			list = append(list, lit.Value)
		}
		return true
	})
	return list
}

// Each table is written by one room. The others that write some of its columns or rows are listed with a reason.
func TestEachTableIsWrittenByOneRoom(t *testing.T) {
	shared := map[string]string{
		// A row of an org or a repo has the numbers, versions and counts of several rooms.
		"orgs":  "events facts orgs postgres signers states",
		"repos": "facts orgs webhooks",
		// An event queues its deliveries, which the room of webhooks claims and settles.
		"outbox": "events webhooks",
		// A closed violation makes its deployment count.
		"deployments": "record states",
		// Recording describes commits.
		"commits": "facts record", "merge_sides": "facts record", "keys": "record signers",
		// Attestations are counted by predicate.
		"predicates": "facts signers",
	}
	rooms, onServer := roomsOf(t, "store/sqlite/schema.sql"), roomsOf(t, "store/postgres/schema.sql")
	for table, writers := range writtenBy(t) {
		got := strings.Join(writers, " ")
		if !slices.Contains(writers, rooms[table]) || onServer[table] != rooms[table] {
			t.Errorf("the schemas have %s below %s and %s, but it is written by %s", table, rooms[table], onServer[table], got)
		}
		if len(writers) > 1 && shared[table] != got {
			t.Errorf("%s is written by %s, want one room", table, got)
		}
		if want, ok := shared[table]; ok && want != got {
			t.Errorf("%s is listed as written by %s, but it is by %s", table, want, got)
		}
	}
}
