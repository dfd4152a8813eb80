package page

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
)

// Answer returns a value, or the error in its place, as JSON for the script. Visitors who are not
// signed in any more get the sign-in, as everywhere.
func Answer(value any, err error) (*Response, error) {
	status := http.StatusOK
	if err != nil {
		problem := struct {
			Code   ledger.Code `json:"code"`
			Detail string      `json:"detail"`
		}{CodeOf(err), err.Error()}
		status = http.StatusUnprocessableEntity
		if e, ok := errors.AsType[*client.Error](err); ok {
			status, problem.Detail = e.Status, e.Problem.Detail
		}
		if status == http.StatusUnauthorized || status >= http.StatusInternalServerError {
			return nil, err
		}
		value = problem
	}

	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return &Response{Status: status, Body: body, MediaType: "application/json"}, nil
}
