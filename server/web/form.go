package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
)

// The most bytes that a form may have. A policy of 1 MiB has most of its signs
// written as three; who has not signed in sends no more than a token or a name.
const (
	maxForm     = 4 << 20
	maxOpenForm = 64 << 10
)

// A form is what somebody has filled in, and what is wrong with it.
type form struct {
	Values url.Values
	// Problem is what is wrong with it as a whole.
	Problem string
	// Errors is what is wrong with single fields, by their names.
	Errors map[string]string
	status int
}

// A formPage shows a form, and nothing else that changes.
type formPage struct{ Form *form }

// newForm returns a form with what stands in it at first, names and values in turn.
func newForm(pairs ...string) *form {
	f := &form{Values: url.Values{}}
	for i := 0; i < len(pairs); i += 2 {
		f.Values.Add(pairs[i], pairs[i+1])
	}
	return f
}

// form reads the form that was sent.
func (v *visit) form() (*form, error) {
	most := int64(maxForm)
	if v.route.scope == open {
		most = maxOpenForm
	}
	v.r.Body = http.MaxBytesReader(nil, v.r.Body, most)
	if err := v.r.ParseForm(); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, ledger.Errorf(ledger.CodePayloadTooLarge, "the form cannot be read: it may have %d bytes at most", most)
		}
		return nil, ledger.Errorf(ledger.CodeInvalidParameter, "the form cannot be read: its fields have to be URL-encoded")
	}
	return &form{Values: v.r.PostForm}, nil
}

// Get returns the first value of a field.
func (f *form) Get(name string) string { return f.Values.Get(name) }

// fail notes what is wrong with a field.
func (f *form) fail(field, message string) {
	if f.Errors == nil {
		f.Errors = make(map[string]string)
	}
	if _, ok := f.Errors[field]; !ok {
		f.Errors[field] = message
	}
}

// failed reports whether something is wrong.
func (f *form) failed() bool { return f.Problem != "" || len(f.Errors) > 0 }

// again shows the page of the form once more, with what is wrong.
func (f *form) again(a *answer) *answer {
	if a.status = f.status; a.status == 0 {
		a.status = http.StatusUnprocessableEntity
	}
	return a
}

// explain puts what the API says of single fields beside those of the form,
// and the rest above it. It reports whether the error is one that the visitor
// can mend in the form.
func (f *form) explain(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Status < 400 || e.Status > 499 || e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden || e.Status == http.StatusNotFound {
		return false
	}
	f.status = e.Status
	for _, field := range e.Problem.Errors {
		f.fail(field.Field, field.Message)
	}
	if len(e.Problem.Errors) == 0 {
		f.Problem = e.Problem.Detail
	}
	return true
}
