package witness

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/ledger/proof"
)

// A request is the body of an add-checkpoint request.
type request struct {
	old   int64
	proof tlog.TreeProof
	note  []byte
}

// format returns the body.
func (r request) format() []byte {
	b := fmt.Appendf(nil, "old %d\n", r.old)
	for _, hash := range r.proof {
		b = append(base64.StdEncoding.AppendEncode(b, hash[:]), '\n')
	}
	b = append(b, '\n')
	return append(b, r.note...)
}

// maxTree is the largest size of a tree, so that computing with sizes cannot overflow.
const maxTree = math.MaxInt64 >> proof.TileHeight

// parseSize parses the decimal size of a tree.
func parseSize(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > maxTree || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("%.100q is not the decimal size of a tree, or too large", text)
	}
	return n, nil
}
