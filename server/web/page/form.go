package page

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/ledgerd/ledgerd/client"
)

// A Form holds the values and errors of a submitted form.
type Form struct {
	Values url.Values
	// Problem is the error of the form as a whole, or "".
	Problem string
	// Errors holds the errors of single fields by name.
	Errors map[string]string
	// Status is the HTTP status of the page that shows the form again. 0 means 422.
	Status int
}

// NewForm returns a form with initial values, given as alternating names and values.
func NewForm(pairs ...string) *Form {
	f := &Form{Values: url.Values{}}
	for i := 0; i < len(pairs); i += 2 {
		f.Values.Add(pairs[i], pairs[i+1])
	}
	return f
}

// Get returns the first value of a field.
func (f *Form) Get(name string) string { return f.Values.Get(name) }

// Fail records an error of a field. Only the first error of a field counts.
func (f *Form) Fail(field, message string) {
	if f.Errors == nil {
		f.Errors = make(map[string]string)
	}
	if _, ok := f.Errors[field]; !ok {
		f.Errors[field] = message
	}
}

// Failed reports whether the form has errors.
func (f *Form) Failed() bool { return f.Problem != "" || len(f.Errors) > 0 }

// Explain records an error of the API: field errors on their fields, any other as the
// problem of the form. It returns false, and records nothing, if the user cannot
// correct the error in the form.
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
