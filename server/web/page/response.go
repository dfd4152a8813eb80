package page

import (
	"cmp"
	"net/http"
)

// A Response is the result of a handler: a page, a redirect, a file or a stream.
// It is written once it is complete.
type Response struct {
	Status int // 0 for 200
	// Page is the name of the template that shows Data.
	Page, Title string
	Data        any
	// Live is the path of the event stream that refreshes the page's live parts;
	// empty for none.
	Live string
	// LiveCommit limits the refreshes to events about the commit; empty for all.
	LiveCommit string
	// LiveSince is the ID of the last event that the page certainly shows.
	LiveSince string
	// Wide makes the page as wide as the window.
	Wide bool

	Location string // target of a redirect
	Cookies  []*http.Cookie

	// Body is the content of a file or of a rendered page.
	Body      []byte
	MediaType string
	// Filename makes the browser save the file under that name.
	Filename  string
	Immutable bool // browsers can cache the file forever
	Stream    http.HandlerFunc
}

// A FormPage shows only a form.
type FormPage struct{ Form *Form }

// Again returns the page of a form with its errors.
func Again(f *Form, resp *Response) *Response {
	resp.Status = cmp.Or(f.Status, http.StatusUnprocessableEntity)
	return resp
}

// SeeOther redirects to another page (303).
func SeeOther(path string) *Response {
	return &Response{Location: path}
}

// File returns a download with that file name.
func File(name, mediaType string, body []byte) *Response {
	return &Response{Body: body, MediaType: mediaType, Filename: name}
}
