// Package witness has our logs cosigned. A Pool asks witnesses to cosign the checkpoints (C2SP
// tlog-witness), which they do after they have verified that each extends the one before. If one
// knows another history of a log, the Pool stops its signing.
package witness
