package ledger

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// DecodeStrict reads one JSON document into v and refuses, naming the place,
// what is not JSON, members that v does not have, members given twice, and
// values of the wrong type.
func DecodeStrict(data []byte, v any) error {
	return decodeError(json.Unmarshal(data, v, json.RejectUnknownMembers(true)))
}

// DecodeOpen is DecodeStrict for documents that others define and extend:
// members that v does not have are passed over.
func DecodeOpen(data []byte, v any) error {
	return decodeError(json.Unmarshal(data, v))
}

func decodeError(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return Errorf(CodeInvalidJSON, "the JSON ends too early")
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return &Error{
			Code:   CodeInvalidJSON,
			Detail: fmt.Sprintf("not valid JSON at byte %d: %v", syntactic.ByteOffset, syntactic.Err),
			Fields: fieldAt(syntactic.JSONPointer, "not valid JSON"),
		}
	}
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return Errorf(CodeInvalidJSON, "%v", err)
	}
	if errors.Is(err, json.ErrUnknownName) {
		field := fieldPath("", semantic.JSONPointer)
		return FieldErrorf(CodeUnknownField, field, "there is no such field")
	}
	return &Error{Code: CodeInvalidJSON, Detail: "a value has the wrong form",
		Fields: fieldAt(semantic.JSONPointer, misfit(semantic))}
}

// misfit says why a JSON value does not fit where it stands.
func misfit(e *json.SemanticError) string {
	switch {
	case errors.Is(e.Err, strconv.ErrSyntax), errors.Is(e.Err, strconv.ErrRange):
		return "it must be a whole number, and not too large"
	case e.Err != nil:
		return e.Err.Error()
	case e.JSONKind == jsontext.KindBeginArray:
		return "a JSON array does not fit here"
	case e.JSONKind == jsontext.KindBeginObject:
		return "a JSON object does not fit here"
	}
	return fmt.Sprintf("a JSON %s does not fit here", e.JSONKind)
}

func fieldAt(p jsontext.Pointer, message string) []FieldError {
	if p == "" {
		return nil
	}
	return []FieldError{{fieldPath("", p), message}}
}

// maxFieldPath bounds, roughly, how much of a document's own names an error
// repeats.
const maxFieldPath = 200

// fieldPath writes a JSON pointer (RFC 6901), which starts at the field prefix,
// the way errors name fields: /requirements/1/state as requirements[1].state.
func fieldPath(prefix string, p jsontext.Pointer) string {
	path := prefix
	for token := range p.Tokens() {
		switch {
		case len(path) > maxFieldPath:
			return path + "…"
		case token != "" && strings.Trim(token, "0123456789") == "":
			path += "[" + text.Clip(token) + "]"
		case token == "" || strings.ContainsFunc(token, notInName):
			path += "[" + text.Quote(token) + "]"
		case path != "":
			path += "." + text.Clip(token)
		default:
			path = text.Clip(token)
		}
	}
	return path
}

// notInName reports what would make a field's path say something else.
func notInName(r rune) bool { return strings.ContainsRune(`.[]"`, r) || !unicode.IsPrint(r) }

// DecodeForeign reads a document that others define into v, as DecodeOpen does. A
// value of the wrong form is an error of the given code that names the field, which
// lies under prefix; what is not JSON at all is invalid_json.
func DecodeForeign(data []byte, v any, code Code, prefix string) error {
	err := json.Unmarshal(data, v)
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return decodeError(err)
	}
	field := fieldPath(prefix, semantic.JSONPointer)
	if field == "" {
		return Errorf(code, "the document cannot be read: %s", misfit(semantic))
	}
	return FieldErrorf(code, field, "%s", misfit(semantic))
}
