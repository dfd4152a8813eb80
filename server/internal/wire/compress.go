package wire

import (
	"compress/gzip"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
)

// gzipSuffix is the suffix of the ETag of a compressed response.
const gzipSuffix = "-gzip"

// Compressed returns next with gzip compression of responses of these media types,
// if they are large enough and the client accepts it. It uses the fastest level:
// others would take longer than the rest of the request.
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
		// Streams are never compressed. There can be thousands of them, so keep their
		// stacks small.
		if IsStreamRequest(r) {
			next.ServeHTTP(w, r)
		} else {
			zipped.ServeHTTP(w, r)
		}
	})
}

// EventStream is the media type of a live stream.
const EventStream = "text/event-stream"

// IsStreamRequest reports whether a request has the usual Accept header of a client
// of the live stream. It may miss a request that gets a stream, which then only
// needs more memory.
func IsStreamRequest(r *http.Request) bool { return r.Header.Get("Accept") == EventStream }

// DisableCompression disables compression of the response to a request. It marks the header for
// [Compressed], which removes the mark.
func DisableCompression(w http.ResponseWriter, r *http.Request) {
	if !IsStreamRequest(r) { // nobody would remove it
		w.Header().Set(gzhttp.HeaderNoCompression, "1")
	}
}
