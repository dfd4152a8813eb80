package server

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

const (
	defaultLimit = 50
	maxLimit     = 500
)

// parameters reads a query and refuses, by name, what the route does not know,
// what is given twice and what is empty.
func parameters(rawQuery string, known []string) (url.Values, error) {
	if rawQuery == "" {
		return nil, nil
	}
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, ledger.Errorf(ledger.CodeInvalidParameter, "the query cannot be read: %v", err)
	}
	unknown := &ledger.Error{Code: ledger.CodeUnknownParameter,
		Detail: "the query has parameters that this endpoint does not know"}
	invalid := &ledger.Error{Code: ledger.CodeInvalidParameter, Detail: "the query is not acceptable"}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch values := query[name]; {
		case !slices.Contains(known, name):
			unknown.Fields = append(unknown.Fields, ledger.FieldError{Field: name, Message: "known are: " + nameList(known)})
		case len(values) > 1:
			invalid.Fields = append(invalid.Fields, ledger.FieldError{Field: name, Message: "it is given more than once"})
		case values[0] == "":
			invalid.Fields = append(invalid.Fields, ledger.FieldError{Field: name, Message: "it is empty: leave it out"})
		}
	}
	switch {
	case len(unknown.Fields) > 0:
		return nil, unknown
	case len(invalid.Fields) > 0:
		return nil, invalid
	}
	return query, nil
}

func nameList(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func invalidParameter(name, format string, args ...any) error {
	return ledger.FieldErrorf(ledger.CodeInvalidParameter, name, format, args...)
}

// page reads limit and cursor.
func (c *call) page() (store.Query, error) {
	q := store.Query{Limit: defaultLimit, Cursor: c.query.Get("cursor")}
	text := c.query.Get("limit")
	if text == "" {
		return q, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxLimit {
		return q, invalidParameter("limit", "%q is not a number from 1 to %d", text, maxLimit)
	}
	q.Limit = limit
	return q, nil
}

// parse reads a parameter with a function of package ledger; the zero value
// stands for one that is not given.
func parse[T any](c *call, name string, read func(string) (T, error)) (T, error) {
	var value T
	text := c.query.Get(name)
	if text == "" {
		return value, nil
	}
	value, err := read(text)
	if err != nil {
		return value, invalidParameter(name, "%v", err)
	}
	return value, nil
}
