package client_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/client"
)

const module = "github.com/ledgerd/ledgerd/"

// TestAPIHasNoForeignTypes checks that the API has only types of the standard
// library and of ledgerd. A type of an experimental package would break callers
// whenever that package changes.
func TestAPIHasNoForeignTypes(t *testing.T) {
	w := apiWalk{t: t, seen: make(map[reflect.Type]bool)}
	for name, function := range map[string]any{
		"CodeOf":    client.CodeOf,
		"Collect":   client.Collect[string],
		"InProcess": client.InProcess,
		"New":       client.New,
		"NewEvent":  client.NewEvent,
	} {
		w.visit(name, reflect.TypeOf(function))
	}
	if len(w.seen) < 50 {
		t.Errorf("visited only %d types of the API", len(w.seen))
	}
}

// An apiWalk visits the types that a caller can reach.
type apiWalk struct {
	t    *testing.T
	seen map[reflect.Type]bool
}

func (w *apiWalk) visit(path string, typ reflect.Type) {
	if w.seen[typ] {
		return
	}
	w.seen[typ] = true

	if domain, _, _ := strings.Cut(typ.PkgPath(), "/"); strings.Contains(domain, ".") {
		if !strings.HasPrefix(typ.PkgPath(), module) {
			w.t.Errorf("%s has type %s of package %s", path, typ, typ.PkgPath())
			return
		}
		for _, receiver := range []reflect.Type{typ, reflect.PointerTo(typ)} {
			for method := range receiver.Methods() {
				w.visit(path+"."+method.Name, method.Type)
			}
		}
	} else if typ.PkgPath() != "" && !strings.Contains(typ.Name(), "[") {
		return // standard library, except for generic types, which have type arguments
	}
	w.visitParts(path, typ)
}

// visitParts visits the component types of a type.
func (w *apiWalk) visitParts(path string, typ reflect.Type) {
	switch typ.Kind() {
	case reflect.Func:
		for in := range typ.Ins() {
			w.visit(path, in)
		}
		for out := range typ.Outs() {
			w.visit(path, out)
		}
	case reflect.Map:
		w.visit(path, typ.Key())
		w.visit(path, typ.Elem())
	case reflect.Array, reflect.Chan, reflect.Pointer, reflect.Slice:
		w.visit(path, typ.Elem())
	case reflect.Struct:
		for field := range typ.Fields() {
			if field.IsExported() {
				w.visit(path+"."+field.Name, field.Type)
			}
		}
	}
}
