package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFilesFormNoCircle checks that the files of each package form layers. If a
// file uses a name that another file declares, the other one uses no name of the
// first, neither directly nor through other files.
func TestFilesFormNoCircle(t *testing.T) {
	for _, folder := range slices.Sorted(maps.Keys(mayImport)) {
		t.Run(folder, func(t *testing.T) { formNoCircle(t, folder) })
	}
}

// The most that a package may hold, tests aside. Beyond that it asks to be cut.
const (
	maxFiles = 24
	maxLines = 4000
)

// TestNoPackageIsTooLarge checks the size of each package. store may be larger: it
// keeps the rules of the ledger together.
func TestNoPackageIsTooLarge(t *testing.T) {
	for _, folder := range slices.Sorted(maps.Keys(mayImport)) {
		files, lines := 0, 0
		for _, name := range filesOf(t, folder) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files, lines = files+1, lines+bytes.Count(text, []byte("\n"))
		}
		if folder != "store" && (files > maxFiles || lines > maxLines) {
			t.Errorf("%s has %d files and %d lines, more than %d or %d", folder, files, lines, maxFiles, maxLines)
		}
	}
}

// filesOf lists the files of a package, tests aside.
func filesOf(t *testing.T, folder string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
}

func formNoCircle(t *testing.T, folder string) {
	uses := usesBetweenFiles(t, folder)
	reached := make(map[string]map[string]bool, len(uses))
	for file := range uses {
		reached[file] = reachedFrom(uses, file)
	}
	reported := make(map[string]bool)
	for _, file := range slices.Sorted(maps.Keys(uses)) {
		if reported[file] || !reached[file][file] {
			continue
		}
		var circle []string
		for other := range reached[file] {
			if reached[other][file] {
				circle = append(circle, other)
				reported[other] = true
			}
		}
		slices.Sort(circle)
		t.Errorf("files of %s form a circle: %s:\n%smove declarations until the files form layers",
			folder, strings.Join(circle, ", "), ties(uses, circle))
	}
}

// fileUses holds, by file, the other files of the package whose names it uses,
// and by each of those the names.
type fileUses map[string]map[string]map[string]bool

// usesBetweenFiles resolves the names in the files of a package, tests aside.
// It loads no other package: see stubImporter. The type errors that follow from
// that are ignored.
func usesBetweenFiles(t *testing.T, folder string) fileUses {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	selected := make(stubImporter)
	for _, name := range filesOf(t, folder) {
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.IsExported() {
				selected[s.Sel.Name] = true
			}
			return true
		})
	}
	info := types.Info{Uses: make(map[*ast.Ident]types.Object)}
	config := types.Config{Importer: selected, Error: func(error) {}}
	pkg, _ := config.Check(folder, fset, files, &info) // the error is one that Error was given
	uses := make(fileUses)
	base := func(pos token.Pos) string { return filepath.Base(fset.Position(pos).Filename) }
	for ident, object := range info.Uses {
		if object.Pkg() != pkg {
			continue
		}
		from, to := base(ident.Pos()), base(object.Pos())
		if from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = make(map[string]map[string]bool)
		}
		if uses[from][to] == nil {
			uses[from][to] = make(map[string]bool)
		}
		uses[from][to][object.Name()] = true
	}
	if len(uses) == 0 && folder == "store" { // where names cannot be resolved
		t.Fatalf("the files of %s use no names of each other", folder)
	}
	return uses
}

// A stubImporter imports every package as one that declares each of its names as
// a type without members. So instances of generic types with types of other
// packages are valid, such as keyed[ledger.Commit], and their fields are found.
// A value that a generic function of another package returns stays without a type.
type stubImporter map[string]bool

// Import implements types.Importer.
func (i stubImporter) Import(name string) (*types.Package, error) {
	pkg := types.NewPackage(name, path.Base(name))
	for declared := range i {
		object := types.NewTypeName(token.NoPos, pkg, declared, nil)
		types.NewNamed(object, types.NewStruct(nil, nil), nil)
		pkg.Scope().Insert(object)
	}
	pkg.MarkComplete()
	return pkg, nil
}

// reachedFrom returns the files that a file uses, directly or through others.
func reachedFrom(uses fileUses, file string) map[string]bool {
	reached := make(map[string]bool)
	var visit func(string)
	visit = func(from string) {
		for to := range uses[from] {
			if !reached[to] {
				reached[to] = true
				visit(to)
			}
		}
	}
	visit(file)
	return reached
}

// ties lists the names that the files of a circle use of each other.
func ties(uses fileUses, circle []string) string {
	var text strings.Builder
	for _, from := range circle {
		for _, to := range circle {
			if names := slices.Sorted(maps.Keys(uses[from][to])); len(names) > 0 {
				text.WriteString("  " + from + " uses " + strings.Join(names, ", ") + " of " + to + "\n")
			}
		}
	}
	return text.String()
}
