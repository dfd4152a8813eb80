package wire

import (
	"compress/gzip"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
)

// gzipSuffix marks the ETag of an answer that is sent compressed.
const gzipSuffix = "-gzip"

// Compressed returns next with answers of these media types gzipped, if they are
// large enough and the client accepts it. The level is the fastest: a slower one
// costs more than the rest of the answer.
func Compressed(next http.Handler, mediaTypes ...string) http.Handler {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.EnableZstd(false),
		gzhttp.CompressionLevel(gzip.BestSpeed),
		gzhttp.SuffixETag(gzipSuffix),
		gzhttp.ContentTypes(mediaTypes),
	)
	if err != nil {
		panic(err) // the options are constants
	}
	zipped := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A stream is never compressed, and thousands of them wait at this depth of
		// the stack.
		if AsksForStream(r) {
			next.ServeHTTP(w, r)
		} else {
			zipped.ServeHTTP(w, r)
		}
	})
}

// EventStream is the media type of a live stream.
const EventStream = "text/event-stream"

// AsksForStream reports whether a request asks for a live stream in the way that
// clients of one do. One that it misses costs more memory, and is answered the
// same.
func AsksForStream(r *http.Request) bool { return r.Header.Get("Accept") == EventStream }

// NeverCompress keeps an answer from being compressed, whatever the request
// accepts.
func NeverCompress(h http.Header) { h.Set(gzhttp.HeaderNoCompression, "1") }
