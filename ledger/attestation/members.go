package attestation

import (
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// otherMembers collects the names of an object's members for which its struct has no
// field. Their values are skipped.
type otherMembers map[string]skipped

// A skipped is a JSON value that is not read.
type skipped struct{}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (*skipped) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return dec.SkipValue() }

// checkMembers refuses a member whose name differs from a known one only in case, such as
// Result for result. Some parsers take it for the known one and others do not, so the
// document would have two meanings. It checks v, and the structs in it, if they have a
// field of type otherMembers.
func checkMembers(v reflect.Value, code ledger.Code, path string) error {
	found := findVariant(v)
	if found == nil {
		return nil
	}
	return found.refuse(code, path)
}

// A variant is a name that differs only in case from a known one, which path ends with.
type variant struct{ path, name string }

func (v *variant) refuse(code ledger.Code, path string) error {
	known := v.path[strings.LastIndexByte(v.path, '.')+1:]
	return ledger.FieldErrorf(code, join(path, v.path), "spelled %s (use %s)", text.Quote(v.name), known)
}

// findVariant returns a variant among the members in v, or nil. Paths are made only for one
// that is found, because every document is checked.
func findVariant(v reflect.Value) *variant {
	switch v.Kind() {
	case reflect.Pointer:
		return findVariant(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Struct {
			return nil
		}
		for i := range v.Len() {
			if found := findVariant(v.Index(i)); found != nil {
				return &variant{join(text.Entry("", i), found.path), found.name}
			}
		}
	case reflect.Struct:
		return findInStruct(v)
	}
	return nil
}

func findInStruct(v reflect.Value) *variant {
	if others := othersOf(v); len(others) > 0 {
		if found := variantIn(others, namesOf(v.Type())); found != nil {
			return found
		}
	}

	for i := range v.NumField() {
		field := v.Field(i)
		if !field.CanInterface() && (field.Kind() != reflect.Struct || !v.Type().Field(i).Anonymous) {
			continue // unexported
		}
		if found := findVariant(field); found != nil {
			if name := memberName(v.Type().Field(i)); name != "" {
				found.path = joinEntry(name, found.path)
			}
			return found
		}
	}
	return nil
}

// variantIn returns a name in others that differs from a known one only in case.
func variantIn[V any](others map[string]V, known []string) *variant {
	for other := range others {
		for _, name := range known {
			if other != name && strings.EqualFold(other, name) {
				return &variant{name, other}
			}
		}
	}
	return nil
}

// othersOf returns the other members of the object in v, which may be in an embedded
// struct.
func othersOf(v reflect.Value) otherMembers {
	for i := range v.NumField() {
		switch field := v.Field(i); {
		case field.Type() == reflect.TypeFor[otherMembers]():
			return field.Interface().(otherMembers)
		case field.Kind() == reflect.Struct && !field.CanInterface() && v.Type().Field(i).Anonymous:
			if others := othersOf(field); others != nil {
				return others
			}
		}
	}
	return nil
}

// namesOf returns the names of the JSON members of a struct type.
func namesOf(t reflect.Type) []string {
	var names []string
	for _, field := range reflect.VisibleFields(t) {
		if name := memberName(field); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// memberName returns the name of the field's JSON member, or "" if it has none.
func memberName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// joinEntry is like join for a path that may begin with the index of an entry.
func joinEntry(name, path string) string {
	if strings.HasPrefix(path, "[") {
		return name + path
	}
	return join(name, path)
}
