// Package proof is the transparency log of an org: the leaf that commits to an event, the
// tiles, the checkpoint, and the proof that an event is in the log. The forms are those
// of C2SP, so that other tools read them: tlog-tiles, tlog-checkpoint and tlog-proof.
// Hashes are those of RFC 6962.
package proof
