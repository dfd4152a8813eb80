package ledgertest

import (
	"crypto/ed25519"
	"encoding/hex"
)

// SmallOrderKeys returns all 14 encodings of the eight points of small order of Ed25519's curve, for
// which anybody can sign.
func SmallOrderKeys() (keys []ed25519.PublicKey) {
	for _, y := range []string{
		"0000000000000000000000000000000000000000000000000000000000000000", // 0
		"0100000000000000000000000000000000000000000000000000000000000000", // 1
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // p−1
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // p, which is 0
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // p+1, which is 1
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	} {
		key := Must(hex.DecodeString(y))
		signed := append(ed25519.PublicKey(nil), key...)
		signed[31] |= 0x80 // the sign of x
		keys = append(keys, key, signed)
	}
	return keys
}
