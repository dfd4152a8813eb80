package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// TagOf returns the ETag of a body.
func TagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// TagIn looks for tag in the headers If-Match or If-None-Match and returns it as
// it is written there. The mark of a compressed answer makes no difference, nor
// does W/, which proxies put before the ETags of what they compress.
func TagIn(headers []string, tag string) (as string, ok bool) {
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
