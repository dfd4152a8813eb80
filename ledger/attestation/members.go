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
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return checkMembers(v.Elem(), code, path)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Struct {
			return nil
		}
		for i := range v.Len() {
			if err := checkMembers(v.Index(i), code, text.Entry(path, i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		return checkStruct(v, code, path)
	}
	return nil
}

func checkStruct(v reflect.Value, code ledger.Code, path string) error {
	if others := othersOf(v); len(others) > 0 {
		if err := checkNames(others, namesOf(v.Type()), code, path); err != nil {
			return err
		}
	}

	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() && !field.Anonymous {
			continue
		}
		at := path
		if name := memberName(field); name != "" {
			at = join(path, name)
		}
		if err := checkMembers(v.Field(i), code, at); err != nil {
			return err
		}
	}
	return nil
}

// checkNames refuses the other members of an object that differ from a known one only in
// case.
func checkNames[V any](others map[string]V, known []string, code ledger.Code, path string) error {
	for other := range others {
		for _, name := range known {
			if other != name && strings.EqualFold(other, name) {
				return ledger.FieldErrorf(code, join(path, name), "spelled %s (use %s)", text.Quote(other), name)
			}
		}
	}
	return nil
}

// othersOf returns the other members of the object in v, which may be in an embedded
// struct.
func othersOf(v reflect.Value) otherMembers {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Type == reflect.TypeFor[otherMembers]() {
			return v.Field(i).Interface().(otherMembers)
		}
		if field.Anonymous && field.Type.Kind() == reflect.Struct {
			if others := othersOf(v.Field(i)); others != nil {
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
