// Package bulk splits the bodies of bulk requests, which have several envelopes or bundles as
// tools write them: JSON Lines, arrays, and the lists of npm and GitHub.
package bulk

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// Max is the maximum number of items in a body.
const Max = 100

// An Item is one of several envelopes or bundles in a body.
type Item struct {
	// Envelope is the bytes of the envelope or bundle. It is a part of the body, not a copy.
	Envelope []byte
	// Err says why the item has no envelope. It is a *ledger.Error, and nil if Envelope is set.
	Err error
}

// Split returns the envelopes and bundles in a body, in their order. The forms of a body are:
//
//   - several JSON values one after the other, as in JSON Lines, each an envelope or bundle;
//   - a JSON array of envelopes and bundles;
//   - an object with the member attestations, an array of objects whose member bundle is an
//     envelope or bundle.
//
// In place of an envelope may be such an object with a bundle, or an object whose member attestation is
// one, as 'gh attestation verify --format json' writes them.
//
// If the body has another form, such as that of a single envelope, Split returns nil. It checks
// the syntax of the whole body, but not that the items are valid envelopes. Every error is a
// *ledger.Error.
func Split(body []byte) ([]Item, error) {
	values, err := sequence(body)
	if err != nil {
		return nil, err
	}
	if len(values) > 1 {
		return itemsOf(values, envelope), nil
	}
	if len(values) == 0 {
		return nil, nil // no JSON, which the parser of envelopes explains
	}

	list, toItem := values[0], envelope
	if list[0] != '[' {
		if list, toItem = attestations(values[0]), listed; list == nil {
			return single(values[0]), nil
		}
	}
	if values, err = elements(list); err != nil {
		return nil, err
	}
	return itemsOf(values, toItem), nil
}

func itemsOf(values [][]byte, toItem func([]byte) Item) []Item {
	items := make([]Item, len(values))
	for i, value := range values {
		items[i] = toItem(value)
	}
	return items
}

// single returns the item in an object that has a bundle; nil for any other document.
func single(document []byte) []Item {
	if bundle := wrapped(document); bundle != nil {
		return []Item{{Envelope: bundle}}
	}
	return nil
}

// envelope returns the item for an envelope or bundle, or an object that has a bundle.
func envelope(value []byte) Item {
	if bundle := wrapped(value); bundle != nil {
		return Item{Envelope: bundle}
	}
	return Item{Envelope: value}
}

// wrapped returns the bundle in an object that is not an envelope, or nil.
func wrapped(value []byte) []byte {
	if !bytes.Contains(value, []byte(`"bundle"`)) {
		return nil // usually an envelope: it is not read once more
	}
	if attestation := objectIn(value, "attestation"); attestation != nil {
		value = attestation
	}
	return objectIn(value, "bundle")
}

// objectIn returns the value of an object's member if it is an object, and the object has no members of an
// envelope. Otherwise it returns nil.
func objectIn(object []byte, name string) []byte {
	value, clash := member(object, name, envelopeMembers...)
	if clash != "" || !bytes.HasPrefix(value, []byte("{")) {
		return nil
	}
	return value
}

// sequence returns the JSON values of a body. It returns nil if the first one is invalid and cannot
// be an array: then the body may have been meant as one envelope.
func sequence(body []byte) ([][]byte, error) {
	dec, values := decoder(body), [][]byte(nil)
	for {
		value, err := next(dec, body)
		switch {
		case err == io.EOF:
			return values, nil
		case err != nil && len(values) == 0 && !bytes.HasPrefix(bytes.TrimLeft(body, space), []byte("[")):
			return nil, nil
		case err != nil:
			return nil, invalid(body, err)
		case len(values) == Max:
			return nil, tooMany()
		}
		values = append(values, value)
	}
}

const space = " \t\r\n" // of JSON

// decoder returns a decoder that reads b without copying it.
func decoder(b []byte) *jsontext.Decoder { return jsontext.NewDecoder(bytes.NewBuffer(b)) }

// next returns the next value of a decoder of b, as a part of b.
func next(dec *jsontext.Decoder, b []byte) ([]byte, error) {
	value, err := dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(dec.InputOffset())
	return b[end-len(value) : end : end], nil
}

// invalid returns the error for a body that is not JSON, with the line of the mistake.
func invalid(body []byte, err error) error {
	at, why := int64(len(body)), "unexpected end of JSON"
	if fault, ok := errors.AsType[*jsontext.SyntacticError](err); ok && !errors.Is(err, io.ErrUnexpectedEOF) {
		at, why = fault.ByteOffset, fault.Err.Error()
	}
	line := 1 + bytes.Count(body[:at], []byte("\n"))
	return ledger.Errorf(ledger.CodeInvalidJSON, "invalid JSON on line %d, at byte %d of the body: %s", line, at, why)
}

func tooMany() error {
	return ledger.Errorf(ledger.CodePayloadTooLarge, "the body has more than %d envelopes (send at most %d at a time)",
		Max, Max)
}

// elements returns the elements of an array, which is valid JSON.
func elements(array []byte) ([][]byte, error) {
	dec, values := decoder(array), [][]byte(nil)
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	for dec.PeekKind() != jsontext.KindEndArray {
		value, err := next(dec, array)
		if err != nil {
			return nil, err
		}
		if len(values) == Max {
			return nil, tooMany()
		}
		values = append(values, value)
	}

	if len(values) == 0 {
		return nil, ledger.Errorf(ledger.CodeInvalidEnvelope, "the list has no envelopes")
	}
	return values, nil
}

// envelopeMembers are the members of envelopes, bundles and statements. An object that has one
// of them is not a list.
var envelopeMembers = []string{"payload", "payloadType", "signatures", "mediaType", "verificationMaterial",
	"dsseEnvelope", "messageSignature", "_type"}

// attestations returns the member attestations of a list as npm and GitHub return it. It returns
// nil for any other document, and for one that also has members of an envelope.
func attestations(document []byte) []byte {
	if !bytes.Contains(document, []byte(`"attestations"`)) {
		return nil // usually an envelope: it is not read once more
	}
	list, clash := member(document, "attestations", envelopeMembers...)
	if clash != "" || !bytes.HasPrefix(list, []byte("[")) {
		return nil
	}
	return list
}

// listed returns the item for an entry of a list of attestations.
func listed(entry []byte) Item {
	bundle, clash := member(entry, "bundle")
	switch {
	case clash != "":
		return Item{Err: ledger.FieldErrorf(ledger.CodeInvalidEnvelope, "bundle", "spelled %s (use bundle)",
			text.Quote(clash))}
	case !bytes.HasPrefix(bundle, []byte("{")):
		return Item{Err: ledger.FieldErrorf(ledger.CodeInvalidEnvelope, "bundle",
			"required in an entry of the list (if there is a bundle_url, download the bundle from it)")}
	}
	return Item{Envelope: bundle}
}

// member returns the value of an object's member, or nil. clash is the name of a member that is
// in others, or differs from name only in case. The object is valid JSON; a value of another kind
// has no members.
func member(object []byte, name string, others ...string) (value []byte, clash string) {
	dec := decoder(object)
	if start, err := dec.ReadToken(); err != nil || start.Kind() != jsontext.KindBeginObject {
		return nil, ""
	}
	for dec.PeekKind() == jsontext.KindString {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, ""
		}
		found := token.String()
		read, err := next(dec, object)
		if err != nil {
			return nil, ""
		}

		switch {
		case found == name:
			value = read
		case strings.EqualFold(found, name), slices.Contains(others, found):
			clash = found
		}
	}
	return value, clash
}
