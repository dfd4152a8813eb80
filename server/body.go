package server

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/wire"
)

// smallBody is the limit of bodies to which Config.MaxBody does not apply, in bytes.
const smallBody = 1 << 20

// decode reads a JSON body of at most limit bytes into v, strictly.
func (c *call) decode(v any, limit int64) error {
	body, err := c.body(limit, typeJSON)
	if err != nil {
		return err
	}
	return ledger.DecodeStrict(body, v)
}

// decodeValid is decode for a v that can be checked.
func (c *call) decodeValid(v interface{ Check() error }, limit int64) error {
	if err := c.decode(v, limit); err != nil {
		return err
	}
	return v.Check()
}

// decodeOptional is decode for a body that may be omitted. It then leaves v
// unchanged.
func (c *call) decodeOptional(v any, limit int64) error {
	body, err := c.readBody(limit)
	if err != nil || len(bytes.TrimSpace(body)) == 0 {
		return err
	}
	if err := checkMediaType(c.r.Header, []string{typeJSON}); err != nil {
		return err
	}
	return ledger.DecodeStrict(body, v)
}

// checkNoBody returns an error if the body has fields, which would be ignored.
func (c *call) checkNoBody() error { return c.decodeOptional(&struct{}{}, smallBody) }

// body reads a body of at most limit bytes and of one of the media types.
func (c *call) body(limit int64, mediaTypes ...string) ([]byte, error) {
	if err := checkMediaType(c.r.Header, mediaTypes); err != nil {
		return nil, err
	}
	body, err := c.readBody(limit)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, ledger.Errorf(ledger.CodeInvalidJSON, "the body is empty: send a JSON document")
	}
	return body, nil
}

// hasType reports whether the body has one of the media types.
func (c *call) hasType(mediaTypes ...string) bool {
	return checkMediaType(c.r.Header, mediaTypes) == nil
}

func checkMediaType(h http.Header, mediaTypes []string) error {
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return ledger.Errorf(
			ledger.CodeUnsupportedMediaType, "unsupported Content-Encoding %s: send the body uncompressed", coding)
	}

	contentType := h.Get("Content-Type")
	if slices.Contains(mediaTypes, contentType) {
		return nil
	}
	mediaType, parameters, err := mime.ParseMediaType(contentType)
	if err != nil || !slices.Contains(mediaTypes, mediaType) {
		return ledger.Errorf(ledger.CodeUnsupportedMediaType, "unsupported Content-Type %q: use %s", contentType,
			strings.Join(mediaTypes, " or "))
	}
	if charset, ok := parameters["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return ledger.Errorf(ledger.CodeUnsupportedMediaType, "unsupported charset %s: use UTF-8", charset)
	}
	return nil
}

// readBody reads a body of at most limit bytes and of any media type, which is text in UTF-8.
func (c *call) readBody(limit int64) ([]byte, error) {
	body, err := wire.ReadBody(c.w, c.r, limit, c.memory)
	if errors.Is(err, wire.ErrTooLarge) {
		return nil, c.tooLarge(limit)
	}
	if (isCode(err, ledger.CodeRequestTimeout) || isCode(err, ledger.CodeInvalidJSON)) && c.stopping.Load() {
		return nil, ledger.Errorf(ledger.CodeStopping,
			"the server is stopping and did not get the whole body: send the request again")
	}
	if err != nil {
		return nil, err
	}
	return ledger.UTF8(body)
}

func (c *call) tooLarge(limit int64) error {
	hint := ""
	if limit == c.maxBody {
		hint = " (setting max_body)"
	}
	return ledger.Errorf(ledger.CodePayloadTooLarge, "the body is too large: at most %d bytes%s", limit, hint)
}
