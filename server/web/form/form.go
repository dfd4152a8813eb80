// Package form holds what a visitor filled in, and what is wrong with it, and the
// fields that a page shows of it.
package form

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/ledgerd/ledgerd/client"
)

// A Form is what a visitor filled in, and what is wrong with it.
type Form struct {
	Values url.Values
	// Problem is what is wrong with it as a whole.
	Problem string
	// Errors is what is wrong with single fields, by their names.
	Errors map[string]string
	// Status is the HTTP status of the page that shows the form again; 0 for 422.
	Status int
}

// New returns a form with initial values: pairs are names and values in turn.
func New(pairs ...string) *Form {
	f := &Form{Values: url.Values{}}
	for i := 0; i < len(pairs); i += 2 {
		f.Values.Add(pairs[i], pairs[i+1])
	}
	return f
}

// Get returns the first value of a field.
func (f *Form) Get(name string) string { return f.Values.Get(name) }

// Fail records what is wrong with a field. The first message of a field stays.
func (f *Form) Fail(field, message string) {
	if f.Errors == nil {
		f.Errors = make(map[string]string)
	}
	if _, ok := f.Errors[field]; !ok {
		f.Errors[field] = message
	}
}

// Failed reports whether something is wrong.
func (f *Form) Failed() bool { return f.Problem != "" || len(f.Errors) > 0 }

// Explain records an error of the API: what it says of single fields at these, the
// rest as the problem of the form. It reports whether the visitor can correct the
// error in the form.
func (f *Form) Explain(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Status < 400 || e.Status > 499 || e.Status == http.StatusUnauthorized ||
		e.Status == http.StatusForbidden || e.Status == http.StatusNotFound {
		return false
	}
	f.Status = e.Status
	for _, field := range e.Problem.Errors {
		f.Fail(field.Field, field.Message)
	}
	if len(e.Problem.Errors) == 0 {
		f.Problem = e.Problem.Detail
	}
	return true
}
