// Package witness is both sides of C2SP tlog-witness. A Pool asks witnesses to cosign the
// checkpoints of our logs. A Witness cosigns the checkpoints of other logs, after it has
// verified that each extends the one before.
package witness
