package where

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/go-json-experiment/json/jsontext"
)

// The limits of a statement.
const (
	maxValues = 300_000  // JSON values
	maxText   = 64 << 10 // bytes of a text that an expression reads, or of a name
)

// A Statement is an in-toto statement as expressions see it.
type Statement struct {
	predicate, subject ref.Val
	typ                types.String
	fault              string // why no expression can read it; empty if they can
}

// Read reads the payload of an attestation. If it cannot be read, the verdict of every
// expression says why.
func Read(payload []byte) *Statement {
	s := &Statement{predicate: newObject(nil, nil), subject: newList(nil)}
	d := decoder{Decoder: jsontext.NewDecoder(bytes.NewReader(payload))}
	doc, err := d.value()
	if err == nil {
		err = d.end()
	}

	switch top, isObject := doc.(*object); {
	case err != nil:
		s.fault = clean("the statement cannot be read: " + err.Error())
	case !isObject:
		s.fault = "the statement is not a JSON object"
	default:
		s.setMembers(top)
	}
	return s
}

// setMembers sets the variables. A member that is missing, or not of its type, is empty.
func (s *Statement) setMembers(top *object) {
	if predicate, ok := top.Find(types.String("predicate")); ok && predicate != types.NullValue {
		s.predicate = predicate
	}
	if subject, ok := top.Find(types.String("subject")); ok && subject.Type() == types.ListType {
		s.subject = subject
	}
	if typ, ok := top.Find(types.String("predicateType")); ok {
		s.typ, _ = typ.(types.String)
	}
}

// A decoder converts JSON to values of CEL.
type decoder struct {
	*jsontext.Decoder
	values int
}

// end reads the end of the document.
func (d *decoder) end() error {
	switch _, err := d.ReadToken(); {
	case err == io.EOF: //nolint:errorlint // as ReadToken documents
		return nil
	case err != nil:
		return err
	}
	return errors.New("something follows its end")
}

var errTooMany = fmt.Errorf("it has more than %d values", maxValues)

// value reads the next value. What an expression cannot use becomes an error that it gets
// if it reads it.
func (d *decoder) value() (ref.Val, error) {
	if d.values++; d.values > maxValues {
		return nil, errTooMany
	}
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}

	switch token.Kind() {
	case jsontext.KindBeginObject:
		return d.object()
	case jsontext.KindBeginArray:
		return d.list()
	case jsontext.KindString:
		return textValue(token.String()), nil
	case jsontext.KindNumber:
		return number(token.String()), nil
	case jsontext.KindTrue, jsontext.KindFalse:
		return types.Bool(token.Bool()), nil
	case jsontext.KindNull:
		return types.NullValue, nil
	}
	return nil, errors.New("it has no value where one is needed")
}

// object reads the members of an object, and its end.
func (d *decoder) object() (ref.Val, error) {
	members := make(map[string]any)
	var names []string
	for d.PeekKind() != jsontext.KindEndObject {
		token, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		if len(name) > maxText {
			return nil, fmt.Errorf("the name of a member has more than %d bytes", maxText)
		}
		if members[name], err = d.value(); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	_, err := d.ReadToken()
	return newObject(members, names), err
}

// list reads the elements of an array, and its end.
func (d *decoder) list() (ref.Val, error) {
	var elements []ref.Val
	for d.PeekKind() != jsontext.KindEndArray {
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		elements = append(elements, v)
	}
	_, err := d.ReadToken()
	return newList(elements), err
}

func newList(elements []ref.Val) ref.Val {
	return types.NewRefValList(types.DefaultTypeAdapter, elements)
}

func textValue(s string) ref.Val {
	if len(s) > maxText {
		return types.NewErr("a text of the statement has %d bytes: at most %d can be read", len(s), maxText)
	}
	return types.String(s)
}

// number returns an int if the number is integral and fits, however it is written, or else
// a double.
func number(literal string) ref.Val {
	if n, err := strconv.ParseInt(literal, 10, 64); err == nil {
		return types.Int(n)
	}
	f, err := strconv.ParseFloat(literal, 64)
	switch {
	case err != nil:
		return types.NewErr("a number of the statement is out of range")
	case f == math.Trunc(f) && math.Abs(f) < 1<<63:
		return types.Int(f)
	}
	return types.Double(f)
}

// An object is a JSON object. Unlike other maps, its members have an order, so that the
// same expression always costs the same.
type object struct {
	traits.Mapper
	names []string
}

func newObject(members map[string]any, names []string) *object {
	return &object{types.NewStringInterfaceMap(types.DefaultTypeAdapter, members), names}
}

// Iterator implements traits.Iterable.
func (o *object) Iterator() traits.Iterator {
	return types.NewStringList(types.DefaultTypeAdapter, o.names).Iterator()
}
