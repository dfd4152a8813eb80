package server

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

const (
	smallBody = 1 << 20  // the limit where Config.MaxBody is not
	drainMost = 16 << 20 // read of a body that is refused
)

// decode reads a JSON body of at most limit bytes into v, strictly.
func (c *call) decode(v any, limit int64) error {
	body, err := c.body(limit, typeJSON)
	if err != nil {
		return err
	}
	return ledger.DecodeStrict(body, v)
}

// decodeAny is decode for a body that may be left out: then v stays as it is.
func (c *call) decodeAny(v any, limit int64) error {
	body, err := c.readBody(limit)
	if err != nil || len(bytes.TrimSpace(body)) == 0 {
		return err
	}
	if err := checkMediaType(c.r.Header, []string{typeJSON}); err != nil {
		return err
	}
	return ledger.DecodeStrict(body, v)
}

// noBody refuses a body that says anything, for it would not be heeded.
func (c *call) noBody() error { return c.decodeAny(&struct{}{}, smallBody) }

// body reads a body of at most limit bytes that is of one of the media types.
func (c *call) body(limit int64, mediaTypes ...string) ([]byte, error) {
	if err := checkMediaType(c.r.Header, mediaTypes); err != nil {
		return nil, err
	}
	body, err := c.readBody(limit)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, ledger.Errorf(ledger.CodeInvalidJSON, "the body is empty: it has to be a JSON document")
	}
	return body, nil
}

func checkMediaType(h http.Header, mediaTypes []string) error {
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return ledger.Errorf(
			ledger.CodeUnsupportedMediaType, "a body with Content-Encoding %s is not accepted: send it as it is", coding)
	}
	given := h.Get("Content-Type")
	if slices.Contains(mediaTypes, given) {
		return nil
	}
	mediaType, parameters, err := mime.ParseMediaType(given)
	if err != nil || !slices.Contains(mediaTypes, mediaType) {
		return ledger.Errorf(ledger.CodeUnsupportedMediaType, "the Content-Type %q is not accepted: use %s", given,
			strings.Join(mediaTypes, " or "))
	}
	if charset, ok := parameters["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return ledger.Errorf(ledger.CodeUnsupportedMediaType, "the charset %s is not accepted: JSON is UTF-8", charset)
	}
	return nil
}

// readBody reads the body of at most limit bytes.
func (c *call) readBody(limit int64) ([]byte, error) {
	if c.r.ContentLength > limit {
		return nil, c.tooLarge(limit)
	}
	var buf bytes.Buffer
	if c.r.ContentLength > 0 {
		buf.Grow(int(c.r.ContentLength) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(c.r.Body, limit+1))
	if err != nil {
		return nil, ledger.Errorf(ledger.CodeInvalidJSON, "the body broke off after %d bytes", n)
	}
	if n > limit {
		return nil, c.tooLarge(limit)
	}
	return buf.Bytes(), nil
}

func (c *call) tooLarge(limit int64) error {
	hint := ""
	if limit == c.maxBody {
		hint = " (the config key max_body)"
	}
	return ledger.Errorf(ledger.CodePayloadTooLarge, "the body may have %d bytes at most%s", limit, hint)
}

// drain reads, within reason, what is left of a body that was refused, and
// throws it away: a client that sends all before it reads would otherwise find
// the connection reset and never see why.
func drain(r *http.Request) {
	if r.Header.Get("Expect") == "" { // else the client waits to be told whether to send it
		io.CopyN(io.Discard, r.Body, drainMost)
	}
}
