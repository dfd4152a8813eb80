package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// ETagOf returns a strong ETag for a body, which is a hash of it.
func ETagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// MatchETag looks for tag in the values of If-Match or If-None-Match, and returns it
// as it is written there. It ignores the suffix of compressed responses, and the
// prefix W/ that proxies add to the ETags of responses that they compress.
func MatchETag(headers []string, tag string) (match string, ok bool) {
	for _, header := range headers {
		for candidate := range strings.SplitSeq(header, ",") {
			candidate = strings.TrimSpace(candidate)
			bare := strings.TrimPrefix(candidate, "W/")
			switch {
			case candidate == "*":
				return tag, true
			case bare == tag, bare == strings.TrimSuffix(tag, `"`)+gzipSuffix+`"`:
				return candidate, true
			}
		}
	}
	return "", false
}
