package ledger

import (
	"bytes"
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

// UTF8 returns a text without its byte order mark. It is an error with CodeInvalidJSON if the text is UTF-16 or
// UTF-32.
func UTF8(text []byte) ([]byte, error) {
	isWide := len(text) > 1 && (text[0] == 0 || text[1] == 0)
	if isWide || bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return nil, Errorf(CodeInvalidJSON, "the text is UTF-16, as Windows PowerShell writes it, or UTF-32 (use UTF-8)")
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), nil
}

// DecodeStrict decodes one JSON document into v. It refuses invalid JSON,
// unknown and duplicate members, and values of the wrong type. The error names
// the field.
func DecodeStrict(data []byte, v any) error {
	return decodeError(json.Unmarshal(data, v, json.RejectUnknownMembers(true)))
}

// DecodeOpen is like DecodeStrict, but ignores unknown members. It is for
// documents that others define and extend.
func DecodeOpen(data []byte, v any) error {
	return decodeError(json.Unmarshal(data, v))
}

func decodeError(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return Errorf(CodeInvalidJSON, "unexpected end of JSON")
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return &Error{
			Code:   CodeInvalidJSON,
			Detail: fmt.Sprintf("invalid JSON at byte %d: %v", syntactic.ByteOffset, syntactic.Err),
			Fields: fieldAt(syntactic.JSONPointer, "invalid JSON"),
		}
	}

	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return Errorf(CodeInvalidJSON, "%v", err)
	}
	if errors.Is(err, json.ErrUnknownName) {
		return unknownField(fieldPath("", semantic.JSONPointer))
	}
	if semantic.JSONPointer == "" {
		return Errorf(CodeInvalidJSON, "invalid document: %s", misfit(semantic))
	}
	return FieldErrorf(CodeInvalidJSON, fieldPath("", semantic.JSONPointer), "%s", misfit(semantic))
}

func unknownField(field string) *Error {
	return &Error{Code: CodeUnknownField, Detail: fmt.Sprintf("unknown field %s", field),
		Fields: []FieldError{{field, "unknown field"}}}
}

// misfit returns why a JSON value has the wrong type.
func misfit(e *json.SemanticError) string {
	switch {
	case errors.Is(e.Err, strconv.ErrSyntax), errors.Is(e.Err, strconv.ErrRange):
		return "use a whole number, within the range of 64 bits"
	case e.Err != nil:
		return e.Err.Error()
	case e.JSONKind == jsontext.KindBeginArray:
		return "a JSON array is not allowed here"
	case e.JSONKind == jsontext.KindBeginObject:
		return "a JSON object is not allowed here"
	}
	return fmt.Sprintf("a JSON %s is not allowed here", e.JSONKind)
}

func fieldAt(p jsontext.Pointer, message string) []FieldError {
	if p == "" {
		return nil
	}
	return []FieldError{{fieldPath("", p), message}}
}

// maxFieldPath is the approximate limit, in bytes, on the member names that an
// error repeats.
const maxFieldPath = 200

// fieldPath converts a JSON pointer (RFC 6901), relative to the field prefix, into
// the path that errors use: /requirements/1/state becomes requirements[1].state.
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

// notInName reports whether r would make a field's path ambiguous or unreadable.
func notInName(r rune) bool { return strings.ContainsRune(`.[]"`, r) || !unicode.IsPrint(r) }

// DecodeForeign is like DecodeOpen, but reports a value of the wrong type with the
// given code. prefix is the path of the document and starts the path of the field.
// Invalid JSON is still CodeInvalidJSON.
func DecodeForeign(data []byte, v any, code Code, prefix string) error {
	err := json.Unmarshal(data, v)
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return decodeError(err)
	}
	field := fieldPath(prefix, semantic.JSONPointer)
	if field == "" {
		return Errorf(code, "invalid document: %s", misfit(semantic))
	}
	return FieldErrorf(code, field, "%s", misfit(semantic))
}

// An EventBody is the body of an event as a log has it.
type EventBody struct {
	// Event points to the event, such as *StateEvent. It is nil if this release does not know the type.
	Event Event
	// Unknown names what this release does not know: the type, or the first field that it has no
	// member for. It is empty if all is known.
	Unknown string
}

// ReadEvent reads the body of an event of a type, which another release may have written. What that
// release says in an unknown field is lost, so nothing that rests on the event may be called verified.
func ReadEvent(t EventType, body []byte) (b EventBody, err error) {
	if b.Event = newEvent(t); b.Event == nil {
		b.Unknown = "the type " + text.Clip(string(t))
		return b, nil
	}
	err = DecodeStrict(body, b.Event)
	if e, ok := errors.AsType[*Error](err); ok && e.Code == CodeUnknownField {
		b.Unknown = "the field " + text.Clip(e.Fields[0].Field)
		err = DecodeOpen(body, b.Event)
	}
	return b, err
}

// newEvent returns an empty event of a type, or nil if the type is unknown.
func newEvent(t EventType) Event {
	switch t {
	case EventAttestation:
		return new(AttestationEvent)
	case EventState:
		return new(StateEvent)
	case EventStanding:
		return new(StandingEvent)
	case EventPolicy:
		return new(PolicyEvent)
	case EventRadar:
		return new(RadarEvent)
	case EventViolation:
		return new(ViolationEvent)
	case EventCommit:
		return new(CommitEvent)

	case EventKey: // and those of an org
		return new(KeyEvent)
	case EventIdentity:
		return new(IdentityEvent)
	case EventAudit:
		return new(AuditEvent)
	}
	return nil
}
